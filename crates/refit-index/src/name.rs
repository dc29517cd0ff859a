//! Names of new indexes.

use std::collections::BTreeSet;

/// PostgreSQL cuts a longer name off (NAMEDATALEN − 1); MariaDB refuses more than 64.
const MOST_BYTES: usize = 63;

/// A name of the table and the columns that needs no quotes and that nothing else has.
/// `taken` gets it.
pub fn new_name(table: &str, columns: &[String], taken: &mut BTreeSet<String>) -> String {
    let words = std::iter::once(table).chain(columns.iter().map(String::as_str));
    let plain: Vec<String> = words.map(plain).filter(|word| !word.is_empty()).collect();
    let mut base = plain.join("_");
    if !base.starts_with(|c: char| c.is_ascii_alphabetic()) {
        base = format!("i_{base}");
    }
    // Room for `_idx` and a number.
    base.truncate(MOST_BYTES - 8);
    let base = base.trim_end_matches('_');
    let numbered = (2..).map(|number| format!("{base}_idx{number}"));
    let mut names = std::iter::once(format!("{base}_idx")).chain(numbered);
    let name = names.find(|name| !taken.contains(name));
    let name = name.expect("there is always another number");
    taken.insert(name.clone());
    name
}

/// Lower case, digits and single `_`, as in the values of a recipe's knobs.
pub fn plain(word: &str) -> String {
    let mut plain = String::new();
    for c in word.to_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            plain.push(c);
        } else if !plain.is_empty() && !plain.ends_with('_') {
            plain.push('_');
        }
    }
    plain.trim_end_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_quotes_and_are_not_taken_twice() {
        let mut taken = BTreeSet::from(["a_b_idx".to_owned()]);
        let mut name = |table: &str, columns: &[&str]| {
            let columns: Vec<String> = columns.iter().map(|&c| c.to_owned()).collect();
            new_name(table, &columns, &mut taken)
        };
        assert_eq!(
            name("orders", &["customer_id", "at"]),
            "orders_customer_id_at_idx"
        );
        assert_eq!(name("A", &["b"]), "a_b_idx2");
        assert_eq!(name("we ird", &["a\"b", "--"]), "we_ird_a_b_idx");
        assert_eq!(name("注文", &["客"]), "i_idx");
        assert_eq!(name("注文", &["店"]), "i_idx2");
        assert_eq!(name("1st", &["x"]), "i_1st_x_idx");
        let long = name(&"long".repeat(30), &["x"]);
        assert!(long.len() <= MOST_BYTES && long.ends_with("_idx"), "{long}");
    }
}
