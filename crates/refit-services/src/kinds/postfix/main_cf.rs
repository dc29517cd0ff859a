//! Assignments in main.cf, edited in place: Postfix prints a warning with each of its commands
//! where a file assigns one name twice.

use refit_servers::postfix::{self, LogicalLine, logical_lines};

/// The last assignment of a name, and its value.
fn assignment(file: &[u8], name: &str) -> Option<(LogicalLine, String)> {
    let mut assigned = logical_lines(file).into_iter().filter_map(|line| {
        let text = line.text(file);
        let (key, value) = postfix::assignment(&text)?;
        (key == name).then(|| (line, value.to_owned()))
    });
    assigned.next_back()
}

/// The value of a name; `None` where the file does not assign it.
pub fn value(file: &[u8], name: &str) -> Option<String> {
    assignment(file, name).map(|(_, value)| value)
}

/// The file with other values: a line of its own in place of each assignment that is there, the
/// others at its end, below the line `head`. All other bytes stay.
pub fn with_values(file: &[u8], head: &str, values: &[(String, String)]) -> Vec<u8> {
    let mut bytes = file.to_vec();
    let mut added = String::new();
    for (name, value) in values {
        let text = format!("{name} = {value}").trim_end().to_owned();
        let Some((line, _)) = assignment(&bytes, name) else {
            added += &text;
            added.push('\n');
            continue;
        };
        let (first, rest) = line.parts.split_first().expect("it has a part");
        for part in rest.iter().rev() {
            let end = (part.end + 1).min(bytes.len());
            bytes.drain(part.start..end);
        }
        bytes.splice(first.clone(), format!("{head}{text}").into_bytes());
    }
    if !added.is_empty() {
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes.extend(head.as_bytes());
        bytes.extend(added.into_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_assignment_is_edited_and_all_else_stays() {
        for (before, after) in [
            ("", "#\nb = 2\n"),
            ("a = 1", "a = 1\n#\nb = 2\n"),
            ("a = 1\n", "a = 1\n#\nb = 2\n"),
            ("b=1\nc = $b\n", "#\nb = 2\nc = $b\n"),
            ("b=1\nb=5\nc\n", "b=1\n#\nb = 2\nc\n"),
            ("#b = 1\n# b\n", "#b = 1\n# b\n#\nb = 2\n"),
            (
                "b =\n  x\n# why\n\n\ty\n  #\nc = 3\n",
                "#\nb = 2\n# why\n\n  #\nc = 3\n",
            ),
            ("a = 1\nb = x\n y", "a = 1\n#\nb = 2\n"),
            ("bb = 1\n", "bb = 1\n#\nb = 2\n"),
        ] {
            let values = [("b".to_owned(), "2".to_owned())];
            let found = with_values(before.as_bytes(), "#\n", &values);
            assert_eq!(String::from_utf8_lossy(&found), after, "{before:?}");
            assert_eq!(value(&found, "b").as_deref(), Some("2"), "{before:?}");
        }
        let empty = [("b".to_owned(), String::new())];
        assert_eq!(with_values(b"", "", &empty), b"b =\n");
        assert_eq!(
            value(b"b =\n x\n# why\n\ty z\n", "b").as_deref(),
            Some("x y z")
        );
        assert_eq!(value(b"a = b = 1\n", "b"), None);
    }
}
