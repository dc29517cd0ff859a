//! Taking some settings of a change back, of which others stay.

use refit_knobs::{Setting, Settings};

use crate::kind::Kind;
use crate::kinds::kind_named;
use crate::plan::Target;
use crate::record::now;
use crate::revert::service_with_record;
use crate::store::Store;
use crate::{
    Applied, Change, Error, Phase, Record, Request, Reverted, System, Until, amend, apply, indexes,
    revert,
};

/// What is left of a change.
pub enum Dropped {
    /// Nothing.
    All(Box<Reverted>),
    /// This; and the settings that went.
    Some(Box<Change>, Settings),
}

/// Takes settings out of the change of a service. A word is a setting, or its name: `malloc`, `conf.NAME`.
///
/// # Errors
/// [`Error::NotApplied`]; as [`apply`] and [`revert`] where it fails.
pub fn drop_settings(system: &System, word: &str, words: &[String]) -> Result<Dropped, Error> {
    let service = service_with_record(system, word)?;
    let Some(record) = Store::to_read(system)?.load(&service)? else {
        return Err(Error::NoChange { service });
    };
    amend::refuse_unsettled(&record)?;
    let all = amend::settings_of(&record.change)?;
    let named = words.iter().map(|word| named(&all, &service, word));
    let dropped = Settings(named.collect::<Result<Vec<Setting>, Error>>()?);
    if all.0.iter().all(|setting| dropped.0.contains(setting)) {
        return revert(system, word).map(|done| Dropped::All(Box::new(done)));
    }
    if kind_named(&record.change.kind).is_some_and(<dyn Kind>::is_beside) {
        let left = drop_indexes(system, &service, &dropped)?;
        return Ok(Dropped::Some(Box::new(left), dropped));
    }
    let request = Request {
        word: service,
        settings: Settings::default(),
        dropped: dropped.clone(),
        until: Until::Reverted,
        evidence: None,
        accept: None,
        no_evidence: false,
        health: None,
    };
    let shown = Target::find(system, &request)?.plan()?;
    match apply(system, &request, &shown)? {
        Applied::Done { record, .. } => Ok(Dropped::Some(Box::new(record.change), dropped)),
        Applied::NotAsShown { now } => Err(Error::NotAsPlanned {
            service: now.change.service,
        }),
        Applied::Nothing { service } => Err(Error::NotAsPlanned { service }),
    }
}

fn named(all: &Settings, service: &str, word: &str) -> Result<Setting, Error> {
    let is_meant = |setting: &&Setting| {
        let text = setting.to_string();
        text == word || text.split_once('=').is_some_and(|(name, _)| name == word)
    };
    let found = all.0.iter().find(is_meant);
    found.cloned().ok_or_else(|| Error::NotApplied {
        service: service.to_owned(),
        word: word.to_owned(),
        settings: all.to_string(),
    })
}

/// Takes the indexes back that settings name.
fn drop_indexes(system: &System, service: &str, dropped: &Settings) -> Result<Change, Error> {
    let index = |setting: &str| {
        let (name, _) = setting.split_once('=')?;
        Some(name.rsplit('.').next()?.to_owned())
    };
    let store = Store::to_change(system)?;
    let Some(record) = store.load(service)? else {
        let service = service.to_owned();
        return Err(Error::NoChange { service });
    };
    amend::refuse_unsettled(&record)?;
    let words: Vec<String> = dropped.0.iter().map(ToString::to_string).collect();
    let indexes: Vec<String> = words.iter().filter_map(|word| index(word)).collect();
    let is_dropped = |name: &String| indexes.contains(name);
    let stays = |setting: &&String| !words.contains(setting);
    let mut left = record.change.settings.iter().filter(stays);
    if let Some(other) = left.find(|setting| index(setting).is_some_and(|name| is_dropped(&name))) {
        return Err(Error::SameIndex {
            service: service.to_owned(),
            setting: other.clone(),
        });
    }
    let (mut back, mut left) = (record.clone(), record);
    back.change.schema.retain(|edit| is_dropped(&edit.index));
    indexes::refuse_other(system, &back)?;
    left.phase = Phase::Reverting;
    store.save(&left)?;
    indexes::take_back(system, &back.change)?;
    left.change.schema.retain(|edit| !is_dropped(&edit.index));
    left.change
        .settings
        .retain(|setting| !words.contains(setting));
    let left = Record {
        phase: Phase::Applied,
        since_unix: now(),
        ..left
    };
    store.save(&left)?;
    Ok(left.change)
}
