//! Keys of a recipe.toml that contradict themselves or each other.

use std::collections::BTreeMap;
use std::time::Duration;

use refit_knobs::{Settings, Variant};
use refit_load::Protocol;
use refit_run::printable;
use regex_lite::Regex;

use crate::answers;
use crate::conf::{self, ConfAction};
use crate::error::RecipeError;
use crate::file::{Operations, RecipeFile};
use crate::folder::Folder;
use crate::metrics::{all_built_in, is_built_in_for};
use crate::open_loop::{ARRIVALS_KNOB, RATE_KNOB};
use crate::output::{LoadMetric, Progress, Source, Work};
use crate::records::{AnswerRecord, DdlRecord};
use crate::start::{Ready, ServiceStart};

/// The longest wait for a service or a hook, unless the recipe has another.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Settings as a variant prints itself, if this refit knows them; otherwise unchanged.
pub fn canonical(settings: &str) -> String {
    Variant::parse(settings).map_or_else(|_| settings.to_owned(), |v| v.to_string())
}

/// Checks one file.
pub struct Checker<'a> {
    /// The name of the file, for messages.
    pub name: &'a str,
    /// The file as it was parsed.
    pub file: &'a RecipeFile,
}

/// What is wrong with the name of a recipe, if anything.
pub fn invalid_name(name: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_valid = !name.is_empty() && name.chars().all(plain);
    (!is_valid).then(|| format!("invalid name `{name}`; use lower case, digits and `-`"))
}

