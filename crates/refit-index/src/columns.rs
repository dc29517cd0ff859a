//! Columns that a plan filters, joins and sorts by, and the indexes that could serve it. Whether one
//! does is asked of the database.

use std::collections::BTreeSet;

use refit_servers::sql::{Dialect, Kind, Token, tokens, unquoted};

/// More would take long, and what is worth trying is among the first.
const MOST_CANDIDATES: usize = 32;

/// A table of a plan, and what is asked of it. Columns are written as the plan writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// What the plan calls it.
    pub alias: String,
    /// Compared by `=` with a value.
    equal: Vec<String>,
    /// Compared by `=` with a column of another table.
    joined: Vec<String>,
    /// Compared otherwise.
    ranged: Vec<String>,
    /// The order of the rows, with `DESC`.
    sorted: Vec<String>,
}

impl Used {
    /// One of which nothing is known yet.
    pub fn new(alias: &str) -> Used {
        Used {
            alias: alias.to_owned(),
            ..Used::default()
        }
    }

    /// Columns of indexes that could serve it, those with fewer columns first.
    pub fn candidates(&self) -> Vec<Vec<String>> {
        let (equal, joined) = (&self.equal, &self.joined);
        let mut starts = vec![Vec::new(), equal.clone(), joined.clone()];
        starts.push([&**equal, joined].concat());
        starts.push([&**joined, equal].concat());
        let each = equal.iter().chain(joined).chain(&self.ranged);
        starts.extend(each.map(|column| vec![column.clone()]));
        let mut all: Vec<Vec<String>> = Vec::new();
        let mut add = |parts: &[&[String]]| {
            let mut seen = BTreeSet::new();
            let columns = parts.concat().into_iter();
            let columns = columns.filter(|column| seen.insert(bare(column).to_owned()));
            let columns: Vec<String> = columns.collect();
            if !columns.is_empty() && !all.contains(&columns) {
                all.push(columns);
            }
        };
        for start in &starts {
            add(&[start]);
            add(&[start, &self.sorted]);
            for ranged in &self.ranged {
                let ranged = std::slice::from_ref(ranged);
                add(&[start, ranged]);
                add(&[start, &self.sorted, ranged]);
            }
        }
        all.sort_by_key(Vec::len);
        all.truncate(MOST_CANDIDATES);
        all
    }
}

/// A column without its direction.
pub fn bare(column: &str) -> &str {
    ["ASC", "DESC", "NULLS"]
        .iter()
        .filter_map(|word| column.find(&format!(" {word}")))
        .min()
        .map_or(column, |end| &column[..end])
}

/// The columns of a condition.
pub fn condition(used: &mut [Used], text: &str, dialect: Dialect) {
    let all = tokens(text, dialect);
    for at in 0..all.len() {
        let Some((of, column)) = column(used, &all[at..]) else {
            continue;
        };
        let is_end = |token: &&Token| !matches!(token.text, ")" | "::" | "text" | "varying");
        let after: Vec<&Token> = all[at + 3..].iter().filter(is_end).take(2).collect();
        let before: Vec<&Token> = all[..at]
            .iter()
            .rev()
            .filter(|t| t.text != "(")
            .take(2)
            .collect();
        let is = |tokens: &[&Token], at: usize, signs: &[&str]| {
            tokens
                .get(at)
                .is_some_and(|token| signs.contains(&token.text))
        };
        let compares = ["<", ">", "!", "~"];
        let is_equal = is(&after, 0, &["="])
            || (is(&before, 0, &["="]) && !is(&before, 1, &compares))
            || after
                .first()
                .is_some_and(|token| token.is("is") || token.is("in"));
        // The other side, where it is a column of another table.
        let others = |alias: &Token, mine: &str| {
            let name = unquoted_token(alias);
            name != mine && used.iter().any(|used| used.alias == name)
        };
        let mine = &used[of].alias;
        let is_joined = is_equal
            && (after.get(1).is_some_and(|alias| others(alias, mine))
                || (is(&before, 0, &["="])
                    && all[..at].iter().rev().skip(1).any(|t| others(t, mine))));
        let list = match (is_equal, is_joined) {
            (_, true) => &mut used[of].joined,
            (true, false) => &mut used[of].equal,
            (false, _) => &mut used[of].ranged,
        };
        if !list.contains(&column) {
            list.push(column);
        }
    }
}

