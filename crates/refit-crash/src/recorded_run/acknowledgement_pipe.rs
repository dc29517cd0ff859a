//! The pipe through which the program, or its load, acknowledges.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use refit_run::FileId;
use rustix::fs::fstat;

use crate::ack_source::AckSource;
use crate::error::{CrashError, io_error};
use crate::isolated::pipe;
use crate::sys::process::also_as;

/// The pipe through which acknowledgements arrive.
pub struct AcknowledgementPipe {
    ends: Option<(OwnedFd, OwnedFd)>,
    number: Option<i32>,
    takes_all: bool,
}

impl AcknowledgementPipe {
    /// Without one, if the source needs none.
    pub fn new(ack: &AckSource) -> Result<AcknowledgementPipe, CrashError> {
        let (number, takes_all) = match ack {
            AckSource::Fd(number) => (Some(*number), false),
            AckSource::Regex(_) => (None, true),
            AckSource::Smtp(_) | AckSource::Sync => (None, false),
        };
        let ends = if number.is_some() || takes_all {
            Some(pipe()?)
        } else {
            None
        };
        Ok(AcknowledgementPipe {
            ends,
            number,
            takes_all,
        })
    }

    /// Standard output and error of a process: the pipe where it acknowledges
    /// there, else the file.
    pub fn files(&self, file: &File, acknowledges: bool) -> Result<[File; 2], CrashError> {
        let of = |number| {
            let is_read = self.takes_all || self.number == Some(number);
            match &self.ends {
                Some((_, to)) if acknowledges && is_read => to.try_clone().map(File::from),
                _ => file.try_clone(),
            }
        };
        let both = || -> io::Result<_> { Ok([of(1)?, of(2)?]) };
        both().map_err(io_error("cannot duplicate a descriptor"))
    }

    /// Opens a descriptor beyond the standard ones in the process that is started
    /// next.
    pub fn open_in_next(&self, acknowledges: bool) -> Result<(), CrashError> {
        match (&self.ends, self.number) {
            (Some((from, to)), Some(number)) if acknowledges && number > 2 => {
                if [from.as_raw_fd(), to.as_raw_fd()].contains(&number) {
                    return Err(CrashError::Refused(format!(
                        "descriptor {number} is in use; take another one, as fd:{}",
                        number + 50
                    )));
                }
                also_as(to, number).map_err(io_error(format!("cannot open descriptor {number}")))
            }
            _ => Ok(()),
        }
    }

    /// The pipe, as the processes that write to it see it.
    pub fn file(&self) -> Option<FileId> {
        let (from, _) = self.ends.as_ref()?;
        let about = fstat(from).ok()?;
        Some(FileId {
            device: about.st_dev,
            inode: about.st_ino,
        })
    }

    /// The end to read from. refit closes the other one: the pipe ends with the
    /// processes that have it.
    pub fn reader(self) -> Option<OwnedFd> {
        self.ends.map(|(from, _)| from)
    }
}
