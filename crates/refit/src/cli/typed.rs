//! The options of a command line, as they are typed again.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Args, Command};

use super::OUTPUT;

/// The options among the words after a verb, in the order of its help, for a stored result and the command of its page.
/// Left out are those of `elsewhere`, which have a place of their own in the result, and those that are not about what
/// is measured: files and progress, a consent that was given, and what refit gives itself. A new option of the verb is
/// among them by itself.
///
/// # Errors
/// clap's, of words that it has not parsed before.
pub fn typed_options<A: Args>(
    words: impl IntoIterator<Item = OsString>,
    elsewhere: &[&str],
) -> Result<Vec<String>, clap::Error> {
    let verb = A::augment_args(Command::new("refit").no_binary_name(true));
    let typed = verb.clone().try_get_matches_from(words)?;
    let mut options = Vec::new();
    for option in verb.get_arguments() {
        let id = option.get_id().as_str();
        let is_apart = option.get_help_heading() == Some(OUTPUT) || option.is_hide_set();
        let Some(name) = option.get_long().filter(|_| !is_apart) else {
            continue;
        };
        if typed.value_source(id) != Some(ValueSource::CommandLine)
            || name == "yes"
            || elsewhere.contains(&name)
        {
            continue;
        }
        if !option.get_action().takes_values() {
            options.push(format!("--{name}"));
            continue;
        }
        for value in typed.get_raw(id).into_iter().flatten() {
            let value = value.to_string_lossy();
            // After a space it would be read as another option.
            match value.starts_with('-') {
                true => options.push(format!("--{name}={value}")),
                false => options.extend([format!("--{name}"), value.into_owned()]),
            }
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::CompareArgs;

    #[test]
    fn what_was_typed_about_the_measurement_is_typed_again() {
        let line = "--json a.json --quiet --yes --timeout 5s sync=off --heap --seed 0x7 --check=-x --backend preload \
                    --with tz=UTC --allocator-dir=/a --rounds 12 --gate wall<+2% --gate syncs<+1% -- a --bare";
        let options = |elsewhere: &[&str]| {
            typed_options::<CompareArgs>(line.split_whitespace().map(OsString::from), elsewhere)
                .unwrap()
                .join(" ")
        };
        assert_eq!(
            options(&["seed", "gate"]),
            "--with tz=UTC --heap --rounds 12 --timeout 5s --check=-x --allocator-dir /a --backend preload"
        );
        let all = options(&[]);
        assert!(all.contains("--gate wall<+2% --gate syncs<+1%"), "{all}");
        assert!(all.contains("--seed 0x7"), "{all}");
    }
}
