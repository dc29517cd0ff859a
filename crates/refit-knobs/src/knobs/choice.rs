//! Values that are one word out of a few.

use crate::error::SettingError;
use crate::nearest::nearest;
use crate::word::Word;

/// A word that can be the value, and what others call it.
pub(super) struct Choice<T: 'static> {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub value: T,
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
            Err(word.unknown_value(one_of(&names), meant))
        }
    }
}

/// "`a`, `b` or `c`".
pub(crate) fn one_of(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
