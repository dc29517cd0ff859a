//! Values that are one word out of a few.

use crate::SettingError;
use crate::error::Hint;
use crate::nearest::nearest;
use crate::word::Word;

/// A word that can be the value, and what others call it.
pub(super) struct Choice<T: 'static> {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub value: T,
}

/// The real thing, or not.
pub(super) const ON_OFF: &[Choice<bool>] = &[
    Choice {
        name: "on",
        aliases: &["yes", "true", "1", "real", "enable", "enabled"],
        value: true,
    },
    Choice {
        name: "off",
        aliases: &[
            "drop",
            "none",
            "eatmydata",
            "no",
            "false",
            "0",
            "disable",
            "disabled",
            "nosync",
        ],
        value: false,
    },
];

pub(super) fn on_or_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// The choice that the word's value names.
pub(super) fn choose<T: Copy>(
    word: &Word,
    choices: &'static [Choice<T>],
) -> Result<T, SettingError> {
    match choices.iter().find(|choice| choice.name == word.value) {
        Some(choice) => Ok(choice.value),
        None => {
            let names: Vec<_> = choices.iter().map(|choice| choice.name).collect();
            let known = choices.iter().map(|choice| (choice.name, choice.aliases));
            let meant = nearest(word.value, known).and_then(|name| word.with_value(name));
            Err(unknown_value(word, one_of(&names), meant))
        }
    }
}

/// The error for a value that is none, or not one of those.
pub(super) fn unknown_value(word: &Word, expected: String, meant: Option<String>) -> SettingError {
    let hint = meant.map_or_else(|| word.as_in_example(), Hint::DidYouMean);
    if word.value.is_empty() {
        return SettingError::NoValue {
            word: format!("{}=", word.head),
            expected,
            hint,
        };
    }
    SettingError::UnknownValue {
        knob: word.knob.name,
        value: word.value.to_owned(),
        expected,
        hint,
    }
}

/// "`a`, `b` or `c`".
pub(super) fn one_of(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
