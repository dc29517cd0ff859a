//! One file for each verb.

pub mod closing;
pub mod demo;
pub mod doctor;
pub mod explain;
pub mod run;
