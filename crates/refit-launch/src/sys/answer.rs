//! Work that may never end, in a process of its own.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Signal, pidfd_send_signal, set_parent_process_death_signal};

use refit_session::names::READER;

use super::fork::{Child, detach, fork};

/// Work in a process of its own. A thread would not do: one that waits for a FUSE server cannot be killed
/// (fs/fuse/dev.c, `request_wait_answer`), and would keep its whole process from ending.
pub struct Worker {
    child: Child,
    /// What it answers.
    answer: File,
    /// Closed where the answer is asked for.
    asks: OwnedFd,
}

/// What a process says that is prepared; another word is why it is not.
const READY: &[u8] = b"ready";

/// Whether the answer of a [`Worker`] is asked for.
pub struct Asked(OwnedFd);

impl Asked {
    /// Waits until it is, or for so long.
    pub fn within(&self, pause: Duration) -> bool {
        let pause = Timespec::try_from(pause).unwrap_or_default();
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        // An error would be there the next time, too.
        !matches!(
            poll(&mut ready, Some(&pause)),
            Ok(0) | Err(rustix::io::Errno::INTR)
        )
    }
}

impl Worker {
    /// Begins the work in a forked process, which ends with refit and has no descriptors but those that it opens. Returns
    /// when that has done `prepare`.
    ///
    /// # Errors
    /// Why `prepare` could not be done, also not within `limit`; or as `fork`: this process has other threads, or there can
    /// be no more processes.
    pub fn begin<T>(
        limit: Duration,
        prepare: impl FnOnce() -> Result<T, String>,
        work: impl FnOnce(T, &Asked) -> Vec<u8>,
    ) -> io::Result<Worker> {
        let (is_ready, ready) = pipe_with(PipeFlags::CLOEXEC)?;
        let (answer, to) = pipe_with(PipeFlags::CLOEXEC)?;
        let (asked, asks) = pipe_with(PipeFlags::CLOEXEC)?;
        let child = fork(move || {
            // Nobody who reads refit's output until its end may wait for this one.
            detach(READER, &[to.as_fd(), asked.as_fd(), ready.as_fd()]);
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            let prepared = prepare();
            let said = match &prepared {
                Ok(_) => READY,
                Err(why) => why.as_bytes(),
            };
            if File::from(ready).write_all(said).is_err() {
                return 1;
            }
            match prepared {
                Ok(prepared) => {
                    let answer = work(prepared, &Asked(asked));
                    i32::from(File::from(to).write_all(&answer).is_err())
                }
                Err(_) => 1,
            }
        })?;
        let worker = Worker {
            child,
            answer: answer.into(),
            asks,
        };
        match hear(&worker.child, &mut is_ready.into(), limit)? {
            Some(said) if said == READY => Ok(worker),
            Some(why) => {
                worker.child.reap();
                Err(io::Error::other(String::from_utf8_lossy(&why).into_owned()))
            }
            None => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// What the work answers; `None` where that takes longer than `limit`. The process is killed then, and nobody
    /// waits for it.
    ///
    /// # Errors
    /// The work ended without an answer.
    pub fn answer(mut self, limit: Duration) -> io::Result<Option<Vec<u8>>> {
        drop(self.asks);
        let answer = hear(&self.child, &mut self.answer, limit)?;
        if answer.is_some() {
            self.child.reap();
        }
        Ok(answer)
    }
}

/// All that the process writes, at least a byte; `None` where that takes longer than `limit`: it is killed then.
///
/// # Errors
/// It ended without a word.
fn hear(child: &Child, from: &mut File, limit: Duration) -> io::Result<Option<Vec<u8>>> {
    let began = Instant::now();
    let mut heard = Vec::new();
    loop {
        let left = limit.saturating_sub(began.elapsed());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        let mut ready = [PollFd::new(from, PollFlags::IN)];
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
            0 if heard.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            0 => return Ok(Some(heard)),
            bytes => heard.extend_from_slice(&part[..bytes]),
        }
    }
}

/// What `work` answers, done by a [`Worker`]; `None` where that takes longer than `limit`.
///
/// # Errors
/// As [`Worker::begin`] and [`Worker::answer`].
pub fn answer_within(
    limit: Duration,
    work: impl FnOnce() -> Vec<u8>,
) -> io::Result<Option<Vec<u8>>> {
    Worker::begin(limit, || Ok(()), |(), _| work())?.answer(limit)
}
