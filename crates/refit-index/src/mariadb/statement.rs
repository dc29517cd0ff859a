//! A statement as the server itself understood it: what EXPLAIN EXTENDED leaves in SHOW WARNINGS, where each column has its
//! table's name.

use std::collections::BTreeSet;

use crate::columns::{Used, condition, order};
use refit_servers::sql::{Dialect, Kind, Token, tokens, unquoted};

/// What it asks of each table, by the table's name.
pub fn used(text: &str, database: &str, tables: &BTreeSet<String>) -> Vec<(String, Used)> {
    let text = without_database(text, database);
    let all = tokens(&text, Dialect::Mariadb);
    let mut found: Vec<(String, Used)> = Vec::new();
    for (at, token) in all.iter().enumerate() {
        let is_first = at > 0 && {
            let before = &all[at - 1];
            let begins = ["from", "join", "straight_join"];
            begins.iter().any(|word| before.is(word)) || ["(", ","].contains(&before.text)
        };
        let is_alone = all.get(at + 1).is_none_or(|next| next.text != ".");
        let name = unquoted(token.text);
        if !is_first || !is_alone || token.kind != Kind::Name || !tables.contains(&name) {
            continue;
        }
        let alias = all.get(at + 1).filter(|next| next.kind == Kind::Name);
        let alias = alias.map_or_else(|| name.clone(), |alias| unquoted(alias.text));
        if !found.iter().any(|(_, used)| used.alias == alias) {
            found.push((name, Used::new(&alias)));
        }
    }
    let (names, mut used): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    for part in parts(&all) {
        let text = |tokens: &[Token]| match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => text[first.at..last.at + last.text.len()].to_owned(),
            _ => String::new(),
        };
        match part {
            Part::Condition(tokens) => condition(&mut used, &text(tokens), Dialect::Mariadb),
            Part::Order(tokens) => {
                let keys: Vec<String> = keys(tokens).into_iter().map(text).collect();
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                order(&mut used, &keys, Dialect::Mariadb);
            }
        }
    }
    names.into_iter().zip(used).collect()
}

/// `` `shop`.`orders` `` is `` `orders` ``.
fn without_database(text: &str, database: &str) -> String {
    let all = tokens(text, Dialect::Mariadb);
    let (mut kept, mut from) = (String::new(), 0);
    for pair in all.windows(2) {
        let is_database = pair[0].kind == Kind::Name && unquoted(pair[0].text) == database;
        if is_database && pair[1].text == "." && pair[0].at >= from {
            kept += &text[from..pair[0].at];
            from = pair[1].at + 1;
        }
    }
    kept + &text[from..]
}

enum Part<'a> {
    Condition(&'a [Token<'a>]),
    Order(&'a [Token<'a>]),
}

/// What comes after WHERE, ON and HAVING, and after ORDER BY and GROUP BY, up to the next such word.
fn parts<'a>(all: &'a [Token<'a>]) -> Vec<Part<'a>> {
    const WORDS: [&str; 14] = [
        "where",
        "on",
        "having",
        "order",
        "group",
        "limit",
        "union",
        "select",
        "from",
        "join",
        "left",
        "procedure",
        "for",
        "straight_join",
    ];
    let begins: Vec<usize> = (0..all.len())
        .filter(|at| WORDS.iter().any(|word| all[*at].is(word)))
        .collect();
    let mut found = Vec::new();
    for (i, at) in begins.iter().enumerate() {
        let end = begins.get(i + 1).copied().unwrap_or(all.len());
        let is = |word: &str| all[*at].is(word);
        if is("where") || is("on") {
            found.push(Part::Condition(&all[at + 1..end]));
        } else if is("order") || is("group") {
            found.push(Part::Order(&all[(at + 2).min(end)..end]));
        }
    }
    found
}

/// Keys between commas. What is in parentheses belongs to one; a parenthesis that was not opened ends the list.
fn keys<'a>(tokens: &'a [Token<'a>]) -> Vec<&'a [Token<'a>]> {
    let (mut depth, mut from, mut keys) = (0, 0, Vec::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.text {
            "(" => depth += 1,
            ")" if depth == 0 => {
                keys.push(&tokens[from..at]);
                return keys;
            }
            ")" => depth -= 1,
            "," if depth == 0 => {
                keys.push(&tokens[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    keys.push(&tokens[from..]);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(text: &str) -> Vec<(String, Vec<String>)> {
        let tables = ["orders", "customers"].map(str::to_owned).into();
        let used = used(text, "shop", &tables).into_iter();
        used.map(|(table, used)| {
            let all = used.candidates().into_iter();
            (table, all.map(|columns| columns.join(",")).collect())
        })
        .collect()
    }

    #[test]
    fn columns_are_those_of_conditions_and_orders() {
        let found = candidates(
            "select `shop`.`orders`.`id` AS `id` from `shop`.`orders` where `shop`.`orders`.`customer_id` = 7 and \
             `shop`.`orders`.`note` <> 'where `shop`.`orders`.`x` = 1' order by `shop`.`orders`.`at` desc limit 20",
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "orders");
        for expected in ["`customer_id`", "`customer_id`,`at`", "`at`"] {
            assert!(found[0].1.iter().any(|one| one == expected), "{found:?}");
        }
        assert!(
            !found[0].1.iter().any(|one| one.contains("`x`")),
            "{found:?}"
        );
    }

    #[test]
    fn joins_and_aliases_are_told_apart() {
        let found = candidates(
            "select count(0) AS `n` from `shop`.`orders` `o` join `shop`.`customers` `c` where \
             `o`.`customer_id` = `c`.`id` and `c`.`name` = 'x' group by `o`.`status`",
        );
        let of = |table: &str| &found.iter().find(|(name, _)| name == table).expect(table).1;
        assert!(
            of("orders").contains(&"`customer_id`".to_owned()),
            "{found:?}"
        );
        assert!(
            of("orders").contains(&"`customer_id`,`status`".to_owned()),
            "{found:?}"
        );
        assert!(of("customers").contains(&"`name`".to_owned()), "{found:?}");
        assert!(of("customers").contains(&"`id`".to_owned()), "{found:?}");
    }
}
