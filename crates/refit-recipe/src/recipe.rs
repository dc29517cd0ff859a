//! A recipe that has been read and checked.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use refit_knobs::{Class, Setting, Settings};
use refit_run::metric::RATE;
use refit_run::{class_of, printable};
use rustix::process::geteuid;

use crate::bound::Bound;
use crate::checker::{Checker, DEFAULT_TIMEOUT, canonical};
use crate::conf::{ConfAction, ConfError, action};
use crate::error::RecipeError;
use crate::file::{ConfEntry, Promise, RecipeFile};
use crate::folder::{Folder, shipped_names};
use crate::hook::Hook;
use crate::output::{LoadMetric, Progress, Work};
use crate::records::{AnswerRecord, DdlRecord, LoadMetricRecord, RecipeRecord};
use crate::start::ServiceStart;
use crate::unmet;
use crate::user::find_user;

/// A recipe, checked.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Its files.
    pub folder: Arc<Folder>,
    /// The file itself.
    pub file: Arc<RecipeFile>,
    /// The service; `None`: the load is the program.
    pub service: Option<ServiceStart>,
    /// Metrics of the load.
    pub metrics: Vec<LoadMetric>,
    /// How much it does.
    pub work: Work,
    /// Where it tells how much of it is done.
    pub progress: Option<Progress>,
    /// What is set about the load by `load.NAME=VALUE`, by name.
    pub(crate) load: BTreeMap<String, String>,
    /// Of each command of the load.
    pub load_timeout: Duration,
    /// How long a comparison may take.
    pub budget: Option<Duration>,
    /// What the note answered, by variant.
    pub then: BTreeMap<String, Vec<AnswerRecord>>,
    /// What settings stand for in SQL, by `conf.NAME=VALUE`.
    pub ddl: BTreeMap<String, DdlRecord>,
}

impl Recipe {
    /// By the name of one that refit carries, or as the path of a folder.
    ///
    /// # Errors
    /// [`RecipeError`].
    pub fn find(name: &str) -> Result<Recipe, RecipeError> {
        if name.contains('/') || name == "." || name == ".." {
            return Recipe::new(Folder::read(Path::new(name))?);
        }
        match Folder::shipped(name) {
            Some(folder) => Recipe::new(folder),
            None => {
                let near = if Path::new(name).join("recipe.toml").is_file() {
                    format!("; did you mean the folder `./{name}`?")
                } else {
                    String::new()
                };
                Err(RecipeError::Unknown {
                    name: name.to_owned(),
                    known: shipped_names().collect::<Vec<_>>().join(", "),
                    near,
                })
            }
        }
    }

    /// Checks what a folder describes.
    ///
    /// # Errors
    /// [`RecipeError`].
    pub fn new(folder: Folder) -> Result<Recipe, RecipeError> {
        let place = folder.origin.clone().unwrap_or_default();
        let name = place.join("recipe.toml").display().to_string();
        let Some(bytes) = folder.file("recipe.toml") else {
            return Err(RecipeError::NoFile { path: place });
        };
        let syntax = |message: String| RecipeError::Syntax {
            file: name.clone(),
            message,
        };
        let text = str::from_utf8(bytes).map_err(|error| syntax(error.to_string()))?;
        let file: RecipeFile = toml::from_str(text).map_err(|error| {
            // Its reason may repeat what the file holds; the lines around it are its own.
            let reason = error.message();
            syntax(error.to_string().replace(reason, &printable(reason)))
        })?;
        let checked = Checker {
            name: &name,
            file: &file,
        };
        let folder = match &file.scripts {
            None => folder,
            Some(scripts) => folder.with_scripts_of(scripts).ok_or_else(|| {
                let known = shipped_names().collect::<Vec<_>>().join(", ");
                let problem = format!("there is no recipe `{scripts}`; there are {known}");
                checked.wrong("scripts", problem)
            })?,
        };
        let metrics = checked.metrics()?;
        checked.texts()?;
        checked.series()?;
        checked.load_knobs()?;
        checked.open_loop()?;
        checked.conf()?;
        checked.promise()?;
        Ok(Recipe {
            service: checked.service()?,
            metrics,
            work: checked.work()?,
            progress: checked.progress()?,
            load: BTreeMap::new(),
            load_timeout: file.load.timeout.map_or(DEFAULT_TIMEOUT, |time| time.0),
            budget: file.budget.map(|time| time.0),
            then: checked.then(&folder)?,
            ddl: checked.ddl(&folder)?,
            folder: Arc::new(folder),
            file: Arc::new(file),
        })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// As it is named on a command line.
    #[must_use]
    pub fn typed(&self) -> String {
        match &self.folder.origin {
            Some(path) => path.display().to_string(),
            None => self.name().to_owned(),
        }
    }

    /// The metric that its verdict is about.
    #[must_use]
    pub fn main(&self) -> &str {
        let main = self.file.main.as_deref().unwrap_or(RATE);
        match self.open_loop() {
            // The rate is given, and the command's own metrics are not there.
            Some(open) if main == RATE || self.file.load.metrics.contains_key(main) => open.main(),
            _ => main,
        }
    }

    /// All runs load the same start of its service.
    #[must_use]
    pub fn keeps_service(&self) -> bool {
        self.service.as_ref().is_some_and(|service| service.keep)
    }

    /// Its whole result are exact answers, and no comparison of times.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.file.table.as_ref().is_some_and(|table| table.only)
    }

