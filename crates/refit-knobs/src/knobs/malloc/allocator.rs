//! An allocator that refit knows by name, and its options: `NAME=VALUE,…`. They are checked here because the
//! allocators themselves ignore what they do not understand, or complain about it on the program's stderr.

use super::takes::Takes;
use crate::error::{Hint, SettingError};
use crate::launch::AllocatorKind;
use crate::nearest::nearest;
use crate::word::Word;

/// An allocator that refit knows by name.
#[derive(Debug)]
pub(crate) struct Named {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: AllocatorKind,
    pub options: &'static [Opt],
    /// Between an option and its value, as the allocator's own documentation writes it.
    pub separator: char,
    /// The variables that carry these options; only called with at least one.
    pub variables: fn(&[Chosen]) -> Vec<(String, String)>,
    pub backend: &'static str,
    pub notes: &'static [&'static str],
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Named {}

/// One option that an allocator has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opt {
    pub name: &'static str,
    pub takes: Takes,
    /// What it is called elsewhere; suggested, never accepted.
    aliases: &'static [&'static str],
    note: Option<Note>,
}

/// Something to say when the option has one of these values, or any if none is listed.
#[derive(Debug, PartialEq, Eq)]
struct Note {
    when: &'static [&'static str],
    text: &'static str,
}

/// An option with its value, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub option: &'static Opt,
    pub value: String,
}

impl Named {
    /// Options to choose from, or the words that one of them takes, given what is typed of it.
    pub(super) fn candidates(&self, typed: &str) -> Vec<String> {
        let named = typed
            .split_once(['=', self.separator])
            .and_then(|(name, _)| {
                let option = self.options.iter().find(|option| option.name == name)?;
                Some((&typed[..=name.len()], option))
            });
        match named {
            Some((head, option)) => {
                let words = option.takes.words().iter();
                words.map(|word| format!("{head}{word}")).collect()
            }
            None => {
                let names = self.options.iter();
                names
                    .map(|option| format!("{}{}", option.name, self.separator))
                    .collect()
            }
        }
    }
}

pub(super) const fn opt(name: &'static str, takes: Takes) -> Opt {
    Opt {
        name,
        takes,
        aliases: &[],
        note: None,
    }
}

impl Opt {
    pub(super) const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(super) const fn note(self, when: &'static [&'static str], text: &'static str) -> Self {
        Self {
            note: Some(Note { when, text }),
            ..self
        }
    }
}

impl Chosen {
    /// What there is to say about this option with this value.
    pub(super) fn note(&self) -> Option<String> {
        let note = self.option.note.as_ref()?;
        let applies = note.when.is_empty() || note.when.contains(&self.value.as_str());
        applies.then(|| format!("{}: {}", self.option.name, note.text))
    }
}

/// The part after `malloc=NAME:`.
pub(super) fn parse(
    word: &Word,
    allocator: &'static Named,
    text: &str,
) -> Result<Vec<Chosen>, SettingError> {
    let mut options: Vec<Chosen> = Vec::new();
    for part in text.split(',') {
        let next = parse_one(word, allocator, text, part)?;
        if options.iter().any(|chosen| chosen.option == next.option) {
            let (option, word) = (next.option.name, format!("{}={}", word.head, word.value));
            return Err(SettingError::OptionTwice {
                allocator: allocator.name,
                option,
                word,
            });
        }
        options.push(next);
    }
    Ok(options)
}

fn parse_one(
    word: &Word,
    allocator: &'static Named,
    text: &str,
    part: &str,
) -> Result<Chosen, SettingError> {
    let name_of = allocator.name;
    if part.is_empty() {
        let kept: Vec<_> = text.split(',').filter(|part| !part.is_empty()).collect();
        let colon = if kept.is_empty() { "" } else { ":" };
        let mended = word.with_value(&format!("{name_of}{colon}{}", kept.join(",")));
        let hint = mended.map_or_else(|| word.as_in_example(), Hint::Write);
        return Err(SettingError::EmptyOption {
            value: word.value.to_owned(),
            hint,
        });
    }
    // Both ways of writing are understood for every allocator; its own is printed back.
    let at = part.find([':', '=']);
    let name = &part[..at.unwrap_or(part.len())];
    let known = allocator.options.iter().find(|option| option.name == name);
    let option = known.ok_or_else(|| unknown_option(word, allocator, text, part, name))?;
    let as_in = || allocator.as_in(option);
    let expected = option.takes.expected();
    match at.map(|at| &part[at + 1..]) {
        Some(value) if option.takes.accepts(value) => Ok(Chosen {
            option,
            value: value.to_owned(),
        }),
        None | Some("") => Err(SettingError::NoOptionValue {
            allocator: name_of,
            option: option.name,
            expected,
            hint: as_in(),
        }),
        Some(value) => {
            let value = value.to_owned();
            Err(SettingError::BadOptionValue {
                allocator: name_of,
                option: option.name,
                value,
                expected,
                hint: as_in(),
            })
        }
    }
}

fn unknown_option(
    word: &Word,
    allocator: &'static Named,
    text: &str,
    part: &str,
    name: &str,
) -> SettingError {
    let known = allocator
        .options
        .iter()
        .map(|option| (option.name, option.aliases));
    let meant = nearest(name, known);
    let mended = meant.and_then(|meant| {
        let mended = format!("{meant}{}", &part[name.len()..]);
        let options = text
            .split(',')
            .map(|other| if other == part { &mended } else { other });
        word.with_value(&format!(
            "{}:{}",
            allocator.name,
            options.collect::<Vec<_>>().join(",")
        ))
    });
    let (known, hint) = match mended {
        Some(mended) => (String::new(), Hint::DidYouMean(mended)),
        None => {
            let names: Vec<_> = allocator.options.iter().map(|option| option.name).collect();
            let mut options = allocator.options.iter();
            let example = options
                .clone()
                .find(|option| meant == Some(option.name))
                .or(options.next());
            let hint =
                example.map_or_else(|| word.as_in_example(), |option| allocator.as_in(option));
            (format!(" (it has {})", names.join(", ")), hint)
        }
    };
    SettingError::UnknownOption {
        allocator: allocator.name,
        option: name.to_owned(),
        known,
        hint,
    }
}

impl Named {
    /// The variables that carry these options.
    pub fn environment(&self, options: &[Chosen]) -> Vec<(String, String)> {
        if options.is_empty() {
            Vec::new()
        } else {
            (self.variables)(options)
        }
    }

    /// A setting of only that option.
    fn as_in(&self, option: &Opt) -> Hint {
        let value = option.takes.example();
        Hint::AsIn(format!(
            "malloc={}:{}{}{value}",
            self.name, option.name, self.separator
        ))
    }
}
