//! Several settings in one word: `sync=off+malloc=jemalloc`.
//!
//! A `+` joins where a knob's name and `=`, `@` or `.` follow; any other is a plus, and `\+` is one always.
//! Backslashes directly before a `+` stand for half as many, the odd one being that of `\+`: `\\+` is a
//! backslash and then a `+` that may join. Anywhere else, the end of the word included, a backslash is itself.
//!
//! That `\+` is a plus even where nothing would join lets scripts escape every plus, whatever knobs are to come.

use crate::knobs::KNOBS;

/// The texts of the settings that a word joins, escapes undone. Only the first can be empty.
pub(crate) fn split(word: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut text = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('+') {
        let (before, backslashes) = before.split_at(before.trim_end_matches('\\').len());
        text.push_str(before);
        text.push_str(&backslashes[..backslashes.len() / 2]);
        if backslashes.len() % 2 == 0 && begins_a_setting(after) {
            texts.push(std::mem::take(&mut text));
        } else {
            text.push('+');
        }
        rest = after;
    }
    text.push_str(rest);
    texts.push(text);
    texts
}

/// The word for one setting's text.
pub(crate) fn escape(text: &str) -> String {
    let mut word = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('+') {
        word.push_str(before);
        word.push_str(backslashes_at_the_end(before));
        word.push_str(if begins_a_setting(after) { "\\+" } else { "+" });
        rest = after;
    }
    word + rest
}

/// The word for several settings; each is given as a word for itself.
pub(crate) fn join(words: impl IntoIterator<Item = String>) -> String {
    let of_two = |mut joined: String, next: String| {
        let backslashes = backslashes_at_the_end(&joined).to_owned();
        joined.extend([backslashes.as_str(), "+", &next]);
        joined
    };
    words.into_iter().reduce(of_two).unwrap_or_default()
}

fn begins_a_setting(text: &str) -> bool {
    KNOBS.iter().any(|knob| {
        text.strip_prefix(knob.name)
            .is_some_and(|rest| rest.starts_with(['=', '@', '.']))
    })
}

fn backslashes_at_the_end(text: &str) -> &str {
    &text[text.trim_end_matches('\\').len()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_joins_only_where_a_setting_begins() {
        for (word, texts) in [
            ("", &[""][..]),
            ("sync=off+tz=UTC", &["sync=off", "tz=UTC"]),
            ("tz=UTC+3", &["tz=UTC+3"]),
            ("env.A=+sync+tz", &["env.A=+sync+tz"]),
            ("env.A=++tz=UTC", &["env.A=+", "tz=UTC"]),
            ("env.A=+sync@x+env.B=", &["env.A=", "sync@x", "env.B="]),
            ("+sync=off", &["", "sync=off"]),
        ] {
            assert_eq!(split(word), texts, "{word}");
        }
    }

    #[test]
    fn backslashes_count_only_before_a_plus() {
        for (word, texts) in [
            (r"env.A=\+sync=off", &["env.A=+sync=off"][..]),
            (r"env.A=\\+sync=off", &[r"env.A=\", "sync=off"]),
            (r"env.A=\\\+sync=off", &[r"env.A=\+sync=off"]),
            (r"env.A=a\+b", &["env.A=a+b"]),
            (r"env.A=a\\+b", &[r"env.A=a\+b"]),
            (r"env.A=\a\\b\", &[r"env.A=\a\\b\"]),
            (r"env.A=+\+tz=UTC", &["env.A=++tz=UTC"]),
        ] {
            assert_eq!(split(word), texts, "{word}");
        }
    }

    #[test]
    fn only_what_would_be_read_otherwise_is_escaped() {
        for (texts, word) in [
            (&[][..], ""),
            (&["tz=UTC+3", "env.A=+sync"], "tz=UTC+3+env.A=+sync"),
            (&["env.A=+sync=off"], r"env.A=\+sync=off"),
            (&[r"env.A=\+sync=off"], r"env.A=\\\+sync=off"),
            (&[r"env.A=a\+b"], r"env.A=a\\+b"),
            (&[r"env.A=a\b\\"], r"env.A=a\b\\"),
            (&[r"env.A=\\", "tz=UTC"], r"env.A=\\\\+tz=UTC"),
        ] {
            assert_eq!(join(texts.iter().map(|text| escape(text))), word);
        }
    }
}
