//! The hooks of a recipe: commands that run before, next to and after its program. Nothing is
//! swapped beneath them.

use crate::file::RecipeFile;

/// A hook. `service.start` is none: it is the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Makes the instance.
    Setup,
    /// Succeeds when the service is ready.
    Ready,
    /// Runs before the measured window.
    Warmup,
    /// Is the measured window. (Without a service it is the program, and no hook.)
    Load,
    /// Waits until the service has done everything.
    Drain,
    /// Prints what came out.
    Check,
    /// Prints exact answers.
    Table,
    /// Ends the service.
    Stop,
}

impl Hook {
    /// Every hook, in the order in which they run.
    pub const ALL: [Hook; 8] = [
        Hook::Setup,
        Hook::Ready,
        Hook::Warmup,
        Hook::Load,
        Hook::Drain,
        Hook::Check,
        Hook::Table,
        Hook::Stop,
    ];

    /// The key in recipe.toml.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Hook::Setup => "service.setup",
            Hook::Ready => "service.ready",
            Hook::Warmup => "load.warmup",
            Hook::Load => "load.command",
            Hook::Drain => "load.drain",
            Hook::Check => "check.command",
            Hook::Table => "table.command",
            Hook::Stop => "service.stop",
        }
    }

    /// Its command in a recipe, if the recipe has one.
    #[must_use]
    pub fn command(self, file: &RecipeFile) -> Option<&str> {
        let service = &file.service;
        match self {
            Hook::Setup => service.setup.as_deref(),
            Hook::Ready => service.ready.as_ref()?.command.as_deref(),
            Hook::Warmup => file.load.warmup.as_deref(),
            Hook::Load => Some(&file.load.command),
            Hook::Drain => file.load.drain.as_deref(),
            Hook::Check => Some(&file.check.command),
            Hook::Table => Some(&file.table.as_ref()?.command),
            Hook::Stop => service.stop.as_deref(),
        }
    }
}