    /// Why each of its variants is worth trying, by canonical text.
    #[must_use]
    pub fn why(&self) -> BTreeMap<String, String> {
        let all = self.file.variants.iter();
        all.map(|entry| (canonical(&entry.settings), entry.why.clone()))
            .collect()
    }

    /// What of it goes into a result.
    #[must_use]
    pub fn record(&self) -> RecipeRecord {
        let open = self.open_loop();
        let metrics = match open {
            Some(open) => open.metrics(),
            None => self.load_metrics(),
        };
        RecipeRecord {
            name: self.file.name.clone(),
            folder: self
                .folder
                .origin
                .as_ref()
                .map(|path| path.display().to_string()),
            question: self.file.question.en.clone(),
            unit: self.file.load.unit.clone(),
            load: self.load_values(),
            replicas: None,
            is_service: self.service.is_some(),
            keeps_service: self.keeps_service(),
            has_promise: self.file.promise.is_some(),
            metrics,
            series: match open {
                Some(open) => vec![open.series()],
                None => self.file.series.clone(),
            },
            why: self.why(),
            applies_to: self.file.applies_to.clone(),
            health: self.file.health.clone(),
            applied: self.applied(),
            packages: self.packages(),
            is_exact: self.is_exact(),
            note: (self.file.note.as_ref())
                .filter(|_| !self.then.is_empty())
                .map(|note| note.title.clone()),
            then: self.then.clone(),
            ddl: self.ddl.clone(),
        }
    }

    /// The metrics that the load's command prints.
    fn load_metrics(&self) -> Vec<LoadMetricRecord> {
        let metrics = self.file.load.metrics.iter();
        metrics
            .map(|(name, entry)| LoadMetricRecord {
                name: name.clone(),
                unit: entry.unit,
                better: entry.better,
                about: entry.about.clone(),
            })
            .collect()
    }

    /// Every command that a run makes, with the key that holds it.
    #[must_use]
    pub fn commands(&self) -> Vec<(String, &str)> {
        let file = &*self.file;
        let mut all = Vec::new();
        for hook in Hook::ALL {
            all.extend(
                hook.command(file)
                    .map(|command| (hook.key().to_owned(), command)),
            );
            if let (Hook::Setup, Some(start)) = (hook, &file.service.start) {
                all.push(("service.start".to_owned(), &**start));
            }
        }
        all.extend(file.promise.iter().flat_map(Promise::commands));
        for (name, conf) in &file.conf {
            for (value, entry) in &conf.values {
                let all_three = [
                    ("needs", &entry.needs),
                    ("command", &entry.command),
                    ("inverse", &entry.inverse),
                ];
                for (which, command) in all_three {
                    let command = command.as_deref();
                    all.extend(command.map(|c| (format!("conf.{name}.{value}.{which}"), c)));
                }
            }
        }
        all
    }

