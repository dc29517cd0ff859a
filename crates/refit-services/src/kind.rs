//! What a kind of service knows: what a setting means in its configuration, how it reads that
//! again, and how to see that it did.

use refit_knobs::Settings;

use crate::kinds::systemd_unit;
use crate::status::Check;
use crate::{Change, Error, Plan, System};

/// A kind of service. A file of `kinds/` and a line of [`KINDS`].
pub(crate) trait Kind: Sync {
    /// Its name in records and tables.
    fn name(&self) -> &'static str;

    /// The full name of the service that a word means; `None` where it is not of this kind.
    fn find(&self, system: &System, word: &str) -> Result<Option<String>, Error>;

    /// The change, with no directories yet.
    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        trial: bool,
    ) -> Result<Plan, Error>;

    /// What the service's own checker reports of the files as they are now. For a live system.
    fn gate(&self, change: &Change) -> Result<(), Error>;

    /// Lets the service take up the files as they are now. For a live system.
    fn activate(&self, change: &Change) -> Result<(), Error>;

    /// What the service has loaded, and what its processes do. For a live system.
    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error>;
}

/// The last one takes every word.
static KINDS: [&dyn Kind; 1] = [&systemd_unit::SystemdUnit];

/// The kind of a service, and its full name.
///
/// # Errors
/// [`Error::UnknownService`].
pub(crate) fn kind_of(system: &System, word: &str) -> Result<(&'static dyn Kind, String), Error> {
    for kind in KINDS {
        if let Some(service) = kind.find(system, word)? {
            return Ok((kind, service));
        }
    }
    let (place, list) = if system.is_live() {
        (String::new(), "systemctl list-units --type=service --all")
    } else {
        (
            " in this tree".to_owned(),
            "systemctl --root=DIR list-unit-files",
        )
    };
    Err(Error::UnknownService {
        word: word.to_owned(),
        place,
        list: list.to_owned(),
    })
}

/// The kind that a record names.
pub(crate) fn kind_named(name: &str) -> Option<&'static dyn Kind> {
    KINDS.into_iter().find(|kind| kind.name() == name)
}
