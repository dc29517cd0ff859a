//! What the server reads for a statement with a set of indexes that are made for it.

use std::collections::BTreeSet;

use super::run;
use crate::error::IndexError;
use crate::instance::Instance;
use refit_servers::sql::quote_name_of_mariadb as quoted;

/// An index: its table's name, and columns as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    pub table: String,
    pub columns: Vec<String>,
}

impl Index {
    /// The statement that makes it.
    pub fn create(&self, name: &str) -> String {
        let columns = self.columns.join(", ");
        format!(
            "CREATE INDEX {name} ON {} ({columns});",
            quoted(&self.table)
        )
    }

    /// The statement that drops it.
    pub fn drop(&self, name: &str) -> String {
        format!("DROP INDEX {name} ON {};", quoted(&self.table))
    }
}

/// What ANALYZE of a statement showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// Rows read of tables and indexes, and rows sorted (Handler_read_*, Sort_rows).
    pub rows: f64,
    /// The steps of its plan, on one line.
    pub steps: String,
    /// Indexes that it used: the table as the statement calls it, and the index.
    pub used: BTreeSet<(String, String)>,
}

/// Indexes that are made, and the statements that are run with them, by their numbers.
pub struct Try {
    pub set: Vec<Index>,
    pub statements: Vec<usize>,
}

/// The name of an index as long as it is tried.
pub fn trial_name(at: usize) -> String {
    format!("refit_trial_{at}")
}

/// What is read in each try of each statement; `None` where an index cannot be made, or a statement cannot be run.
///
/// # Errors
/// [`IndexError::Instance`].
pub fn read(
    instance: &Instance,
    texts: &[&str],
    tries: &[Try],
) -> Result<Vec<Vec<Option<Read>>>, IndexError> {
    let mut script = String::new();
    for one in tries {
        script += "SELECT 'refit:try';\n";
        for (at, index) in one.set.iter().enumerate() {
            script += &index.create(&trial_name(at));
            // Only where that worked.
            script += &format!("\nSELECT 'refit:made {at}';\n");
        }
        for statement in &one.statements {
            script += &format!(
                "SELECT 'refit:all statement';\nFLUSH STATUS;\nANALYZE\n{}\n;\nSELECT 'refit:all status';\n\
                 SHOW SESSION STATUS WHERE Variable_name LIKE 'Handler\\_read%' OR Variable_name = 'Sort_rows';\n",
                texts[*statement]
            );
        }
        for (at, index) in one.set.iter().enumerate() {
            script += &index.drop(&trial_name(at));
            script.push('\n');
        }
    }
    let what = "a look at the queries with indexes";
    let printed = run(instance, &script, what, "copy --force")?;
    let mut parts = printed.split("refit:try\n").skip(1);
    let read = |one: &Try| {
        let part = parts.next().unwrap_or_default();
        let mut statements = part.split("refit:all statement\n").skip(1);
        let read = |_| parsed(statements.next()?);
        one.statements.iter().map(read).collect()
    };
    Ok(tries.iter().map(read).collect())
}

/// Lines of ANALYZE, which have 13 columns, and of SHOW STATUS.
fn parsed(text: &str) -> Option<Read> {
    let (plan, status) = text.split_once("refit:all status\n")?;
    let (mut read, mut steps) = (Read::default(), Vec::new());
    for line in plan.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        let [_, _, table, kind, _, key, _, _, _, _, _, _, extra] = words[..] else {
            continue;
        };
        let mut step = match (key, kind) {
            ("NULL", "ALL") => format!("all of {table}"),
            ("NULL", "NULL") => continue,
            ("NULL", kind) => format!("{table} ({kind})"),
            (key, _) => format!("{table} by {key}"),
        };
        if extra.contains("Using filesort") {
            step += ", sorted";
        }
        steps.push(step);
        // Several where it merges them.
        for key in key.split(',').filter(|key| *key != "NULL") {
            read.used.insert((table.to_owned(), key.to_owned()));
        }
    }
    if steps.is_empty() {
        return None;
    }
    let values = status.lines().filter_map(|line| line.split_once('\t'));
    read.rows = values
        .filter_map(|(_, value)| value.parse::<f64>().ok())
        .sum();
    read.steps = steps.join("; ");
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_and_its_counts_are_read() {
        let read = parsed(
            "1\tSIMPLE\to\tALL\tNULL\tNULL\tNULL\tNULL\t1000\t1000.00\t100.00\t1.00\tUsing where; Using filesort\n\
             1\tSIMPLE\tc\teq_ref\tPRIMARY\tPRIMARY\t4\tshop.o.customer_id\t1\t1.00\t100.00\t100.00\t\n\
             refit:all status\nHandler_read_key\t10\nHandler_read_rnd_next\t1001\nSort_rows\t10\n",
        )
        .expect("a plan");
        assert_eq!(read.rows, 1021.0);
        assert_eq!(read.steps, "all of o, sorted; c by PRIMARY");
        assert_eq!(
            read.used,
            BTreeSet::from([("c".to_owned(), "PRIMARY".to_owned())])
        );
        assert_eq!(parsed("refit:all status\nHandler_read_key\t0\n"), None);
    }
}