impl Checker<'_> {
    pub(crate) fn wrong(&self, key: &str, problem: impl Into<String>) -> RecipeError {
        RecipeError::Key {
            file: self.name.to_owned(),
            key: key.to_owned(),
            // It repeats what the file holds.
            problem: printable(&problem.into()),
        }
    }

    fn regex(&self, key: &str, text: &str) -> Result<Regex, RecipeError> {
        // Outputs have lines: ^ and $ match at each.
        let multi = format!("(?m){text}");
        Regex::new(&multi).map_err(|error| {
            self.wrong(key, format!("invalid regular expression `{text}`: {error}"))
        })
    }

    fn with_group(&self, key: &str, text: &str) -> Result<Regex, RecipeError> {
        let regex = self.regex(key, text)?;
        if regex.captures_len() < 2 {
            let problem = format!("`{text}` has no group; put the number in parentheses");
            return Err(self.wrong(key, problem));
        }
        Ok(regex)
    }

    pub fn texts(&self) -> Result<(), RecipeError> {
        let file = self.file;
        if let Some(problem) = invalid_name(&file.name) {
            return Err(self.wrong("name", problem));
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        for port in &file.service.ports {
            if port.is_empty() || !port.chars().all(plain) {
                let problem = format!("invalid name `{port}`; use lower case, digits and `_`");
                return Err(self.wrong("service.ports", problem));
            }
        }
        if let Some(pattern) = file.needs.files.iter().find(|path| !path.starts_with('/')) {
            return Err(self.wrong(
                "needs.files",
                format!("`{pattern}` is not an absolute path"),
            ));
        }
        if let Some(main) = &file.main
            && !is_built_in_for(main, file.service.start.is_some())
            && !file.load.metrics.contains_key(main)
        {
            let problem = format!(
                "the runs have no metric `{main}`; declare [load.metrics.{main}], or leave it out for `rate`"
            );
            return Err(self.wrong("main", problem));
        }
        Ok(())
    }

    /// What the note answered, with variants as they print themselves.
    pub fn then(
        &self,
        folder: &Folder,
    ) -> Result<BTreeMap<String, Vec<AnswerRecord>>, RecipeError> {
        let Some(table) = &self.file.table else {
            return Ok(BTreeMap::new());
        };
        if table.only && self.file.main.is_some() {
            let problem = "with `table.only` nothing is measured; leave it out";
            return Err(self.wrong("main", problem));
        }
        let Some(name) = &table.then else {
            return Ok(BTreeMap::new());
        };
        let key = "table.then";
        if self.file.note.is_none() {
            return Err(self.wrong(key, "say in [note] whose answers these are"));
        }
        let text = folder.file(name).map(String::from_utf8_lossy);
        let text =
            text.ok_or_else(|| self.wrong(key, format!("the folder has no file `{name}`")))?;
        let note = answers::read_note(&text)
            .map_err(|problem| self.wrong(key, format!("{name}: {problem}")))?;
        Ok(note
            .into_iter()
            .map(|(variant, answers)| (canonical(&variant), answers))
            .collect())
    }

    /// The statements that values of `conf` stand for, by `conf.NAME=VALUE`.
    pub fn ddl(&self, folder: &Folder) -> Result<BTreeMap<String, DdlRecord>, RecipeError> {
        let mut all = BTreeMap::new();
        for (name, conf) in &self.file.conf {
            for (value, entry) in &conf.values {
                let key = format!("conf.{name}.{value}.ddl");
                let (apply, inverse) = match (&entry.ddl, &entry.ddl_inverse) {
                    (None, None) => continue,
                    (Some(apply), Some(inverse)) => (apply, inverse),
                    _ => return Err(self.wrong(&key, "`ddl` and `ddl-inverse` go together")),
                };
                let read = |file: &str| match folder.file(file).map(str::from_utf8) {
                    Some(Ok(text)) => Ok(text.trim().to_owned()),
                    Some(Err(_)) => Err(self.wrong(&key, format!("`{file}` is not text"))),
                    None => Err(self.wrong(&key, format!("the folder has no file `{file}`"))),
                };
                let (apply, inverse) = (read(apply)?, read(inverse)?);
                all.insert(format!("conf.{name}={value}"), DdlRecord { apply, inverse });
            }
        }
        Ok(all)
    }

    pub fn service(&self) -> Result<Option<ServiceStart>, RecipeError> {
        let service = &self.file.service;
        let Some(start) = &service.start else {
            for (key, given) in [
                ("keep", service.keep.is_some()),
                ("ready", service.ready.is_some()),
                ("stop", service.stop.is_some()),
                ("ready-timeout", service.ready_timeout.is_some()),
                ("stop-timeout", service.stop_timeout.is_some()),
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
            keep: service.keep.unwrap_or(false),
            ready,
            stop: service.stop.clone(),
            ready_timeout: service.ready_timeout.map_or(DEFAULT_TIMEOUT, |time| time.0),
            stop_timeout: service.stop_timeout.map_or(DEFAULT_TIMEOUT, |time| time.0),
        }))
    }

    pub fn work(&self) -> Result<Work, RecipeError> {
        let load = &self.file.load;
        match &load.operations {
            Operations::Number(0) => {
                Err(self.wrong("load.operations", "0 operations measure nothing"))
            }
            Operations::Number(_) if load.brief == Some(0) => {
                Err(self.wrong("load.brief", "0 operations check nothing"))
            }
            Operations::Read(_) if load.brief.is_some() => {
                let problem = "`operations` is read from the output; only a number has a brief one";
                Err(self.wrong("load.brief", problem))
            }
            Operations::Number(n) => Ok(Work::Number(*n, load.brief.unwrap_or(*n))),
            Operations::Read(read) => Ok(Work::Read(
                self.with_group("load.operations.regex", &read.regex)?,
            )),
        }
    }

    pub fn progress(&self) -> Result<Option<Progress>, RecipeError> {
        let Some(entry) = &self.file.load.progress else {
            return Ok(None);
        };
        Ok(Some(Progress {
            regex: self.with_group("load.progress.regex", &entry.regex)?,
            file: entry.file.clone(),
        }))
    }

    pub fn metrics(&self) -> Result<Vec<LoadMetric>, RecipeError> {
        let entries = self.file.load.metrics.iter();
        entries
            .map(|(name, entry)| {
                let key = format!("load.metrics.{name}");
                if all_built_in().contains(&&**name) {
                    let problem =
                        format!("`{name}` is a metric of refit's own; choose another name");
                    return Err(self.wrong(&key, problem));
                }
                let source = match (&entry.regex, &entry.pointer) {
                    (Some(text), None) => {
                        Source::Regex(self.with_group(&format!("{key}.regex"), text)?)
                    }
                    (None, Some(pointer)) if pointer.starts_with('/') => {
                        Source::Pointer(pointer.clone())
                    }
                    (None, Some(pointer)) => {
                        let problem =
                            format!("`{pointer}` is not a JSON Pointer, which begins with `/`");
                        return Err(self.wrong(&format!("{key}.pointer"), problem));
                    }
                    _ => return Err(self.wrong(&key, "write either `regex` or `pointer`")),
                };
                Ok(LoadMetric {
                    name: name.clone(),
                    source,
                    factor: entry.unit.factor(),
                })
            })
            .collect()
    }

    pub fn series(&self) -> Result<(), RecipeError> {
        for series in &self.file.series {
            let key = format!("series `{}`", series.title);
            if series.metrics.is_empty() {
                return Err(self.wrong(&key, "it has no metrics"));
            }
            let is_service = self.file.service.start.is_some();
            for name in &series.metrics {
                if !self.file.load.metrics.contains_key(name) && !is_built_in_for(name, is_service)
                {
                    let problem =
                        format!("the runs have no metric `{name}`; declare [load.metrics.{name}]");
                    return Err(self.wrong(&key, problem));
                }
            }
            if series.at.is_empty() {
                continue;
            }
            if series.at.len() != series.metrics.len() {
                let problem = format!(
                    "`at` has {} places for {} metrics",
                    series.at.len(),
                    series.metrics.len()
                );
                return Err(self.wrong(&key, problem));
            }
            // The axis is a logarithmic one. (A NaN is not in order either.)
            let in_order = series.at.windows(2).all(|two| two[0] < two[1]);
            if !(in_order && series.at[0] > 0.0 && series.at.iter().all(|at| at.is_finite())) {
                return Err(self.wrong(&key, "`at` has to rise, from more than 0"));
            }
        }
        Ok(())
    }

    pub fn load_knobs(&self) -> Result<(), RecipeError> {
        for (name, knob) in &self.file.load.knobs {
            let key = format!("load.knobs.{name}");
            let word = format!("load.{name}={}", knob.default);
            if let Err(error) = Settings::parse([word.into()]) {
                return Err(self.wrong(&key, error.to_string()));
            }
            if !knob.takes(&knob.default) {
                let problem = match knob.choices.is_empty() {
                    true => "a number of 1 or more, or one of `choices`".to_owned(),
                    false => format!("one of `choices`: {}", knob.choices.join(", ")),
                };
                return Err(self.wrong(&format!("{key}.default"), problem));
            }
        }
        Ok(())
    }

    pub fn open_loop(&self) -> Result<(), RecipeError> {
        let Some(open) = &self.file.load.open else {
            return Ok(());
        };
        let key = |key: &str| format!("load.open.{key}");
        if self.file.service.start.is_none() {
            let problem = "requests are sent to a service; declare `service.start`";
            return Err(self.wrong("load.open", problem));
        }
        for name in [RATE_KNOB, ARRIVALS_KNOB] {
            if self.file.load.knobs.contains_key(name) {
                let problem = "with [load.open] refit declares it; choose another name";
                return Err(self.wrong(&format!("load.knobs.{name}"), problem));
            }
        }
        let Some(protocol) = Protocol::named(&open.protocol) else {
            let known = Protocol::ALL.map(|(name, _)| name).join(", ");
            let problem = format!("no such protocol `{}`; write one of {known}", open.protocol);
            return Err(self.wrong(&key("protocol"), problem));
        };
        match (&open.tcp, &open.unix) {
            (Some(port), None) if self.file.service.ports.contains(port) => {}
            (Some(port), None) => {
                let problem = format!("`{port}` is not among `service.ports`");
                return Err(self.wrong(&key("tcp"), problem));
            }
            (None, Some(_)) => {}
            _ => return Err(self.wrong("load.open", "write either `tcp` or `unix`")),
        }
        if let Err(error) = protocol.request(&open.request) {
            return Err(self.wrong(&key("request"), error.to_string()));
        }
        if !(1..=10_000).contains(&open.connections.unwrap_or(1)) {
            return Err(self.wrong(&key("connections"), "write a number from 1 to 10000"));
        }
        Ok(())
    }

    pub fn conf(&self) -> Result<(), RecipeError> {
        for (name, conf) in &self.file.conf {
            for (value, entry) in &conf.values {
                let key = format!("conf.{name}.{value}");
                let action = conf::action(entry).map_err(|problem| self.wrong(&key, problem))?;
                if self.file.service.keep == Some(true) && matches!(action, ConfAction::Edit { .. })
                {
                    let problem = "`service.keep` starts the server once, and it would not read an edited file again; write `command` and `inverse`";
                    return Err(self.wrong(&key, problem));
                }
            }
        }
        Ok(())
    }

    pub fn promise(&self) -> Result<(), RecipeError> {
        let Some(promise) = &self.file.promise else {
            return Ok(());
        };
        let key = |key: &str| format!("promise.{key}");
        if self.file.service.keep == Some(true) {
            let problem = "`service.keep` starts the server once for all variants, and each of them is cut on a disk of its own; leave out one of the two";
            return Err(self.wrong("promise", problem));
        }
        match (&promise.ack, &promise.ack_regex) {
            (Some(_), None) => {}
            (None, Some(text)) => {
                Regex::new(text).map_err(|error| {
                    self.wrong(
                        &key("ack-regex"),
                        format!("invalid regular expression `{text}`: {error}"),
                    )
                })?;
            }
            _ => return Err(self.wrong("promise", "write either `ack` or `ack-regex`")),
        }
        if promise.cuts == Some(0) {
            return Err(self.wrong(&key("cuts"), "0 cuts show nothing; write at least 1"));
        }
        for settings in &promise.also {
            refit_knobs::Settings::parse([settings.into()])
                .map_err(|error| self.wrong(&key("also"), error.to_string()))?;
        }
        Ok(())
    }
}
