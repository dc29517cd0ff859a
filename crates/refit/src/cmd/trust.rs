//! Consent: the commands of a recipe that is not refit's own are shown, and a person agrees to
//! them, before they run for the first time and after each change.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use refit_recipe::{Folder, Recipe};
use refit_report::Page;
use rustix::process::geteuid;

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
    let print = format!("{:016x}", recipe.folder.fingerprint());
    let known = memory()
        .and_then(|path| fs::read_to_string(path).ok())
        .unwrap_or_default();
    if known.lines().any(|line| line == print) {
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
    if !yes {
        if !print::can_ask() {
            bail!(
                "nobody agreed to the commands of {}\n  read them above, then agree: --yes",
                origin.display()
            );
        }
        let answer = print::ask("run them? [y/N]")?;
        if !["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
            bail!("not agreed; nothing was run");
        }
    }
    if let Some(path) = memory() {
        let parent = path.parent().map(fs::create_dir_all);
        // Where it cannot be remembered refit asks again.
        if parent.is_some_and(|made| made.is_ok())
            && let Ok(mut file) = fs::File::options().append(true).create(true).open(path)
        {
            let _ = writeln!(file, "{print}");
        }
    }
    Ok(())
}

/// Every command with its key, as it will run.
pub fn commands(recipe: &Recipe, page: &mut Page) {
    for (key, command) in recipe.commands() {
        page.line(1, key);
        page.lines(3, command);
    }
}
