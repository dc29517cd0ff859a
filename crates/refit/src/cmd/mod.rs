//! One file for each verb.

mod bounded;
pub mod compare;
pub mod completions;
pub mod crash;
pub mod demo;
pub mod doctor;
pub mod evidence;
pub mod export;
pub mod help;
pub mod input;
pub mod kubectl;
mod log_frame;
mod named_file;
pub mod output;
pub mod pool;
pub mod print;
pub mod probe;
pub mod progress;
pub mod recipes;
pub mod report;
pub mod result_file;
pub mod run;
pub mod services;
pub mod step_summary;
pub mod trust;
pub mod tune;
pub mod watch;
