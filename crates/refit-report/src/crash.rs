//! A crash report, drawn: a [`CrashReport`] in, text or a page out.
//!
//! Promises, beside those of the crate: a loss of the program itself is told
//! before a variant is blamed, and how little a zero says is told with it.

pub(crate) mod html;
pub(crate) mod notes;
pub(crate) mod row;
pub(crate) mod sentence;
mod text;

#[cfg(test)]
pub mod sample;
#[cfg(test)]
mod tests;

pub use html::html;
pub use text::{markdown, terminal};

pub use refit_crash::CrashReport;
