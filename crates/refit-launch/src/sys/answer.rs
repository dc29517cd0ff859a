//! Work that may never end, in a process of its own.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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
    /// Begins the work in a forked process, which ends with refit. It has no other descriptor than `kept` and
    /// those that the work opens.
    ///
    /// # Errors
    /// As `fork`: this process has other threads, or there can be no more processes.
    pub fn begin(
        kept: &[BorrowedFd<'_>],
        work: impl FnOnce(&Asked) -> Vec<u8>,
    ) -> io::Result<Worker> {
        let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
        let (asked, asks) = pipe_with(PipeFlags::CLOEXEC)?;
        let (answer, to) = (File::from(from), File::from(to));
        let child = fork(move || {
            // Nobody who reads refit's output until its end may wait for this one.
            let own = [to.as_fd(), asked.as_fd()];
            detach(READER, &[&own[..], kept].concat());
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            let asked = Asked(asked);
            i32::from((&to).write_all(&work(&asked)).is_err())
        })?;
        Ok(Worker {
            child,
            answer,
            asks,
        })
    }

    /// What the work answers; `None` where that takes longer than `limit`. The process is killed then, and nobody
    /// waits for it.
    ///
    /// # Errors
    /// The work ended without an answer.
    pub fn answer(mut self, limit: Duration) -> io::Result<Option<Vec<u8>>> {
        let began = Instant::now();
        drop(self.asks);
        let mut answer = Vec::new();
        loop {
            let left = limit.saturating_sub(began.elapsed());
            let timeout = Timespec::try_from(left).unwrap_or_default();
            let mut ready = [PollFd::new(&self.answer, PollFlags::IN)];
            match poll(&mut ready, Some(&timeout)) {
                Ok(0) => {
                    let _ = pidfd_send_signal(&self.child.pidfd, Signal::KILL);
                    return Ok(None);
                }
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let mut part = [0; 65_536];
            match self.answer.read(&mut part)? {
                0 => break,
                bytes => answer.extend_from_slice(&part[..bytes]),
            }
        }
        self.child.reap();
        if answer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Some(answer))
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
    Worker::begin(&[], |_| work())?.answer(limit)
}
