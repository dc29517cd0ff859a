//! What systemd reads after refit's drop-in, and what of it would win.

use refit_servers::systemd::{Line, Unit, words};

use super::{FILE, SYNC_OFF, THP_NEVER, has};
use crate::{Change, Error, System};

/// Refuses a change of which a part would not be in effect: a drop-in that is read later sets the same or takes it back, an
/// `EnvironmentFile=` has the variable, or `UnsetEnvironment=` names it (systemd.exec(5)).
///
/// # Errors
/// [`Error::Overridden`] by file and line, or why a file cannot be read.
pub fn refuse(system: &System, unit: &Unit, change: &Change, ours: &str) -> Result<(), Error> {
    let overridden = |name: &str, value: &str, place: String, mend: &str| {
        Err(Error::Overridden {
            name: name.to_owned(),
            value: value.to_owned(),
            place,
            ours: ours.to_owned(),
            mend: mend.to_owned(),
        })
    };
    let take_out = "take that line out, and systemctl daemon-reload";
    let is_later = |line: &&Line| {
        let file = line.path.rsplit('/').next().unwrap_or_default();
        unit.files.drop_ins.contains(&line.path) && file > FILE
    };
    let takes_back = |key: &str| {
        let mut lines = unit.all(key).filter(is_later);
        lines.find(|line| line.value.is_empty())
    };
    let names: Vec<&str> = change.variables.iter().map(|(name, _)| &**name).collect();
    if let (Some(line), false) = (takes_back("Environment"), names.is_empty()) {
        return overridden("Environment", "", line.place(), take_out);
    }
    for (name, value, line) in unit.environment() {
        if names.contains(&&*name) && is_later(&line) {
            return overridden(&name, &value, line.place(), take_out);
        }
    }
    for line in unit.list("UnsetEnvironment") {
        let all = words(&line.value);
        let mut of_ours = all.iter().filter(|word| {
            let name = word.split('=').next().unwrap_or_default();
            names.contains(&name)
        });
        if let Some(word) = of_ours.next() {
            return overridden("UnsetEnvironment", word, line.place(), take_out);
        }
    }
    for path in environment_files(system, unit) {
        let content = system.read(&path)?.unwrap_or_default();
        for (index, text) in String::from_utf8_lossy(&content).lines().enumerate() {
            let text = text.trim();
            let Some((name, value)) = text
                .split_once('=')
                .filter(|_| !text.starts_with(['#', ';']))
            else {
                continue;
            };
            if names.contains(&name.trim()) {
                let place = format!("{path}:{}", index + 1);
                return overridden(
                    name.trim(),
                    value.trim(),
                    place,
                    "set it there, or take it out",
                );
            }
        }
    }
    if let (Some(line), true) = (takes_back("SystemCallFilter"), has(change, SYNC_OFF)) {
        return overridden("SystemCallFilter", "", line.place(), take_out);
    }
    let mut starts = unit.all("ExecStart").filter(is_later);
    match starts.next().filter(|_| has(change, THP_NEVER)) {
        Some(line) => overridden("ExecStart", &line.value, line.place(), take_out),
        None => Ok(()),
    }
}

/// The files of `EnvironmentFile=`, those of a pattern as they are now. Of one below a symbolic link nothing is known: the
/// plan tells that a file of a pattern wins.
fn environment_files(system: &System, unit: &Unit) -> Vec<String> {
    let of_line = |line: &Line| {
        let path = unit.specified(line.value.trim_start_matches('-'));
        match path.contains(['*', '?', '[']) {
            true => system.matching(&path, "").unwrap_or_default(),
            false => vec![path],
        }
    };
    let lines = unit.list("EnvironmentFile").into_iter();
    lines.flat_map(of_line).collect()
}
