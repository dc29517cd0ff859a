//! The table of knobs. A new knob is a file in `knobs/`, its `mod` line and its line in the table.

pub(crate) mod choice;
pub(crate) mod conf;
pub(crate) mod disk;
pub(crate) mod env;
pub(crate) mod load;
pub(crate) mod malloc;
pub(crate) mod odirect;
pub(crate) mod preload;
pub(crate) mod program;
pub(crate) mod schema;
pub(crate) mod switch;
pub(crate) mod sync;
pub(crate) mod thp;
pub(crate) mod tz;

use crate::error::SettingError;
use crate::ground::Ground;
use crate::knob::{Behaviour, Knob};
use crate::word::Word;

macro_rules! knobs {
    ($($Variant:ident($Type:ty) = $module:ident,)+) => {
        /// Every knob there is.
        pub static KNOBS: &[&Knob] = &[$(&$module::KNOB),+];

        /// The value of a setting; which knob it is for follows from its variant.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) enum Value {
            $($Variant($Type)),+
        }

        impl Value {
            /// The value of the word's knob that it names.
            pub(crate) fn parse(word: &Word) -> Result<Self, SettingError> {
                $(
                    if *word.knob == $module::KNOB {
                        return $module::parse(word).map(Self::$Variant);
                    }
                )+
                unreachable!("a word's knob is one of the table")
            }

            pub(crate) fn behaviour(&self) -> &dyn Behaviour {
                match self {
                    $(Self::$Variant(value) => value),+
                }
            }
        }
    };
}

knobs! {
    Sync(switch::Switch) = sync,
    Odirect(switch::Switch) = odirect,
    Disk(disk::Device) = disk,
    Malloc(malloc::Malloc) = malloc,
    Thp(thp::HugePages) = thp,
    Program(program::Executable) = program,
    Tz(tz::Zone) = tz,
    Env(env::Variable) = env,
    Preload(preload::Library) = preload,
    Schema(schema::File) = schema,
    Conf(conf::Declared) = conf,
    Load(load::Asked) = load,
}

impl Knob {
    /// Those that can be set beneath a command: all but a service's own configuration, schema and load.
    pub fn of_commands() -> impl Iterator<Item = &'static Knob> {
        let of_services = [Ground::Configuration, Ground::Database, Ground::Load];
        let is_of_service =
            move |knob: &Knob| knob.grounds.iter().any(|one| of_services.contains(one));
        KNOBS
            .iter()
            .copied()
            .filter(move |knob| !is_of_service(knob))
    }
}
