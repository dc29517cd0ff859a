//! The grammar of one setting: `KNOB[@exe:NAME|@/PATH][.NAME]=VALUE`, in which a `+` is a `+`.

use crate::error::{Hint, SettingError};
use crate::knob::Knob;
use crate::knobs::KNOBS;
use crate::nearest::{Known, named, nearest};
use crate::scope;
use crate::word::{Reprint, Word, mend};

/// The word of this text, its knob found.
pub(crate) fn split(text: &str, reprint: Reprint) -> Result<Word<'_>, SettingError> {
    if text.is_empty() {
        return Err(SettingError::Empty);
    }
    if text.contains('\0') {
        return Err(SettingError::Nul {
            word: text.replace('\0', "\\0"),
        });
    }
    let (head, value) = head_and_value(text).ok_or_else(|| not_a_setting(text, reprint))?;
    let (name, rest) = head.split_at(head.find(['@', '.']).unwrap_or(head.len()));
    let knob = find(name).ok_or_else(|| unknown_knob(name, rest, value, reprint))?;
    let word = Word {
        knob,
        scope: None,
        member: "",
        value,
        head,
        reprint,
    };
    match rest.strip_prefix('@') {
        Some(scope) => with_scope(word, scope),
        None => with_member(word, rest.strip_prefix('.')),
    }
}

/// What stands before and after the `=`: in a scope, the first one without a backslash.
pub(crate) fn head_and_value(text: &str) -> Option<(&str, &str)> {
    match text.find(['@', '.', '=']) {
        Some(at) if text[at..].starts_with('@') => scope::split(text),
        _ => text.split_once('='),
    }
}

fn with_scope<'a>(word: Word<'a>, scope: &'a str) -> Result<Word<'a>, SettingError> {
    if word.knob.scoped {
        Ok(Word {
            scope: Some(scope),
            ..word
        })
    } else {
        Err(no_scope(&word, &format!("@{scope}"), ""))
    }
}

fn with_member<'a>(word: Word<'a>, member: Option<&'a str>) -> Result<Word<'a>, SettingError> {
    let knob = word.knob.name;
    match (word.knob.has_members, member) {
        (false, None) => Ok(word),
        (true, Some(member)) => match member.find('@') {
            Some(at) => Err(no_scope(
                &word,
                &member[at..],
                &format!(".{}", &member[..at]),
            )),
            None => Ok(Word { member, ..word }),
        },
        (false, Some(member)) => {
            let mended = word.mend(&format!("{knob}={}", word.value));
            let hint = mended.map_or_else(|| word.as_in_example(), Hint::Write);
            Err(SettingError::NoMember {
                knob,
                member: member.to_owned(),
                hint,
            })
        }
        (true, None) => {
            // `env=NAME=VALUE`
            let mended = word.mend(&format!("{knob}.{}", word.value));
            let hint = mended.map_or_else(|| word.as_in_example(), Hint::DidYouMean);
            Err(SettingError::NeedsMember { knob, hint })
        }
    }
}

fn no_scope(word: &Word, scope: &str, member: &str) -> SettingError {
    let mended = word.mend(&format!("{}{member}={}", word.knob.name, word.value));
    let hint = mended.map_or_else(|| word.as_in_example(), Hint::Write);
    SettingError::NoScope {
        knob: word.knob.name,
        scope: scope.to_owned(),
        hint,
    }
}

fn find(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().copied().find(|knob| knob.name == name)
}

fn known() -> impl Iterator<Item = Known> + Clone {
    KNOBS.iter().map(|knob| (knob.name, knob.aliases))
}

fn not_a_setting(text: &str, reprint: Reprint) -> SettingError {
    let word = text.to_owned();
    match text.split(['@', '.']).next().and_then(find) {
        Some(_) if text.contains("\\=") => {
            let hint = mend(reprint, &scope::unescape(text));
            SettingError::ScopeWithoutEnd {
                word,
                hint: hint.map_or_else(
                    || Hint::AsIn("sync@/PATH/=off".to_owned()),
                    Hint::DidYouMean,
                ),
            }
        }
        Some(knob) => SettingError::KnobAlone {
            word,
            example: knob.example,
        },
        None => SettingError::NotASetting { word },
    }
}

fn unknown_knob(name: &str, rest: &str, value: &str, reprint: Reprint) -> SettingError {
    let known_as = |knob: &str| {
        mend(reprint, &format!("{knob}{rest}={value}"))
            .or_else(|| find(knob).map(|knob| knob.example.to_owned()))
    };
    let opposite = KNOBS.iter().find(|knob| {
        knob.opposites
            .iter()
            .any(|word| word.eq_ignore_ascii_case(name))
    });
    // NAME=VALUE as env(1) takes it: such names are upper case by habit, knobs are not.
    let variable = |upper: bool| {
        let fits = rest.is_empty() && (!upper || !name.contains(|c: char| c.is_ascii_lowercase()));
        let setting = reprint(&format!("env.{name}={value}")).ok();
        setting.filter(|_| fits)
    };
    let meant = opposite
        .map(|knob| knob.example.to_owned())
        .or_else(|| named(name, known()).and_then(known_as))
        .or_else(|| variable(true))
        .or_else(|| nearest(name, known()).and_then(known_as))
        .or_else(|| variable(false));
    let known = KNOBS
        .iter()
        .map(|knob| knob.name)
        .collect::<Vec<_>>()
        .join(", ");
    let hint = meant.map_or_else(|| Hint::AsIn("sync=off".to_owned()), Hint::DidYouMean);
    SettingError::UnknownKnob {
        knob: name.to_owned(),
        known,
        hint,
    }
}
