//! redis.conf.

/// The words of a line, as redis has them (sdssplitargs in its sds.c): in double quotes a backslash stands before `n`, `r`,
/// `t`, `b`, `a`, two digits after `x`, or a character that is meant; in single quotes only before such a quote; elsewhere
/// it is itself.
#[must_use]
pub fn words(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some('"'), '\\') => word.get_or_insert_default().extend(escaped(&mut rest)),
            (Some('\''), '\\') if rest.clone().next() == Some('\'') => {
                word.get_or_insert_default().extend(rest.next());
            }
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            // isspace(3) has one more than Rust.
            (None, c) if c.is_ascii_whitespace() || c == '\x0b' => found.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    found.extend(word);
    found
}

/// The last value of a directive in a file; `None` where the file does not have it.
#[must_use]
pub fn last(file: &str, name: &str) -> Option<String> {
    file.lines().rev().find_map(|line| {
        let words = words(line);
        let is_meant = words.first()?.eq_ignore_ascii_case(name);
        is_meant.then(|| words[1..].join(" "))
    })
}

fn escaped(rest: &mut std::str::Chars) -> Option<char> {
    let c = rest.next()?;
    let digits: String = rest.clone().take(2).collect();
    let code = u8::from_str_radix(&digits, 16).ok();
    Some(match (c, code) {
        ('x', Some(code)) if digits.len() == 2 && code.is_ascii() => {
            rest.by_ref().take(2).for_each(drop);
            char::from(code)
        }
        ('n', _) => '\n',
        ('r', _) => '\r',
        ('t', _) => '\t',
        ('b', _) => '\x08',
        ('a', _) => '\x07',
        _ => c,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_redis_has_them() {
        for (line, meant) in [
            (r#" save "60 1"  'a b'"#, &["save", "60 1", "a b"][..]),
            (
                r#"a "x\"y\\z\x41\n" 'it\'s \n' C:\dir"#,
                &["a", "x\"y\\zA\n", "it's \\n", r"C:\dir"],
            ),
            (r#"requirepass """#, &["requirepass", ""]),
            ("\x0b\x0creplicaof\x0bh 1", &["replicaof", "h", "1"]),
        ] {
            assert_eq!(words(line), meant, "{line}");
        }
        let file = "port 1\nPort \"2\"\n#port 3\nportx 4\n";
        assert_eq!(last(file, "port").as_deref(), Some("2"));
    }
}
