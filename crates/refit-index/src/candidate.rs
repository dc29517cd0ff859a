//! An index that is worth trying.

/// What is done to an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is made.
    Add,
    /// It is dropped.
    Drop,
}

impl Change {
    /// The knob of the recipe.
    #[must_use]
    pub fn knob(self) -> &'static str {
        match self {
            Change::Add => "index",
            Change::Drop => "drop",
        }
    }
}

/// An index that is worth trying, or worth dropping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What is done.
    pub change: Change,
    /// Its name in the recipe: lower case, digits and `_`.
    pub name: String,
    /// The statements that do it, each with its `;`.
    pub apply: String,
    /// The statements that take it back.
    pub inverse: String,
    /// What the database says of it.
    pub why: String,
}

impl Candidate {
    /// As on a command line.
    #[must_use]
    pub fn setting(&self) -> String {
        format!("conf.{}={}", self.change.knob(), self.name)
    }
}
