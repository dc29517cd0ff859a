//! `[load.knobs]`: what can be set about a recipe's load, by how many, how often, how large.

use serde::Deserialize;

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
    /// Whether the load can be set to this value.
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
    pub(crate) fn form(&self, name: &str) -> String {
        match &*self.choices {
            [] => format!("load.{name}=NUMBER"),
            choices => format!("load.{name}={}", choices.join("|")),
        }
    }
}

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
}
