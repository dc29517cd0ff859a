//! Recipes: a real service, its load and its check, as one folder.
//!
//! [`Recipe::find`] reads and checks one; nothing of it runs before a
//! comparison. docs/recipes.md is the format's description for people.

mod available;
mod conf;
mod file;
mod folder;
mod needs;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use refit_knobs::Class;
use regex_lite::Regex;

pub use available::{Available, available};
pub use conf::{ConfAction, ConfError};
pub use file::{Operations, RecipeFile};
pub use folder::{Folder, shipped_names};
pub(crate) use needs::path as needs_path;

use crate::experiment::{LoadMetricRecord, RecipeRecord};
use crate::metric::{Unit, is_built_in};

/// The longest wait for a service or a load, where the recipe does not say.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there is no recipe.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// Nothing of that name.
    #[error("there is no recipe `{name}`{near}\n  there are {known}; a folder of your own: ./NAME")]
    Unknown {
        /// As it was typed.
        name: String,
        /// All that refit carries.
        known: String,
        /// `, did you mean …?`, or nothing.
        near: String,
    },
    /// A folder without the file.
    #[error("{} holds no recipe.toml\n  docs/recipes.md says what belongs there; `refit recipes copy NAME` gives one to start from", path.display())]
    NoFile {
        /// The folder.
        path: PathBuf,
    },
    /// A folder that cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// What.
        path: PathBuf,
        /// What the kernel said.
        cause: std::io::Error,
    },
    /// More than a recipe can be.
    #[error("{} is too large for a recipe, or holds what is no file ({})\n  a recipe has up to 500 files and 16 MiB", path.display(), at.display())]
    TooLarge {
        /// The folder.
        path: PathBuf,
        /// Where it became too large.
        at: PathBuf,
    },
    /// Text that is no recipe, with its line.
    #[error("{file}: {message}")]
    Syntax {
        /// recipe.toml.
        file: String,
        /// What the parser said, with the line.
        message: String,
    },
    /// A key that contradicts itself or another.
    #[error("{file}: {key}: {problem}")]
    Key {
        /// recipe.toml.
        file: String,
        /// As `load.metrics.p99`.
        key: String,
        /// What is wrong, and what to write.
        problem: String,
    },
}

/// When a service is ready.
#[derive(Clone, Debug)]
pub enum Ready {
    /// Somebody listens on this port (by name).
    Tcp(String),
    /// Somebody listens on this socket.
    Unix(String),
    /// A line matches; of the service's own output where there is no file.
    Log(Regex, Option<String>),
    /// The command succeeds.
    Command(String),
}

/// A service to start.
#[derive(Clone, Debug)]
pub struct ServiceStart {
    /// What is swapped beneath.
    pub start: String,
    /// When it is ready.
    pub ready: Ready,
    /// What ends it; `None`: SIGTERM.
    pub stop: Option<String>,
    /// How long to wait until it is ready.
    pub ready_timeout: Duration,
    /// How long to wait until it has ended.
    pub stop_timeout: Duration,
}

/// Where a metric is found in a load's output.
#[derive(Clone, Debug)]
pub enum Source {
    /// The first group of the first match.
    Regex(Regex),
    /// JSON Pointer.
    Pointer(String),
}

/// A metric that is read from the load's output.
#[derive(Clone, Debug)]
pub struct LoadMetric {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub source: Source,
    /// From the recipe's unit to the stored one.
    pub factor: f64,
}

