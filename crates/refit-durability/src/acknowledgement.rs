//! What counts as an acknowledgement, as `--ack` takes it.

use std::os::unix::fs::MetadataExt;
use std::str::FromStr;

use refit_session::file_events::{Acknowledges, FileId};

/// A call by which a program promises that something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ack {
    /// A write to what this descriptor of the command is.
    Descriptor(i32),
    /// A write to any socket.
    Socket,
}

impl FromStr for Ack {
    type Err = String;

    fn from_str(text: &str) -> Result<Ack, String> {
        if text == "socket" {
            return Ok(Ack::Socket);
        }
        let number = text.strip_prefix("fd:").and_then(|rest| rest.parse().ok());
        match number {
            Some(number @ 0..=255) => Ok(Ack::Descriptor(number)),
            _ => Err(format!(
                "unknown source of acknowledgements {text:?}; there are fd:N (a write to descriptor N of the command) and socket"
            )),
        }
    }
}

impl Ack {
    /// What processes have to tell.
    ///
    /// # Errors
    /// A descriptor is not open, for people.
    pub fn told(sources: &[Ack]) -> Result<Acknowledges, String> {
        let mut told = Acknowledges::default();
        for source in sources {
            match source {
                Ack::Socket => told.sockets = true,
                Ack::Descriptor(number) => told.file = Some(file_of(*number)?),
            }
        }
        Ok(told)
    }
}

/// The file of a descriptor of this process, which the command inherits.
fn file_of(number: i32) -> Result<FileId, String> {
    let about = std::fs::metadata(format!("/proc/self/fd/{number}"));
    let about = about.map_err(|_| format!("descriptor {number} is not open"))?;
    Ok(FileId {
        device: about.dev(),
        inode: about.ino(),
    })
}
