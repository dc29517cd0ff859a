//! Parts of the statements that PostgreSQL prints.

use refit_servers::sql::{Dialect, Kind, tokens};

use crate::{Key, Object};

/// Before the names of what is made for a moment.
pub const MADE: &str = "refit made ";

/// A name in quotes.
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in quotes.
pub fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

/// The values of an enumeration, each in quotes.
pub fn values(object: &Object) -> Vec<String> {
    let all = tokens(object.fact("values"), Dialect::Postgresql);
    let values = all.into_iter().filter(|token| token.kind == Kind::String);
    values.map(|token| token.text.to_owned()).collect()
}

/// `CREATE INDEX name ON …` as one that goes on beside writers, perhaps by another name.
pub fn concurrently(definition: &str, name: &str) -> String {
    let all = tokens(definition, Dialect::Postgresql);
    let at = all.iter().position(|token| token.is("index"));
    match at.and_then(|at| Some((all.get(at)?, all.get(at + 1)?))) {
        Some((word, old)) => format!(
            "{} CONCURRENTLY {}{}",
            &definition[..word.at + word.text.len()],
            quoted(name),
            &definition[old.at + old.text.len()..]
        ),
        None => definition.to_owned(),
    }
}

/// A column as CREATE TABLE and ADD COLUMN take it.
pub fn column(name: &str, column: &Object) -> String {
    let mut text = format!("{} {}", quoted(name), column.fact("type"));
    let add = |text: &mut String, before: &str, fact: &str, after: &str| {
        if !fact.is_empty() {
            *text += &format!(" {before}{fact}{after}");
        }
    };
    add(&mut text, "COLLATE ", column.fact("collation"), "");
    add(
        &mut text,
        "GENERATED ALWAYS AS (",
        column.fact("generated"),
        ") STORED",
    );
    add(&mut text, "DEFAULT ", column.fact("default"), "");
    let identity = column.fact("identity");
    if let Some((how, options)) = identity.split_once(" (") {
        text += &format!(" GENERATED {how} AS IDENTITY ({options}");
    }
    add(&mut text, "", column.fact("not null"), "");
    text
}

/// A view.
pub fn view(name: &str, view: &Object, or_replace: bool) -> String {
    let replace = if or_replace { "OR REPLACE " } else { "" };
    let options = match view.fact("options") {
        "" => String::new(),
        options => format!(" WITH ({options})"),
    };
    let text = view.fact("definition").trim_end().trim_end_matches(';');
    format!("CREATE {replace}VIEW {name}{options} AS\n{text}")
}

/// What COMMENT ON calls an object.
pub fn commented(key: &Key, object: &Object) -> Option<String> {
    use crate::Kind::{
        Column, Constraint, Function, Index, Schema, Sequence, Table, Trigger, Type, View,
    };
    let Key { kind, table, name } = key;
    let space = table.split_once('.').map_or("", |(space, _)| space);
    Some(match kind {
        Schema => format!("SCHEMA {name}"),
        Type if !object.fact("domain").is_empty() => format!("DOMAIN {name}"),
        Type => format!("TYPE {name}"),
        Sequence => format!("SEQUENCE {name}"),
        Function => format!("{} {name}", object.fact("of")),
        Table => format!("TABLE {name}"),
        View => format!("VIEW {name}"),
        Column => format!("COLUMN {table}.{}", quoted(name)),
        Constraint => format!("CONSTRAINT {} ON {table}", quoted(name)),
        Trigger => format!("TRIGGER {} ON {table}", quoted(name)),
        Index => format!("INDEX {space}.{}", quoted(name)),
        _ => return None,
    })
}

/// The statement that gives an object its comment; `None` where it has the one of `before`.
pub fn comment(key: &Key, before: Option<&Object>, object: &Object) -> Option<String> {
    let text = object.fact("comment");
    if text == before.map_or("", |before| before.fact("comment")) {
        return None;
    }
    let text = match text {
        "" => "NULL".to_owned(),
        text => literal(text),
    };
    Some(format!("COMMENT ON {} IS {text}", commented(key, object)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_built_beside_writers() {
        assert_eq!(
            concurrently(
                "CREATE UNIQUE INDEX \"a b\" ON public.t USING btree (\"index\")",
                "c"
            ),
            "CREATE UNIQUE INDEX CONCURRENTLY \"c\" ON public.t USING btree (\"index\")"
        );
    }
}
