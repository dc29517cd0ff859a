//! Work that may never end, in a process of its own.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, pidfd_send_signal, set_parent_process_death_signal};

use refit_session::names::READER;

use super::fork::{detach, fork};

/// What `work` answers, done in a forked process; `None` where that takes longer than
/// `limit`. A thread would not do: one that waits for a FUSE server cannot be killed
/// (fs/fuse/dev.c, `request_wait_answer`), and would keep its whole process from ending.
/// The process is killed then, and nobody waits for it. It has no other descriptor than
/// those that the work opens.
///
/// # Errors
/// As `fork`: this process has other threads, or there can be no more processes. The
/// work ended without an answer.
pub fn answer_within(
    limit: Duration,
    work: impl FnOnce() -> Vec<u8>,
) -> io::Result<Option<Vec<u8>>> {
    let began = Instant::now();
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
    let (mut from, to) = (File::from(from), File::from(to));
    let child = fork(move || {
        // Nobody who reads refit's output until its end may wait for this one.
        detach(READER, &[to.as_fd()]);
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        i32::from((&to).write_all(&work()).is_err())
    })?;
    let mut answer = Vec::new();
    loop {
        let left = limit.saturating_sub(began.elapsed());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        let mut ready = [PollFd::new(&from, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) => {
                let _ = pidfd_send_signal(&child.pidfd, Signal::KILL);
                return Ok(None);
            }
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let mut part = [0; 65_536];
        match from.read(&mut part)? {
            0 => break,
            bytes => answer.extend_from_slice(&part[..bytes]),
        }
    }
    child.reap();
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(answer))
}
