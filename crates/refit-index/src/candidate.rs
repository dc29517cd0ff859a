//! An index that is worth trying.

use std::collections::BTreeSet;

use crate::name::{new_name, plain};

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
    /// What `refit plan --from RESULT` applies for it; `None` where it cannot make exactly this index.
    pub applied: Option<String>,
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

/// The setting of `refit apply` that makes this index. It takes names that need no quotes, each with
/// `DESC` or without.
pub fn applied<'a>(name: &str, columns: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let is_typed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let columns: Vec<&str> = columns.into_iter().collect();
    let is_plain = |column: &&str| {
        let name = column.strip_suffix(" DESC").unwrap_or(column);
        !name.is_empty() && name.chars().all(is_typed)
    };
    // Names of SQLite itself, which it refuses.
    (columns.iter().all(is_plain) && !name.starts_with("sqlite_"))
        .then(|| format!("conf.index.{name}={}", columns.join(",")))
}

/// An index that no query uses.
pub struct Unused {
    /// Its name in the database.
    pub name: String,
    pub table: String,
    /// The statement that drops it.
    pub apply: String,
    /// The statement that makes it again.
    pub inverse: String,
}

/// What dropping these would gain is worth trying.
pub fn dropped(unused: impl Iterator<Item = Unused>) -> Vec<Candidate> {
    let mut names = BTreeSet::new();
    let candidate = |index: Unused| {
        let mut name = plain(&index.name);
        if name.is_empty() || names.contains(&name) {
            name = new_name(&plain(&index.table), &[name], &mut names);
        }
        names.insert(name.clone());
        Candidate {
            change: Change::Drop,
            name,
            apply: index.apply,
            inverse: index.inverse,
            applied: None,
            why: format!(
                "no plan of these queries reads {}; other queries may",
                index.name
            ),
        }
    };
    unused.map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_columns_with_plain_names_are_applied() {
        let setting = "conf.index.orders_idx=customer_id,at DESC".to_owned();
        assert_eq!(
            applied("orders_idx", ["customer_id", "at DESC"]),
            Some(setting)
        );
        for column in [
            "at COLLATE NOCASE DESC",
            "at NULLS FIRST",
            "\"Select\"",
            "é",
            "a,b",
            "",
        ] {
            assert_eq!(applied("orders_idx", ["id", column]), None, "{column}");
        }
        assert_eq!(applied("sqlite_x_idx", ["id"]), None);
    }
}
