//! Which variants of a recipe, and which allocators, can be tried here.

use std::path::Path;

use refit_knobs::{ALLOCATORS, SettingError, Settings, Variant};
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
/// refit, with a library that is not installed, or with a value whose `needs` fails is
/// unavailable; that is not an error. It runs commands of the recipe.
#[must_use]
pub fn available(recipe: &Recipe, with: &Settings, allocator_dir: Option<&Path>) -> Available {
    of_recipe(recipe, true, with, allocator_dir)
}

/// As [`available`], where nobody agreed to the recipe's commands: only those that refit
/// carries run.
#[must_use]
pub fn available_unasked(recipe: &Recipe) -> Available {
    let is_shipped = recipe.folder.origin.is_none();
    of_recipe(recipe, is_shipped, &Settings::default(), None)
}

fn of_recipe(
    recipe: &Recipe,
    may_run: bool,
    with: &Settings,
    allocator_dir: Option<&Path>,
) -> Available {
    let settings = recipe.file.variants.iter().map(|entry| &*entry.settings);
    sorted_out(settings, Some((recipe, may_run)), with, allocator_dir)
}

/// Which allocators can be tried, and which of the options that decide how much freed memory each keeps, for
/// `compare --memory`.
#[must_use]
pub fn allocators(with: &Settings, allocator_dir: Option<&Path>) -> Available {
    let mut all = Available::default();
    let mut add = |settings: Vec<String>| {
        let settings = settings.iter().map(|settings| &**settings);
        let mut found = sorted_out(settings, None, with, allocator_dir);
        // Where an option can be tried, nobody misses its other name.
        if found.variants.is_empty() {
            all.unavailable.append(&mut found.unavailable);
        }
        all.variants.append(&mut found.variants);
    };
    for known in ALLOCATORS {
        if !known.is_c_librarys() {
            add(vec![format!("malloc={}", known.name)]);
        }
        for names in known.keeping {
            let named = names
                .iter()
                .map(|option| format!("malloc={}:{option}", known.name));
            add(named.collect());
        }
    }
    all
}

fn sorted_out<'a>(
    settings: impl Iterator<Item = &'a str>,
    recipe: Option<(&Recipe, bool)>,
    with: &Settings,
    allocator_dir: Option<&Path>,
) -> Available {
    let mut all = Available::default();
    for settings in settings {
        match look(recipe, settings, with, allocator_dir) {
            Ok(variant) => all.variants.push(variant),
            Err(reason) => all.unavailable.push(UnavailableRecord {
                settings: settings.to_owned(),
                reason,
            }),
        }
    }
    all
}

fn look(
    recipe: Option<(&Recipe, bool)>,
    settings: &str,
    with: &Settings,
    allocator_dir: Option<&Path>,
) -> Result<Variant, String> {
    let variant = Variant::parse(settings).map_err(|error| match error {
        SettingError::UnknownKnob { knob, .. } => format!("this refit has no setting `{knob}`"),
        error => error.to_string(),
    })?;
    let joined = with.join(variant.settings());
    let mut launch = joined.launch();
    for (name, value) in std::mem::take(&mut launch.conf) {
        if let Some((recipe, may_run)) = recipe {
            recipe.conf(&name, &value).map_err(|e| e.to_string())?;
            let unmet = may_run.then(|| recipe.unmet(&name, &value));
            unmet.flatten().map_or(Ok(()), Err)?;
        }
    }
    let load = std::mem::take(&mut launch.load);
    if let Some((recipe, _)) = recipe {
        recipe.with_load(&load).map_err(|e| e.to_string())?;
    }
    let options = Options {
        allocator_dir: allocator_dir.map(Path::to_owned),
        of_recipe: recipe.is_some(),
        ..Options::default()
    };
    let prepared = prepare(&launch, &options, &["true".into()]).map_err(|e| e.to_string())?;
    prepared.session.remove();
    Ok(variant)
}
