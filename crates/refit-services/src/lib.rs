//! Makes settings permanent on a service, and takes them back.
//!
//! Promises: what will be edited is recorded before it is edited, so that a process that is
//! killed anywhere leaves files that are whole, and a record by which [`revert`] restores all
//! of them: bytes, mode, owner, extended attributes, absent files and directories. A file that
//! somebody else changed in between is not touched: [`Error::Conflict`].
//!
//! A kind of service is one file in `kinds/` and its line in the table of `kinds.rs`.

mod abandoned_dirs;
mod accept;
mod amend;
mod apply;
mod ask;
mod change;
mod check;
mod confirm;
mod declared;
mod drop_settings;
mod effective;
mod environment;
mod error;
mod etckeeper;
mod exchange;
pub mod export;
mod file_state;
mod glibc_malloc;
mod health;
mod indexes;
mod kind;
mod kinds;
mod library;
mod lines;
mod package_drift;
mod packages;
mod place;
mod plan;
mod planned;
mod processes;
mod record;
mod replaced_program;
mod revert;
mod schema;
mod schema_file;
mod script;
mod shared_files;
mod status;
mod store;
pub mod sync_filter;
mod sys;
mod system;
mod systemd;
mod three_way;
mod undo;

pub use apply::{Applied, ToDo, apply, to_do};
pub use change::{
    Accepted, Change, ConfValue, Evidence, FileEdit, Launcher, LibraryFile, MeasuredEffect, Undo,
};
pub use check::{Check, Layer};
pub use confirm::confirm;
pub use declared::export_schema;
pub use drop_settings::{Dropped, drop_settings};
pub use error::{Changed, Error};
pub use etckeeper::Etckeeper;
pub use file_state::{FileError, FileState};
pub use kinds::kinds;
pub use package_drift::{LibrarySince, PackageSince};
pub use packages::Package;
pub use place::Place;
pub use plan::Request;
pub use planned::Plan;
pub use record::{Phase, Record};
pub use refit_schema::{Declared, Way};
pub use replaced_program::Moved;
pub use revert::{By, Reverted, revert, revert_unconfirmed};
pub use schema::{Index, SchemaEdit};
pub use status::{ServiceStatus, Status, status};
pub use system::System;
pub use undo::Until;
