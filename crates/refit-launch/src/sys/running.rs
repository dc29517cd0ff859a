//! A program that runs apart from refit's terminal.

use std::time::{Duration, Instant};

use super::TICK;
use super::ended::{Change, Ended, child_change};
use super::filter::Installation;
use super::interruption::{note_interruption, noted, wait_signal};
use super::program::{Program, launch};
use super::started::{StartError, Started};

/// A program that was started apart and may still run.
pub struct Running {
    pid: libc::pid_t,
    began: Instant,
    spawned: bool,
    ended: Option<Ended>,
}

impl Running {
    /// Starts it.
    pub fn start(program: &Program, filter: Option<&Installation>) -> Result<Running, StartError> {
        let Started {
            pid,
            began,
            spawned,
        } = launch(program, filter)?;
        Ok(Running {
            pid,
            began,
            spawned,
            ended: None,
        })
    }

    /// Of the program itself, also after it has ended.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid.unsigned_abs()
    }

    /// How it ended, if it has.
    pub fn poll(&mut self) -> Option<Ended> {
        while self.ended.is_none() {
            match child_change(self.pid, self.spawned)? {
                Change::Ended(end, usage) => {
                    self.ended = Some(Ended {
                        end,
                        wall: self.began.elapsed(),
                        usage,
                        timed_out: false,
                    });
                }
                Change::Stopped(_) => {}
            }
        }
        self.ended
    }

    /// Asks it to end (SIGTERM), unless it has.
    pub fn terminate(&mut self) {
        if self.poll().is_none() {
            // SAFETY: it is our child and not yet reaped.
            unsafe { libc::kill(self.pid, libc::SIGTERM) };
        }
    }

    /// Kills its process group, unless it has ended.
    pub fn kill(&mut self) {
        if self.poll().is_none() {
            // SAFETY: the group is the program's own; it is not yet reaped.
            unsafe { libc::kill(-self.pid, libc::SIGKILL) };
        }
    }
}

/// Starts a program that runs apart, and stays until it ends or its time is
/// over. Interruptions are counted, and the second kills it.
pub fn measure(
    program: &Program,
    filter: Option<&Installation>,
    timeout: Option<Duration>,
    started: impl FnOnce(u32),
    mut tick: impl FnMut(),
) -> Result<Ended, StartError> {
    let mut running = Running::start(program, filter)?;
    started(running.pid());
    let mut timed_out = false;
    loop {
        let left = timeout.map_or(TICK, |timeout| {
            timeout.saturating_sub(running.began.elapsed())
        });
        match wait_signal(if timed_out { TICK } else { left.min(TICK) }) {
            None => tick(),
            Some(info) if info.si_signo == libc::SIGCHLD => {
                if let Some(ended) = running.poll() {
                    return Ok(Ended { timed_out, ..ended });
                }
            }
            Some(info) => note_interruption(info.si_signo),
        }
        let over = timeout.is_some_and(|timeout| running.began.elapsed() >= timeout);
        if (over && !timed_out) || noted() > 1 {
            timed_out = over;
            running.kill();
        }
    }
}
