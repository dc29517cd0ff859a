//! Tables and indexes of the copy.

use std::collections::{BTreeMap, BTreeSet};

use super::run;
use crate::candidate::{Candidate, Unused, dropped};
use crate::error::IndexError;
use crate::instance::Instance;
use refit_servers::sql::quote_name_of_mariadb as quoted;

/// What the copy has.
#[derive(Default)]
pub struct Catalog {
    /// Names of its tables.
    pub tables: BTreeSet<String>,
    /// By table and name.
    indexes: BTreeMap<(String, String), Known>,
    /// Columns by which a table refers to another one, or is referred to.
    of_keys: BTreeSet<(String, String)>,
}

/// An index that is there.
#[derive(Default)]
struct Known {
    /// As in a statement: a part of a column has its length, `DESC` its word.
    columns: Vec<String>,
    names: Vec<String>,
    is_unique: bool,
    /// A tree of whole columns' values.
    is_plain: bool,
}

/// Asks the copy.
///
/// # Errors
/// [`IndexError::Instance`].
pub fn read(instance: &Instance) -> Result<Catalog, IndexError> {
    let script = "SELECT 'refit:all tables';\n\
         SELECT t.TABLE_NAME, s.INDEX_NAME, s.COLUMN_NAME, s.NON_UNIQUE, s.SUB_PART, s.COLLATION, s.INDEX_TYPE\n\
         FROM information_schema.TABLES t LEFT JOIN information_schema.STATISTICS s USING (TABLE_SCHEMA, TABLE_NAME)\n\
         WHERE t.TABLE_SCHEMA = DATABASE() AND t.TABLE_TYPE = 'BASE TABLE' ORDER BY 1, 2, s.SEQ_IN_INDEX;\n\
         SELECT 'refit:all keys';\n\
         SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE\n\
         WHERE TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_NAME IS NOT NULL UNION\n\
         SELECT REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE\n\
         WHERE TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_NAME IS NOT NULL;\n";
    let printed = run(
        instance,
        script,
        "a look into the catalogs of the copy",
        "copy",
    )?;
    Ok(parsed(&printed))
}

fn parsed(printed: &str) -> Catalog {
    let mut catalog = Catalog::default();
    for line in printed.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        match words[..] {
            [table, index, column, non_unique, part, order, kind] => {
                catalog.tables.insert(table.to_owned());
                if index == "NULL" {
                    continue;
                }
                let key = (table.to_owned(), index.to_owned());
                let known = catalog.indexes.entry(key).or_default();
                let mut text = quoted(column);
                if part != "NULL" {
                    text += &format!("({part})");
                }
                if order == "D" {
                    text += " DESC";
                }
                let is_plain = kind == "BTREE" && column != "NULL";
                known.is_plain = is_plain && (known.is_plain || known.columns.is_empty());
                known.is_unique = non_unique == "0";
                known.columns.push(text);
                known.names.push(column.to_owned());
            }
            [table, column] if !table.starts_with("refit:") => {
                let key = (table.to_owned(), column.to_owned());
                catalog.of_keys.insert(key);
            }
            _ => {}
        }
    }
    catalog
}

impl Catalog {
    /// Whether a table has an index that begins with these columns, as written in a statement.
    pub fn has(&self, table: &str, columns: &[String]) -> bool {
        let of_table = self.indexes.iter().filter(|((of, _), _)| of == table);
        of_table
            .map(|(_, known)| known)
            .any(|known| known.is_plain && known.columns.starts_with(columns))
    }

    /// All names of indexes.
    pub fn names(&self) -> BTreeSet<String> {
        self.indexes.keys().map(|(_, name)| name.clone()).collect()
    }

    /// Indexes that no plan uses, as (table, name), that keep nothing unique and that begin with no foreign key.
    pub fn unused(&self, used: &BTreeSet<(String, String)>) -> Vec<Candidate> {
        let unused = self.indexes.iter().filter(|(key, known)| {
            let first = (key.0.clone(), known.names[0].clone());
            known.is_plain
                && !known.is_unique
                && !used.contains(*key)
                && !self.of_keys.contains(&first)
        });
        dropped(unused.map(|((table, name), known)| Unused {
            apply: format!("DROP INDEX {} ON {};", quoted(name), quoted(table)),
            inverse: format!(
                "CREATE INDEX {} ON {} ({});",
                quoted(name),
                quoted(table),
                known.columns.join(", ")
            ),
            name: name.clone(),
            table: table.clone(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_read_and_unused_ones_come_back_as_they_were() {
        let catalog = parsed(
            "refit:all tables\nempty\tNULL\tNULL\tNULL\tNULL\tNULL\tNULL\n\
             orders\tPRIMARY\tid\t0\tNULL\tA\tBTREE\norders\tby note\tnote\t1\t10\tA\tBTREE\n\
             orders\tby note\tat\t1\tNULL\tD\tBTREE\norders\tcustomer\tcustomer_id\t1\tNULL\tA\tBTREE\n\
             orders\twords\tnote\t1\tNULL\tNULL\tFULLTEXT\norders\tused\tat\t1\tNULL\tA\tBTREE\n\
             refit:all keys\norders\tcustomer_id\n",
        );
        assert_eq!(
            catalog.tables,
            ["empty", "orders"].map(str::to_owned).into()
        );
        assert!(catalog.has("orders", &["`at`".to_owned()]));
        assert!(!catalog.has("orders", &["`note`".to_owned()]));
        let used = BTreeSet::from([("orders".to_owned(), "used".to_owned())]);
        let unused = catalog.unused(&used);
        assert_eq!(unused.len(), 1, "{unused:?}");
        assert_eq!(unused[0].apply, "DROP INDEX `by note` ON `orders`;");
        assert_eq!(
            unused[0].inverse,
            "CREATE INDEX `by note` ON `orders` (`note`(10), `at` DESC);"
        );
    }
}
