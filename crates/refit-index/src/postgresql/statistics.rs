//! The queries of pg_stat_statements. It keeps no values: they come from the copy, from the column
//! that each is compared with.

use std::collections::BTreeMap;

use super::catalog::{Table, tables};
use super::plan::Plan;
use super::psql;
use crate::error::IndexError;
use crate::instance::Instance;
use crate::queries::one_line;
use refit_servers::sql::{Dialect, Kind, Token, tokens, unquoted};

/// What is taken for the parameter of a LIMIT.
const LIMIT: &str = "10";

/// Statements with values, and what was left out.
pub struct Filled {
    pub text: String,
    pub left_out: Vec<String>,
}

/// A column: its table, and its name as written.
type Column = (String, String);

/// Gives the statements values.
pub fn filled(instance: &Instance, statements: &[String]) -> Result<Filled, IndexError> {
    let tables = tables(instance)?;
    let plans = generic_plans(instance, statements)?;
    let compared: Vec<BTreeMap<String, Column>> = plans
        .iter()
        .map(|plan| {
            plan.as_ref()
                .map(|plan| columns(plan, &tables))
                .unwrap_or_default()
        })
        .collect();
    let mut wanted: Vec<&Column> = compared.iter().flat_map(BTreeMap::values).collect();
    wanted.sort();
    wanted.dedup();
    let values = values(instance, &wanted)?;
    let (mut text, mut left_out) = (String::new(), Vec::new());
    for (statement, compared) in statements.iter().zip(&compared) {
        let value = |parameter: &str| {
            let column = compared.get(parameter)?;
            values.get(column).map(String::as_str)
        };
        match with_values(statement, value) {
            Ok(statement) => text += &format!("{statement};\n"),
            Err(parameter) => left_out.push(format!(
                "{}: it is compared with no column that has a value for {parameter}",
                one_line(statement)
            )),
        }
    }
    Ok(Filled { text, left_out })
}

/// The statement with values in the place of its parameters, or a parameter that has none.
fn with_values<'a>(
    statement: &str,
    value: impl Fn(&str) -> Option<&'a str>,
) -> Result<String, String> {
    let all = tokens(statement, Dialect::Postgresql);
    let (mut text, mut done) = (String::new(), 0);
    for (at, token) in all.iter().enumerate() {
        if token.kind != Kind::Parameter {
            continue;
        }
        let is_after = |word: &str| at > 0 && all[at - 1].is(word);
        let value = match value(token.text) {
            _ if is_after("limit") => LIMIT,
            _ if is_after("offset") => "0",
            Some(value) => value,
            None => return Err(token.text.to_owned()),
        };
        text += &statement[done..token.at];
        text += value;
        done = token.at + token.text.len();
    }
    Ok(text + &statement[done..])
}

/// Plans for any values; `None`: PostgreSQL makes none.
fn generic_plans(
    instance: &Instance,
    statements: &[String],
) -> Result<Vec<Option<Plan>>, IndexError> {
    let mut script = "SET plan_cache_mode = force_generic_plan;\n".to_owned();
    for statement in statements {
        let all = tokens(statement, Dialect::Postgresql);
        let number = |token: &Token| match token.kind {
            Kind::Parameter => token.text[1..].parse::<usize>().ok(),
            _ => None,
        };
        let count = all.iter().filter_map(number).max().unwrap_or_default();
        let arguments = match count {
            0 => String::new(),
            count => format!("({})", vec!["NULL"; count].join(", ")),
        };
        script += &format!(
            "\\echo @plan\nPREPARE refit AS\n{statement}\n;\n\
             EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE refit{arguments};\nDEALLOCATE ALL;\n"
        );
    }
    let printed = psql(
        instance,
        &script,
        "EXPLAIN of the statements of pg_stat_statements",
    )?;
    Ok(printed.split("@plan\n").skip(1).map(Plan::parse).collect())
}

