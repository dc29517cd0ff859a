//! One file for each kind of service.

pub mod systemd_unit;
