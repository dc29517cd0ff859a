//! What a kind of service knows: what a setting means in its configuration, how it reads that
//! again, and how to see that it did.

use refit_knobs::Settings;

use crate::check::Check;
use crate::{Change, Error, Plan, System};

/// A kind of service. A file of `kinds/`.
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
