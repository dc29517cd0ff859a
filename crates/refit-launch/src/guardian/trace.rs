//! A call as the trace shows it.

use refit_session::{ANSWERS, CALLS, CountedCall, Event, now_ns};

use super::look::{OpenFile, Thread, basename};
use super::tally::Outcome;
use crate::filter::{Call, call};
use crate::sys::notify::{Answer, Notification};

/// The event of a call that gets this answer now, and came at `since_ns`.
pub fn event(
    notification: &Notification,
    counter: CountedCall,
    with: Answer,
    outcome: Outcome,
    since_ns: u64,
) -> Event {
    let thread = Thread::open(notification.tid);
    let thread = thread.as_ref();
    let exe = thread.and_then(Thread::executable).unwrap_or_default();
    let at_ns = now_ns();
    Event {
        turn: 0,
        at_ns,
        took_ns: at_ns.saturating_sub(since_ns),
        pid: thread.and_then(Thread::process).unwrap_or(notification.tid),
        call: CALLS[counter as usize],
        answer: ANSWERS[match outcome {
            Outcome::Real => 0,
            Outcome::Suppressed => 1,
            Outcome::Injected => 2,
        }],
        result: match with {
            Answer::Continue => None,
            Answer::Value(_) => Some(0),
            Answer::Error(errno) => Some(-errno),
        },
        executable: String::from_utf8_lossy(basename(&exe)).into_owned(),
        path: thread
            .map(|thread| path(notification, thread))
            .unwrap_or_default(),
    }
}

/// Of the file that the call is about by its descriptor.
fn path(notification: &Notification, thread: &Thread) -> String {
    let of_file = matches!(
        call(notification.arch, notification.number),
        Some(Call::Fsync | Call::Fdatasync | Call::Syncfs | Call::SyncFileRange | Call::Pwritev2)
    );
    let file = of_file.then(|| OpenFile::of(thread, notification.args[0] as i32));
    let path = file.flatten().and_then(|file| file.path());
    path.map(|path| path.to_string_lossy().into_owned())
        .unwrap_or_default()
}
