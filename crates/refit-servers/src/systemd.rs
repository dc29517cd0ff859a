//! systemd's unit files: which of them make a unit up, in which order, and what their lines say (systemd.unit(5),
//! systemd.syntax(7), systemd.service(5), systemd.exec(5)).

mod files;
mod lines;
mod unit;
mod words;

pub use files::{Files, is_name};
pub use lines::Line;
pub use unit::Unit;
pub use words::{quoted, words};
