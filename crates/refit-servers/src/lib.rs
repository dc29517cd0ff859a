//! What refit knows of each real server, once: for the recipes that measure it and for the changes that are applied to it.
//!
//! Promises: nothing here executes or writes anything; it reads what it is told to read.

#[cfg(test)]
mod fuzz;
mod include;
pub mod mariadb;
pub mod postfix;
pub mod postgresql;
pub mod redis;
pub mod risk;
pub mod rsyslog;
pub mod sql;
pub mod systemd;

pub use include::{files, matching, names};
