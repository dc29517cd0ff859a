//! The workload: the statements of a file, and which of them are the same apart from their values.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{IndexError, at};
use refit_servers::sql::{Dialect, Kind, Token, tokens};

/// More statements than this are a log, of which the first ones are taken.
const MOST_QUERIES: usize = 500;
/// As long as a log may be: all of it is in memory.
const MOST_BYTES: u64 = 64 << 20;

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Without the `;`.
    pub text: String,
    /// Those that are the same apart from their values have the same number, from 1 on.
    pub group: usize,
    /// It changes rows: it is run in a transaction that is rolled back.
    pub writes: bool,
}

/// The statements of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// In the order of the file.
    pub queries: Vec<Query>,
    /// By group: what they have in common.
    pub groups: Vec<String>,
    /// What was not taken, and why.
    pub left_out: Vec<String>,
}

impl Workload {
    /// Those in a file.
    ///
    /// # Errors
    /// [`IndexError::File`], [`IndexError::NothingToRun`].
    pub fn read(path: &Path, dialect: Dialect) -> Result<Workload, IndexError> {
        let mut bytes = Vec::new();
        let read =
            File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
        if read.map_err(at(path))? as u64 > MOST_BYTES {
            return Err(at(path)(std::io::Error::other(format!(
                "it is longer than {} MiB, the limit of a file of queries\n  name its beginning: head -c 60M",
                MOST_BYTES >> 20
            ))));
        }
        let text = String::from_utf8(bytes).map_err(|error| IndexError::File {
            path: path.to_owned(),
            cause: std::io::Error::other(error),
        })?;
        let text = match dialect {
            Dialect::Mariadb => without_log_lines(&text),
            _ => text,
        };
        let workload = Workload::parse(&text, dialect);
        workload.or_none(path)
    }

    /// An error where nothing is left to be run.
    pub fn or_none(self, path: &Path) -> Result<Workload, IndexError> {
        if self.queries.is_empty() {
            return Err(IndexError::NothingToRun {
                path: path.to_owned(),
                left_out: self.left_out,
            });
        }
        Ok(self)
    }

    /// Those of a text.
    pub fn parse(text: &str, dialect: Dialect) -> Workload {
        let mut workload = Workload::default();
        let all = tokens(text, dialect);
        let mut statements = all.split(|token| token.kind == Kind::Sign && token.text == ";");
        for statement in statements.by_ref() {
            let is_code = |token: &&Token| token.kind != Kind::Comment;
            let code: Vec<Token> = statement.iter().filter(is_code).copied().collect();
            let (Some(first), Some(last)) = (code.first(), code.last()) else {
                continue;
            };
            let text = &text[first.at..last.at + last.text.len()];
            let shown = one_line(text);
            match kind(&code) {
                Err(reason) => workload.left_out.push(format!("{shown}: {reason}")),
                Ok(_) if workload.queries.len() == MOST_QUERIES => {
                    let reason = format!("the first {MOST_QUERIES} statements are taken");
                    workload
                        .left_out
                        .push(format!("{shown} and what follows: {reason}"));
                    break;
                }
                Ok(writes) => {
                    let shape = shape(&code);
                    let known = workload.groups.iter().position(|group| *group == shape);
                    let group = known.unwrap_or_else(|| {
                        workload.groups.push(shape);
                        workload.groups.len() - 1
                    });
                    workload.queries.push(Query {
                        text: text.to_owned(),
                        group: group + 1,
                        writes,
                    });
                }
            }
        }
        workload
    }

    /// Leaves out what failed, and numbers the others anew.
    pub fn without(self, failed: &[(usize, String)]) -> Workload {
        let mut left = Workload {
            left_out: self.left_out,
            ..Workload::default()
        };
        for (i, mut query) in self.queries.into_iter().enumerate() {
            if let Some((_, reason)) = failed.iter().find(|(at, _)| *at == i) {
                let shown = one_line(&query.text);
                left.left_out.push(format!("{shown}: {}", one_line(reason)));
                continue;
            }
            let shape = &self.groups[query.group - 1];
            let known = left.groups.iter().position(|group| group == shape);
            query.group = 1 + known.unwrap_or_else(|| {
                left.groups.push(shape.clone());
                left.groups.len() - 1
            });
            left.queries.push(query);
        }
        left
    }

    /// Of each group, its number and the first statement.
    pub fn firsts(&self) -> impl Iterator<Item = (usize, &Query)> {
        let first = |group| self.queries.iter().find(|query| query.group == group);
        let groups = 1..=self.groups.len();
        groups.filter_map(move |group| Some((group, first(group)?)))
    }

    /// One line for each group: its number, how often it is there, and the first of it.
    pub fn described(&self) -> Vec<String> {
        let group = |number: usize| {
            let mut of = self
                .queries
                .iter()
                .filter(move |query| query.group == number);
            let first = of.next().map_or("", |query| &query.text);
            let times = match of.count() {
                0 => String::new(),
                more => format!(" ({} times)", more + 1),
            };
            format!("q{number}{times}: {}", one_line(first))
        };
        (1..=self.groups.len()).map(group).collect()
    }
}

