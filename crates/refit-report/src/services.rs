//! What `refit plan`, `apply`, `status` and `revert` print of a change.

use std::path::Path;
use std::time::SystemTime;

use refit_crash::CrashReport;
use refit_lab::{Comparison, EffectRecord};
use refit_services::{
    Accepted, Changed, Check, Declared, Evidence, FileState, Layer, LibraryFile, LibrarySince,
    Package, PackageSince, Phase, Plan, Reverted, ServiceStatus, Status, Way,
};

use crate::crash::row::rows;
use crate::crash::sentence::{Manner, takes};
use crate::format;
use crate::page::Page;

/// What would be done.
#[must_use]
pub fn planned(plan: &Plan) -> String {
    let change = &plan.change;
    let mut page = Page::default();
    page.heading(&format!("{} ({})", change.service, change.kind));
    let settings = change.settings.iter().zip(&plan.classes);
    let settings: Vec<String> = settings
        .map(|(setting, class)| format!("{setting} ({class})"))
        .collect();
    page.row("settings", settings.join("   "));
    if let Some(first) = &plan.first {
        let settings = first.change.settings.join(" ");
        page.row(
            "it has",
            format!("{settings}; this becomes one change with that"),
        );
    }
    evidence(&mut page, change.evidence.as_ref());
    accepted(&mut page, change.accepted.as_ref());
    for conf in &change.conf {
        if let Some(before) = &conf.before {
            page.row("now", format!("{} is `{before}`", conf.name));
        }
    }
    for dir in &change.directories {
        page.row("make", dir);
    }
    let is_there = |file: &LibraryFile| {
        let first = plan.first.iter().flat_map(|first| first.change.placed());
        first.into_iter().any(|other| other == file)
    };
    for library in change
        .placed()
        .filter(|file| !change.programs.contains(file) && !is_there(file))
    {
        match &change.launcher {
            Some(launcher) if launcher.program == *library => {
                page.row("place", format!("{}, a program of refit's", library.path));
            }
            _ => page.row("copy", format!("{} to {}", library.from, library.path)),
        }
        page.row("", format!("sha256 {}", library.sha256));
    }
    for (path, text) in plan.scripts() {
        page.line(0, "");
        page.line(0, format!("--- {path} (not there)"));
        page.line(0, format!("+++ {path} (a script of refit's, mode 0755)"));
        text.lines()
            .for_each(|line| page.line(0, format!("+{line}")));
    }
    if let Some(moved) = &change.moved {
        page.line(0, "");
        if moved.over.is_none() {
            let to = format!("move {} to {}; in its place:", moved.path, moved.kept);
            page.line(0, to);
        }
        difference(
            &mut page,
            &moved.path,
            moved.over.as_ref(),
            Some(&moved.script),
        );
    }
    for edit in change.edits().filter(|edit| edit.before != edit.after) {
        page.line(0, "");
        difference(
            &mut page,
            &edit.path,
            edit.before.as_ref(),
            edit.after.as_ref(),
        );
    }
    for edit in &change.schema {
        page.heading(&format!("index {}", edit.index));
        page.row("apply", &edit.apply);
        page.row("revert", &edit.inverse);
    }
    if let Some(declared) = &change.declared {
        statements(&mut page, declared);
    }
    if !plan.commands.is_empty() {
        page.heading("then");
        plan.commands
            .iter()
            .for_each(|command| page.line(1, command));
    }
    if let Some(health) = &change.health {
        page.heading("before and after it, and again where it is taken back");
        health.lines().for_each(|line| page.line(1, line));
    }
    if !plan.notes.is_empty() || !plan.sizes.is_empty() {
        page.heading("notes");
        let notes = plan.notes.iter().chain(&plan.sizes);
        notes.for_each(|note| page.line(1, note));
    }
    page.text()
}

/// What a schema destroys, and the statements that lead to it.
fn statements(page: &mut Page, declared: &Declared) {
    if !declared.losses().is_empty() {
        page.heading("it destroys");
        let losses = declared.losses().iter();
        losses.for_each(|loss| page.line(1, &loss.what));
    }
    let list = |page: &mut Page, way: &Way| {
        for step in &way.steps {
            let (mut lines, indent) = (step.sql.lines(), 1);
            let last = lines.clone().count().saturating_sub(1);
            for (at, line) in lines.by_ref().enumerate() {
                let end = if at == last { ";" } else { "" };
                page.line(indent, format!("{line}{end}"));
            }
        }
    };
    page.heading("statements");
    list(page, &declared.way);
    if declared.no_way_back.is_empty() {
        page.heading("statements of a revert");
        list(page, &declared.back);
    }
}