/// How many operations the load does.
#[derive(Clone, Debug)]
pub enum Work {
    /// So many; and so many in a check.
    Number(u64, u64),
    /// Its output says.
    Read(Regex),
}

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
    /// Of each command of the load.
    pub load_timeout: Duration,
    /// How long a comparison may take.
    pub budget: Option<Duration>,
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
        let file: RecipeFile = toml::from_str(text).map_err(|error| syntax(error.to_string()))?;
        let checked = Checker {
            name: &name,
            file: &file,
        };
        let metrics = checked.metrics()?;
        checked.texts()?;
        checked.conf()?;
        Ok(Recipe {
            service: checked.service()?,
            metrics,
            work: checked.work()?,
            load_timeout: checked.time("load.timeout", file.load.timeout.as_deref())?,
            budget: match &file.budget {
                Some(_) => Some(checked.time("budget", file.budget.as_deref())?),
                None => None,
            },
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
        self.file.main.as_deref().unwrap_or("rate")
    }

    /// What of it goes into a result.
    #[must_use]
    pub fn record(&self) -> RecipeRecord {
        let metrics = self.file.load.metrics.iter();
        RecipeRecord {
            name: self.file.name.clone(),
            folder: self
                .folder
                .origin
                .as_ref()
                .map(|path| path.display().to_string()),
            question: self.file.question.en.clone(),
            unit: self.file.load.unit.clone(),
            is_service: self.service.is_some(),
            metrics: metrics
                .map(|(name, entry)| LoadMetricRecord {
                    name: name.clone(),
                    unit: entry.unit.clone(),
                    better: entry.better.clone(),
                    about: entry.about.clone(),
                })
                .collect(),
            why: self
                .file
                .variants
                .iter()
                .map(|entry| (canonical(&entry.settings), entry.why.clone()))
                .collect(),
        }
    }

    /// Every command that a run makes, with the key that holds it.
    #[must_use]
    pub fn commands(&self) -> Vec<(String, &str)> {
        let file = &*self.file;
        let fixed = [
            ("service.setup", file.service.setup.as_deref()),
            ("service.start", file.service.start.as_deref()),
            (
                "service.ready",
                file.service
                    .ready
                    .as_ref()
                    .and_then(|r| r.command.as_deref()),
            ),
            ("load.warmup", file.load.warmup.as_deref()),
            ("load.command", Some(&*file.load.command)),
            ("load.drain", file.load.drain.as_deref()),
            ("check.command", Some(&*file.check.command)),
            ("service.stop", file.service.stop.as_deref()),
        ];
        let mut all: Vec<(String, &str)> = fixed
            .into_iter()
            .filter_map(|(key, command)| Some((key.to_owned(), command?)))
            .collect();
        for (name, conf) in &file.conf {
            for (value, entry) in &conf.values {
                let both = [("command", &entry.command), ("inverse", &entry.inverse)];
                for (which, command) in both {
                    let command = command.as_deref();
                    all.extend(command.map(|c| (format!("conf.{name}.{value}.{which}"), c)));
                }
            }
        }
        all
    }
}

/// As a variant prints itself, if it is one that this refit knows.
fn canonical(settings: &str) -> String {
    refit_knobs::Variant::parse(settings).map_or_else(|_| settings.to_owned(), |v| v.to_string())
}

/// `90s`, `3m`, `500ms`.
#[must_use]
pub fn parse_time(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 6] = [
        ("ms", 1e-3),
        ("min", 60.0),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("", 1.0),
    ];
    UNITS
        .iter()
        .find_map(|(unit, seconds)| {
            let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
            Duration::try_from_secs_f64(number * seconds).ok()
        })
        .filter(|time| !time.is_zero())
}

struct Checker<'a> {
    name: &'a str,
    file: &'a RecipeFile,
}

