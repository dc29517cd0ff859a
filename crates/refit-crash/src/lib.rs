//! Simulated power cuts beneath an unmodified program.
//!
//! The program runs on a real file system, on a disk whose writes and flushes
//! are recorded in order ([`record`], [`recorder`]). What such a disk may hold
//! after a power cut ([`image`]) is served from the record ([`states`]) and
//! mounted, which replays the file system's own journal; a check ([`check`])
//! then finds which of the things that the program had acknowledged are still
//! there.

pub mod ack_source;
pub mod acknowledgement;
pub mod check;
mod cuts;
mod disk_server;
mod error;
pub mod filesystem;
mod fuse;
#[cfg(test)]
mod fuzz;
pub mod image;
mod inspection;
mod isolated;
pub mod mode;
pub mod open;
mod paths;
mod private_mounts;
pub mod record;
mod recorded_run;
mod recorder;
mod recording;
pub mod records;
pub mod report;
mod request;
mod requirements;
mod sectors;
mod smtp;
mod states;
mod sys;
pub mod tally;
mod torn_files;
mod trial;

pub use error::CrashError;
pub use report::CrashReport;
pub use request::{Program, Request, Typed};
pub use requirements::{machine_lacks, missing};
pub use trial::{Progress, crash, file_name as directory_name};
