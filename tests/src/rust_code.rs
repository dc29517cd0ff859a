//! Rust source without its comments and quotes, and the words in it.

/// Whether one of the words of this code is `word`.
pub fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|token| token == word)
}

/// The source without comments and without what stands in quotes.
pub fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            'r' if !code.ends_with(|c: char| c.is_alphanumeric() || c == '_') => raw_string(rest),
            '"' => quoted(rest, '"'),
            '\'' => character(rest),
            _ => 0,
        };
        if skipped == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.push(' ');
            rest = &rest[skipped..];
        }
    }
    code
}

/// Length of the comment at the start; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of the `r#"…"#` at the start, 0 if there is none.
fn raw_string(text: &str) -> usize {
    let hashes = text[1..].len() - text[1..].trim_start_matches('#').len();
    let open = 1 + hashes;
    if !text[open..].starts_with('"') {
        return 0;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    text[open + 1..]
        .find(&close)
        .map_or(text.len(), |end| open + 1 + end + close.len())
}

/// Length of the quoted text at the start.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Length of the character literal at the start, 0 if it is a lifetime.
fn character(text: &str) -> usize {
    let mut following = text.chars().skip(1);
    let (first, second) = (following.next(), following.next());
    if first == Some('\\') || second == Some('\'') {
        quoted(text, '\'')
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_in_a_comment_or_in_quotes_is_not_code() {
        let quiet = [
            "// unsafe\nfn f() {}",
            "/* a /* nested */ unsafe */ fn f() {}",
            "let s = \"an \\\" unsafe\";",
            "let s = r#\"unsafe \" unsafe\"#;",
            "let c = '\"'; // unsafe \"",
            "let c = '\\''; // unsafe",
            "deny(unsafe_op_in_unsafe_fn)",
        ];
        for source in quiet {
            assert!(!has_word(&code_only(source), "unsafe"), "{source}");
        }
        let loud = [
            "unsafe { f() }",
            "let a: &'static str = g(); unsafe {}",
            "\"\"; unsafe {}",
            "pub unsafe fn f() {}",
        ];
        for source in loud {
            assert!(has_word(&code_only(source), "unsafe"), "{source}");
        }
    }
}