impl Checker<'_> {
    fn wrong(&self, key: &str, problem: impl Into<String>) -> RecipeError {
        RecipeError::Key {
            file: self.name.to_owned(),
            key: key.to_owned(),
            problem: problem.into(),
        }
    }

    fn regex(&self, key: &str, text: &str) -> Result<Regex, RecipeError> {
        // Outputs have lines.
        let multi = format!("(?m){text}");
        Regex::new(&multi)
            .map_err(|error| self.wrong(key, format!("`{text}` is no regular expression: {error}")))
    }

    fn with_group(&self, key: &str, text: &str) -> Result<Regex, RecipeError> {
        let regex = self.regex(key, text)?;
        if regex.captures_len() < 2 {
            let problem = format!("`{text}` has no group; put the number in ( )");
            return Err(self.wrong(key, problem));
        }
        Ok(regex)
    }

    fn time(&self, key: &str, text: Option<&str>) -> Result<Duration, RecipeError> {
        text.map_or(Ok(PATIENCE), |text| {
            parse_time(text).ok_or_else(|| {
                self.wrong(
                    key,
                    format!("`{text}` is no time; write it as 90s, 3m or 500ms"),
                )
            })
        })
    }

    fn texts(&self) -> Result<(), RecipeError> {
        let file = self.file;
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if file.name.is_empty() || !file.name.chars().all(plain) {
            let problem = format!("`{}` is no name; use lower case, digits and `-`", file.name);
            return Err(self.wrong("name", problem));
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        for port in &file.service.ports {
            if port.is_empty() || !port.chars().all(plain) {
                let problem = format!("`{port}` is no name; use lower case, digits and `_`");
                return Err(self.wrong("service.ports", problem));
            }
        }
        if let Some(pattern) = file.needs.files.iter().find(|path| !path.starts_with('/')) {
            return Err(self.wrong("needs.files", format!("`{pattern}` is no absolute path")));
        }
        if let Some(main) = &file.main
            && !is_built_in(main)
            && !file.load.metrics.contains_key(main)
        {
            let problem = format!(
                "`{main}` is no metric; declare [load.metrics.{main}], or leave it out for `rate`"
            );
            return Err(self.wrong("main", problem));
        }
        Ok(())
    }

    fn service(&self) -> Result<Option<ServiceStart>, RecipeError> {
        let service = &self.file.service;
        let Some(start) = &service.start else {
            for (key, given) in [
                ("ready", service.ready.is_some()),
                ("stop", service.stop.is_some()),
            ] {
                if given {
                    let problem =
                        "without `start` there is nothing to wait for; the load is the program";
                    return Err(self.wrong(&format!("service.{key}"), problem));
                }
            }
            return Ok(None);
        };
        let ready = service.ready.clone().unwrap_or_default();
        let form =
            "write exactly one of tcp, unix, log or command, as in ready = { tcp = \"http\" }";
        let ready = match (ready.tcp, ready.unix, ready.log, ready.command) {
            (Some(port), None, None, None) => {
                if !service.ports.contains(&port) {
                    let problem = format!("`{port}` is not among `ports`");
                    return Err(self.wrong("service.ready.tcp", problem));
                }
                Ready::Tcp(port)
            }
            (None, Some(path), None, None) => Ready::Unix(path),
            (None, None, Some(line), None) => {
                Ready::Log(self.regex("service.ready.log", &line)?, ready.file.clone())
            }
            (None, None, None, Some(command)) => Ready::Command(command),
            _ => return Err(self.wrong("service.ready", form)),
        };
        let file = service.ready.as_ref().and_then(|ready| ready.file.as_ref());
        if file.is_some() && !matches!(ready, Ready::Log(..)) {
            return Err(self.wrong("service.ready.file", "only `log` reads a file"));
        }
        Ok(Some(ServiceStart {
            start: start.clone(),
            ready,
            stop: service.stop.clone(),
            ready_timeout: self.time("service.ready-timeout", service.ready_timeout.as_deref())?,
            stop_timeout: self.time("service.stop-timeout", service.stop_timeout.as_deref())?,
        }))
    }

    fn work(&self) -> Result<Work, RecipeError> {
        match &self.file.load.operations {
            Operations::Number(0) => {
                Err(self.wrong("load.operations", "0 operations measure nothing"))
            }
            Operations::Number(n) => Ok(Work::Number(*n, self.file.load.brief.unwrap_or(*n))),
            Operations::Read(read) => Ok(Work::Read(
                self.with_group("load.operations.regex", &read.regex)?,
            )),
        }
    }

    fn metrics(&self) -> Result<Vec<LoadMetric>, RecipeError> {
        let entries = self.file.load.metrics.iter();
        entries
            .map(|(name, entry)| {
                let key = format!("load.metrics.{name}");
                if is_built_in(name) {
                    let problem = format!("`{name}` is a metric of refit's own; choose another name");
                    return Err(self.wrong(&key, problem));
                }
                let Some((_, factor)) = Unit::parse(&entry.unit) else {
                    let problem = format!(
                        "`{}` is no unit; there are ns us ms s, bytes KiB MiB GiB, count, per-second",
                        entry.unit
                    );
                    return Err(self.wrong(&format!("{key}.unit"), problem));
                };
                if !["less", "more"].contains(&&*entry.better) {
                    let problem = format!("`{}` is neither `less` nor `more`", entry.better);
                    return Err(self.wrong(&format!("{key}.better"), problem));
                }
                let source = match (&entry.regex, &entry.pointer) {
                    (Some(text), None) => Source::Regex(self.with_group(&format!("{key}.regex"), text)?),
                    (None, Some(pointer)) if pointer.starts_with('/') => Source::Pointer(pointer.clone()),
                    (None, Some(pointer)) => {
                        let problem = format!("`{pointer}` is no JSON Pointer; it begins with `/`");
                        return Err(self.wrong(&format!("{key}.pointer"), problem));
                    }
                    _ => return Err(self.wrong(&key, "write either `regex` or `pointer`")),
                };
                Ok(LoadMetric {
                    name: name.clone(),
                    source,
                    factor,
                })
            })
            .collect()
    }

    fn conf(&self) -> Result<(), RecipeError> {
        for (name, conf) in &self.file.conf {
            for (value, entry) in &conf.values {
                let key = format!("conf.{name}.{value}");
                conf::class(&entry.class).ok_or_else(|| {
                    let all: Vec<String> = Class::ALL.iter().map(ToString::to_string).collect();
                    let problem = format!("`{}` is none of {}", entry.class, all.join(", "));
                    self.wrong(&format!("{key}.class"), problem)
                })?;
                conf::action(entry).map_err(|problem| self.wrong(&key, problem))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use folder::FolderFile;

    const SMALL: &str = "name = \"small\"\nquestion.en = \"?\"\n[load]\ncommand = \"true\"\noperations = 1\nunit = \"run\"\n[check]\ncommand = \"true\"\n";

    fn read(text: &str) -> Result<Recipe, RecipeError> {
        Recipe::new(Folder {
            origin: Some("/r".into()),
            files: vec![FolderFile {
                path: "recipe.toml".into(),
                bytes: text.into(),
                executable: false,
            }],
        })
    }

    fn refused(text: &str) -> String {
        read(text).map(|_| text).unwrap_err().to_string()
    }

    #[test]
    fn the_smallest_recipe_is_a_load_and_a_check() {
        let recipe = read(SMALL).unwrap();
        assert!(recipe.service.is_none());
        assert_eq!(recipe.main(), "rate");
        assert_eq!(recipe.commands().len(), 2);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let error = refused(&format!("{SMALL}\n[service]\nstrat = \"x\"\n"));
        assert!(
            error.contains("line 11") && error.contains("strat"),
            "{error}"
        );
        let error = refused(&format!(
            "{SMALL}[conf.a.b]\nclass = \"safe\"\nfiel = \"x\"\n"
        ));
        assert!(
            error.contains("line 11") && error.contains("fiel"),
            "{error}"
        );
        let error = refused("name = \"x\"\n");
        assert!(error.contains("question"), "{error}");
    }

    #[test]
    fn what_contradicts_itself_is_named_by_its_key() {
        for (more, key) in [
            (
                "[load.metrics.p99]\nregex = 'a'\nunit = 'ms'\n",
                "load.metrics.p99.regex",
            ),
            (
                "[load.metrics.p99]\nregex = '(a)'\nunit = 'mm'\n",
                "load.metrics.p99.unit",
            ),
            (
                "[load.metrics.pss]\nregex = '(a)'\nunit = 'ms'\n",
                "load.metrics.pss",
            ),
            ("[load.metrics.a]\nunit = 'ms'\n", "load.metrics.a"),
            (
                "[load.metrics.a]\npointer = 'b'\nunit = 'ms'\n",
                "load.metrics.a.pointer",
            ),
            ("[service]\nstart = 'x'\n", "service.ready"),
            (
                "[service]\nstart = 'x'\nready = { tcp = 'http' }\n",
                "service.ready.tcp",
            ),
            (
                "[service]\nstart = 'x'\nready = { tcp = 'a', unix = 'b' }\n",
                "service.ready",
            ),
            ("[service]\nstop = 'x'\n", "service.stop"),
            ("[service]\nports = ['A B']\n", "service.ports"),
            (
                "[service]\nstart = 'x'\nready = { unix = 's' }\nready-timeout = 'soon'\n",
                "service.ready-timeout",
            ),
            ("[needs]\nfiles = ['etc/x']\n", "needs.files"),
            (
                "[conf.a.b]\nclass = 'harmless'\ncommand = 'a'\ninverse = 'b'\n",
                "conf.a.b.class",
            ),
            ("[conf.a.b]\nclass = 'safe'\ncommand = 'a'\n", "conf.a.b"),
        ] {
            let error = refused(&format!("{SMALL}{more}"));
            assert!(error.contains(&format!(" {key}: ")), "{more}: {error}");
        }
        let error =
            refused(&SMALL.replace("name = \"small\"", "name = \"small\"\nmain = \"speed\""));
        assert!(error.contains("main: `speed`"), "{error}");
    }

    #[test]
    fn every_recipe_that_refit_carries_can_be_read() {
        for name in shipped_names() {
            let recipe = Recipe::find(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(recipe.name(), name);
            assert!(recipe.file.question.ja.is_some(), "{name}");
        }
    }
}
