//! Lines that fit.

use refit_run::printable;

/// `text`, printable, in lines of at most `width` characters, broken at spaces, the later
/// lines indented by two. A unit stays with its number; a word that is
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
            Some(last) if last.is_empty() || last.ends_with(is_digit) && is_unit(word) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

/// Whether a word is a unit, with or without a mark after it.
fn is_unit(word: &str) -> bool {
    let units = [
        "%", "B", "KiB", "MiB", "GiB", "TiB", "ns", "µs", "ms", "s", "min", "h",
    ];
    units.contains(&word.trim_end_matches([',', ';', ':', '.', ')', ']']))
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
            fold("took 2.5 MiB; 3 s", 12),
            ["took", "  2.5 MiB;", "  3 s"]
        );
        assert_eq!(fold("is 3 sync calls", 6), ["is 3", "  sync", "  calls"]);
        assert_eq!(
            fold("/a/very/long/path it is", 8),
            ["/a/very/long/path", "  it is"]
        );
        assert_eq!(fold("name  less: a", 80), ["name  less: a"]);
        assert_eq!(fold("", 80), [""]);
    }
}
