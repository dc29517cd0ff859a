//! The `conf.` settings of a variant, done to an instance.

use std::collections::BTreeMap;
use std::fs;

use crate::error::LabError;
use crate::tool::Surroundings;
use refit_recipe::{ConfAction, ConfError, Recipe};

/// Each setting with what it does.
pub struct ConfSteps {
    steps: Vec<(String, ConfAction)>,
}

impl ConfSteps {
    /// From names and values.
    pub fn new(recipe: &Recipe, conf: &[(String, String)]) -> Result<ConfSteps, ConfError> {
        let steps = conf
            .iter()
            .map(|(name, value)| Ok((format!("conf.{name}={value}"), recipe.conf(name, value)?)));
        Ok(ConfSteps {
            steps: steps.collect::<Result<_, _>>()?,
        })
    }

    /// The edits.
    pub fn apply(&self, at: &Surroundings) -> Result<(), LabError> {
        for (setting, action) in &self.steps {
            action.edit(setting, &at.dir, false, |text| at.expand(text))?;
        }
        Ok(())
    }

    /// Takes the edits back, the last one first.
    pub fn revert(&self, at: &Surroundings) -> Result<(), LabError> {
        for (setting, action) in self.steps.iter().rev() {
            action.edit(setting, &at.dir, true, |text| at.expand(text))?;
        }
        Ok(())
    }

    /// The commands, in order.
    pub fn commands(&self) -> impl Iterator<Item = (String, &str)> {
        self.steps
            .iter()
            .filter_map(|(setting, action)| match action {
                ConfAction::Command { command, .. } => Some((setting.clone(), &**command)),
                ConfAction::Edit { .. } => None,
            })
    }

    /// Their inverses, in reverse order.
    pub fn inverses(&self) -> impl Iterator<Item = (String, &str)> {
        self.steps
            .iter()
            .rev()
            .filter_map(|(setting, action)| match action {
                ConfAction::Command { inverse, .. } => {
                    Some((format!("the inverse of {setting}"), &**inverse))
                }
                ConfAction::Edit { .. } => None,
            })
    }

    /// What is in each edited file.
    pub fn contents(&self, at: &Surroundings) -> Result<BTreeMap<String, Vec<u8>>, LabError> {
        let files = self
            .steps
            .iter()
            .filter_map(|(setting, action)| match action {
                ConfAction::Edit { file, .. } => Some((setting, file)),
                ConfAction::Command { .. } => None,
            });
        files
            .map(|(setting, file)| {
                let path = at.dir.join(file);
                let bytes = fs::read(&path).map_err(|cause| ConfError::File {
                    setting: setting.clone(),
                    file: path,
                    cause,
                })?;
                Ok((file.clone(), bytes))
            })
            .collect()
    }
}

impl Surroundings {
    /// `$REFIT_…` replaced by its value.
    pub fn expand(&self, text: &str) -> String {
        let mut names: Vec<&(String, String)> = self.env.iter().collect();
        // So that REFIT_PORT_A is not taken for the beginning of REFIT_PORT_AB.
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let mut text = text.to_owned();
        for (name, value) in names {
            if name.starts_with("REFIT_") {
                text = text.replace(&format!("${name}"), value);
            }
        }
        text
    }
}
