//! `[conf.NAME]`: a knob of the configuration, and its values.

use std::collections::BTreeMap;
use std::fmt;

use refit_knobs::Class;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::bound::Bound;

/// A knob of the configuration: what it is, and its values.
#[derive(Clone, Debug, Default)]
pub struct Conf {
    /// What it is.
    pub about: String,
    /// By name.
    pub values: BTreeMap<String, ConfEntry>,
}

/// an edit, or a command with its inverse
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(extend("oneOf" = [
    { "required": ["file", "to"], "properties": { "command": false, "inverse": false } },
    {
        "required": ["command", "inverse"],
        "properties": { "file": false, "from": false, "to": false },
    },
], "dependentRequired" = { "ddl": ["ddl-inverse"], "ddl-inverse": ["ddl"] }, "if" = { "properties": { "class": { "const": "bounded-loss" } } },
"then" = { "required": ["bound"] }, "else" = { "properties": { "bound": false } })))]
pub struct ConfEntry {
    /// what the value risks
    pub class: Class,
    /// how much a power cut takes at most, of a value of class bounded-loss (code); the crash lab
    /// judges it
    pub bound: Option<Bound>,
    /// the file to edit, in the instance's directory
    #[cfg_attr(feature = "schema", schemars(extend("not" = { "pattern": r"^/|(^|/)\.\.(/|$)" })))]
    pub file: Option<String>,
    /// whole lines that stand in the file once and are replaced; without them `to` is added at
    /// the end
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub from: Option<String>,
    /// the lines that replace them
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub to: Option<String>,
    /// a command that makes the change
    pub command: Option<String>,
    /// a command that takes the change back
    pub inverse: Option<String>,
    /// a command that fails where the value cannot be tried, such as with another version of the
    /// program, and prints why
    pub needs: Option<String>,
    /// what `refit plan --from RESULT` applies for it, where a service has another name for it
    pub applied: Option<String>,
    /// a file of the folder with the statements of SQL that are the change; they are printed with
    /// the result (code)
    pub ddl: Option<String>,
    /// a file of the folder with the statements that take it back
    #[serde(rename = "ddl-inverse")]
    pub ddl_inverse: Option<String>,
}

impl<'de> Deserialize<'de> for Conf {
    /// By hand: apart from `about` every key is a value, and a wrong one keeps its line.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Conf, D::Error> {
        struct Table;
        impl<'de> Visitor<'de> for Table {
            type Value = Conf;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with `about` and values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Conf, A::Error> {
                let mut conf = Conf::default();
                while let Some(key) = map.next_key::<String>()? {
                    if key == "about" {
                        conf.about = map.next_value()?;
                    } else {
                        conf.values.insert(key, map.next_value()?);
                    }
                }
                if conf.values.is_empty() {
                    return Err(de::Error::custom("a setting needs at least one value"));
                }
                Ok(conf)
            }
        }
        deserializer.deserialize_map(Table)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Conf {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Conf".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "a setting of the recipe: `about`, and its values by name",
            "type": "object",
            "properties": { "about": { "description": "what the setting is", "type": "string" } },
            "additionalProperties": generator.subschema_for::<ConfEntry>(),
            "minProperties": 1,
            "if": { "required": ["about"] },
            "then": { "minProperties": 2 },
        })
    }
}
