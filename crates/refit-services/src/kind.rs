//! What a kind of service knows: what a setting means in its configuration, how it reads that
//! again, and how to see that it did.

use refit_knobs::{Class, Setting, Settings};

use crate::check::Check;
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

    /// The full name of the service that a word means; `None` where it is not of this kind.
    fn find(&self, system: &System, word: &str) -> Result<Option<String>, Error>;

    /// What a setting of its own risks.
    fn class(&self, setting: &Setting) -> Class {
        setting.class()
    }

    /// Whether a change of these settings can lie below /run, where a reboot takes it back.
    fn can_be_a_trial(&self, _: &Settings) -> bool {
        false
    }

    /// The change, with no directories and classes yet.
    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        trial: bool,
    ) -> Result<Plan, Error>;

    /// What has to be done before the files are edited. For a live system.
    fn prepare(&self, _: &Change) -> Result<(), Error> {
        Ok(())
    }

    /// What the service's own checker reports of the files as they are now. For a live system.
    fn gate(&self, change: &Change) -> Result<(), Error>;

    /// Lets the service take up the files as they are now. For a live system.
    fn activate(&self, change: &Change, step: Step) -> Result<(), Error>;

    /// What the service has loaded, and what its processes do. For a live system.
    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error>;
}

/// Refuses settings of other knobs.
///
/// # Errors
/// [`Error::UnknownSetting`].
pub(crate) fn refuse_unknown(
    service: &str,
    settings: &Settings,
    applicable: &[&str],
    known: &'static str,
) -> Result<(), Error> {
    let mut all = settings.0.iter();
    match all.find(|setting| !applicable.contains(&setting.knob().name)) {
        None => Ok(()),
        Some(setting) => Err(Error::UnknownSetting {
            setting: setting.to_string(),
            service: service.to_owned(),
            known,
        }),
    }
}
