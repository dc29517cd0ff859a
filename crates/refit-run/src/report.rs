//! What is known of a run when it has ended: one record, printed or as JSON.

use refit_durability::DurabilityReport;
use refit_knobs::{AllocatorKind, Class, Disk, Launch, Setting, Settings};
use refit_meter::{CpuProfile, HeapPaths};
use serde::{Deserialize, Serialize};

use crate::in_effect::InEffect;
use crate::library_class::class_of;
use crate::repetition::Repetition;
use crate::run::Run;

/// Version of the JSON schema (docs/result.schema.json).
pub const SCHEMA: u32 = 1;

/// What is known of one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunReport {
    /// Version of this schema.
    #[cfg_attr(feature = "schema", schemars(extend("const" = SCHEMA)))]
    pub schema: u32,
    /// Always `run`.
    #[cfg_attr(feature = "schema", schemars(extend("const" = "run")))]
    pub kind: String,
    /// Version of refit.
    pub refit: String,
    /// The command's words.
    pub command: Vec<String>,
    /// Each setting with its class.
    pub settings: Vec<SettingReport>,
    /// What a repetition of the command has to restore.
    #[serde(default)]
    pub repetition: Repetition,
    /// Who allocated what was live at the end, by executable: estimated from samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heap_paths: Vec<HeapPaths>,
    /// Where the program was on the processors (`--cpu`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuProfile>,
    /// What no sync covers (`--durability`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<DurabilityReport>,
    /// The run itself.
    #[serde(flatten)]
    pub run: Run,
}

/// A setting as it was used.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingReport {
    /// Its canonical text.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub setting: Setting,
    /// What it risks.
    pub class: Class,
    /// In which processes it was in effect.
    pub in_effect: InEffect,
}

impl SettingReport {
    /// The record of a setting of the command line, with its class on this machine.
    #[must_use]
    pub fn new(setting: Setting, in_effect: InEffect) -> SettingReport {
        let class = class_of(&setting);
        SettingReport {
            setting,
            class,
            in_effect,
        }
    }

    fn launch(&self) -> Launch {
        Settings(vec![self.setting.clone()]).launch()
    }

    /// Whether it swaps sync calls, and was in effect as far as is known.
    #[must_use]
    pub fn swaps_syncs(&self) -> bool {
        self.setting.knob().name == "sync" && !matches!(self.in_effect, InEffect::Nowhere(_))
    }

    /// The allocator that it asks for.
    #[must_use]
    pub fn allocator(&self) -> Option<AllocatorKind> {
        Some(self.launch().malloc?.kind)
    }

    /// The name of the error that its emulated disk returns.
    #[must_use]
    pub fn injected_error(&self) -> Option<&'static str> {
        match self.launch().disk?.disk {
            Disk::Fail { errno, .. } => Some(errno.1),
            _ => None,
        }
    }
}
