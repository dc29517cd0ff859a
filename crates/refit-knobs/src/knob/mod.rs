//! The table of knobs. A new knob is a file here, its `mod` line and its line in the table.

mod choice;
pub(crate) mod conf;
pub(crate) mod disk;
pub(crate) mod env;
pub(crate) mod malloc;
pub(crate) mod odirect;
pub(crate) mod preload;
pub(crate) mod sync;
pub(crate) mod thp;
pub(crate) mod tz;

use std::fmt;

use crate::explain::Prose;
use crate::word::Word;
use crate::{Class, Launch, Scope, SettingError};

macro_rules! knobs {
    ($($Variant:ident: $module:ident::$Type:ident,)+) => {
        /// Every knob there is.
        pub static KNOBS: &[&Knob] = &[$(&$module::KNOB),+];

        /// The value of a setting; which knob it is for follows from its variant.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) enum Value {
            $($Variant($module::$Type)),+
        }

        impl Value {
            pub(crate) fn behaviour(&self) -> &dyn Behaviour {
                match self {
                    $(Self::$Variant(value) => value),+
                }
            }
        }
    };
}

knobs! {
    Sync: sync::SyncCalls,
    Odirect: odirect::DirectIo,
    Disk: disk::Device,
    Malloc: malloc::Malloc,
    Thp: thp::HugePages,
    Tz: tz::Zone,
    Env: env::Variable,
    Preload: preload::Library,
    Conf: conf::Declared,
}

/// One part beneath a program that can be swapped.
#[derive(Debug)]
pub struct Knob {
    /// Its name.
    pub name: &'static str,
    /// How a setting of it is written: `sync[@exe:NAME|@/PATH]=on|off`.
    pub form: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// A setting that most people would start with.
    pub example: &'static str,
    /// Whether `@exe:NAME` or `@/PATH` can follow the name.
    pub scoped: bool,
    /// Whether `.NAME` has to follow the name.
    pub(crate) has_members: bool,
    /// Whether one command may hold it (or each of its members) only once.
    pub(crate) once: bool,
    /// Names that others use for it; suggested, never accepted.
    pub(crate) aliases: &'static [&'static str],
    /// Names whose "on" is our "off": the example is suggested, whatever the value.
    pub(crate) opposites: &'static [&'static str],
    pub(crate) parse: fn(&Word) -> Result<Value, SettingError>,
}

impl PartialEq for Knob {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Knob {}

/// What each knob's value type can do. Display is the text after the `=`.
pub(crate) trait Behaviour: fmt::Display {
    fn knob(&self) -> &'static Knob;
    /// What follows the dot in `env.NAME`.
    fn member(&self) -> Option<&str> {
        None
    }
    fn class(&self) -> Class;
    fn prose(&self, scope: Option<&Scope>) -> Prose;
    fn apply(&self, scope: Option<&Scope>, launch: &mut Launch);
}
