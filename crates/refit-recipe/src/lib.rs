//! A recipe: a real service, its load and its check, as one folder.
//!
//! [`Recipe::find`] reads and checks one; nothing of it runs before a comparison.
//! docs/recipes.md describes the format for people.

pub mod answers;
mod checker;
mod conf;
mod error;
mod file;
mod folder;
mod metrics;
mod needs;
mod output;
mod recipe;
mod records;
mod start;
mod users;

pub use conf::{ConfAction, ConfError};
pub use error::RecipeError;
pub use file::{Operations, RecipeFile, parse_time, schema};
pub use folder::{Folder, FolderFile, shipped_names};
pub use metrics::{
    COMMAND_METRICS, Direction, LOAD_METRICS, LoadUnit, SERVICE_METRICS, is_built_in_for,
};
pub use needs::path as needs_path;
pub use output::{LoadMetric, Source, Work, last_lines, read_metrics, read_operations};
pub use recipe::Recipe;
pub use records::{AnswerRecord, LoadMetricRecord, RecipeRecord, SeriesRecord, UnavailableRecord};
pub use start::{Ready, ServiceStart};
pub use users::{User, find as find_user};
