//! MariaDB's option files, my.cnf and what it includes
//! (<https://mariadb.com/kb/en/configuring-mariadb-with-option-files/>). Of one option the last line counts.

use glob::Pattern;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing, or a comment.
    Nothing,
    /// `[GROUP]`: the options after it are of this group. A file that is included begins without one.
    Group(String),
    /// `name = value` or `name`: as it is written, the value without quotes and empty where there is none.
    Option(String, String),
    /// `!include FILE`, `!includedir DIRECTORY`, whose hidden files count: a pattern for [`matching`](crate::matching).
    Includes(String),
    /// Something else.
    Unclear,
}

/// Reads a line.
#[must_use]
pub fn meaning(line: &str) -> Meaning {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return Meaning::Nothing;
    }
    if let Some(rest) = line.strip_prefix('!') {
        let (word, path) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let path = Pattern::escape(path.trim());
        return match word {
            "include" => Meaning::Includes(path),
            "includedir" => Meaning::Includes(path + "/[!*]*.cnf"),
            _ => Meaning::Unclear,
        };
    }
    if let Some(rest) = line.strip_prefix('[') {
        let group = rest.split_once(']').map(|(group, _)| group.trim_end());
        return group.map_or(Meaning::Unclear, |group| Meaning::Group(group.to_owned()));
    }
    let line = without_comment(line);
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    Meaning::Option(name.trim().to_owned(), unquoted(value.trim()))
}

/// A `#` outside of quotes begins a comment.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') => return &line[..at],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c && !is_escaped => quote = None,
            _ => {}
        }
        is_escaped = quote.is_some() && c == '\\' && !is_escaped;
    }
    line
}

fn unquoted(value: &str) -> String {
    let inside = ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    let mut text = String::new();
    let mut left = inside.unwrap_or(value).chars();
    while let Some(c) = left.next() {
        let escapes = [
            ('n', '\n'),
            ('t', '\t'),
            ('r', '\r'),
            ('b', '\x08'),
            ('s', ' '),
        ];
        let itself = ['"', '\'', '\\'].map(|c| (c, c));
        let next = left.clone().next().filter(|_| c == '\\');
        let meant = escapes
            .iter()
            .chain(&itself)
            .find(|(of, _)| Some(*of) == next);
        text.push(meant.map_or(c, |(_, meant)| *meant));
        if meant.is_some() {
            left.next();
        }
    }
    text
}

/// Whether the server reads this group. One of a version counts for that version, which is not known here.
#[must_use]
pub fn is_read(group: &str) -> bool {
    let versions = ["mysqld-", "mariadb-", "mariadbd-"];
    let mut versions = versions.iter().filter_map(|name| group.strip_prefix(name));
    ["server", "client-server", "galera"].contains(&group)
        || ["mysqld", "mariadb", "mariadbd"].contains(&group)
        || versions.any(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

/// The name of an option as SQL has it: it may be written with hyphens.
#[must_use]
pub fn in_sql(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `my_print_defaults --defaults-file=FILE mysqld` of MariaDB 10.11 prints the same options.
    #[test]
    fn a_line_is_read_as_the_server_reads_it() {
        let option = |name: &str, value: &str| Meaning::Option(name.to_owned(), value.to_owned());
        let group = |name: &str| Meaning::Group(name.to_owned());
        for (line, meant) in [
            ("; a = b", Meaning::Nothing),
            ("  a=b\r", option("a", "b")),
            ("a-b", option("a-b", "")),
            ("a#b", option("a", "")),
            ("a = b#c", option("a", "b")),
            ("a = b ; c", option("a", "b ; c")),
            (r#"a = "x # y"  # z"#, option("a", "x # y")),
            (
                r#"a = "it's \"q\" \\ \s\q""#,
                option("a", r#"it's "q" \  \q"#),
            ),
            (r"a = b\tc", option("a", "b\tc")),
            (r#"a = "b"#, option("a", "\"b")),
            ("[mysqld ] # x", group("mysqld")),
            ("[ mysqld]", group(" mysqld")),
            ("[mysqld", Meaning::Unclear),
            (
                "!include\t/a b.cnf",
                Meaning::Includes("/a b.cnf".to_owned()),
            ),
            (
                "!includedir /d/",
                Meaning::Includes("/d//[!*]*.cnf".to_owned()),
            ),
            ("!includedirx", Meaning::Unclear),
        ] {
            assert_eq!(meaning(line), meant, "{line}");
        }
    }
}
