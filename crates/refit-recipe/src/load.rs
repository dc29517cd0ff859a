//! What is set about a recipe's load.

use crate::conf::ConfError;
use crate::file::LoadKnob;
use crate::open_loop::ARRIVALS_KNOB;
use crate::recipe::Recipe;
use crate::records::LoadValue;

impl Recipe {
    /// The recipe with another load. What is not named stays as it is.
    ///
    /// # Errors
    /// [`ConfError::NoLoad`], [`ConfError::LoadValue`].
    pub fn with_load(&self, load: &[(String, String)]) -> Result<Recipe, ConfError> {
        let mut recipe = self.clone();
        for (name, value) in load {
            if recipe.set_open(name, value)? {
                continue;
            }
            let setting = format!("load.{name}={value}");
            let known = &self.file.load.knobs;
            let Some(knob) = known.get(name) else {
                let open = self
                    .file
                    .load
                    .open
                    .as_ref()
                    .map(|_| "load.rate=NUMBER/s".to_owned());
                let forms = known.iter().map(|(name, knob)| knob.form(name));
                let forms: Vec<String> = forms.chain(open).collect();
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
        if recipe.load.contains_key(ARRIVALS_KNOB) && recipe.open_loop().is_none() {
            return Err(ConfError::NeedsRate);
        }
        if let (Some(_), Some(name)) =
            (
                recipe.open_loop(),
                self.file.load.knobs.keys().find(|name| {
                    recipe.load.contains_key(*name) && !self.is_used_in_open_loop(name)
                }),
            )
        {
            return Err(ConfError::ClosedOnly {
                setting: format!("load.{name}={}", recipe.load[name]),
            });
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
        let knobs = knobs.map(value).collect();
        match self.open_loop() {
            Some(open) => self.open_values(&open, knobs),
            None => knobs,
        }
    }

    /// The values of the load as variables for the commands of the recipe.
    pub(crate) fn load_variables(&self) -> impl Iterator<Item = (String, String)> + use<'_> {
        let knobs = self.file.load.knobs.iter();
        let values = knobs.map(|(name, knob)| (name, self.load.get(name).unwrap_or(&knob.default)));
        let open = self
            .open_loop()
            .map(|open| ("RATE".to_owned(), open.rate.to_string()));
        values
            .map(|(name, value)| (name.to_uppercase(), value.clone()))
            .chain(open)
            .map(|(name, value)| (format!("REFIT_LOAD_{name}"), value))
    }
}
