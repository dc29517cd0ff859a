//! One file for each verb.

pub mod compare;
pub mod crash;
pub mod demo;
pub mod doctor;
pub mod explain;
pub mod output;
pub mod probe;
pub mod progress;
pub mod recipes;
pub mod report;
pub mod run;
pub mod trust;
