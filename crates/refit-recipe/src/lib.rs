//! A recipe: a real service, its load and its check, as one folder; and a private instance of it.
//!
//! # The folder
//!
//! [`Recipe::find`] reads and checks one; nothing of it runs before an instance is made.
//! [`Recipe::missing`] tells what is not installed, [`available`] which variants can be tried.
//! docs/recipes.md describes the format for people, its JSON Schema for machines.
//!
//! # An instance
//!
//! What an instance is and how its service starts and ends is here; what is measured of it, or
//! cut, is the caller's. A run of a recipe in the order of its steps:
//!
//! ```no_run
//! # use std::{path::Path, rc::Rc};
//! # use refit_knobs::Launch;
//! # use refit_recipe::*;
//! # use refit_run::{Options, Tree, prepare};
//! # fn run(launch: &Launch, location: Location) -> Result<(), Box<dyn std::error::Error>> {
//! let recipe = Recipe::find("postfix-cleanup")?;
//! // The caller chooses where it lies. `InstanceDirectory` does that on a disk of the machine,
//! // for many instances; the directory may as well be on a disk that is recorded.
//! recipe.folder.write(&location.recipe)?;
//! let instance = Instance::create(&recipe, InstanceOptions {
//!     location,
//!     // The processes: in a cgroup of their own, or those of a pid namespace (`Tree`).
//!     tree: Rc::new(Tree::new("name")),
//!     brief: false,
//!     env: Vec::new(),
//! })?;
//! instance.run_hook(Hook::Setup, || true)?;
//! let steps = ConfSteps::new(&recipe, &launch.conf)?;
//! instance.apply(&steps)?;
//!
//! // What is swapped beneath the program is the caller's, too.
//! let mut beneath = launch.clone();
//! beneath.conf.clear();
//! beneath.env.extend(instance.env().iter().cloned());
//! let words: Vec<_> = instance.program().into_iter().map(Into::into).collect();
//! let mut prepared = prepare(&beneath, &Options::default(), &words)?;
//! let mut service = Service::start(&instance, &mut prepared, instance.service_files()?)?;
//! // Each wait calls a function of the caller, which looks at the program meanwhile.
//! service.wait_ready(&instance, || {})?;
//! service.run_hook(&instance, Hook::Load, || {})?;
//! service.run_hook(&instance, Hook::Check, || {})?;
//! println!("{}", instance.hook_text());
//! service.stop(&instance, || {})?;
//! # Ok(())
//! # }
//! ```
//!
//! Where a load has to be listened to while it runs, [`Instance::start_command`] starts it with
//! the caller's own files and leaves the waiting to the caller; its command is
//! [`Hook::command`]. [`Instance::open`] is an instance whose directories are there already, as
//! on the image of a disk after a power cut: [`Instance::run_hook`] works there as well.

pub mod answers;
mod available;
mod bound;
mod checker;
mod command_path;
mod conf;
mod conf_steps;
mod error;
mod file;
mod folder;
mod from;
#[cfg(test)]
mod fuzz;
mod hook;
mod instance;
mod instance_directory;
mod load;
mod metrics;
mod needs;
mod open_load;
mod open_loop;
mod output;
mod ports;
mod quantities;
mod recipe;
mod records;
mod room;
mod running;
mod running_hook;
mod service;
mod start;
mod template;
mod unmet;
mod user;

pub use available::{Available, allocators, available, available_unasked};
pub use bound::Bound;
pub use conf::{ConfAction, ConfError};
pub use conf_steps::ConfSteps;
pub use error::{InstanceError, RecipeError};
#[cfg(feature = "schema")]
pub use file::schema;
pub use file::{LoadKnob, Operations, Promise, RecipeFile, Text};
pub use folder::{Folder, FolderFile, shipped_names};
pub use from::{FromError, Made, Notes, from_path, from_unit, quoted};
pub use hook::Hook;
pub use instance::{Instance, InstanceOptions, Location, open_up};
pub use instance_directory::{DEFAULT_BASE, InstanceDirectory, remove_abandoned_instances};
pub use metrics::{Direction, LoadUnit, is_built_in_for};
pub use open_loop::OpenLoop;
pub use output::{LoadMetric, Source, Work, last_lines, read_metrics, read_operations};
pub use quantities::{parse_size, parse_time};
pub use recipe::Recipe;
pub use records::{
    AnswerRecord, DdlRecord, LoadMetricRecord, LoadValue, RecipeRecord, ReplicasRecord,
    SeriesRecord, UnavailableRecord,
};
pub use room::{Room, has_own_network};
pub use running::running;
pub use running_hook::RunningHook;
pub use service::{Service, how_it_ended, names};
pub use start::{Ready, ServiceStart};
pub use template::{from_template, template_names};
pub use user::{User, find_user};
