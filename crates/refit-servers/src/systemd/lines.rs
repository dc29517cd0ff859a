//! The lines of a unit file.

/// An assignment of a unit file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The file.
    pub path: String,
    /// The number of its first line in the file, from 1.
    pub number: usize,
    /// What is before the `=`.
    pub key: String,
    /// What is after it, without blanks at the ends; lines that continue are joined by a blank.
    pub value: String,
}

impl Line {
    /// `FILE:NUMBER`.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}:{}", self.path, self.number)
    }
}

/// The assignments of the section `[Service]`. Comments between lines that continue are left out (systemd.syntax(7)).
pub(super) fn lines(path: &str, text: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut in_service = false;
    let mut whole: Option<(usize, String)> = None;
    let mut add = |number: usize, line: &str| {
        let line = line.trim();
        if line.starts_with('[') {
            in_service = line == "[Service]";
        } else if let Some((key, value)) = line.split_once('=').filter(|_| in_service) {
            found.push(Line {
                path: path.to_owned(),
                number,
                key: key.trim().to_owned(),
                value: value.trim().to_owned(),
            });
        }
    };
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with(['#', ';']) {
            continue;
        }
        let (number, before) = whole.take().unwrap_or((index + 1, String::new()));
        match line.strip_suffix('\\') {
            Some(line) => whole = Some((number, before + line + " ")),
            None => add(number, &(before + line)),
        }
    }
    if let Some((number, line)) = whole {
        add(number, &line);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_between_lines_that_continue_is_left_out() {
        let text = "A=0\n[Unit]\nA=1\n[Service]\nA = 2 \\\n# no\\\n; no\n  3\\\n4\n\nB=\n[Install]\nA=5\n[Service]\nC=6\\";
        let found = lines("f", text);
        let found: Vec<_> = (found.iter())
            .map(|line| (line.number, &*line.key, &*line.value))
            .collect();
        assert_eq!(found, [(5, "A", "2    3 4"), (11, "B", ""), (15, "C", "6")]);
    }
}
