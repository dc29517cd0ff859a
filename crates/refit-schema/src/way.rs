//! The statements between two catalogs.

use serde::{Deserialize, Serialize};

/// How a statement is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// In one transaction with those beside it.
    Together,
    /// By itself: the server takes it in no transaction, or commits it at once.
    Alone,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The statement, without a semicolon.
    pub sql: String,
    /// How it is run.
    pub mode: Mode,
}

/// Data that a way destroys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// What: `column orders.note`.
    pub what: String,
    /// A question to the database whose one number says how much of it there is; empty where nothing counts it.
    pub count: String,
    /// What is counted: `rows`.
    pub unit: String,
    /// Whether it is none where the count is 0: a value that is stored as it was.
    #[serde(default)]
    pub only_if_any: bool,
}

/// What has to be true of the data, or a statement is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// A question to the database whose one number has to be 0.
    pub count: String,
    /// Which object.
    pub what: String,
    /// Why not otherwise, and what to type.
    pub otherwise: String,
}

/// All statements, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Way {
    /// The statements.
    pub steps: Vec<Step>,
    /// What they make, as ALTER … OWNER TO names it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<String>,
    /// What they destroy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Loss>,
    /// What the data has to be like.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What is to know of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Objects that are left as they are, since the comparison knows them by name only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
}

impl Way {
    /// Adds a statement to the transaction.
    pub fn together(&mut self, sql: impl Into<String>) {
        self.steps.push(Step {
            sql: sql.into(),
            mode: Mode::Together,
        });
    }

    /// Adds a statement that runs by itself.
    pub fn alone(&mut self, sql: impl Into<String>) {
        self.steps.push(Step {
            sql: sql.into(),
            mode: Mode::Alone,
        });
    }

    /// Adds data that is destroyed.
    pub fn loses(&mut self, what: String, unit: &str, count: String) {
        self.losses.push(Loss {
            what,
            count,
            unit: unit.to_owned(),
            only_if_any: false,
        });
    }

    /// Adds data that is destroyed where the question counts any.
    pub fn loses_if_any(&mut self, what: String, unit: &str, count: String) {
        self.loses(what, unit, count);
        if let Some(last) = self.losses.last_mut() {
            last.only_if_any = true;
        }
    }

    /// Adds something to know, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
