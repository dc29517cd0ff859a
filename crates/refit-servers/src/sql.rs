//! The words of SQL, as far as statements have to be told apart and columns found in conditions.
//! What a statement means is asked of the database.

/// Whose rules quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite: `[x]` and backquotes are names.
    Sqlite,
    /// PostgreSQL: `$tag$ … $tag$` and `E'\\''` are strings, `::` is a cast, `?` and `@` are operators.
    Postgresql,
    /// MariaDB: a backslash escapes in strings, `"x"` is one, `#` begins a comment.
    Mariadb,
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A bare name or keyword.
    Word,
    /// A name in quotes.
    Name,
    /// A string, with its quotes.
    String,
    /// A number.
    Number,
    /// A parameter: `?`, `?1`, `:name`, `@name` or `$1`.
    Parameter,
    /// A comment.
    Comment,
    /// Anything else: one character, or an operator.
    Sign,
}

/// One token of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// As written.
    pub text: &'a str,
    /// Where it begins, in bytes.
    pub at: usize,
}

impl Token<'_> {
    /// Whether it is this keyword, in any case.
    pub fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }
}

/// All tokens; spaces are between them.
pub fn tokens(text: &str, dialect: Dialect) -> Vec<Token<'_>> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let (kind, length) = token(&text[at..], first, dialect);
        let text = &text[at..at + length];
        all.push(Token { kind, text, at });
        at += length;
    }
    all
}

fn token(rest: &str, first: char, dialect: Dialect) -> (Kind, usize) {
    let while_some = |from: usize, keep: &dyn Fn(char) -> bool| {
        let end = rest[from..].find(|c| !keep(c));
        end.map_or(rest.len(), |end| from + end)
    };
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let second = rest[first.len_utf8()..].chars().next();
    let (is_postgresql, is_mariadb) = (dialect == Dialect::Postgresql, dialect == Dialect::Mariadb);
    match first {
        '-' if second == Some('-') => (Kind::Comment, while_some(2, &|c| c != '\n')),
        '#' if is_mariadb => (Kind::Comment, while_some(1, &|c| c != '\n')),
        '/' if second == Some('*') => (Kind::Comment, comment(rest, is_postgresql)),
        'e' | 'E' if is_postgresql && second == Some('\'') => {
            (Kind::String, 1 + escaped(&rest[1..], '\''))
        }
        '$' if is_postgresql && !second.is_some_and(|c| c.is_ascii_digit()) => {
            dollar(rest).map_or((Kind::Sign, 1), |length| (Kind::String, length))
        }
        '\'' | '"' if is_mariadb => (Kind::String, escaped(rest, first)),
        '\'' => (Kind::String, quoted(rest, '\'')),
        '"' | '`' => (Kind::Name, quoted(rest, first)),
        ':' if is_postgresql => (Kind::Sign, if second == Some(':') { 2 } else { 1 }),
        '?' | '@' if is_postgresql => (Kind::Sign, 1),
        '[' if dialect == Dialect::Sqlite => {
            let end = rest.find(']').map(|end| end + 1);
            (Kind::Name, end.unwrap_or(rest.len()))
        }
        '?' => (Kind::Parameter, while_some(1, &|c| c.is_ascii_digit())),
        ':' | '@' | '$' if second.is_some_and(is_word) => {
            (Kind::Parameter, while_some(1, &is_word))
        }
        _ if first.is_ascii_digit() => {
            let is_number = |c: char| c.is_ascii_alphanumeric() || c == '.';
            (Kind::Number, while_some(1, &is_number))
        }
        _ if is_word(first) => (Kind::Word, while_some(0, &is_word)),
        _ => (Kind::Sign, first.len_utf8()),
    }
}

/// The length of a comment; PostgreSQL's hold others.
fn comment(rest: &str, nests: bool) -> usize {
    let (mut depth, mut at) = (1, 2);
    while depth > 0 {
        let Some(end) = rest[at..].find("*/") else {
            return rest.len();
        };
        match rest[at..].find("/*").filter(|begin| nests && *begin < end) {
            Some(begin) => (depth, at) = (depth + 1, at + begin + 2),
            None => (depth, at) = (depth - 1, at + end + 2),
        }
    }
    at
}

/// The length of `$tag$ … $tag$`; `None`: a `$` that begins none.
fn dollar(rest: &str) -> Option<usize> {
    let tag = 2 + rest[1..].find('$')?;
    let is_tag = |c: char| c.is_alphanumeric() || c == '_';
    if !rest[1..tag - 1].chars().all(is_tag) {
        return None;
    }
    let end = rest[tag..].find(&rest[..tag]);
    Some(end.map_or(rest.len(), |end| end + 2 * tag))
}

