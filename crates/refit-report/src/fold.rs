//! Lines that fit.

use refit_run::printable;

/// `text`, printable, in lines of at most `width` characters, broken at spaces, the later
/// lines indented by two. A percent sign stays with its number; a word that is
/// longer than a line is left whole, since it may be a path to copy.
pub fn fold(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in words(&printable(text)) {
        let length = line.chars().count();
        if line.trim().is_empty() {
            line.push_str(&word);
        } else if length + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(std::mem::replace(&mut line, format!("  {word}")));
        }
    }
    lines.push(line);
    lines
}

fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut() {
            // An empty word is a second space: it stays, as the lead of the next.
            Some(last) if word.starts_with('%') || last.is_empty() => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_spaces_and_percentages_stay_whole() {
        assert_eq!(fold("one two three", 7), ["one two", "  three"]);
        assert_eq!(
            fold("a floor of 0.7 % today", 14),
            ["a floor of", "  0.7 % today"]
        );
        assert_eq!(
            fold("/a/very/long/path it is", 8),
            ["/a/very/long/path", "  it is"]
        );
        assert_eq!(fold("name  less: a", 80), ["name  less: a"]);
        assert_eq!(fold("", 80), [""]);
    }
}