/// A slow query log without what it writes between statements. What begins with `#` is a comment to MariaDB too.
fn without_log_lines(text: &str) -> String {
    if !text.lines().any(|line| line.starts_with("# Query_time:")) {
        return text.to_owned();
    }
    let is_time = |line: &str| {
        let time = line.strip_prefix("SET timestamp=");
        let time = time.and_then(|time| time.strip_suffix(';'));
        time.is_some_and(|time| time.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_head = |line: &str| {
        line.ends_with("started with:")
            || line.starts_with("Tcp port: ")
            || line.starts_with("Time\t\t")
            || (line.starts_with("use ") && line.ends_with(';'))
    };
    let kept = text.lines().filter(|line| !is_time(line) && !is_head(line));
    kept.collect::<Vec<_>>().join("\n")
}

/// Whether it writes, or why it is not taken.
fn kind(code: &[Token]) -> Result<bool, String> {
    let first = code[0];
    if let Some(parameter) = code.iter().find(|token| token.kind == Kind::Parameter) {
        return Err(format!("write a value in the place of {}", parameter.text));
    }
    // To psql and mariadb it is a command of their own.
    if code.iter().any(|token| token.text == "\\") {
        return Err("a backslash outside of quotes".to_owned());
    }
    let writes = ["insert", "update", "delete", "replace"];
    let is_write = |token: &Token| writes.iter().any(|word| token.is(word));
    if is_write(&first) {
        return Ok(true);
    }
    if first.is("with") {
        return Ok(code.iter().any(is_write));
    }
    if first.is("select") || first.is("values") {
        return Ok(false);
    }
    Err("neither reads nor writes rows".to_owned())
}

/// The statement without its values and spaces; a list of values is one.
fn shape(code: &[Token]) -> String {
    let mut words: Vec<String> = Vec::new();
    for token in code {
        let word = match token.kind {
            Kind::String | Kind::Number => "?".to_owned(),
            Kind::Word => token.text.to_lowercase(),
            _ => token.text.to_owned(),
        };
        let end = words.len();
        if word == "?" && end >= 2 && words[end - 1] == "," && words[end - 2] == "?" {
            words.pop();
            continue;
        }
        words.push(word);
    }
    words.join(" ")
}

/// A beginning that fits a line.
pub fn one_line(text: &str) -> String {
    const MOST: usize = 90;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MOST {
        return line;
    }
    let beginning: String = line.chars().take(MOST - 1).collect();
    format!("{beginning}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_query_log_is_its_statements() {
        let text = "/usr/sbin/mariadbd, Version: 10.11.6-MariaDB (Debian 12). started with:\n\
                    Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock\nTime\t\t    Id Command\tArgument\n\
                    # Time: 261124  0:00:01\n# User@Host: shop[shop] @ localhost []\n\
                    # Query_time: 2.000123  Lock_time: 0.000050  Rows_sent: 1  Rows_examined: 1000000\n\
                    use shop;\nSET timestamp=1764000000;\nSELECT a\nFROM t WHERE b = 'use x;';\n\
                    # Query_time: 3.000000  Lock_time: 0.000050  Rows_sent: 1  Rows_examined: 1000000\n\
                    SET timestamp=1764000001;\nSELECT a FROM t WHERE b = 'y';\n";
        let workload = Workload::parse(&without_log_lines(text), Dialect::Mariadb);
        let none: [String; 0] = [];
        assert_eq!(workload.left_out, none);
        let texts: Vec<&str> = workload.queries.iter().map(|query| &*query.text).collect();
        assert_eq!(
            texts,
            [
                "SELECT a\nFROM t WHERE b = 'use x;'",
                "SELECT a FROM t WHERE b = 'y'"
            ]
        );
        assert_eq!(workload.groups.len(), 1);
    }

    #[test]
    fn statements_that_differ_in_values_are_one_group() {
        let text = "-- the page\nSELECT a FROM t WHERE b = 1;\nselect a  from t where b = 'x;y';;\n\
                    SELECT a FROM t WHERE b IN (1, 2);SELECT a FROM t WHERE b IN (1, 2, 3);\n\
                    WITH n AS (SELECT 1) INSERT INTO t SELECT * FROM n; BEGIN; DELETE FROM t WHERE a = ?1";
        let workload = Workload::parse(text, Dialect::Sqlite);
        let groups: Vec<(usize, bool)> = workload
            .queries
            .iter()
            .map(|query| (query.group, query.writes))
            .collect();
        assert_eq!(
            groups,
            [(1, false), (1, false), (2, false), (2, false), (3, true)]
        );
        assert_eq!(workload.queries[1].text, "select a  from t where b = 'x;y'");
        assert_eq!(
            workload.left_out,
            [
                "BEGIN: neither reads nor writes rows",
                "DELETE FROM t WHERE a = ?1: write a value in the place of ?1"
            ]
        );
        assert_eq!(
            workload.described()[0],
            "q1 (2 times): SELECT a FROM t WHERE b = 1"
        );
        let left = workload.without(&[(0, "no such\ntable".to_owned()), (1, "no".to_owned())]);
        assert_eq!(left.groups.len(), 2);
        assert_eq!(left.queries[0].group, 1);
        assert_eq!(
            left.left_out[2],
            "SELECT a FROM t WHERE b = 1: no such table"
        );
    }
}
