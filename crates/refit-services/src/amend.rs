//! A change of a service that has one: both become one change, which has the settings of both; or it keeps some of its
//! settings.
//!
//! What the files shall be is planned on the system as it would be without the change that is there
//! (`System::without`). What is done is the way from the first form to the new one, and a failure
//! goes that way back.

use refit_knobs::{Setting, Settings};
use refit_schema::merged;

use crate::kind::{Kind, Step};
use crate::system::Without;
use crate::{
    Accepted, Change, ConfValue, Error, Evidence, FileEdit, LibraryFile, Phase, Plan, Record,
    SchemaEdit,
};

/// What a service shall have: the settings of its change with those that are asked for, which have the last word, without
/// those that are dropped.
///
/// # Errors
/// [`Error::OldSettings`] where this refit does not take a setting of the change.
pub fn wanted(asked: &Settings, dropped: &Settings, first: &Change) -> Result<Settings, Error> {
    let mut wanted = settings_of(first)?.join(&new_of(asked, first));
    wanted.0.retain(|one| !dropped.0.contains(one));
    Ok(wanted)
}

/// A change as what to look away from.
pub fn looked_away_from(change: &Change) -> Without {
    let files = change.files.iter();
    let moved = change.moved.as_ref();
    Without {
        files: files
            .map(|edit| (edit.path.clone(), edit.before.clone()))
            .collect(),
        script: moved.map(|moved| (moved.path.clone(), moved.script.clone())),
        conf: change.conf.iter().map(|one| one.name.clone()).collect(),
    }
}

/// The settings of a change.
///
/// # Errors
/// As [`wanted`].
pub fn settings_of(change: &Change) -> Result<Settings, Error> {
    let words = change.settings.iter().map(Into::into);
    Settings::parse(words).map_err(|cause| Error::OldSettings {
        service: change.service.clone(),
        cause: Box::new(cause),
    })
}

/// Those that a change does not have.
pub fn new_of(settings: &Settings, first: &Change) -> Settings {
    let is_new = |setting: &&Setting| !first.settings.contains(&setting.to_string());
    Settings(settings.0.iter().filter(is_new).cloned().collect())
}

/// Refuses a change that was interrupted, or that waits to be confirmed.
///
/// # Errors
/// [`Error::Interrupted`], [`Error::Waits`].
pub fn refuse_unsettled(record: &Record) -> Result<(), Error> {
    let change = &record.change;
    let service = change.service.clone();
    if record.phase != Phase::Applied {
        return Err(Error::Interrupted { service });
    }
    if change.trial || change.undo.is_some() {
        let settings = change.settings.join(" ");
        return Err(Error::Waits { service, settings });
    }
    Ok(())
}

/// Makes of a plan that was made without the first change the way from that one: its files are as the first one left them,
/// and those that the new form does not edit go back.
pub fn begin_at(plan: &mut Plan, first: Record) {
    let (change, earlier) = (&mut plan.change, &first.change);
    for edit in &mut change.files {
        if let Some(of_first) = file_of(earlier, &edit.path) {
            edit.before.clone_from(&of_first.after);
        }
    }
    // As in a revert: a file that another one includes is there as long as that one.
    let left = earlier.files.iter().rev();
    let left = left.filter(|edit| file_of(change, &edit.path).is_none());
    let back = left.map(|edit| FileEdit {
        path: edit.path.clone(),
        before: edit.after.clone(),
        after: edit.before.clone(),
    });
    let back: Vec<FileEdit> = back.collect();
    change.files.extend(back);
    if change.health.is_none() {
        change.health.clone_from(&earlier.health);
    }
    plan.first = Some(Box::new(first));
}

fn file_of<'a>(change: &'a Change, path: &str) -> Option<&'a FileEdit> {
    change.files.iter().find(|edit| edit.path == path)
}

/// What was measured of both forms: of which settings, in words.
pub fn both(first: &Change, more: Option<Evidence>, new: &Settings) -> Option<Evidence> {
    let of = |settings: String, mut evidence: Evidence| {
        if !evidence.gain.starts_with(OF) {
            evidence.gain = format!("{OF}{settings}: {}", evidence.gain);
        }
        // It is not that of the whole change.
        evidence.effect = None;
        evidence
    };
    let earlier = first.evidence.clone();
    let earlier = earlier.map(|one| of(first.settings.join(" "), one));
    let more = more.map(|one| of(new.to_string(), one));
    match (earlier, more) {
        (Some(earlier), Some(more)) => Some(Evidence {
            files: [earlier.files, more.files].concat(),
            gain: format!("{}; {}", earlier.gain, more.gain),
            differs: [earlier.differs, more.differs].concat(),
            loss: match (earlier.loss, more.loss) {
                (Some(earlier), Some(more)) if earlier != more => {
                    Some(format!("{earlier}; {more}"))
                }
                (earlier, more) => earlier.or(more),
            },
            ..more
        }),
        (earlier, more) => earlier.or(more),
    }
}

