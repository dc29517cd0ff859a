//! One file for each verb.

pub mod closing;
pub mod explain;
pub mod run;
