//! Work in processes of its own: with them end their pid namespace, every
//! process that they left behind, their mounts and their loop devices. The
//! result comes back over a pipe.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

use refit_run::namespaces::own_pids;
use rustix::pipe::{PipeFlags, pipe_with};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{CrashError, io_error};
use crate::private_mounts;
use crate::sys::process::{Child, fork};

/// Work that was started.
pub struct Isolated {
    child: Child,
    from: OwnedFd,
}

/// What it answered, not yet taken apart.
pub struct Answer {
    child: Child,
    bytes: Vec<u8>,
}

/// Does `work` in namespaces of its own, and waits for it.
///
/// # Errors
/// The error of `work`, or it could not be started.
pub fn isolated<T: Serialize + DeserializeOwned>(
    work: impl FnOnce() -> Result<T, CrashError>,
) -> Result<T, CrashError> {
    Isolated::start(work)?.answer()?.take()
}

impl Isolated {
    /// Starts `work`. Two processes: the first makes the pid namespace, the
    /// second is its init.
    ///
    /// # Errors
    /// No process or pipe is free.
    pub fn start<T: Serialize>(
        work: impl FnOnce() -> Result<T, CrashError>,
    ) -> Result<Isolated, CrashError> {
        let (from, to) = pipe()?;
        let child = fork(move || {
            let entered = own_pids().map_err(io_error("no process namespace can be made"));
            if let Err(error) = entered {
                return i32::from(send::<T>(&to, Err(error)).is_err());
            }
            let init = fork(move || {
                let result = private_mounts::enter().and_then(|()| work());
                i32::from(send(&to, result).is_err())
            });
            init.map_or(1, |mut init| init.wait())
        })
        .map_err(io_error("cannot fork"))?;
        Ok(Isolated { child, from })
    }

    /// Reads until the work is done.
    ///
    /// # Errors
    /// The pipe cannot be read.
    pub fn answer(self) -> Result<Answer, CrashError> {
        let mut bytes = Vec::new();
        File::from(self.from)
            .read_to_end(&mut bytes)
            .map_err(io_error("cannot read the result of a process of refit's"))?;
        Ok(Answer {
            child: self.child,
            bytes,
        })
    }
}

impl Answer {
    /// Waits for the end of the work's processes; returns its result.
    ///
    /// # Errors
    /// The work's own error, or it ended without an answer.
    pub fn take<T: DeserializeOwned>(mut self) -> Result<T, CrashError> {
        let code = self.child.wait();
        let result: Result<T, String> = serde_json::from_slice(&self.bytes).map_err(|_| {
            CrashError::Refused(format!(
                "a process of refit's ended with code {code} and no result"
            ))
        })?;
        result.map_err(CrashError::Refused)
    }
}

/// A pipe that no program inherits.
///
/// # Errors
/// No descriptor is free.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), CrashError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|error| io_error("cannot make a pipe")(error.into()))
}

fn send<T: Serialize>(to: &OwnedFd, result: Result<T, CrashError>) -> io::Result<()> {
    let result = result.map_err(|error| error.to_string());
    let bytes = serde_json::to_vec(&result)?;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let written = rustix::io::write(to, rest)?;
        rest = &rest[written..];
    }
    Ok(())
}
