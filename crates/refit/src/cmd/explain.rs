//! `refit run --explain`: what each setting swaps, covers and risks.

use std::fmt::Write;

use refit_knobs::Settings;

const OBSERVE: &str = "no settings: refit observes
  swaps        nothing; the program's sync calls are counted and timed, and all are real
  class        safe
  backend      a preloaded library; about 50 ns more for each sync call
  next         refit run -- COMMAND, or refit run --explain sync=off
";

/// One block for each setting.
pub fn text(settings: &Settings) -> String {
    let mut out = String::new();
    if settings.is_empty() {
        out.push_str(OBSERVE);
    }
    for (i, setting) in settings.0.iter().enumerate() {
        let e = setting.explain();
        if i > 0 {
            out.push('\n');
        }
        let _ = writeln!(out, "{}", e.setting);
        let mut field = |name: &str, text: &str| {
            for (i, line) in wrapped(text, 84).iter().enumerate() {
                let _ = writeln!(out, "  {:<12} {line}", if i == 0 { name } else { "" });
            }
        };
        field("swaps", &e.swaps);
        field("class", &e.class.to_string());
        field("risk", &e.risk);
        field("backend", &e.backend);
        for (name, list) in [
            ("covers", &e.covers),
            ("not covered", &e.not_covered),
            ("note", &e.notes),
        ] {
            for (i, item) in list.iter().enumerate() {
                field(if i == 0 { name } else { "" }, item);
            }
        }
    }
    out
}

/// Lines of at most `width` characters, broken at blanks.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_at_blanks() {
        assert_eq!(wrapped("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrapped("", 5), [""]);
    }
}
