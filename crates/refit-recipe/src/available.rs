//! Which variants of a recipe can be tried here.

use std::path::Path;

use refit_knobs::{SettingError, Settings, Variant};
use refit_run::{Options, prepare};

use crate::recipe::Recipe;
use crate::records::UnavailableRecord;

/// Variants that can be tried, and those that cannot.
#[derive(Clone, Debug, Default)]
pub struct Available {
    /// Variants that can be tried, in the recipe's order.
    pub variants: Vec<Variant>,
    /// The others, with the reason.
    pub unavailable: Vec<UnavailableRecord>,
}

/// Looks which of the recipe's variants can be tried. One with a knob of a later
/// refit, or with a library that is not installed, is unavailable; that is not an
/// error.
#[must_use]
pub fn available(recipe: &Recipe, with: &Settings, allocator_dir: Option<&Path>) -> Available {
    let mut all = Available::default();
    for entry in &recipe.file.variants {
        match look(recipe, &entry.settings, with, allocator_dir) {
            Ok(variant) => all.variants.push(variant),
            Err(reason) => all.unavailable.push(UnavailableRecord {
                settings: entry.settings.clone(),
                reason,
            }),
        }
    }
    all
}

fn look(
    recipe: &Recipe,
    settings: &str,
    with: &Settings,
    allocator_dir: Option<&Path>,
) -> Result<Variant, String> {
    let variant = Variant::parse(settings).map_err(|error| match error {
        SettingError::UnknownKnob { knob, .. } => format!("this refit has no knob `{knob}`"),
        error => error.to_string(),
    })?;
    let joined = with.join(variant.settings());
    let mut launch = joined.launch();
    for (name, value) in std::mem::take(&mut launch.conf) {
        recipe.conf(&name, &value).map_err(|e| e.to_string())?;
    }
    let options = Options {
        allocator_dir: allocator_dir.map(Path::to_owned),
        of_recipe: true,
        ..Options::default()
    };
    let prepared = prepare(&launch, &options, &["true".into()]).map_err(|e| e.to_string())?;
    prepared.session.remove();
    Ok(variant)
}
