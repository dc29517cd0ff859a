//! The promise of a recipe: what its program acknowledges, and how a check finds it again after a
//! power cut.

use std::sync::Arc;

use regex_lite::Regex;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::checker::Checker;
use crate::error::RecipeError;
use crate::file::{Needs, Time};
use crate::recipe::Recipe;

/// what the program acknowledges, and how to find it again after a power cut
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[schemars(extend("oneOf" = [{ "required": ["ack"] }, { "required": ["ack-regex"] }]))]
pub struct Promise {
    /// the program, in one sentence
    pub about: String,
    /// what counts as acknowledged, in one sentence
    pub acknowledged: String,
    /// Debian's names of the packages that only the promise needs
    #[serde(default)]
    pub packages: Vec<String>,
    /// what only the promise needs to be installed
    #[serde(default)]
    pub needs: Needs,
    /// a command in the instance after service.setup and the variant's conf, before the program
    /// starts
    pub prepare: Option<String>,
    /// the load, or without a service the program, where load.command does not acknowledge; it may
    /// go on forever
    pub load: Option<String>,
    /// the source of acknowledgements, as --ack of `refit crash`; $REFIT_PORT_NAME is replaced
    pub ack: Option<String>,
    /// lines of the output that match, as --ack-regex of `refit crash` (code)
    pub ack_regex: Option<String>,
    /// how to find what is there after a cut, as --check of `refit crash`; paths are below
    /// $REFIT_DIR
    pub check: String,
    /// the size of the recorded disk; default 1G
    pub size: Option<Size>,
    /// how long the run lasts, unless it ends earlier or --for is given
    pub length: Time,
    /// cuts of each mode where --cuts is not given; default 300
    #[schemars(range(min = 1))]
    pub cuts: Option<usize>,
    /// settings for the baseline with which `make crash-night` repeats everything
    #[serde(default)]
    pub also: Vec<String>,
    /// while files are flushed now and then, something acknowledged this long before is lost in
    /// races only: `make crash-night` repeats the run until one was lost
    pub race: Option<Time>,
}

/// as 512M or 2G: a multiple of 4096 bytes, without a unit in bytes
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(extend("pattern" = r"^[0-9]+[KMG]?$"))]
pub struct Size(pub u64);

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Size, String> {
        parse_size(&text).map(Size)
    }
}

/// Reads `512M` or `2G`.
///
/// # Errors
/// What to write.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.char_indices().last() {
        Some((at, 'K')) => (&text[..at], 10),
        Some((at, 'M')) => (&text[..at], 20),
        Some((at, 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|bytes| *bytes > 0 && bytes % 4096 == 0)
        .ok_or_else(|| format!("invalid size {text:?}; write it as 512M or 2G"))
}

impl Promise {
    /// Its commands, with their keys. A check of refit's own is none.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (String, &str)> {
        let all = [
            ("prepare", self.prepare.as_deref()),
            ("load", self.load.as_deref()),
            ("check", Some(&*self.check)),
        ];
        all.into_iter()
            .filter_map(|(key, command)| Some((format!("promise.{key}"), command?)))
    }
}

impl Checker<'_> {
    pub fn promise(&self) -> Result<(), RecipeError> {
        let Some(promise) = &self.file.promise else {
            return Ok(());
        };
        let key = |key: &str| format!("promise.{key}");
        if self.file.service.keep == Some(true) {
            let problem = "`service.keep` starts the server once for all variants, and each of them is cut on a disk of its own; leave out one of the two";
            return Err(self.wrong("promise", problem));
        }
        match (&promise.ack, &promise.ack_regex) {
            (Some(_), None) => {}
            (None, Some(text)) => {
                Regex::new(text).map_err(|error| {
                    self.wrong(
                        &key("ack-regex"),
                        format!("invalid regular expression `{text}`: {error}"),
                    )
                })?;
            }
            _ => return Err(self.wrong("promise", "write either `ack` or `ack-regex`")),
        }
        if promise.cuts == Some(0) {
            return Err(self.wrong(&key("cuts"), "0 cuts show nothing; write at least 1"));
        }
        for settings in &promise.also {
            refit_knobs::Settings::parse([settings.into()])
                .map_err(|error| self.wrong(&key("also"), error.to_string()))?;
        }
        Ok(())
    }
}

impl Recipe {
    /// The recipe as its promise is tested: with the promise's load, where it has one.
    ///
    /// # Errors
    /// [`RecipeError::NoPromise`].
    pub fn promising(&self) -> Result<Recipe, RecipeError> {
        let mut recipe = self.clone();
        if let Some(load) = &self.promise()?.load {
            Arc::make_mut(&mut recipe.file)
                .load
                .command
                .clone_from(load);
        }
        Ok(recipe)
    }

    /// What the promise says, or what to do without one.
    ///
    /// # Errors
    /// [`RecipeError::NoPromise`].
    pub fn promise(&self) -> Result<&Promise, RecipeError> {
        self.file.promise.as_ref().ok_or_else(|| {
            let promising = crate::folder::shipped_names()
                .filter_map(|name| Recipe::find(name).ok())
                .filter(|recipe| recipe.file.promise.is_some());
            RecipeError::NoPromise {
                name: self.name().to_owned(),
                known: promising
                    .map(|recipe| recipe.name().to_owned())
                    .collect::<Vec<_>>()
                    .join(", "),
            }
        })
    }
}
