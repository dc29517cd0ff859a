//! Consent: the commands of a recipe that is not refit's own are shown, and a person agrees to
//! them, before they run for the first time and after each change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use refit_recipe::{Folder, Recipe};
use refit_report::Page;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use super::print;

/// The file that remembers what was agreed to; without it refit asks each time.
fn memory() -> Option<PathBuf> {
    if geteuid().is_root() {
        return Some("/var/lib/refit/agreed".into());
    }
    let state = std::env::var_os("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    Some(state.or_else(home)?.join("refit/agreed"))
}

/// Returns when the recipe may run; an error where nobody agreed.
pub fn agree(recipe: &Recipe, yes: bool) -> Result<()> {
    let Some(origin) = &recipe.folder.origin else {
        return Ok(());
    };
    // Pictures run nothing, and refit carries none.
    let is_picture = |path: &Path| path.ends_with("picture.svg");
    let own = recipe
        .folder
        .files
        .iter()
        .filter(|file| !is_picture(&file.path));
    if Folder::shipped(recipe.name()).is_some_and(|folder| folder.files.iter().eq(own)) {
        return Ok(());
    }
    let mine = Agreement::of(origin, recipe);
    let known = remembered();
    if known.iter().any(|agreement| agreement.files == mine.files) {
        return Ok(());
    }
    let who = if geteuid().is_root() {
        "as root"
    } else {
        "as you"
    };
    print::say(format_args!(
        "{} runs these commands {who}, and the files that they name:",
        origin.display()
    ));
    let mut page = Page::default();
    commands(recipe, &mut page);
    print::drawn(&page.text());
    let before = known.iter().rfind(|known| known.folder == mine.folder);
    if let Some(before) = before {
        let mut page = Page::default();
        for (file, change) in mine.changes_since(before) {
            page.line(1, format!("{file} ({change})"));
        }
        print::say("changed since you agreed to it:");
        print::drawn(&page.text());
    }
    if !yes {
        if !print::can_ask() {
            bail!(
                "nobody agreed to the commands of {}\n  read them above, then agree: --yes",
                origin.display()
            );
        }
        if !print::agreed("run them?")? {
            bail!("not agreed; nothing was run");
        }
    }
    remember(&mine);
    Ok(())
}

/// A folder that refit itself has just written runs unasked until it is changed.
pub fn remember_own(recipe: &Recipe) {
    if let Some(origin) = &recipe.folder.origin {
        remember(&Agreement::of(origin, recipe));
    }
}

/// What somebody agreed to: a line of the file.
#[derive(Serialize, Deserialize)]
struct Agreement {
    /// Where it was, so that a change of it can be shown.
    folder: String,
    /// As [`Folder::digests`] has them.
    files: BTreeMap<String, String>,
}

impl Agreement {
    fn of(origin: &Path, recipe: &Recipe) -> Agreement {
        Agreement {
            folder: place(origin),
            files: recipe.folder.digests(),
        }
    }

    /// Each file that is different, and how.
    fn changes_since<'a>(&'a self, before: &'a Agreement) -> Vec<(&'a str, &'static str)> {
        let names: BTreeSet<&String> = self.files.keys().chain(before.files.keys()).collect();
        let change = |name: &String| match (before.files.get(name), self.files.get(name)) {
            (then, now) if then == now => None,
            (None, _) => Some("new"),
            (_, None) => Some("removed"),
            _ => Some("changed"),
        };
        let changes = names.into_iter();
        changes
            .filter_map(|name| Some((name.as_str(), change(name)?)))
            .collect()
    }
}

fn place(origin: &Path) -> String {
    let path = fs::canonicalize(origin).unwrap_or_else(|_| origin.to_owned());
    path.as_os_str()
        .as_encoded_bytes()
        .escape_ascii()
        .to_string()
}

/// All agreements, the oldest first. A line that is none was written by another refit.
fn remembered() -> Vec<Agreement> {
    let text = memory().and_then(|path| fs::read_to_string(path).ok());
    let text = text.unwrap_or_default();
    let lines = text.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Where it cannot be remembered refit asks again.
fn remember(agreement: &Agreement) {
    let write = |path: &Path| -> io::Result<()> {
        path.parent().map(fs::create_dir_all).transpose()?;
        let mut options = fs::File::options();
        // Whatever the umask: nobody else agrees in this user's place.
        options.append(true).create(true).mode(0o600);
        let line = serde_json::to_string(agreement)? + "\n";
        options.open(path)?.write_all(line.as_bytes())
    };
    if let Some(path) = memory() {
        let _ = write(&path);
    }
}

/// Every command with its key, as it will run.
pub fn commands(recipe: &Recipe, page: &mut Page) {
    for (key, command) in recipe.commands() {
        page.line(1, key);
        page.lines(3, command);
    }
}