/// Before the settings that a gain is of.
const OF: &str = "of ";

/// The risk that is accepted of both forms; `keeps_risk`: a setting of the first one that stays risks data.
pub fn accepted(first: &Change, more: Option<Accepted>, keeps_risk: bool) -> Option<Accepted> {
    let earlier = first.accepted.clone().filter(|_| keeps_risk);
    match (earlier, more) {
        (Some(earlier), Some(more)) => Some(Accepted {
            class: earlier.class.max(more.class),
            evidence: earlier.evidence && more.evidence,
        }),
        (earlier, more) => earlier.or(more),
    }
}

/// The record of a change that stays: from before its first form to this one.
pub fn settled(record: &Record) -> Record {
    let mut record = record.clone();
    let Some(first) = record.first.take() else {
        return record;
    };
    let (change, first) = (&mut record.change, first.change);
    for edit in &mut change.files {
        if let Some(of_first) = file_of(&first, &edit.path) {
            edit.before.clone_from(&of_first.before);
        }
    }
    change.files.retain(|edit| edit.before != edit.after);
    for conf in &mut change.conf {
        if let Some(of_first) = first.conf.iter().find(|one| one.name == conf.name) {
            conf.before.clone_from(&of_first.before);
        }
    }
    if let Some(moved) = &mut change.moved {
        moved.over = None;
    }
    for dir in &first.directories {
        if !change.directories.contains(dir) {
            change.directories.push(dir.clone());
        }
    }
    change.directories.sort();
    for file in first.placed() {
        if !record.superseded.contains(file) {
            record.superseded.push(file.clone());
        }
    }
    let is_left = |file: &LibraryFile| !change.placed().any(|new| new.path == file.path);
    record.superseded.retain(is_left);
    let of_first = first.schema.into_iter();
    let of_first =
        of_first.map(
            |edit| match change.schema.iter().position(|new| new.index == edit.index) {
                Some(at) => SchemaEdit {
                    after: change.schema.remove(at).after,
                    ..edit
                },
                None => edit,
            },
        );
    let of_first: Vec<SchemaEdit> = of_first.collect();
    change.schema.splice(0..0, of_first);
    if let (Some(first), Some(second)) = (&first.declared, change.declared.take()) {
        change.declared = Some(Box::new(merged(first, *second)));
    }
    change
        .schema
        .retain(|edit| edit.before.as_ref() != Some(&edit.after));
    record
}

/// What the running service has of a first form and does not get from the new one, as a change without files; `None`:
/// nothing.
pub fn dropped(first: &Change, new: &Change) -> Option<Change> {
    let mut dropped = Change {
        files: Vec::new(),
        schema: Vec::new(),
        declared: None,
        ..first.clone()
    };
    let has_conf = |one: &ConfValue| new.conf.iter().any(|conf| conf.name == one.name);
    dropped.conf.retain(|one| !has_conf(one));
    let has_variable = |name: &String| new.variables.iter().any(|(other, _)| other == name);
    dropped.variables.retain(|(name, _)| !has_variable(name));
    (!dropped.conf.is_empty() || !dropped.variables.is_empty()).then_some(dropped)
}

/// Takes from the running service what the new form does not have.
///
/// # Errors
/// As [`Kind::activate`].
pub fn drop_from(kind: &dyn Kind, first: Option<&Record>, new: &Change) -> Result<(), Error> {
    match first.and_then(|first| dropped(&first.change, new)) {
        Some(dropped) => kind.activate(&dropped, Step::Revert),
        None => Ok(()),
    }
}

/// Gives the running service what only the first form has, after the way back.
///
/// # Errors
/// As [`Kind::activate`].
pub fn give_back(kind: &dyn Kind, first: &Change, new: &Change) -> Result<(), Error> {
    match dropped(first, new) {
        Some(_) => kind.activate(first, Step::Apply),
        None => Ok(()),
    }
}
