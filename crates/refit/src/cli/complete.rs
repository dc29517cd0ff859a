//! What can be typed next where clap does not know it by itself: settings, recipes, pages.

use std::env;
use std::ffi::OsStr;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use refit_knobs::candidates;
use refit_manual::TOPICS;
use refit_recipe::{Recipe, shipped_names};

use super::definition;

fn candidate(word: impl Into<std::ffi::OsString>, about: &str) -> CompletionCandidate {
    let about = (!about.is_empty()).then(|| about.to_owned().into());
    CompletionCandidate::new(word).help(about)
}

/// Knobs and their values, those of a recipe that was typed before included.
pub fn settings(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(word) = typed.to_str() else {
        return Vec::new();
    };
    let (joined, last) = match word.rfind('+') {
        Some(at) => word.split_at(at + 1),
        None => ("", word),
    };
    let mut all: Vec<_> = candidates(word)
        .into_iter()
        .map(|found| candidate(found.word, found.about))
        .collect();
    let declared = declared(joined, last);
    if !declared.is_empty() {
        all.retain(|found| found.get_value() != OsStr::new(&format!("{joined}conf.")));
    }
    all.extend(declared);
    // Values that are files: the allocators that have a name were listed above.
    let path = ["program=", "preload=", "malloc=", "disk=", "schema="]
        .iter()
        .find_map(|head| Some((head, last.strip_prefix(head)?)));
    if let Some((head, path)) = path
        && (path.contains('/') || ["program=", "preload=", "schema="].contains(head))
    {
        let files = PathCompleter::any().complete(OsStr::new(path));
        let files = files.into_iter();
        all.extend(files.map(|file| file.add_prefix(format!("{joined}{head}"))));
    }
    all
}

/// `conf.NAME=VALUE` of the recipe that is on the command line.
fn declared(joined: &str, typed: &str) -> Vec<CompletionCandidate> {
    if !"conf.".starts_with(typed) && !typed.starts_with("conf.") {
        return Vec::new();
    }
    // A folder is one only by a name with a slash, as in ./mine.
    let recipe = env::args()
        .filter(|word| word.contains('/') || shipped_names().any(|name| name == word))
        .find_map(|word| Recipe::find(&word).ok());
    let Some(recipe) = recipe else {
        return Vec::new();
    };
    let conf = recipe.file.conf.iter();
    let words = conf.flat_map(|(name, knob)| {
        let values = knob.values.keys();
        values.map(move |value| (format!("conf.{name}={value}"), &*knob.about))
    });
    let load = recipe.file.load.knobs.iter();
    let load = load.flat_map(|(name, knob)| {
        let values = match knob.choices.is_empty() {
            true => std::slice::from_ref(&knob.default),
            false => &*knob.choices,
        };
        let values = values.iter();
        values.map(move |value| (format!("load.{name}={value}"), &*knob.about))
    });
    words
        .chain(load)
        .filter(|(word, _)| word.starts_with(typed))
        .map(|(word, about)| candidate(format!("{joined}{word}"), about))
        .collect()
}

/// The names of recipes that refit carries, and folders.
pub fn recipe(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut all: Vec<_> = shipped_recipe(typed);
    if typed.as_encoded_bytes().starts_with(b".") || typed.as_encoded_bytes().contains(&b'/') {
        all.extend(PathCompleter::dir().complete(typed));
    }
    all
}

/// Those only.
pub fn shipped_recipe(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    shipped_names()
        .filter(|name| name.starts_with(&*typed))
        .map(|name| {
            let recipe = Recipe::find(name);
            let question = recipe.map(|recipe| recipe.file.question.en.clone());
            candidate(name, &question.unwrap_or_default())
        })
        .collect()
}

/// A recipe, or settings.
pub fn recipe_or_settings(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = recipe(typed);
    all.extend(settings(typed));
    all
}

/// What `refit help` has a page of.
pub fn page(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let definition = definition();
    let commands = definition
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| {
            let about = command.get_about().map(ToString::to_string);
            candidate(command.get_name(), &about.unwrap_or_default())
        });
    let topics = TOPICS
        .iter()
        .map(|topic| candidate(topic.name, topic.about));
    commands
        .chain(topics)
        .filter(|found| found.get_value().to_string_lossy().starts_with(&*typed))
        .collect()
}