    /// What a `conf.NAME=VALUE` does.
    ///
    /// # Errors
    /// [`ConfError::Unknown`].
    pub fn conf(&self, name: &str, value: &str) -> Result<ConfAction, ConfError> {
        self.entry(name, value)
            .and_then(|entry| action(entry).ok())
            .ok_or_else(|| {
                let knobs = self.file.conf.iter();
                let known: Vec<String> = knobs
                    .map(|(name, conf)| {
                        let values: Vec<&str> = conf.values.keys().map(|v| &**v).collect();
                        format!("conf.{name}={}", values.join("|"))
                    })
                    .collect();
                ConfError::Unknown {
                    setting: format!("conf.{name}={value}"),
                    recipe: self.name().to_owned(),
                    known: if known.is_empty() {
                        "none at all".to_owned()
                    } else {
                        known.join(", ")
                    },
                }
            })
    }

    fn applied(&self) -> BTreeMap<String, String> {
        let knobs = self.file.conf.iter();
        let entries = knobs.flat_map(|(name, conf)| {
            let values = conf.values.iter();
            values.filter_map(move |(value, entry)| {
                Some((format!("conf.{name}={value}"), entry.applied.clone()?))
            })
        });
        entries.collect()
    }

    /// Why `conf.NAME=VALUE` cannot be tried on this machine, which its command `needs` tells.
    pub(crate) fn unmet(&self, name: &str, value: &str) -> Option<String> {
        let command = self.entry(name, value)?.needs.as_deref()?;
        let user = self.file.service.user.as_deref();
        let user = user.filter(|_| geteuid().is_root()).and_then(find_user);
        unmet::unmet(command, user)
    }

    fn entry(&self, name: &str, value: &str) -> Option<&ConfEntry> {
        self.file.conf.get(name)?.values.get(value)
    }

    /// The riskiest class of these settings, those of `conf.` as declared here.
    #[must_use]
    pub fn class(&self, settings: &Settings) -> Class {
        let classes = settings.0.iter().map(|setting| self.class_of(setting));
        classes.max().unwrap_or(Class::Safe)
    }

    /// The class of one setting.
    #[must_use]
    pub fn class_of(&self, setting: &Setting) -> Class {
        let declared = setting
            .conf()
            .and_then(|(name, value)| Some(self.entry(name, value)?.class));
        declared.unwrap_or_else(|| class_of(setting))
    }

    /// The bound that is declared of these settings: the widest of them. `None` where one of
    /// them may lose data without a bound, or none may lose any.
    #[must_use]
    pub fn bound(&self, settings: &Settings) -> Option<Bound> {
        let risky = (settings.0.iter()).filter(|setting| self.class_of(setting).risks_data());
        let bounds: Option<Vec<Bound>> = risky
            .map(|setting| {
                let (name, value) = setting.conf()?;
                self.entry(name, value)?.bound
            })
            .collect();
        bounds?.into_iter().max()
    }

    /// The recipe as its promise is tested: with the promise's load, where it has one.
    ///
    /// # Errors
    /// [`RecipeError::NoPromise`].
    pub fn promising(&self) -> Result<Recipe, RecipeError> {
        let mut recipe = self.clone();
        if let Some(load) = &self.promise()?.load {
            Arc::make_mut(&mut recipe.file)
                .load
                .command
                .clone_from(load);
        }
        Ok(recipe)
    }

    /// What the promise says, or what to do without one.
    ///
    /// # Errors
    /// [`RecipeError::NoPromise`].
    pub fn promise(&self) -> Result<&Promise, RecipeError> {
        self.file.promise.as_ref().ok_or_else(|| {
            let promising = shipped_names()
                .filter_map(|name| Recipe::find(name).ok())
                .filter(|recipe| recipe.file.promise.is_some());
            RecipeError::NoPromise {
                name: self.name().to_owned(),
                known: promising
                    .map(|recipe| recipe.name().to_owned())
                    .collect::<Vec<_>>()
                    .join(", "),
            }
        })
    }
}

#[cfg(test)]
mod tests;
