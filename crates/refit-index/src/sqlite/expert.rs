//! What `.expert` of sqlite3 proposes, as statements.

use std::collections::BTreeSet;

use crate::candidate::{Candidate, Change, applied};
use crate::name::{new_name, plain};
use refit_servers::sql::{Dialect, Kind, Token, quote_name, tokens, unquoted};

/// An index that `.expert` proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// A number of its own, made of the columns.
    name: String,
    table: String,
    /// Names, and what follows them: `COLLATE …`, `DESC`.
    columns: Vec<(String, String)>,
}

/// What `.expert` printed: indexes, and how the query would then be read.
pub fn expert(printed: &str) -> (Vec<Proposal>, String) {
    let (mut proposals, mut plan) = (Vec::new(), Vec::new());
    for line in printed.lines().filter(|line| !line.is_empty()) {
        if let Some(index) = line.strip_prefix("CREATE INDEX ") {
            proposals.extend(proposal(index));
        } else {
            plan.push(line.to_owned());
        }
    }
    (proposals, plan.join("; "))
}

/// `NAME ON TABLE(COLUMN, …);`. Odd names of columns stand in single quotes, which SQLite takes for
/// names at this place.
fn proposal(index: &str) -> Option<Proposal> {
    let all = tokens(index, Dialect::Sqlite);
    let on = all.iter().position(|token| token.is("ON"))?;
    let table = unquoted(all.get(on + 1)?.text);
    let end = all.iter().rposition(|token| token.text == ")")?;
    let columns = all.get(on + 3..end)?.split(|token| token.text == ",");
    let column = |column: &[Token]| {
        let (name, rest) = column.split_first()?;
        let is_name = matches!(name.kind, Kind::Word | Kind::Name | Kind::String);
        let rest: Vec<&str> = rest.iter().map(|token| token.text).collect();
        is_name.then(|| (unquoted(name.text), rest.join(" ")))
    };
    Some(Proposal {
        name: unquoted(all.first()?.text),
        table,
        columns: columns.map(column).collect::<Option<_>>()?,
    })
}

/// One candidate of these indexes.
pub fn candidate(
    proposals: &[Proposal],
    reasons: &[String],
    taken: &mut BTreeSet<String>,
) -> Candidate {
    let mut statements = Vec::new();
    let mut inverses = Vec::new();
    let mut first = String::new();
    let mut why = format!("proposed by .expert since {}", reasons.join("; "));
    for proposal in proposals {
        let names: Vec<String> = proposal
            .columns
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        let name = new_name(&proposal.table, &names, taken);
        why = why.replace(
            &format!("INDEX {} (", proposal.name),
            &format!("INDEX {name} ("),
        );
        let columns = proposal.columns.iter().map(|(name, rest)| {
            format!("{} {rest}", quoted_if_odd(name))
                .trim_end()
                .to_owned()
        });
        let columns: Vec<String> = columns.collect();
        let table = quoted_if_odd(&proposal.table);
        statements.push(format!(
            "CREATE INDEX {name} ON {table} ({});",
            columns.join(", ")
        ));
        inverses.insert(0, format!("DROP INDEX {name};"));
        if first.is_empty() {
            first = name;
        }
    }
    let applied = match proposals {
        [one] => {
            let keys = one.columns.iter();
            let keys = keys.map(|(name, rest)| format!("{name} {rest}").trim_end().to_owned());
            applied(&first, keys.collect::<Vec<_>>().iter().map(|key| &**key))
        }
        _ => None,
    };
    Candidate {
        change: Change::Add,
        applied,
        name: first,
        apply: statements.join("\n"),
        inverse: inverses.join("\n"),
        why,
    }
}

/// A name that is all lower case, digits and `_` needs quotes only as a keyword.
pub fn quoted_if_odd(name: &str) -> String {
    let is_plain =
        !name.is_empty() && name == plain(name) && !name.starts_with(|c: char| c.is_ascii_digit());
    if is_plain && !KEYWORDS.contains(&name) {
        return name.to_owned();
    }
    quote_name(name)
}

/// Those of <https://www.sqlite.org/lang_keywords.html>: what is not a name without quotes everywhere.
const KEYWORDS: &[&str] = &[
    "add",
    "all",
    "alter",
    "and",
    "as",
    "autoincrement",
    "between",
    "case",
    "check",
    "collate",
    "commit",
    "constraint",
    "create",
    "default",
    "deferrable",
    "delete",
    "distinct",
    "drop",
    "else",
    "escape",
    "except",
    "exists",
    "foreign",
    "from",
    "group",
    "having",
    "if",
    "in",
    "index",
    "insert",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "limit",
    "not",
    "nothing",
    "notnull",
    "null",
    "on",
    "or",
    "order",
    "primary",
    "references",
    "returning",
    "select",
    "set",
    "table",
    "then",
    "to",
    "transaction",
    "union",
    "unique",
    "update",
    "using",
    "values",
    "when",
    "where",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_expert_prints_becomes_statements_with_quotes() {
        let printed = "CREATE INDEX \"a\"\"b_idx_6bccf4bb\" ON \"a\"\"b\"('x''y', created COLLATE NOCASE DESC, 'select');\n\n\
                       SEARCH a\"b USING INDEX a\"b_idx_6bccf4bb (x'y=?)\n\n";
        let (proposals, plan) = expert(printed);
        assert_eq!(plan, "SEARCH a\"b USING INDEX a\"b_idx_6bccf4bb (x'y=?)");
        let made = candidate(&proposals, &["q1".to_owned()], &mut BTreeSet::new());
        assert_eq!(
            made.apply,
            "CREATE INDEX a_b_x_y_created_select_idx ON \"a\"\"b\" (\"x'y\", created COLLATE NOCASE DESC, \"select\");"
        );
        assert_eq!(made.inverse, "DROP INDEX a_b_x_y_created_select_idx;");
        assert!(expert("(no new indexes)\n\nSCAN t\n").0.is_empty());
    }
}
