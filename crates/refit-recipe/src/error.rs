//! Why there is no recipe.

use std::path::PathBuf;

/// Why there is no recipe.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// Nothing of that name.
    #[error("there is no recipe `{name}`{near}\n  there are {known}; a folder of your own: ./NAME")]
    Unknown {
        /// As it was typed.
        name: String,
        /// All that refit carries.
        known: String,
        /// `, did you mean …?`, or nothing.
        near: String,
    },
    /// A folder without the file.
    #[error("{} holds no recipe.toml\n  docs/recipes.md says what belongs there; `refit recipes copy NAME` gives one to start from", path.display())]
    NoFile {
        /// The folder.
        path: PathBuf,
    },
    /// A folder that cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// What.
        path: PathBuf,
        /// What the kernel said.
        cause: std::io::Error,
    },
    /// More than a recipe can be.
    #[error("{} is too large for a recipe, or holds what is no file ({})\n  a recipe has up to 500 files and 16 MiB", path.display(), at.display())]
    TooLarge {
        /// The folder.
        path: PathBuf,
        /// Where it became too large.
        at: PathBuf,
    },
    /// Text that is no recipe, with its line.
    #[error("{file}: {message}")]
    Syntax {
        /// recipe.toml.
        file: String,
        /// What the parser said, with the line.
        message: String,
    },
    /// A key that contradicts itself or another.
    #[error("{file}: {key}: {problem}")]
    Key {
        /// recipe.toml.
        file: String,
        /// As `load.metrics.p99`.
        key: String,
        /// What is wrong, and what to write.
        problem: String,
    },
}
