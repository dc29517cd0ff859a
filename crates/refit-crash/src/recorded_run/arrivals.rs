//! The acknowledgements that arrive during a recorded run.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::thread::sleep;

use rustix::event::{PollFd, PollFlags, poll};

use super::hooks::TICK;
use super::sync_calls::SyncCalls;
use crate::ack_source::{AckSource, LineReader};
use crate::error::{CrashError, io_error};

const READ_BYTES: usize = 64 << 10;
/// A pipe holds at most 1 MiB, unless root asks for more. Without a limit a process that outlives the program could
/// write forever.
const READS_OF_A_FULL_PIPE: usize = (1 << 20) / READ_BYTES;

/// What was acknowledged so far, and the pipe that more of it comes through.
pub struct Arrivals {
    /// `None` where nothing comes through a pipe, or nothing more.
    pub pipe: Option<OwnedFd>,
    /// What was acknowledged.
    pub reader: LineReader,
    /// A copy of what was read from the pipe, for errors.
    copy: File,
}

impl Arrivals {
    /// Without a pipe.
    pub fn new(ack: &AckSource, copy: File) -> Arrivals {
        let regex = match ack {
            AckSource::Regex(regex) => Some(regex.clone()),
            _ => None,
        };
        Arrivals {
            pipe: None,
            reader: LineReader::new(regex),
            copy,
        }
    }

    /// Takes the acknowledgements that have arrived, or waits a moment.
    pub fn read(&mut self, calls: &mut Option<SyncCalls>) -> Result<(), CrashError> {
        self.read_pipe()?;
        if let Some(calls) = calls {
            calls.drain(&mut self.reader.acknowledgements);
        }
        Ok(())
    }

    /// Takes what was acknowledged after the last look and before the program's end.
    pub fn read_rest(&mut self, calls: &mut Option<SyncCalls>) -> Result<(), CrashError> {
        for _ in 0..READS_OF_A_FULL_PIPE {
            if !self.read_pipe()? {
                break;
            }
        }
        if let Some(calls) = calls {
            calls.finish(&mut self.reader.acknowledgements);
        }
        Ok(())
    }

    /// Whether there was something to read.
    fn read_pipe(&mut self) -> Result<bool, CrashError> {
        let Some(pipe) = &self.pipe else {
            sleep(TICK);
            return Ok(false);
        };
        let failed = |error| io_error("cannot read acknowledgements")(error);
        let mut polled = [PollFd::new(pipe, PollFlags::IN)];
        let tick = rustix::time::Timespec {
            tv_sec: 0,
            tv_nsec: 1_000_000,
        };
        match poll(&mut polled, Some(&tick)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(failed(error.into())),
        }
        let mut buffer = [0; READ_BYTES];
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => {
                self.pipe = None;
                return Ok(false);
            }
            Ok(length) => {
                self.reader.read(&buffer[..length]);
                // Only errors show it.
                let _ = io::Write::write_all(&mut self.copy, &buffer[..length]);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed(error.into())),
        }
        Ok(true)
    }
}
