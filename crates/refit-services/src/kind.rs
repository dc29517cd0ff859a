//! What a kind of service knows: what a setting means in its configuration, how it reads that
//! again, and how to see that it did.

use refit_knobs::{Class, Ground, Setting, Settings};
use refit_servers::risk::{self, Risk};

use crate::check::Check;
use crate::schema::{Database, SchemaDatabase};
use crate::systemd::{self, Unit};
use crate::{Change, Error, Plan, System};

/// Why a service takes up its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A change was made.
    Apply,
    /// A change is taken back.
    Revert,
    /// Likewise, one that was not completed: it may have brought the service down.
    Recover,
}

/// A kind of service. A file of `kinds/`.
pub(crate) trait Kind: Sync {
    /// Its name in records and tables.
    fn name(&self) -> &'static str;

    /// How such a service is named, as it is typed: `postfix/DAEMON`.
    fn form(&self) -> &'static str;

    /// The full name of the service that a word means; `None` where it is not of this kind.
    fn find(&self, _: &System, _: &str) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// Whether a systemd unit that no other kind knew by its word is of this kind.
    fn is_of_unit(&self, _: &System, _: &Unit) -> Result<bool, Error> {
        Ok(false)
    }

    /// Settings of its own configuration that risk something.
    fn risks(&self) -> &'static [Risk] {
        &[]
    }

    /// What a setting risks.
    fn class(&self, setting: &Setting) -> Class {
        let conf = setting.conf();
        let known = conf.and_then(|(name, value)| risk::class(self.risks(), name, value));
        known.unwrap_or_else(|| setting.class())
    }

    /// Where its settings act.
    fn grounds(&self) -> &'static [Ground];

    /// The settings that can be applied to it, as they are written.
    fn known(&self) -> String {
        Ground::settings(self.grounds())
    }

    /// Settings that it takes, for whoever typed none.
    fn example(&self) -> &'static str {
        "malloc=jemalloc"
    }

    /// What is wrong with a setting that does not act there.
    fn refusal(&self, service: &str, setting: &Setting) -> Error {
        unknown(service, setting, self.known())
    }

    /// Whether a change of these settings can lie below /run, where a reboot takes it back by itself.
    fn lies_below_run(&self, _: &Settings) -> bool {
        false
    }

    /// Why neither a reboot nor a timer takes such a change back, but `refit revert` alone; `None`: they can.
    fn only_reverted(&self) -> Option<&'static str> {
        None
    }

    /// Whether a second change is planned beside the first one, which the database has: it cannot be looked away from, as
    /// files can.
    fn is_beside(&self) -> bool {
        false
    }

    /// The change, with no directories and classes yet. `trial`: below /run, which
    /// [`Kind::lies_below_run`] allows.
    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        trial: bool,
    ) -> Result<Plan, Error>;

    /// Files by which the packages are known that the service comes from: its program, its unit.
    fn comes_from(&self, system: &System, change: &Change) -> Result<Vec<String>, Error> {
        systemd::comes_from(system, &change.service)
    }

    /// What has to be done before the files are edited. For a live system.
    fn prepare(&self, _: &Change) -> Result<(), Error> {
        Ok(())
    }

    /// What the service's own checker reports of the files as they are now. For a live system.
    fn gate(&self, change: &Change) -> Result<(), Error>;

    /// Takes back what the service has of a change that [`Kind::gate`] refused: it was neither
    /// reloaded nor restarted, and its files are as before. For a live system.
    fn refused(&self, _: &Change) -> Result<(), Error> {
        Ok(())
    }

    /// Lets the service take up the files as they are now. For a live system.
    fn activate(&self, change: &Change, step: Step) -> Result<(), Error>;

    /// What the service has loaded, and what its processes do. For a live system.
    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error>;

    /// The database that [`Change::declared`] is of, also in a tree; `None`: it is gone.
    fn schema_database(
        &self,
        _: &System,
        _: &str,
    ) -> Result<Option<Box<dyn SchemaDatabase>>, Error> {
        Ok(None)
    }

    /// Whether a change is judged by what the database has, and not by the settings of its record: a file is edited.
    fn is_declared(&self) -> bool {
        false
    }

    /// The database that [`Change::schema`] is of, also in a tree; `None`: it is gone.
    fn database(&self, _: &System, _: &str) -> Result<Option<Box<dyn Database>>, Error> {
        Ok(None)
    }
}

/// Of a setting that no service of a kind can have, which can have what is known.
pub(crate) fn unknown(service: &str, setting: &Setting, known: String) -> Error {
    Error::UnknownSetting {
        setting: setting.to_string(),
        service: service.to_owned(),
        known,
    }
}

/// Refuses settings that act elsewhere.
///
/// # Errors
/// [`Error::UnknownSetting`].
pub(crate) fn refuse_unknown(
    kind: &dyn Kind,
    service: &str,
    settings: &Settings,
) -> Result<(), Error> {
    let mut all = settings.0.iter();
    match all.find(|setting| !setting.acts_on(kind.grounds())) {
        None => Ok(()),
        Some(setting) => Err(kind.refusal(service, setting)),
    }
}
