//! What settings ask of the environment that a service's processes start with.

use std::fmt::Write;

use refit_knobs::Launch;

use crate::library::{self, Wanted};
use crate::{Error, LibraryFile, Plan, System};

/// Libraries that are placed, and variables.
#[derive(Default)]
pub struct Environment {
    /// The libraries.
    pub libraries: Vec<LibraryFile>,
    /// The content of each.
    pub contents: Vec<Vec<u8>>,
    /// `LD_PRELOAD` first.
    pub variables: Vec<(String, String)>,
    /// What to know of them.
    pub notes: Vec<String>,
}

impl Environment {
    /// What a launch asks for, of a service that has `preloaded` as its `LD_PRELOAD` already.
    ///
    /// # Errors
    /// Where a library cannot be found or read.
    pub fn of(
        system: &System,
        launch: Launch,
        preloaded: Option<String>,
    ) -> Result<Environment, Error> {
        let mut found = Environment::default();
        let of_malloc = launch.malloc.as_ref();
        let wanted = launch.preload.iter().map(Wanted::Path);
        let wanted = wanted.chain(of_malloc.map(|malloc| Wanted::Allocator(&malloc.kind)));
        for wanted in wanted {
            if let Some((file, content)) = library::find(system, wanted)? {
                found.libraries.push(file);
                found.contents.push(content);
            }
        }
        if !found.libraries.is_empty() {
            let mut value = preloaded.unwrap_or_default();
            if !value.is_empty() {
                found.notes.push(format!(
                    "the service preloads {value} already: that stays, and is first"
                ));
            }
            for library in &found.libraries {
                let separator = if value.is_empty() { "" } else { ":" };
                let _ = write!(value, "{separator}{}", library.path);
            }
            found.variables.push(("LD_PRELOAD".to_owned(), value));
            let not_covered = "not covered: static programs, set-id programs, and what is \
                               started with a cleared environment";
            found.notes.push(not_covered.to_owned());
        }
        let of_malloc = launch.malloc.into_iter().flat_map(|malloc| malloc.env);
        found.variables.extend(of_malloc);
        found.variables.extend(launch.env);
        let zone = launch.tz.map(|zone| ("TZ".to_owned(), zone));
        found.variables.extend(zone);
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
