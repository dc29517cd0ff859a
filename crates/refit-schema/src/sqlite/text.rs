//! The statements that SQLite keeps in sqlite_schema, in a form that can be compared.
//!
//! They stand there as they were typed, and ALTER TABLE edits them in place. Only what the catalog of SQLite does not tell in
//! another way is read here: where columns and constraints begin, and which words a person typed otherwise.

use refit_servers::sql::{Dialect, Kind, Token, tokens, unquoted};

/// Words that mean something else between quotes: <https://www.sqlite.org/lang_keywords.html>, and the two that are values.
const KEYWORDS: &str = "abort action add after all alter always analyze and as asc attach autoincrement before begin between by \
    cascade case cast check collate column commit conflict constraint create cross current current_date current_time \
    current_timestamp database default deferrable deferred delete desc detach distinct do drop each else end escape except \
    exclude exclusive exists explain fail false filter first following for foreign from full generated glob group groups \
    having if ignore immediate in index indexed initially inner insert instead intersect into is isnull join key last left \
    like limit match materialized natural no not nothing notnull null nulls of offset on or order others outer over \
    partition plan pragma preceding primary query raise range recursive references regexp reindex release rename replace \
    restrict returning right rollback row rows savepoint select set table temp temporary then ties to transaction trigger \
    true unbounded union unique update using vacuum values view virtual when where window with without";

/// All tokens but comments.
fn words(sql: &str) -> Vec<Token<'_>> {
    let mut all = tokens(sql, Dialect::Sqlite);
    all.retain(|token| token.kind != Kind::Comment);
    all
}

/// Tokens in one form: spaces, the case of bare words, and quotes around plain names are none of the text.
fn one_form(tokens: &[Token]) -> String {
    let mut text = String::new();
    let mut follows_default = false;
    for token in tokens {
        let word = match token.kind {
            Kind::Word if follows_default => token.text.to_owned(),
            Kind::Word => token.text.to_ascii_lowercase(),
            Kind::Name => plain(token.text),
            _ => token.text.to_owned(),
        };
        follows_default = token.is("default");
        if !text.is_empty() {
            text.push(' ');
        }
        text += &word;
    }
    text
}

