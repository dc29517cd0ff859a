//! What is applied, and whether it still is: in the files, in what the service has loaded,
//! and in its processes.

use serde::Serialize;

use crate::check::{Check, Layer, drifts};
use crate::kinds::kind_named;
use crate::library;
use crate::package_drift::{libraries_since, packages_since};
use crate::revert::service_with_record;
use crate::store::{Records, Store};
use crate::three_way::End;
use crate::{
    Accepted, Error, Evidence, LibrarySince, PackageSince, Phase, Record, System, declared,
    indexes, undo,
};

/// A service with a change.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceStatus {
    /// The service.
    pub service: String,
    /// Its kind.
    pub kind: String,
    /// As they print.
    pub settings: Vec<String>,
    /// Whether a reboot takes it back.
    pub trial: bool,
    /// When it takes itself back unless it is confirmed, in seconds since 1970.
    pub unconfirmed_until_unix: Option<u64>,
    /// Whether its files are gone, as a reboot leaves a trial.
    pub taken_back: bool,
    /// How far the change came.
    pub phase: Phase,
    /// Whether anything differs from what was applied.
    pub drift: bool,
    /// What was measured before it was applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The risk that was accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Accepted>,
    /// The command that told at the change that the service does its work. It is not run again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// When the phase began, in seconds since 1970.
    pub since_unix: u64,
    /// Its packages that are not as they were when it was applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PackageSince>,
    /// The libraries of which another version is installed by now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub libraries: Vec<LibrarySince>,
    /// Everything that was looked at.
    pub checks: Vec<Check>,
}

/// Of all services, or of one.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// Of the format.
    pub version: u32,
    /// Those with a change.
    pub services: Vec<ServiceStatus>,
    /// Why records of other services cannot be read, in words that name each record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

impl ServiceStatus {
    /// The same for the same settings, on any machine and in any order: 16 hexadecimal digits.
    #[must_use]
    pub fn profile_hash(&self) -> String {
        let mut settings = self.settings.clone();
        settings.sort_unstable();
        // No setting has a byte of 0, as none of the words of a command line has.
        let mut hash = library::hash(settings.join("\0").as_bytes());
        hash.truncate(16);
        hash
    }

    /// Whether anything of a layer differs from what was applied; `None` where that cannot be told. A package that is
    /// gone took its files along.
    #[must_use]
    pub fn drift_of(&self, layer: Layer) -> Option<bool> {
        let is_gone = layer == Layer::File && self.packages.iter().any(|one| one.now.is_none());
        let mut known = self.checks.iter().filter(|check| check.layer == layer);
        let holds = known.clone().any(|check| check.holds == Some(true));
        let differs = is_gone || known.any(|check| check.holds == Some(false));
        (holds || differs).then_some(differs)
    }
}

impl Status {
    /// Whether all that was applied is so.
    #[must_use]
    pub fn is_as_applied(&self) -> bool {
        self.services
            .iter()
            .all(|one| !one.drift && one.phase == Phase::Applied)
    }
}

/// Looks; changes nothing. Without `words`, at every service with a change.
///
/// # Errors
/// [`Error::Busy`] while a change is being made, or what cannot be read.
pub fn status(system: &System, words: &[String]) -> Result<Status, Error> {
    let store = Store::to_read(system)?;
    let named: Vec<String> = words
        .iter()
        .map(|word| service_with_record(system, word))
        .collect::<Result<_, _>>()?;
    let Records {
        readable: records,
        unreadable,
    } = store.all()?;
    for service in &named {
        if !records.iter().any(|one| one.change.service == *service) {
            // Why it cannot be read, where it is there.
            store.load(service)?;
            return Err(Error::NoChange {
                service: service.clone(),
            });
        }
    }
    let mut services = Vec::new();
    for record in records {
        if !named.is_empty() && !named.contains(&record.change.service) {
            continue;
        }
        let mut checks = file_checks(system, &record)?;
        checks.extend(live_checks(system, &record)?);
        let taken_back = record.is_taken_back(system)?;
        let change = record.change;
        let packages = packages_since(system, &change)?;
        let libraries = libraries_since(system, &change)?;
        services.push(ServiceStatus {
            service: change.service,
            kind: change.kind,
            settings: change.settings,
            trial: match &change.undo {
                Some(undo) => undo.at_unix.is_none(),
                None => change.trial,
            },
            unconfirmed_until_unix: change.undo.and_then(|undo| undo.at_unix),
            taken_back,
            phase: record.phase,
            drift: drifts(&checks) || packages.iter().any(|one| one.now.is_none()),
            evidence: change.evidence,
            accepted: change.accepted,
            health: change.health,
            since_unix: record.since_unix,
            packages,
            libraries,
            checks,
        });
    }
    Ok(Status {
        version: crate::record::VERSION,
        services,
        unreadable: match words {
            [] => unreadable.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        },
    })
}

/// What a running service has loaded of a change, and whether its processes have it.
pub fn live_checks(system: &System, record: &Record) -> Result<Vec<Check>, Error> {
    let change = &record.change;
    let mut checks = indexes::checks(system, change);
    checks.extend(declared::checks(system, change));
    if system.is_live() {
        if let Some(kind) = kind_named(&change.kind) {
            checks.extend(kind.checks(change)?);
        }
        checks.extend(change.undo.as_ref().map(undo::check).transpose()?.flatten());
    }
    Ok(checks)
}

/// The files of a change, and its libraries.
pub fn file_checks(system: &System, record: &Record) -> Result<Vec<Check>, Error> {
    let mut checks = Vec::new();
    for edit in record.change.edits() {
        let now = system.state(&edit.path)?;
        let found = match &now {
            now if *now == edit.after => "as applied".to_owned(),
            now if *now == edit.before => "as before the change".to_owned(),
            None => "not there".to_owned(),
            Some(_) if matches!(End::of(system, &record.change, edit)?, Ok(End::Kept { .. })) => {
                "changed elsewhere: refit revert keeps that".to_owned()
            }
            Some(now) => {
                let same = edit
                    .after
                    .as_ref()
                    .is_some_and(|after| after.bytes() == now.bytes());
                let what = if same { "" } else { "other content, " };
                format!("{what}{}", now.access())
            }
        };
        checks.push(Check {
            layer: Layer::File,
            key: edit.path.clone(),
            expected: "as applied".to_owned(),
            holds: Some(now == edit.after),
            found,
        });
    }
    if let Some(moved) = &record.change.moved {
        checks.extend(moved.checks(system)?);
    }
    for file in record.change.placed() {
        let whole = library::is_whole(system, file)?;
        checks.push(Check {
            layer: Layer::File,
            key: file.path.clone(),
            expected: "as applied".to_owned(),
            found: match whole {
                Some(true) => "as applied",
                Some(false) => "other content",
                None => "not there",
            }
            .to_owned(),
            holds: Some(whole == Some(true)),
        });
    }
    Ok(checks)
}