/// What is different in a plan that was made again: files that somebody edited, and what would be
/// done then.
#[must_use]
pub fn not_as_shown(shown: &Plan, mut now: Plan) -> String {
    // None makes another plan of it: its time, sizes, and directories that are there by now.
    now.sizes.clone_from(&shown.sizes);
    now.change.undo.clone_from(&shown.change.undo);
    now.change.directories.clone_from(&shown.change.directories);
    let mut page = Page::default();
    page.heading("since this was shown, it changed:");
    for edit in &now.change.files {
        let mut files = shown.change.files.iter();
        if let Some(old) = files.find(|old| old.path == edit.path && old.before != edit.before) {
            let (old, new) = (old.before.as_ref(), edit.before.as_ref());
            difference(&mut page, &edit.path, old, new);
        }
    }
    changed_lines(&mut page, &planned(shown), &planned(&now));
    page.text()
}

/// What was seen of a change to a running service: `applied; verified: 2 of 3 checks hold, 1 is unknown (maps)`. What
/// is unknown is not in effect, as far as anybody knows.
pub fn applied(checks: &[Check]) -> String {
    let unknown: Vec<&str> = (checks.iter())
        .filter(|check| check.holds.is_none())
        .map(|check| check.key.as_str())
        .collect();
    let held = checks.iter().filter(|check| check.holds == Some(true));
    let (held, all) = (held.count(), checks.len());
    let untold = || match unknown.as_slice() {
        [one] => format!("1 is unknown ({one})"),
        several => format!("{} are unknown ({})", several.len(), several.join(", ")),
    };
    match (held, unknown.len()) {
        (_, _) if all == 0 => "applied; nothing that runs shows whether it is in effect".to_owned(),
        (0, _) => format!("applied; not verified: {}", untold()),
        (1, 0) => "applied; verified: the one check holds".to_owned(),
        (_, 0) => format!("applied; verified: all {held} checks hold"),
        _ => format!(
            "applied; verified: {held} of {all} checks hold, {}",
            untold()
        ),
    }
}

/// What is applied.
#[must_use]
pub fn stated(status: &Status) -> String {
    let mut page = Page::default();
    if status.services.is_empty() {
        page.line(0, "nothing is applied");
    }
    for one in &status.services {
        service(&mut page, one);
    }
    page.text()
}

fn service(page: &mut Page, one: &ServiceStatus) {
    let state = match (one.phase, one.drift) {
        _ if one.taken_back => "not kept, and its files are gone, as after a reboot",
        (Phase::Applied, false) => "applied",
        (Phase::Applied, true) => "applied, and differs now",
        (Phase::Applying, _) => "interrupted while it was applied",
        (Phase::Confirming, _) => "interrupted while it was confirmed",
        (Phase::Reverting, _) => "interrupted while it was reverted",
    };
    // What was interrupted otherwise cannot be confirmed.
    let stays = matches!(one.phase, Phase::Applied | Phase::Confirming);
    let trial = match one.unconfirmed_until_unix {
        _ if one.taken_back || !stays => String::new(),
        Some(at) => format!(", until {} unless it is confirmed", utc(at)),
        None if one.trial => ", until a reboot".to_owned(),
        None => String::new(),
    };
    page.heading(&format!("{}: {state}{trial}", one.service));
    page.row("settings", one.settings.join(" "));
    evidence(page, one.evidence.as_ref());
    accepted(page, one.accepted.as_ref());
    if let Some(health) = &one.health {
        page.row("health", health.lines().next().unwrap_or_default());
    }
    for check in &one.checks {
        let layer = match check.layer {
            Layer::File => "file",
            Layer::Loaded => "loaded",
            Layer::Effective => "effective",
        };
        let text = match check.holds {
            Some(true) => format!("ok: {} {}", check.key, check.expected),
            Some(false) => format!(
                "DIFFERS: {}: expected {}, found {}",
                check.key, check.expected, check.found
            ),
            None => format!("unknown: {}: {}", check.key, check.found),
        };
        page.row(layer, text);
    }
    let of_libraries = one.libraries.iter().flat_map(|library| &library.package);
    for package in one.packages.iter().chain(of_libraries) {
        page.row("package", became(package));
    }
    for LibrarySince { path, from, .. } in &one.libraries {
        page.row("library", format!("{path} is an earlier {from}"));
    }
    let waits = one.unconfirmed_until_unix.is_some() && !one.taken_back;
    if one.phase == Phase::Confirming || (one.phase == Phase::Applied && waits) {
        page.row("next", format!("refit confirm {}", one.service));
    }
    let is_gone = one.packages.iter().any(|package| package.now.is_none());
    if one.phase != Phase::Applied || one.taken_back || is_gone {
        page.row("next", format!("refit revert {}", one.service));
    }
}

