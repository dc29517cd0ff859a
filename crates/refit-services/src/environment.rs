//! What settings ask of the environment that a service's processes start with.

use std::ffi::OsStr;
use std::path::Path;

use refit_knobs::{Assignment, Join, Launch, Preload};
use refit_run::{allocator_options, zone};

use crate::{Error, LibraryFile, Plan, System, library};

/// Libraries that are placed, and variables.
#[derive(Default)]
pub struct Environment {
    /// The libraries.
    pub libraries: Vec<LibraryFile>,
    /// The content of each.
    pub contents: Vec<Vec<u8>>,
    /// What the settings ask for, `LD_PRELOAD` first.
    pub assignments: Vec<Assignment>,
    /// The same, with what the service has already.
    pub variables: Vec<(String, String)>,
    /// What to know of them.
    pub notes: Vec<String>,
}

impl Environment {
    /// What a launch asks for, of a service whose variables are `there` already.
    ///
    /// # Errors
    /// Where a library cannot be found or read, does not take its options, or the zone is not there.
    pub fn of(
        system: &System,
        launch: &Launch,
        there: impl Fn(&str) -> Option<String>,
    ) -> Result<Environment, Error> {
        if let Some(tz) = &launch.tz {
            zone::check_in(system.path(zone::DIRECTORY)?, tz)?;
        }
        let mut found = Environment::default();
        for preload in launch.preloads() {
            let library = library::find(system, preload)?;
            if let (Preload::Allocator(allocator), true) = (preload, system.is_live()) {
                let from = library.as_ref().map(|(file, _)| Path::new(&file.from));
                allocator_options::check(allocator, from)?;
            }
            if let Some((file, content)) = library {
                found.libraries.push(file);
                found.contents.push(content);
            }
        }
        let paths: Vec<&str> = found.libraries.iter().map(|one| &*one.path).collect();
        let preload = Assignment::preload(paths.join(":"));
        found.assignments = preload.into_iter().chain(launch.variables()).collect();
        for assignment in &found.assignments {
            let Assignment { name, value, join } = assignment;
            let there = there(name).filter(|there| !there.is_empty());
            let whole = assignment.onto(there.as_deref().map(OsStr::new));
            let whole = whole.to_string_lossy().into_owned();
            if let (Some(there), true) = (&there, *join != Join::Replace && whole != *value) {
                let place = match join {
                    Join::Before => "after",
                    _ => "before",
                };
                found.notes.push(format!(
                    "the service has {name}={there} already: that stays, {place} what is added"
                ));
            }
            found.variables.push((name.clone(), whole));
        }
        if !found.libraries.is_empty() {
            let not_covered = "not covered: static programs, set-id programs, and what is \
                               started with a cleared environment";
            found.notes.push(not_covered.to_owned());
        }
        Ok(found)
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }

    /// Adds it to a plan.
    pub fn add_to(self, plan: &mut Plan) {
        plan.change.libraries = self.libraries;
        plan.change.variables = self.variables;
        plan.contents = self.contents;
        plan.notes.extend(self.notes);
    }
}
