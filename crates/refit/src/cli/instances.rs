//! Options of the instances of a recipe.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow};
use clap::Args;
use refit_recipe::DEFAULT_BASE;

#[derive(Args)]
pub struct InstancesArgs {
    /// Put the instances of a recipe in a new directory below this one, and not below /var/tmp
    #[arg(long, value_name = "DIR", help_heading = "Instances of a recipe")]
    pub dir: Option<PathBuf>,

    /// Run the commands of a recipe that is not part of refit without asking
    #[arg(long, help_heading = "Instances of a recipe")]
    pub yes: bool,
}

impl InstancesArgs {
    /// The first option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let options = [("--dir", self.dir.is_some()), ("--yes", self.yes)];
        let given = options.into_iter().find(|(_, given)| *given);
        given.map(|(option, _)| option)
    }

    /// Refuses them where there is no recipe.
    ///
    /// # Errors
    /// The option.
    pub fn refuse(&self) -> Result<()> {
        match self.given() {
            Some(option) => Err(for_recipes(option)),
            None => Ok(()),
        }
    }

    /// The directory below which the instances lie, as an absolute path.
    ///
    /// # Errors
    /// It is not there.
    pub fn base(&self) -> Result<PathBuf> {
        let dir = self.dir.as_deref().unwrap_or(Path::new(DEFAULT_BASE));
        fs::canonicalize(dir).with_context(|| format!("--dir {}", dir.display()))
    }
}

/// The error for an option that acts on recipes alone.
pub fn for_recipes(option: &str) -> Error {
    anyhow!("{option} is for recipes, and this is a command\n  leave it out")
}