/// `redis-server 5:7.0.15-1 → 5:7.0.16-1`
fn became(since: &PackageSince) -> String {
    let Package { name, version } = &since.was;
    match (&since.now, &*since.state) {
        (Some(now), "installed") => format!("{name} {version} → {now}"),
        (Some(now), state) => format!("{name} {version} → {now}, {state}: dpkg --configure -a"),
        (None, "config-files") => format!("{name} {version} → removed, its configuration is kept"),
        (None, _) => format!("{name} {version} → purged, what refit wrote is left"),
    }
}

/// Commands that apply what is applied, in the tree below `root`. Evidence stays where it is.
#[must_use]
pub fn exported(status: &Status, root: Option<&Path>) -> String {
    let mut text = String::new();
    for one in &status.services {
        let mut words = vec!["refit".to_owned(), "apply".to_owned()];
        words.extend(root.map(|root| format!("--root={}", root.display())));
        if let Some(at) = one.unconfirmed_until_unix {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let left = at.saturating_sub(now.map_or(0, |now| now.as_secs()));
            words.push(format!("--confirm-within={}s", left.max(10)));
        } else if one.trial {
            words.push("--trial".to_owned());
        }
        if let Some(accepted) = &one.accepted {
            words.push(format!("--accept={}", accepted.class));
            words.push("--no-evidence".to_owned());
        }
        words.extend(
            one.health
                .iter()
                .map(|command| format!("--health={command}")),
        );
        words.push(one.service.clone());
        words.extend(one.settings.iter().cloned());
        let words: Vec<String> = words.iter().map(|word| format::shell_word(word)).collect();
        text += &(words.join(" ") + "\n");
    }
    text
}

fn evidence(page: &mut Page, evidence: Option<&Evidence>) {
    let Some(evidence) = evidence else { return };
    page.folded("gain", &evidence.gain);
    if !evidence.differs.is_empty() {
        page.folded("not as then", &evidence.differs.join("; "));
    }
    if let Some(loss) = &evidence.loss {
        page.folded("loss", loss);
    }
    page.folded("evidence", &evidence.files.join(" "));
}

fn accepted(page: &mut Page, accepted: Option<&Accepted>) {
    let Some(Accepted { class, evidence }) = accepted else {
        return;
    };
    let by = if *evidence { "" } else { ", without evidence" };
    page.row("accepted", format!("{class}{by}"));
}

/// What the winner of a comparison gains: `rate +58.5 % [+57.2 %, +59.9 %]`. Measured again,
/// it is that number.
#[must_use]
pub fn gain(comparison: &Comparison, effect: &EffectRecord) -> String {
    let mut text = format!("{} {}", effect.metric, format::percent(effect.change));
    if let Some([low, high]) = effect.interval {
        let ends = [low, high].map(format::percent);
        text += &format!(" [{}]", ends.join(", "));
    }
    let again = comparison.confirmation.as_deref();
    if again.is_some() {
        text += " when measured again";
    }
    let floors = [again, Some(comparison)].into_iter().flatten();
    let mut floors = floors.filter_map(|one| one.effects.noise_floor(&one.experiment));
    if let Some(floor) = floors.next() {
        text += &format!(" (noise floor {})", format::magnitude(floor));
    }
    let experiment = &comparison.experiment;
    for with in &experiment.with {
        text += &format!(", with {} beneath", with.setting);
    }
    let command = format::command_line(&experiment.command);
    format!("{text}, {command}, {}", utc(experiment.started_unix))
}

/// What power cuts took of a variant: `lost at most 0.6 s (80 items) in 75 images, newest only`;
/// `None` where it was not cut.
#[must_use]
pub fn loss(report: &CrashReport, variant: &str) -> Option<String> {
    let rows = rows(report);
    let row = rows.iter().find(|row| row.mode.name == variant)?;
    Some(takes(row))
}

