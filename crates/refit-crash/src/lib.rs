//! Simulated power cuts beneath an unmodified program.
//!
//! The program runs on a real file system, on a disk whose writes and flushes
//! are recorded in order ([`record`], [`recorder`]). What such a disk may hold
//! after a power cut ([`image`]) is served from the record ([`states`]), mounted,
//! which replays the file system's own journal, and checked ([`check`]): which of
//! the things that the program had acknowledged are still there?

pub mod ack;
pub mod check;
mod clock;
mod cuts;
mod error;
pub mod filesystem;
mod fuse;
pub mod image;
mod lab;
pub mod open;
pub mod promise;
mod random;
pub mod record;
mod recorder;
mod recording;
pub mod report;
mod request;
mod smtp;
mod stage;
mod states;
mod sys;
mod trial;

pub use error::CrashError;
pub use lab::{Progress, crash, file_name as directory_name, machine_lacks, missing};
pub use report::CrashReport;
pub use request::Request;
