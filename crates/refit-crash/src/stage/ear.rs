//! The pipe through which the program, or its load, is heard.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::pipe::{PipeFlags, pipe_with};

use crate::ack::Ack;
use crate::error::{CrashError, io_error};
use crate::sys::process::also_as;

/// The pipe through which acknowledgements come.
pub struct Ear {
    ends: Option<(OwnedFd, OwnedFd)>,
    number: Option<i32>,
    takes_all: bool,
}

impl Ear {
    pub fn new(ack: &Ack) -> Result<Ear, CrashError> {
        let (number, takes_all) = match ack {
            Ack::Fd(number) => (Some(*number), false),
            Ack::Regex(_) => (None, true),
            Ack::Smtp(_) | Ack::Sync => (None, false),
        };
        let ends = if number.is_some() || takes_all {
            let flags = PipeFlags::CLOEXEC;
            let made =
                pipe_with(flags).map_err(|error| io_error("cannot make a pipe")(error.into()));
            Some(made?)
        } else {
            None
        };
        Ok(Ear {
            ends,
            number,
            takes_all,
        })
    }

    /// Standard output and error of one who is listened to, or not.
    pub fn files(&self, words: &File, is_heard: bool) -> Result<Vec<File>, CrashError> {
        let file = |number| {
            let heard = self.takes_all || self.number == Some(number);
            match &self.ends {
                Some((_, to)) if is_heard && heard => to.try_clone().map(File::from),
                _ => words.try_clone(),
            }
        };
        let both = [1, 2].map(file).into_iter().collect::<io::Result<Vec<_>>>();
        both.map_err(io_error("cannot duplicate a descriptor"))
    }

    /// A descriptor beyond the standard ones is there in who is started next.
    pub fn announce(&self, is_heard: bool) -> Result<(), CrashError> {
        match (&self.ends, self.number) {
            (Some((from, to)), Some(number)) if is_heard && number > 2 => {
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

    /// The end to read from; nobody of ours has the other one any more.
    pub fn finish(self) -> Option<OwnedFd> {
        self.ends.map(|(from, _)| from)
    }
}
