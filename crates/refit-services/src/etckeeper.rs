//! etckeeper, which keeps /etc in a repository: its own commit for what refit changes there.
//!
//! Where it avoids its daily commits (`AVOID_DAILY_AUTOCOMMITS=1`) somebody commits by hand, and refit does not. Neither where
//! /etc had other changes before: these are not refit's to commit.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::System;

const CONFIGURATION: &str = "/etc/etckeeper/etckeeper.conf";
/// The repositories that it knows (etckeeper(8)).
const REPOSITORIES: [&str; 4] = ["/etc/.git", "/etc/.hg", "/etc/.bzr", "/etc/_darcs"];
/// A push to another machine may never end.
const SECONDS: &str = "60";

/// What there was before a change.
pub struct Etckeeper {
    had_changes: bool,
    commits_by_itself: bool,
}

impl Etckeeper {
    /// Looks before a change; `None` where there is nothing to tell: in a tree, and without a repository.
    #[must_use]
    pub fn look(system: &System) -> Option<Etckeeper> {
        let has_repository = || REPOSITORIES.iter().any(|dir| Path::new(dir).exists());
        if !system.is_live() || !has_repository() {
            return None;
        }
        let configuration = std::fs::read_to_string(CONFIGURATION).ok()?;
        let avoids = |line: &str| line.trim().starts_with("AVOID_DAILY_AUTOCOMMITS=1");
        Some(Etckeeper {
            had_changes: has_changes()?,
            commits_by_itself: !configuration.lines().any(avoids),
        })
    }

    /// Commits what refit changed; `what`: the command, in words. What somebody has to know of it.
    #[must_use]
    pub fn tell(self, what: &str) -> Option<String> {
        if !has_changes()? {
            return None;
        }
        let by_hand = format!("commit it: etckeeper commit '{what}'");
        if self.had_changes {
            return Some(format!(
                "etckeeper: /etc had other changes before, so refit's is not committed\n  {by_hand}"
            ));
        }
        if !self.commits_by_itself {
            return Some(format!(
                "etckeeper: AVOID_DAILY_AUTOCOMMITS=1, so refit's change of /etc is not committed\n  {by_hand}"
            ));
        }
        let reason = match asked(&["commit", what]) {
            Ok(()) => return None,
            Err(reason) => reason,
        };
        Some(format!(
            "etckeeper commit failed, and refit's change of /etc is not committed: {reason}\n  {by_hand}"
        ))
    }
}

/// Whether anything is not committed; `None` where it does not tell.
fn has_changes() -> Option<bool> {
    let status = command(&["unclean"]).output().ok()?.status;
    // timeout(1): 124 and above are its own.
    match status.code()? {
        0 => Some(true),
        1..=123 => Some(false),
        _ => None,
    }
}

fn asked(words: &[&str]) -> Result<(), String> {
    let output = command(words).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr);
    let last = printed
        .lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty());
    Err(last.map_or_else(|| output.status.to_string(), str::to_owned))
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", SECONDS, "etckeeper"])
        .args(words);
    command.stdin(Stdio::null());
    command
}