/// The column that each parameter is compared with.
fn columns(plan: &Plan, tables: &[Table]) -> BTreeMap<String, Column> {
    let used = plan.used();
    let mut found = BTreeMap::new();
    for text in plan.conditions() {
        let all = tokens(text, Dialect::Postgresql);
        let column = |at: usize| {
            let [alias, dot, name, ..] = &all[at..] else {
                return None;
            };
            let alias = match alias.kind {
                Kind::Name => unquoted(alias.text),
                _ => alias.text.to_owned(),
            };
            let (of, _) = used
                .iter()
                .find(|(_, used)| dot.text == "." && used.alias == alias)?;
            let is_it = |table: &&Table| (&table.schema, &table.name) == (&of.0, &of.1);
            let table = tables.iter().find(is_it)?;
            Some((table.written.clone(), name.text.to_owned()))
        };
        for (at, token) in all.iter().enumerate() {
            if token.kind != Kind::Parameter || found.contains_key(token.text) {
                continue;
            }
            // Within its comparison: before it, or after it.
            let ends = |token: &&Token| token.is("and") || token.is("or");
            let begin = all[..at]
                .iter()
                .rposition(|token| ends(&token))
                .unwrap_or_default();
            let end = all[at..]
                .iter()
                .position(|token| ends(&token))
                .map_or(all.len(), |end| at + end);
            let nearest = (begin..at).rev().chain(at..end).find_map(column);
            if let Some(column) = nearest {
                found.insert(token.text.to_owned(), column);
            }
        }
    }
    found
}

/// The middle value of each column, as a literal.
fn values(
    instance: &Instance,
    columns: &[&Column],
) -> Result<BTreeMap<Column, String>, IndexError> {
    let query = |(table, column): &&Column| {
        format!(
            "\\echo @value\nSELECT quote_literal(percentile_disc(0.5) WITHIN GROUP (ORDER BY {column})) FROM {table};\n"
        )
    };
    let script: String = columns.iter().map(query).collect();
    let printed = psql(instance, &script, "the search for values in the copy")?;
    let values = printed
        .split("@value\n")
        .skip(1)
        .map(|value| value.trim_end_matches('\n'));
    let known = columns
        .iter()
        .zip(values)
        .filter(|(_, value)| !value.is_empty());
    Ok(known
        .map(|(column, value)| ((*column).clone(), value.to_owned()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_get_values() {
        let value = |parameter: &str| (parameter == "$1").then_some("'it''s $2'");
        let with = |statement| with_values(statement, value);
        assert_eq!(
            with("SELECT '$1' FROM t WHERE a = $1 AND b < $1 LIMIT $2 OFFSET $3").as_deref(),
            Ok("SELECT '$1' FROM t WHERE a = 'it''s $2' AND b < 'it''s $2' LIMIT 10 OFFSET 0")
        );
        assert_eq!(with("SELECT $2").unwrap_err(), "$2");
    }

    #[test]
    fn a_parameter_is_compared_with_the_nearest_column() {
        let plan = Plan::parse(
            r#"[{"Plan": {"Node Type": "Seq Scan", "Relation Name": "orders", "Schema": "public", "Alias": "o",
                "Filter": "((o.a = $1) AND ((o.\"B c\")::text = ANY (ARRAY[$2, $3])) AND ($4 < o.d))"}}]"#,
        )
        .expect("a plan");
        let table = Table {
            schema: "public".to_owned(),
            name: "orders".to_owned(),
            written: "orders".to_owned(),
            prefix: String::new(),
            indexes: Vec::new(),
        };
        let found = columns(&plan, &[table]);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(parameter, (_, column))| (&**parameter, &**column))
            .collect();
        assert_eq!(
            found,
            [
                ("$1", "a"),
                ("$2", "\"B c\""),
                ("$3", "\"B c\""),
                ("$4", "d")
            ]
        );
    }
}
