//! The documentation that refit carries: the pages of docs/, and what is made of the tables of settings and of the keys
//! of a recipe, as plain text for a terminal and as manual pages; and a manual page for each command, from the
//! definition that it is parsed with.
//!
//! All of it is made when it is asked for: until then the pages are bytes that nobody reads.

mod command_page;
mod document;
mod recipe_keys;
mod roff;
mod settings;
mod text;
mod topic;

pub use command_page::{CommandPage, command_pages};
pub use topic::{TOPICS, Topic, topic};
