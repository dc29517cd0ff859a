//! The `conf.` settings of a variant, applied to an instance.

use std::collections::BTreeMap;
use std::fs;

use crate::conf::{ConfAction, ConfError};
use crate::error::InstanceError;
use crate::instance::Instance;
use crate::recipe::Recipe;

/// Each setting with what it does.
pub struct ConfSteps {
    steps: Vec<(String, ConfAction)>,
}

impl ConfSteps {
    /// From names and values.
    ///
    /// # Errors
    /// [`ConfError::Unknown`].
    pub fn new(recipe: &Recipe, conf: &[(String, String)]) -> Result<ConfSteps, ConfError> {
        let steps = conf
            .iter()
            .map(|(name, value)| Ok((format!("conf.{name}={value}"), recipe.conf(name, value)?)));
        Ok(ConfSteps {
            steps: steps.collect::<Result<_, _>>()?,
        })
    }

    /// The commands, in order, each with its setting.
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

    /// The content of each edited file.
    ///
    /// # Errors
    /// [`ConfError::File`].
    pub fn contents(&self, instance: &Instance) -> Result<BTreeMap<String, Vec<u8>>, ConfError> {
        let files = self
            .steps
            .iter()
            .filter_map(|(setting, action)| match action {
                ConfAction::Edit { file, .. } => Some((setting, file)),
                ConfAction::Command { .. } => None,
            });
        files
            .map(|(setting, file)| {
                let path = instance.dir.join(file);
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

impl Instance {
    /// Makes the edits of some settings, then runs their commands.
    ///
    /// # Errors
    /// [`InstanceError`]: an edit cannot be made, or a command failed.
    pub fn apply(&self, steps: &ConfSteps) -> Result<(), InstanceError> {
        for (setting, action) in &steps.steps {
            action.edit(setting, &self.dir, false, |text| self.expand(text))?;
        }
        self.run_all(steps.commands())
    }

    /// Takes the edits back, the last one first, then runs the inverse commands.
    ///
    /// # Errors
    /// An edit that cannot be taken back, or an inverse command that fails.
    pub fn revert(&self, steps: &ConfSteps) -> Result<(), InstanceError> {
        for (setting, action) in steps.steps.iter().rev() {
            action.edit(setting, &self.dir, true, |text| self.expand(text))?;
        }
        self.run_all(steps.inverses())
    }

    fn run_all<'s>(
        &self,
        commands: impl Iterator<Item = (String, &'s str)>,
    ) -> Result<(), InstanceError> {
        for (setting, command) in commands {
            self.run_command(&setting, command, self.recipe.load_timeout, || true)?;
        }
        Ok(())
    }
}
