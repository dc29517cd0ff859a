//! The variants of a comparison.

use refit_knobs::{AllocatorKind, Class, Setting, Settings};
use refit_recipe::AnswerRecord;
use refit_run::{InEffect, Testimony};
use serde::{Deserialize, Serialize};

use super::disqualified::Disqualified;
use crate::memory_reason::MemoryAnswer;
use crate::tune::Risk;

/// What a variant is in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The program with everything `on`.
    Baseline,
    /// Something to try.
    Candidate,
    /// The program without refit: its effect is the overhead of refit.
    Bare,
    /// A second baseline: its effect is today's noise.
    Hidden,
}

/// A setting as it was used.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingRecord {
    /// Its canonical text.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub setting: Setting,
    /// What it risks; a recipe declares this for its own settings.
    pub class: Class,
    /// In which processes of the program it was in effect; `None` where nothing has run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_effect: Option<InEffect>,
}

impl SettingRecord {
    /// Whether it swaps sync calls.
    #[must_use]
    pub fn is_about_syncs(&self) -> bool {
        self.setting.knob().name == "sync"
    }

    /// The allocator that it asks for.
    #[must_use]
    pub fn allocator(&self) -> Option<AllocatorKind> {
        Some(Settings(vec![self.setting.clone()]).launch().malloc?.kind)
    }
}

/// Durable calls (syncs, and opens for synchronous writes) of one unit of work: an operation of a load, or a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FewerDurable {
    /// The fewest of the baseline's runs.
    pub baseline: f64,
    /// The most of the variant's runs.
    pub variant: f64,
}

/// One variant.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VariantRecord {
    /// The variant's settings, in canonical text; or `baseline`, `bare`.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Each setting with its class, without those of `--with`.
    pub settings: Vec<SettingRecord>,
    /// The riskiest class of the step from the baseline to it: of its settings, and of what the runs show.
    pub class: Class,
    /// Fewer durable calls than at the baseline were made for the same work; `None` where that was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fewer_durable: Option<FewerDurable>,
    /// Why it is not run any more, and gets no verdict.
    pub disqualified: Option<Disqualified>,
    /// What each of its runs answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<AnswerRecord>,
    /// What the kernel saw of one more run at the end, which was not measured;
    /// `None` where there was no such run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Testimony>,
    /// Why its memory is what it is, from one more run that was not measured; `None` where that was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryAnswer>,
}

impl VariantRecord {
    /// The classes of the step from the baseline to it, the riskiest first; `safe` alone where nothing is risked. One
    /// does not stand for the other: a disk that is another says nothing of what is lost.
    #[must_use]
    pub fn classes(&self) -> Vec<Class> {
        let mut classes: Vec<Class> = self.settings.iter().map(|one| one.class).collect();
        // What is seen outranks what is declared.
        if self.fewer_durable.is_some() && !classes.iter().any(|class| class.risks_data()) {
            classes.push(Class::LosesOnCrash);
        }
        classes.retain(|class| *class != Class::Safe);
        classes.sort_unstable_by(|a, b| b.cmp(a));
        classes.dedup();
        if classes.is_empty() {
            classes.push(Class::Safe);
        }
        classes
    }

    /// What a power cut may take of it, and whether it is to behave differently, by [`VariantRecord::classes`].
    #[must_use]
    pub fn risk(&self) -> Risk {
        Risk::of(self.classes())
    }

    /// Whether a power cut may take what was acknowledged, by the class of any of its settings or by what the runs show.
    #[must_use]
    pub fn risks_data(&self) -> bool {
        self.classes().into_iter().any(Class::risks_data)
    }

    /// Whether it is a candidate that was not disqualified.
    #[must_use]
    pub fn is_candidate(&self) -> bool {
        self.role == Role::Candidate && self.disqualified.is_none()
    }
}