/// The columns that rows are sorted by, where all of them are one table's.
pub fn order(used: &mut [Used], keys: &[&str], dialect: Dialect) {
    let mut found: Vec<(usize, String, bool)> = Vec::new();
    for key in keys {
        let all = tokens(key, dialect);
        let Some((of, name)) = column(used, &all) else {
            return;
        };
        let rest: Vec<&str> = all[3..].iter().map(|token| token.text).collect();
        let is_other = found.iter().any(|(other, ..)| *other != of);
        let is_plain = |word: &&str| {
            ["ASC", "DESC", "NULLS", "FIRST", "LAST"]
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known))
        };
        if is_other || !rest.iter().all(is_plain) {
            return;
        }
        let rest = rest.join(" ").to_uppercase();
        let is_down = rest == "DESC";
        found.push((of, format!("{name} {rest}").trim_end().to_owned(), is_down));
    }
    // An index is read backwards as well.
    let all_down = found.iter().all(|(.., is_down)| *is_down);
    let Some(&(of, ..)) = found.first() else {
        return;
    };
    if used[of].sorted.is_empty() {
        let columns = found.into_iter().map(|(_, column, _)| match all_down {
            true => bare(&column).to_owned(),
            false => column,
        });
        used[of].sorted = columns.collect();
    }
}

/// `alias.column`: whose it is, and the column as written.
fn column(used: &[Used], rest: &[Token]) -> Option<(usize, String)> {
    let [alias, dot, name, ..] = rest else {
        return None;
    };
    let is_name = |token: &Token| matches!(token.kind, Kind::Word | Kind::Name);
    if dot.text != "." || !is_name(alias) || !is_name(name) {
        return None;
    }
    let alias = unquoted_token(alias);
    let of = used.iter().position(|used| used.alias == alias)?;
    Some((of, name.text.to_owned()))
}

fn unquoted_token(token: &Token) -> String {
    match token.kind {
        Kind::Name => unquoted(token.text),
        _ => token.text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used() -> Vec<Used> {
        vec![Used::new("o"), Used::new("c d")]
    }

    #[test]
    fn conditions_and_orders_give_the_columns() {
        let mut all = used();
        let postgresql = Dialect::Postgresql;
        condition(
            &mut all,
            "((o.created_at >= 'o.x = 1'::text) AND ((o.status)::text = 'a'::text) AND (o.\"a b\" IS NULL))",
            postgresql,
        );
        condition(&mut all, "(o.customer = \"c d\".id)", postgresql);
        order(&mut all, &["o.at DESC", "o.id DESC"], postgresql);
        order(&mut all, &["o.other"], postgresql);
        let words =
            |words: &[&str]| -> Vec<String> { words.iter().map(|&w| w.to_owned()).collect() };
        assert_eq!(all[0].ranged, words(&["created_at"]));
        assert_eq!(all[0].equal, words(&["status", "\"a b\""]));
        assert_eq!(all[0].joined, words(&["customer"]));
        assert_eq!(all[1].joined, words(&["id"]));
        assert_eq!(all[0].sorted, words(&["at", "id"]));
        let candidates = all[0].candidates();
        for expected in [
            &["customer"][..],
            &["status", "\"a b\"", "at", "id"],
            &["status", "\"a b\"", "created_at"],
            &["status", "\"a b\"", "customer"],
        ] {
            assert!(candidates.contains(&words(expected)), "{candidates:?}");
        }
        assert!(candidates.is_sorted_by_key(Vec::len));
    }

    #[test]
    fn an_order_of_two_tables_or_of_an_expression_is_none() {
        let mut all = used();
        order(&mut all, &["o.at", "\"c d\".id"], Dialect::Postgresql);
        order(&mut all, &["lower(o.note)"], Dialect::Postgresql);
        order(&mut all, &["o.at", "o.id + 1"], Dialect::Postgresql);
        assert_eq!(all, used());
        order(&mut all, &["o.at", "o.id DESC"], Dialect::Postgresql);
        assert_eq!(all[0].sorted, ["at", "id DESC"]);
        assert_eq!(bare("id DESC NULLS LAST"), "id");
    }
}