/// As `quoted`; a backslash takes the next character with it.
fn escaped(rest: &str, quote: char) -> usize {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + c.len_utf8();
        }
    }
    rest.len()
}

/// The length of what begins with this quote; the quote twice is the quote itself.
fn quoted(rest: &str, quote: char) -> usize {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return at + c.len_utf8();
        }
    }
    rest.len()
}

/// A name in double quotes; `"` in it is doubled.
pub fn quote_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A name in MariaDB's quotes.
pub fn quote_name_of_mariadb(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A name without its quotes.
pub fn unquoted(text: &str) -> String {
    let Some(first) = text.chars().next() else {
        return String::new();
    };
    let last = if first == '[' { ']' } else { first };
    let inner = text
        .strip_prefix(first)
        .and_then(|text| text.strip_suffix(last));
    match (first, inner) {
        ('[', Some(inner)) => inner.to_owned(),
        ('"' | '`' | '\'', Some(inner)) => {
            inner.replace(&format!("{first}{first}"), &first.to_string())
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_comments_and_parameters_are_told_apart() {
        let text =
            "SELECT 'it''s; --', \"a;\"\"b\", [c;d] -- e;\n, ?1, :x FROM t /* ; */ WHERE n>=1.5e3";
        let texts: Vec<(Kind, &str)> = tokens(text, Dialect::Sqlite)
            .iter()
            .map(|token| (token.kind, token.text))
            .collect();
        let sign = |text| (Kind::Sign, text);
        assert_eq!(
            texts,
            [
                (Kind::Word, "SELECT"),
                (Kind::String, "'it''s; --'"),
                sign(","),
                (Kind::Name, "\"a;\"\"b\""),
                sign(","),
                (Kind::Name, "[c;d]"),
                (Kind::Comment, "-- e;"),
                sign(","),
                (Kind::Parameter, "?1"),
                sign(","),
                (Kind::Parameter, ":x"),
                (Kind::Word, "FROM"),
                (Kind::Word, "t"),
                (Kind::Comment, "/* ; */"),
                (Kind::Word, "WHERE"),
                (Kind::Word, "n"),
                sign(">"),
                sign("="),
                (Kind::Number, "1.5e3"),
            ]
        );
    }

    #[test]
    fn each_server_has_its_own_quotes() {
        let texts = |text: &'static str, dialect| -> Vec<(Kind, &str)> {
            let all = tokens(text, dialect);
            all.iter().map(|token| (token.kind, token.text)).collect()
        };
        let sign = |text| (Kind::Sign, text);
        assert_eq!(
            texts(
                "a::text $1 $$;'$$ $b$ $$; $b$ E'\\';' ? /* /* ; */ */ 'c\\'",
                Dialect::Postgresql
            ),
            [
                (Kind::Word, "a"),
                sign("::"),
                (Kind::Word, "text"),
                (Kind::Parameter, "$1"),
                (Kind::String, "$$;'$$"),
                (Kind::String, "$b$ $$; $b$"),
                (Kind::String, "E'\\';'"),
                sign("?"),
                (Kind::Comment, "/* /* ; */ */"),
                (Kind::String, "'c\\'"),
            ]
        );
        assert_eq!(
            texts("'a\\';' \"b\"\"\" `c;` # ;\n ?", Dialect::Mariadb),
            [
                (Kind::String, "'a\\';'"),
                (Kind::String, "\"b\"\"\""),
                (Kind::Name, "`c;`"),
                (Kind::Comment, "# ;"),
                (Kind::Parameter, "?"),
            ]
        );
    }

    #[test]
    fn what_is_not_closed_goes_on_to_the_end() {
        for text in ["'a", "\"a''", "[a", "/* a", "`a``"] {
            let all = tokens(text, Dialect::Sqlite);
            assert_eq!(all.len(), 1, "{text}");
            assert_eq!(all[0].text, text);
        }
    }

    #[test]
    fn a_name_comes_back_from_its_quotes() {
        for name in ["a", "a b", "a\"b", "select", "\"", "é"] {
            assert_eq!(unquoted(&quote_name(name)), name);
        }
        assert_eq!(unquoted("[a b]"), "a b");
        assert_eq!(unquoted("`a``b`"), "a`b");
        assert_eq!(unquoted("'a b'"), "a b");
        assert_eq!(unquoted("\""), "\"");
    }
}
