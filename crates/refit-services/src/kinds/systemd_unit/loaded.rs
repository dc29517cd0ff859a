//! What systemd has loaded of a unit's variables, beside what refit read in its files.

use refit_knobs::{Assignment, Join};

use crate::Error;
use crate::systemd::Unit;

/// Refuses variables that systemd has otherwise than refit read them. One that is replaced may have a specifier that refit
/// does not know. Where files were edited and not loaded, a note: the change loads them too.
///
/// # Errors
/// [`Error::ReadOtherwise`].
pub fn compared(
    unit: &Unit,
    service: &str,
    assignments: &[Assignment],
) -> Result<Option<String>, Error> {
    if unit.needs_reload == "yes" {
        let note = "files of the unit were edited since systemd read them: the daemon-reload of this change takes these \
                    edits up too";
        return Ok(Some(note.to_owned()));
    }
    // A value with control characters, which is printed in another way, is not compared.
    let Some(loaded) = variables(&unit.environment) else {
        return Ok(None);
    };
    for Assignment { name, join, .. } in assignments {
        let read = unit.declared.variable(name);
        let mut of_name = loaded.iter().filter(|(other, _)| other == name);
        let found = of_name.next().map(|(_, value)| value.clone());
        let is_specified = read.as_ref().is_some_and(|read| read.contains('%'));
        if found != read && !(is_specified && *join == Join::Replace) {
            return Err(Error::ReadOtherwise {
                service: service.to_owned(),
                name: name.clone(),
                read: read.unwrap_or_default(),
                loaded: found.unwrap_or_default(),
            });
        }
    }
    Ok(None)
}

/// The variables in what `systemctl show` prints: words, between quotes where a shell would need them (shell_maybe_quote() in
/// systemd's src/basic/escape.c). `None`: it has an escape that is not read.
fn variables(printed: &str) -> Option<Vec<(String, String)>> {
    let (mut all, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = printed.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted => match letters.next()? {
                plain @ ('"' | '\\' | '`' | '$') => word.push(plain),
                _ => return None,
            },
            '$' | '\\' if !is_quoted => return None,
            ' ' if !is_quoted => all.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    all.push(word);
    let pairs = all.iter().filter_map(|word| word.split_once('='));
    Some(
        pairs
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn words_are_as_a_shell_reads_them() {
        let one = |printed: &str| {
            let all = variables(printed)?;
            Some(
                all.iter()
                    .map(|(name, value)| format!("{name}[{value}]"))
                    .collect::<String>(),
            )
        };
        for (printed, meant) in [
            ("", Some("")),
            ("A=1 B=", Some("A[1]B[]")),
            (r#"A=1 "B=x y" C=z"#, Some("A[1]B[x y]C[z]")),
            (r#""A=\"\\\$\` b""#, Some(r#"A["\$` b]"#)),
            (r"$'A=\t'", None),
            (r#""A=\t""#, None),
        ] {
            assert_eq!(one(printed).as_deref(), meant, "{printed}");
        }
    }
}
