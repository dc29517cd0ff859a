//! The guardian answers the calls that a seccomp filter sends to refit.
//!
//! It is two processes: the *active* one receives, decides and answers; the
//! *standby* waits until the other has ended or does not answer any more, passes
//! every call that was received and not answered to the kernel, and replaces it.
//! So a killed or stopped guardian neither makes a call fail nor leaves a thread
//! waiting. (Were both killed at once, the kernel would answer ENOSYS:
//! seccomp(2).) Both live for as long as a process has the filter, whatever
//! becomes of refit.

mod active;
mod decision;
mod filesystems;
mod identity;
mod look;
mod maps;
mod memory;
mod opener;
mod reader;
mod request;
mod rules;
mod sockets;
mod standby;
mod tally;
mod trace;

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use refit_session::guardian::GuardianCounts;
use refit_session::names::GUARDIAN;

use crate::sys::fork::{
    Child, OrphansParent, Side, detach, fork_orphan, split, use_batch_scheduling,
    use_normal_scheduling,
};
use crate::sys::shared_memory::SharedMemory;
pub use decision::Configuration;

use active::Active;
use memory::{GuardianMemory, guardian_memory};
use sockets::{await_listener, pair};
use standby::Role;

/// refit's side of a guardian.
pub struct Guardian {
    memory: SharedMemory<GuardianMemory>,
    /// Until its fork is known to have succeeded.
    parent: Cell<Option<OrphansParent>>,
}

impl Guardian {
    /// Starts to fork it. Its processes wait at the other ends of the sockets for the
    /// listener, and end when these are closed.
    ///
    /// # Errors
    /// No memory, no process, no descriptor.
    pub fn start(configuration: Configuration<'_>) -> io::Result<(Guardian, [OwnedFd; 2])> {
        let memory = guardian_memory()?;
        let (to_active, active) = pair()?;
        let (to_standby, standby) = pair()?;
        // An orphan, so that nobody's wait(2) sees the guardian's end.
        let parent = fork_orphan(|| {
            run(configuration, &memory, &active, &standby)
                .err()
                .map_or(0, code)
        })?;
        let guardian = Guardian {
            memory,
            parent: Cell::new(Some(parent)),
        };
        Ok((guardian, [to_active, to_standby]))
    }

    /// Waits until it is forked, which should have happened by now: no program may
    /// depend on it before. False: the fork failed.
    pub fn await_fork(&self) -> bool {
        self.parent.take().is_none_or(OrphansParent::reap)
    }

    /// What it has counted so far.
    #[must_use]
    pub fn counts(&self) -> GuardianCounts {
        tally::counts(&self.memory.tally)
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.await_fork();
    }
}

fn code(error: io::Error) -> i32 {
    error.raw_os_error().unwrap_or(1)
}

/// The first active process, which makes the first standby.
fn run(
    configuration: Configuration<'_>,
    memory: &GuardianMemory,
    active: &OwnedFd,
    standby: &OwnedFd,
) -> io::Result<()> {
    detach(GUARDIAN, &[active.as_fd(), standby.as_fd()]);
    // The listener comes from the program's process on its way to its exec: on one
    // processor two woken guardians would hold that up by a third of a millisecond.
    let batch = use_batch_scheduling();
    let own = Child::own()?;
    let (role, socket) = match split()? {
        Side::Parent(standby) => (Role::Active(Some(standby)), active),
        Side::Child => (Role::Standby(own), standby),
    };
    if let Some(listener) = await_listener(socket.as_fd())? {
        serve(configuration, memory, listener.as_fd(), role, batch);
    }
    Ok(())
}

/// Runs until no process has the filter any more. A loop, so that no number of
/// kills can fill the stack.
fn serve(
    configuration: Configuration<'_>,
    memory: &GuardianMemory,
    listener: BorrowedFd<'_>,
    mut role: Role,
    batch: bool,
) {
    loop {
        let next = match role {
            Role::Standby(active) => standby::wait(listener, &active, &memory.steps),
            Role::Active(standby) => {
                if batch {
                    use_normal_scheduling();
                }
                Active::new(configuration, memory, listener).run(standby)
            }
        };
        match next {
            None => return,
            Some(next) => role = next,
        }
    }
}
