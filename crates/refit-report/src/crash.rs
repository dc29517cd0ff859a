//! A crash report, drawn.

mod terminal;
mod words;

pub use terminal::terminal;

/// One self-contained page.
#[must_use]
pub fn html(_report: &refit_crash::CrashReport) -> String {
    String::new()
}
