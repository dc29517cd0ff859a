//! The variants that a request asks for: what each is called, and what it sets.

use refit_knobs::{Class, Setting, Settings};
use refit_recipe::Recipe;
use refit_run::class_of;

use crate::experiment::{Role, SettingRecord, VariantRecord};
use crate::request::Request;

/// Each variant's record and settings, at the same index.
pub struct Variants {
    pub records: Vec<VariantRecord>,
    /// With those of `--with`.
    pub settings: Vec<Settings>,
}

impl Variants {
    /// The baseline and the candidates, which have the last word over `--with`.
    pub fn tried(request: &Request) -> Variants {
        let mut variants = Variants {
            records: Vec::new(),
            settings: Vec::new(),
        };
        variants.add(request, "baseline", Role::Baseline);
        for candidate in &request.candidates {
            let settings = request.with.join(candidate.settings());
            let own = candidate.settings();
            let name = candidate.to_string();
            let record = record(&name, Role::Candidate, own, request.subject.recipe());
            variants.records.push(record);
            variants.settings.push(settings);
        }
        variants
    }

    /// … and what a comparison adds: `bare`, and the hidden second baseline.
    pub fn compared(request: &Request) -> Variants {
        let mut variants = Variants::tried(request);
        if request.bare {
            variants.add(request, "bare", Role::Bare);
        }
        // Exact answers have no noise to measure.
        if !request.subject.recipe().is_some_and(Recipe::is_exact) {
            variants.add(request, "baseline again", Role::Hidden);
        }
        variants
    }

    fn add(&mut self, request: &Request, name: &str, role: Role) {
        let none = Settings(Vec::new());
        let record = record(name, role, &none, request.subject.recipe());
        self.records.push(record);
        self.settings.push(request.with.clone());
    }
}

fn record(name: &str, role: Role, settings: &Settings, recipe: Option<&Recipe>) -> VariantRecord {
    let settings = setting_records(settings, recipe);
    let classes = settings.iter().map(|setting| setting.class);
    VariantRecord {
        name: name.to_owned(),
        role,
        class: classes.max().unwrap_or(Class::Safe),
        settings,
        fewer_durable: None,
        disqualified: None,
        answers: Vec::new(),
        witness: None,
        memory: None,
    }
}

/// Each with its class, as the recipe declares it where it does.
pub fn setting_records(settings: &Settings, recipe: Option<&Recipe>) -> Vec<SettingRecord> {
    let class = |setting: &Setting| {
        recipe.map_or_else(|| class_of(setting), |recipe| recipe.class_of(setting))
    };
    let record = |setting: &Setting| SettingRecord {
        setting: setting.clone(),
        class: class(setting),
        in_effect: None,
    };
    settings.0.iter().map(record).collect()
}
