//! A file that somebody else edited since refit did: what a revert makes of it.

use crate::lines::taken_out;
use crate::package_drift::is_purged;
use crate::{Change, Changed, Error, FileEdit, FileState, System};

/// What a revert does with a file.
pub enum End {
    /// Nothing: it is as before the change.
    AsBefore,
    /// Nothing: it went with its package.
    Purged,
    /// It is as applied, and goes back to what it was.
    Restored,
    /// refit's lines are taken out, and what somebody else changed elsewhere is kept.
    Kept {
        /// As it is.
        now: FileState,
        /// As it will be.
        left: FileState,
    },
}

impl End {
    /// The end of one file of a change; `Err` of the inner result where a person has to decide.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn of(
        system: &System,
        change: &Change,
        edit: &FileEdit,
    ) -> Result<Result<End, Changed>, Error> {
        let now = system.state(&edit.path)?;
        if now == edit.before {
            return Ok(Ok(End::AsBefore));
        }
        if now == edit.after {
            return Ok(Ok(End::Restored));
        }
        if now.is_none() && edit.before.is_some() && is_purged(system, change)? {
            return Ok(Ok(End::Purged));
        }
        let left = match (&edit.before, &edit.after, &now) {
            (Some(before), Some(after), Some(now)) => left(change, before, after, now)
                .or(replaced(system, change, edit)?.then(|| now.clone())),
            // A file of refit's own is not edited by others.
            _ => None,
        };
        Ok(match (left, now) {
            (Some(left), Some(now)) => Ok(End::Kept { now, left }),
            (_, now) => Err(Changed {
                path: edit.path.clone(),
                before: edit.before.clone(),
                after: edit.after.clone(),
                now,
            }),
        })
    }
}

/// What is left when refit's lines are taken out. A line of somebody else's that sets what refit set
/// is perhaps a copy of refit's, as redis' CONFIG REWRITE makes one: `None`.
pub fn left(
    change: &Change,
    before: &FileState,
    after: &FileState,
    now: &FileState,
) -> Option<FileState> {
    // refit edits no mode, owner or attribute: what differs is somebody else's.
    if !before.has_access_of(after) {
        return None;
    }
    let (bytes, added) = taken_out(&before.bytes(), &after.bytes(), &now.bytes())?;
    let is_kept = !added.iter().any(|line| is_ours(change, line));
    is_kept.then(|| now.with_bytes(bytes))
}

/// Whether dpkg put the package's file in the place of the one that refit wrote, as somebody told
/// it to, and nothing of refit's is in it.
fn replaced(system: &System, change: &Change, edit: &FileEdit) -> Result<bool, Error> {
    let old = system.state(&format!("{}.dpkg-old", edit.path))?;
    let bytes = |state: Option<&FileState>| state.map(FileState::bytes);
    if old.is_none() || bytes(old.as_ref()) != bytes(edit.after.as_ref()) {
        return Ok(false);
    }
    let now = system.read(&edit.path)?.unwrap_or_default();
    let before = bytes(edit.before.as_ref()).unwrap_or_default();
    let before: Vec<&[u8]> = before.split(|byte| *byte == b'\n').collect();
    let mut added = now.split(|byte| *byte == b'\n');
    Ok(!added.any(|line| !before.contains(&line) && is_ours(change, line)))
}

/// Whether a line that somebody added sets what refit set, or names a file of refit's.
fn is_ours(change: &Change, line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let name = line.trim_start().split([' ', '\t', '=', ':']).next();
    let name = plain(name.unwrap_or_default());
    line.contains("/usr/lib/refit/")
        || names_placed(change, &line)
        || change.conf.iter().any(|conf| plain(&conf.name) == name)
}

/// Whether a line names a file of refit's own, or what it placed, from wherever: master.cf does so
/// as `../../refit/…`.
fn names_placed(change: &Change, line: &str) -> bool {
    let mut own = change.edits().filter(|edit| edit.before.is_none());
    let name = |edit: &FileEdit| {
        edit.path
            .rsplit('/')
            .next()
            .is_some_and(|name| line.contains(name))
    };
    if own.any(name) {
        return true;
    }
    let mut placed = change.placed();
    placed.any(|file| {
        let path = file.path.strip_prefix("/usr/lib").unwrap_or(&file.path);
        line.contains(path)
    })
}

/// A setting's name without what services do not tell apart in it.
fn plain(name: &str) -> String {
    name.trim_start_matches('$')
        .replace('-', "_")
        .to_ascii_lowercase()
}
