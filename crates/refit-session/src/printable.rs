//! Text of others on a terminal: names of programs and files, lines of a log, a
//! recipe's commands. Whoever chose them must not steer the terminal of the person
//! who reads them, forge a line of refit's, or hide a part of what is shown.

/// `text` on one line, as it is: what a terminal would obey or not show is written
/// out as Rust writes it (`\u{1b}`, `\n`, `\u{202e}`).
#[must_use]
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// Control characters (C0, DEL, C1), line and paragraph separators, and the format
/// characters of Unicode 16 (category Cf: directions, joiners, tags, the byte order
/// mark), which have no glyph.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_a_terminal_or_hides() {
        for (text, shown) in [
            ("a\u{1b}[2Jb", r"a\u{1b}[2Jb"),
            ("a\nrefit: b\r", r"a\nrefit: b\r"),
            ("\u{9b}31m\u{7f}", r"\u{9b}31m\u{7f}"),
            ("gpj\u{202e}exe", r"gpj\u{202e}exe"),
            ("a\u{200b}b\u{e0041}", r"a\u{200b}b\u{e0041}"),
        ] {
            assert_eq!(printable(text), shown);
            assert_eq!(printable(shown), shown);
        }
    }

    #[test]
    fn what_people_read_stays() {
        for text in ["−58.5 %\u{a0}µs", "日本語　の名", "e\u{301}", "C:\\x 'y'"] {
            assert_eq!(printable(text), text);
        }
    }
}
