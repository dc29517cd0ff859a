//! The schema of a database as a setting: what a file of statements makes of an empty database, against what is there.
//!
//! Two catalogs are compared: that of the database, and that of a private instance of the same server which has loaded the
//! file. No statement of the file is parsed: the server understands it. From the difference come the statements that lead from
//! one catalog to the other, and those of the way back.
//!
//! Promises: an object that the comparison does not know is named, and never dropped or changed. What destroys data is told
//! apart. Before anything is changed, the statements are run in the private instance from the schema that is there, and
//! have to lead to the catalog of the file.

mod catalog;
mod client;
mod declared;
mod error;
mod plan;
mod postgresql;
mod sqlite;
mod way;

pub use catalog::{Catalog, Difference, Key, Kind, Object};
pub use client::{Client, Private, Server};
pub use declared::{Declared, Taken, merged};
pub use error::SchemaError;
pub use plan::{Empty, File, exported, plan};
pub use postgresql::POSTGRESQL;
pub use sqlite::SQLITE;
pub use way::{Condition, Loss, Mode, Step, Way};
