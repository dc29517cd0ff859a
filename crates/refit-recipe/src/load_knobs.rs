//! `[load.knobs]`: what can be set about a recipe's load, by how many, how often, how large.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::conf::ConfError;
use crate::recipe::Recipe;

/// something about the load that can be set: load.NAME=VALUE; commands find it as $REFIT_LOAD_NAME
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LoadKnob {
    /// what it is
    pub about: String,
    /// its value where nothing is set
    pub default: String,
    /// what its number counts, in the singular
    pub unit: Option<String>,
    /// its values; without them it is a number of 1 or more
    #[serde(default)]
    pub choices: Vec<String>,
}

impl LoadKnob {
    /// Whether it can have this value.
    #[must_use]
    pub fn takes(&self, value: &str) -> bool {
        match &*self.choices {
            [] => {
                let is_plain = !value.starts_with(['0', '+']);
                is_plain && value.parse::<u32>().is_ok()
            }
            choices => choices.iter().any(|choice| choice == value),
        }
    }

    /// Its values, as they are named: `sessions=NUMBER`.
    fn form(&self, name: &str) -> String {
        match &*self.choices {
            [] => format!("load.{name}=NUMBER"),
            choices => format!("load.{name}={}", choices.join("|")),
        }
    }
}

/// What was asked of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadValue {
    /// `sessions` of `load.sessions`.
    pub name: String,
    /// Of every run, but of a variant that sets another one.
    pub value: String,
    /// What the number counts, in the singular.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl LoadValue {
    /// `20 sessions`, or `mix=reads`.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.unit {
            Some(unit) if self.value == "1" => format!("1 {unit}"),
            Some(unit) => format!("{} {unit}s", self.value),
            None => format!("{}={}", self.name, self.value),
        }
    }
}

impl Recipe {
    /// The recipe with another load. What is not named stays as it is.
    ///
    /// # Errors
    /// [`ConfError::NoLoad`], [`ConfError::LoadValue`].
    pub fn with_load(&self, load: &[(String, String)]) -> Result<Recipe, ConfError> {
        let mut recipe = self.clone();
        for (name, value) in load {
            let setting = format!("load.{name}={value}");
            let known = &self.file.load.knobs;
            let Some(knob) = known.get(name) else {
                let forms: Vec<String> = known.iter().map(|(name, knob)| knob.form(name)).collect();
                return Err(ConfError::NoLoad {
                    setting,
                    recipe: self.name().to_owned(),
                    known: match forms.is_empty() {
                        true => "none at all".to_owned(),
                        false => forms.join(", "),
                    },
                });
            };
            if !knob.takes(value) {
                return Err(ConfError::LoadValue {
                    setting,
                    form: knob.form(name),
                    default: knob.default.clone(),
                });
            }
            recipe.load.insert(name.clone(), value.clone());
        }
        Ok(recipe)
    }

    /// The load that is set, and what is not set as the recipe has it.
    #[must_use]
    pub fn load_values(&self) -> Vec<LoadValue> {
        let knobs = self.file.load.knobs.iter();
        let value = |(name, knob): (&String, &LoadKnob)| LoadValue {
            name: name.clone(),
            value: self.load.get(name).unwrap_or(&knob.default).clone(),
            unit: knob.unit.clone(),
        };
        knobs.map(value).collect()
    }

    /// The same for commands.
    pub(crate) fn load_variables(&self) -> impl Iterator<Item = (String, String)> {
        let values = self.load_values().into_iter();
        values.map(|one| (format!("REFIT_LOAD_{}", one.name.to_uppercase()), one.value))
    }
}

/// What is set of a load, by name.
pub(crate) type Load = BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(choices: &[&str]) -> LoadKnob {
        LoadKnob {
            about: String::new(),
            default: "1".to_owned(),
            unit: None,
            choices: choices.iter().map(|one| (*one).to_owned()).collect(),
        }
    }

    #[test]
    fn a_value_is_a_number_or_one_of_the_choices() {
        for (value, takes) in [
            ("1", true),
            ("20", true),
            ("4294967295", true),
            ("4294967296", false),
            ("0", false),
            ("01", false),
            ("+1", false),
            ("-1", false),
            ("1.5", false),
            ("", false),
            ("1 ", false),
            ("reads", false),
        ] {
            assert_eq!(knob(&[]).takes(value), takes, "{value:?}");
        }
        assert!(knob(&["reads", "writes"]).takes("reads"));
        assert!(!knob(&["reads", "writes"]).takes("read"));
        assert!(!knob(&["reads"]).takes("1"));
    }

    #[test]
    fn a_value_reads_with_what_it_counts() {
        for (value, unit, words) in [
            ("1", Some("session"), "1 session"),
            ("20", Some("session"), "20 sessions"),
            ("reads", None, "mix=reads"),
        ] {
            let one = LoadValue {
                name: "mix".to_owned(),
                value: value.to_owned(),
                unit: unit.map(str::to_owned),
            };
            assert_eq!(one.words(), words);
        }
    }
}
