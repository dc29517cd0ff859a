//! Words of a line, with systemd's quotes and escapes (systemd.syntax(7)).

/// Words at blanks outside of quotation marks, without these; specifiers stay as they are.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => word.get_or_insert_default().push_str(&escaped(&mut rest)),
            c if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && quote.is_none() => found.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    found.extend(word);
    found
}

/// What a backslash and the characters after it stand for.
fn escaped(rest: &mut std::str::Chars) -> String {
    let plain = |c: char| c.to_string();
    match rest.next() {
        None => plain('\\'),
        Some('a') => plain('\x07'),
        Some('b') => plain('\x08'),
        Some('f') => plain('\x0c'),
        Some('n') => plain('\n'),
        Some('r') => plain('\r'),
        Some('t') => plain('\t'),
        Some('v') => plain('\x0b'),
        Some('s') => plain(' '),
        Some('x') => number(rest, 2, 16).unwrap_or_else(|| "\\x".to_owned()),
        Some('u') => number(rest, 4, 16).unwrap_or_else(|| "\\u".to_owned()),
        Some('U') => number(rest, 8, 16).unwrap_or_else(|| "\\U".to_owned()),
        Some(c @ '0'..='7') => {
            let mut digits = std::iter::once(c).chain(rest.clone().take(2));
            let text: String = digits.by_ref().collect();
            let code = u32::from_str_radix(&text, 8)
                .ok()
                .filter(|_| text.len() == 3);
            match code.and_then(char::from_u32) {
                Some(found) => {
                    rest.by_ref().take(2).for_each(drop);
                    plain(found)
                }
                None => format!("\\{c}"),
            }
        }
        Some(c @ ('\\' | '"' | '\'')) => plain(c),
        // An escape that systemd does not know stays.
        Some(c) => format!("\\{c}"),
    }
}

/// A character by its number.
fn number(rest: &mut std::str::Chars, digits: usize, base: u32) -> Option<String> {
    let text: String = rest.clone().take(digits).collect();
    let code = u32::from_str_radix(&text, base)
        .ok()
        .filter(|_| text.len() == digits)?;
    let found = char::from_u32(code)?.to_string();
    rest.by_ref().take(digits).for_each(drop);
    Some(found)
}

/// One word of a line, whatever it holds, with `%%` for a percent sign (systemd.unit(5) on specifiers).
#[must_use]
pub fn quoted(word: &str) -> String {
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' => text.push_str("%%"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            c => text.push(c),
        }
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_as_systemd_has_them() {
        for (text, meant) in [
            (" A=1 'B=2 3'  \"C=\" ", &["A=1", "B=2 3", "C="][..]),
            (r#""a\"b" 'c\'d' e\\f \s"#, &["a\"b", "c'd", "e\\f", " "]),
            (r"a\nb \x41\101 \u00e9", &["a\nb", "AA", "é"]),
            (r"\q \x4 a\", &["\\q", "\\x4", "a\\"]),
            ("a'b c'd", &["ab cd"]),
            ("", &[]),
        ] {
            assert_eq!(words(text), meant, "{text}");
        }
    }

    #[test]
    fn a_quoted_word_is_read_as_it_was() {
        for word in [
            "A=b",
            "A=b c",
            "A=\"q\" 'r' \\ %n %%",
            "A=",
            "A=\n\t\r",
            "é",
        ] {
            let read = words(&quoted(word));
            let read: Vec<_> = read.iter().map(|word| word.replace("%%", "%")).collect();
            assert_eq!(read, [word]);
        }
    }
}
