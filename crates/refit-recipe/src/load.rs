//! What is set about a recipe's load.

use crate::conf::ConfError;
use crate::file::LoadKnob;
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

    /// The values of the load as variables for the commands of the recipe.
    pub(crate) fn load_variables(&self) -> impl Iterator<Item = (String, String)> {
        let values = self.load_values().into_iter();
        values.map(|one| (format!("REFIT_LOAD_{}", one.name.to_uppercase()), one.value))
    }
}
