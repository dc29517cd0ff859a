//! What needs `unsafe`.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// Lets the kernel kill what a command starts when this process ends, also where that is killed.
pub fn ends_with_this(command: &mut Command) {
    let this = getpid();
    let arrange = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        match getppid() == Some(this) {
            true => Ok(()),
            false => Err(io::ErrorKind::Interrupted.into()),
        }
    };
    // SAFETY: between fork and exec two system calls are made; nothing is allocated, and no lock is
    // taken.
    unsafe { command.pre_exec(arrange) };
}
