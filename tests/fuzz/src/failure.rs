//! What an input did, and a smaller one that does the same.

use std::cell::RefCell;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::time::{Duration, Instant};

use crate::sys::{allocator, clock};

/// Why a target fails.
#[derive(Clone, Debug)]
pub enum Failure {
    /// It panicked: where, and what it wrote.
    Panic {
        /// File and line.
        place: String,
        /// Not compared: it may tell the input.
        message: String,
    },
    /// It allocated more than the input justifies.
    Memory,
    /// It took too long.
    Time,
}

impl PartialEq for Failure {
    fn eq(&self, other: &Failure) -> bool {
        match (self, other) {
            (Failure::Panic { place, .. }, Failure::Panic { place: other, .. }) => place == other,
            (Failure::Memory, Failure::Memory) | (Failure::Time, Failure::Time) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Panic { place, message } => write!(f, "panicked at {place}: {message}"),
            Failure::Memory => f.write_str("allocates more than its input justifies"),
            Failure::Time => f.write_str("takes more than a second of processor time"),
        }
    }
}

/// One input, tried.
pub struct Tried {
    /// Only panics: what is too much the caller knows.
    pub failure: Option<Failure>,
    /// Of the processor.
    pub took: Duration,
    /// The most that was allocated at a time.
    pub bytes: usize,
}

thread_local! {
    /// `Some` while a target runs in this thread: its panic is kept and not printed.
    static CAUGHT: RefCell<Option<Vec<(String, String)>>> = const { RefCell::new(None) };
}

/// Runs the target on one input.
pub fn run(target: &impl Fn(&[u8]), input: &[u8]) -> Tried {
    static HOOK: Once = Once::new();
    HOOK.call_once(keep_panics);
    CAUGHT.set(Some(Vec::new()));
    let before = clock::of_thread();
    allocator::begin();
    // What a panic leaves half-done is the target's own, and a new one for each input.
    let ended = panic::catch_unwind(AssertUnwindSafe(|| target(input)));
    let bytes = allocator::most();
    let took = clock::of_thread().saturating_sub(before);
    let caught = CAUGHT.take().unwrap_or_default();
    let failure = ended.is_err().then(|| {
        let (place, message) = caught.into_iter().next().unwrap_or_default();
        Failure::Panic { place, message }
    });
    Tried {
        failure,
        took,
        bytes,
    }
}

fn keep_panics() {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let is_kept = CAUGHT.with_borrow_mut(|caught| match caught {
            Some(caught) => {
                let place = info.location().map(ToString::to_string);
                let message = info.payload_as_str().unwrap_or("?").to_owned();
                caught.push((place.unwrap_or_default(), message));
                true
            }
            None => false,
        });
        if !is_kept {
            usual(info);
        }
    }));
}

/// For making an input smaller.
const LONG_ENOUGH: Duration = Duration::from_secs(20);

/// A smaller input for which this holds too: pieces are left out as long as that succeeds.
pub fn smaller(input: &[u8], holds: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let end = Instant::now() + LONG_ENOUGH;
    let mut small = input.to_vec();
    let mut size = small.len() / 2;
    while size > 0 && Instant::now() < end {
        let mut at = 0;
        let before = small.len();
        while at < small.len() && Instant::now() < end {
            let mut tried = small.clone();
            tried.drain(at..(at + size).min(small.len()));
            if holds(&tried) {
                small = tried;
            } else {
                at += size;
            }
        }
        if small.len() == before || size > small.len() {
            size /= 2;
        }
    }
    small
}