/// Whether the cuts of a variant took nothing.
#[must_use]
pub fn lost_nothing(report: &CrashReport, variant: &str) -> bool {
    let rows = rows(report);
    let row = rows.iter().find(|row| row.mode.name == variant);
    report.invalid.is_none() && row.and_then(Manner::of) == Some(Manner::Nothing)
}

/// Seconds since 1970 as a date. Days are counted from March of the year 0, so that a leap day
/// is the last of its year.
fn utc(unix: u64) -> String {
    let (days, seconds) = (unix / 86_400 + 719_468, unix % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + 400 * era + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// What was taken back.
#[must_use]
pub fn reverted(done: &Reverted) -> String {
    let change = &done.record.change;
    let mut page = Page::default();
    page.line(
        0,
        format!("{}: reverted {}", change.service, change.settings.join(" ")),
    );
    if let Some(first) = &done.record.first {
        let settings = first.change.settings.join(" ");
        page.line(1, format!("it has {settings}, as before"));
    }
    for path in &done.untouched {
        page.line(1, format!("{path} was as before already"));
    }
    for path in &done.purged {
        page.line(1, format!("{path} went with its package"));
    }
    for path in &done.kept {
        page.line(1, format!("{path} was edited elsewhere: that is kept"));
    }
    page.text()
}

/// What stands against a revert: what refit changed, and what somebody else did since.
#[must_use]
pub fn conflict(changed: &[Changed]) -> String {
    let mut page = Page::default();
    for file in changed {
        page.heading("refit changed:");
        difference(
            &mut page,
            &file.path,
            file.before.as_ref(),
            file.after.as_ref(),
        );
        page.line(0, "since then somebody else changed:");
        difference(
            &mut page,
            &file.path,
            file.after.as_ref(),
            file.now.as_ref(),
        );
    }
    page.text()
}

fn difference(page: &mut Page, path: &str, old: Option<&FileState>, new: Option<&FileState>) {
    let text = |state: Option<&FileState>| {
        let bytes = state.map(FileState::bytes).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let head = |state: Option<&FileState>| match state {
        Some(state) => format!("{path} ({})", state.access()),
        None => format!("{path} (not there)"),
    };
    page.line(0, format!("--- {}", head(old)));
    page.line(0, format!("+++ {}", head(new)));
    changed_lines(page, &text(old), &text(new));
}

/// Lines that are not there before or after, between those that begin and end both.
fn changed_lines(page: &mut Page, old: &str, new: &str) {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let same =
        |pairs: &mut dyn Iterator<Item = (&&str, &&str)>| pairs.take_while(|(a, b)| a == b).count();
    let first = same(&mut old.iter().zip(&new));
    let rest = old.len().min(new.len()) - first;
    let last = same(&mut old.iter().rev().zip(new.iter().rev()).take(rest));
    for line in &old[first..old.len() - last] {
        page.line(0, format!("-{line}"));
    }
    for line in &new[first..new.len() - last] {
        page.line(0, format!("+{line}"));
    }
}

#[cfg(test)]
mod tests {
    use refit_services::Layer;

    use super::*;

    #[test]
    fn dates_are_those_of_date_1() {
        for (unix, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_868_799, "2000-02-29 23:59:59 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (1_798_761_599, "2026-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(utc(unix), text);
        }
    }

    #[test]
    fn what_is_unknown_is_never_verified() {
        let check = |(key, holds): &(&str, Option<bool>)| Check {
            layer: Layer::Effective,
            key: (*key).to_owned(),
            expected: "on".to_owned(),
            found: String::new(),
            holds: *holds,
        };
        let told = |checks: &[(&str, Option<bool>)]| {
            applied(&checks.iter().map(check).collect::<Vec<_>>())
        };
        let (holds, unknown) = (Some(true), None);
        assert_eq!(
            told(&[]),
            "applied; nothing that runs shows whether it is in effect"
        );
        assert_eq!(
            told(&[("a", holds)]),
            "applied; verified: the one check holds"
        );
        assert_eq!(
            told(&[("a", holds), ("b", holds)]),
            "applied; verified: all 2 checks hold"
        );
        assert_eq!(
            told(&[("a", holds), ("b", unknown), ("c", unknown)]),
            "applied; verified: 1 of 3 checks hold, 2 are unknown (b, c)"
        );
        assert_eq!(
            told(&[("a", unknown)]),
            "applied; not verified: 1 is unknown (a)"
        );
    }
}