/// A name without quotes where it needs none.
fn plain(quoted: &str) -> String {
    let name = unquoted(quoted);
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_plain = !name.is_empty()
        && name.chars().all(is_of_name)
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !KEYWORDS.split_whitespace().any(|word| word == name);
    match is_plain {
        true => name,
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A whole statement in one form.
pub fn statement(sql: &str) -> String {
    one_form(&words(sql))
}

/// A column of a CREATE TABLE.
#[derive(Debug, PartialEq, Eq)]
pub struct Column {
    /// As it was typed, without quotes.
    pub name: String,
    /// What follows the name, in one form.
    pub definition: String,
    /// As it was typed, with its name.
    pub text: String,
}

/// A CREATE TABLE.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its own constraints: in one form, and as they were typed.
    pub constraints: Vec<(String, String)>,
    /// STRICT and WITHOUT ROWID, in one form.
    pub options: String,
    /// Where its name stands.
    name: (usize, usize),
}

impl Table {
    /// Reads a statement of sqlite_schema; `None`: it is of another form.
    pub fn read(sql: &str) -> Option<Table> {
        let all = words(sql);
        if !(all.first()?.is("create") && all.get(1)?.is("table")) {
            return None;
        }
        let name = all.get(2)?;
        if all.get(3)?.text != "(" {
            return None;
        }
        let mut depth = 0;
        let mut parts: Vec<&[Token]> = Vec::new();
        let (mut begin, mut end) = (4, None);
        for (at, token) in all.iter().enumerate().skip(3) {
            match (token.kind, token.text) {
                (Kind::Sign, "(") => depth += 1,
                (Kind::Sign, ")") => {
                    depth -= 1;
                    if depth == 0 {
                        parts.push(&all[begin..at]);
                        end = Some(at);
                        break;
                    }
                }
                (Kind::Sign, ",") if depth == 1 => {
                    parts.push(&all[begin..at]);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        let rest = &all[end? + 1..];
        let mut options: Vec<String> = rest
            .split(|token| token.text == ",")
            .map(one_form)
            .collect();
        options.sort();
        let (mut columns, mut constraints) = (Vec::new(), Vec::new());
        for part in parts {
            let (first, last) = (part.first()?, part.last()?);
            let text = sql[first.at..last.at + last.text.len()].to_owned();
            let of_table = ["constraint", "primary", "unique", "check", "foreign"];
            match of_table.iter().any(|word| first.is(word)) {
                true => constraints.push((one_form(part), text)),
                false => columns.push(Column {
                    name: unquoted(first.text),
                    definition: one_form(&part[1..]),
                    text,
                }),
            }
        }
        Some(Table {
            columns,
            constraints,
            options: options.join(", "),
            name: (name.at, name.at + name.text.len()),
        })
    }
}

/// The statement with another name of its table.
pub fn renamed(sql: &str, name: &str) -> Option<String> {
    let (begin, end) = Table::read(sql)?.name;
    Some(format!("{}{name}{}", &sql[..begin], &sql[end..]))
}

/// The words of a definition that stand in no parentheses, in lower case.
pub fn outer(definition: &str) -> Vec<String> {
    let mut depth = 0;
    let mut all = Vec::new();
    for token in words(definition) {
        match token.text {
            "(" => depth += 1,
            ")" => depth -= 1,
            text if depth == 0 && token.kind == Kind::Word => all.push(text.to_ascii_lowercase()),
            _ => {}
        }
    }
    all
}

/// What follows DEFAULT in a definition: one token, with its sign; `None` where there is no default.
pub fn default(definition: &str) -> Option<String> {
    let all = words(definition);
    let at = all.iter().position(|token| token.is("default"))?;
    let first = all.get(at + 1)?;
    let sign = ["-", "+"].contains(&first.text);
    let last = all.get(at + 1 + usize::from(sign))?;
    let sign = if sign { first.text } else { "" };
    Some(format!("{sign}{}", last.text))
}

/// The type that a definition begins with, in one form.
pub fn declared_type(definition: &str) -> String {
    let all = words(definition);
    let ends = [
        "constraint",
        "primary",
        "not",
        "null",
        "unique",
        "check",
        "default",
        "collate",
        "references",
        "generated",
        "as",
    ];
    let end = all
        .iter()
        .position(|token| ends.iter().any(|word| token.is(word)));
    one_form(&all[..end.unwrap_or(all.len())])
}

/// How values are stored in a column of a type: <https://www.sqlite.org/datatype3.html#determination_of_column_affinity>.
pub fn affinity(declared_type: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| declared_type.contains(word));
    match declared_type {
        _ if has(&["int"]) => "integer",
        _ if has(&["char", "clob", "text"]) => "text",
        "" => "blob",
        _ if has(&["blob"]) => "blob",
        _ if has(&["real", "floa", "doub"]) => "real",
        _ => "numeric",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_otherwise_is_the_same() {
        for (one, other) in [
            (
                "CREATE VIEW v AS SELECT 1",
                "create  view \"v\" as -- x\n select 1",
            ),
            (
                "CREATE INDEX i ON t (a DESC)",
                "CREATE INDEX [i] ON `t`(\"a\" desc)",
            ),
        ] {
            assert_eq!(statement(one), statement(other));
        }
        for (one, other) in [
            ("CREATE VIEW v AS SELECT 'A'", "CREATE VIEW v AS SELECT 'a'"),
            (
                "CREATE VIEW v AS SELECT \"order\"",
                "CREATE VIEW v AS SELECT order",
            ),
            ("x DEFAULT Abc", "x DEFAULT abc"),
            ("x <> \"Abc\"", "x <> \"abc\""),
        ] {
            assert_ne!(statement(one), statement(other));
        }
    }

    #[test]
    fn a_table_has_columns_constraints_and_options() {
        let sql = "CREATE TABLE \"a b\" (id INTEGER PRIMARY KEY, /* , */ \"n,m\" decimal(5, 2) DEFAULT (1+2) CHECK (x IN (1,2)),\n\
                   CONSTRAINT c UNIQUE (id, \"n,m\"), FOREIGN KEY (id) REFERENCES o(id)) strict, without  ROWID";
        let table = Table::read(sql).unwrap();
        let names: Vec<&str> = table.columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["id", "n,m"]);
        assert_eq!(
            table.columns[1].definition,
            "decimal ( 5 , 2 ) default ( 1 + 2 ) check ( x in ( 1 , 2 ) )"
        );
        assert_eq!(table.constraints.len(), 2);
        assert_eq!(table.constraints[1].1, "FOREIGN KEY (id) REFERENCES o(id)");
        assert_eq!(table.options, "strict, without rowid");
        let new = renamed(sql, "\"c\"").unwrap();
        assert!(new.starts_with("CREATE TABLE \"c\" (id"), "{new}");
        assert_eq!(
            declared_type(&table.columns[1].definition),
            "decimal ( 5 , 2 )"
        );
        assert_eq!(default("text default -1 not null").as_deref(), Some("-1"));
        assert!(Table::read("CREATE VIRTUAL TABLE x USING fts5(a)").is_none());
    }
}
