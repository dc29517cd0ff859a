//! From a request to its verdicts: records each mode, cuts it, checks what is
//! left.
//!
//! refit itself only waits. The work is done in mount and pid namespaces of its
//! own: whatever ends refit ends all of its processes, and with them its mounts
//! and its loop devices.

use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use refit_knobs::{Class, Setting, Settings};
use refit_recipe::{Bound, Room};
use refit_run::{InEffect, SettingReport, class_of};

use crate::cuts;
use crate::error::{CrashError, unwritable};
use crate::inspection::{self, Inspection};
use crate::isolated::isolated;
use crate::mode::{BoundRecord, Mode, RecordSummary, Role, State};
use crate::paths::Paths;
use crate::record::Kind;
use crate::recorded_run::RecordedRun;
use crate::recording;
use crate::report::{BASELINE, CONTROL, CrashReport, SCHEMA};
use crate::request::{Program, Request};
use crate::requirements::missing;

/// Cuts of the control. It has to show a loss; its losses are not counted.
const CONTROL_CUTS: usize = 12;
/// Its cuts where those show none: of a program that moves what it has from one file to another, most images are whole
/// however old they are.
const MORE_CONTROL_CUTS: usize = 60;

/// What is under way, as it changes.
pub trait Progress {
    /// `mode` is being recorded, checked and so on.
    fn step(&mut self, mode: &str, what: &str);
}

/// Does what the request asks for. The records stay in its directory.
///
/// # Errors
/// There is no verdict. The directory is left to the caller.
pub fn crash(request: &Request, progress: &mut impl Progress) -> Result<CrashReport, CrashError> {
    let missing = missing(request);
    if !missing.is_empty() {
        return Err(CrashError::Missing(missing));
    }
    // Of this process, and so of all that it starts. It looks at all processes of the machine, which the work does not see.
    let _room = match &request.program {
        Program::Recipe(recipe) => Room::enter(&recipe.file, &request.directory).map_err(|why| {
            CrashError::Refused(format!(
                "the service of {} would run as an account of the machine, or be open to other users: {why}\n  \
                 in a container: docker run --privileged, podman run --privileged",
                recipe.name()
            ))
        })?,
        Program::Command(_) => None,
    };
    isolated(|| Trial::new(request, progress)?.run())
}

struct Trial<'a, P> {
    request: &'a Request,
    progress: &'a mut P,
    paths: Paths,
}

/// A mode that has been recorded.
struct Recorded {
    name: String,
    role: Role,
    settings: Settings,
    run: RecordedRun,
}

impl<'a, P: Progress> Trial<'a, P> {
    fn new(request: &'a Request, progress: &'a mut P) -> Result<Self, CrashError> {
        let mount = match &request.mount {
            Some(mount) => mount.clone(),
            None => {
                let mount = request.directory.join("mount");
                fs::create_dir_all(&mount).map_err(unwritable(&mount))?;
                mount
            }
        };
        let paths = Paths {
            directory: request.directory.clone(),
            mount,
        };
        if let Program::Recipe(recipe) = &request.program {
            let (folder, tmpfs) = (paths.recipe(), paths.tmpfs());
            let written = recipe.folder.write_for_services(&folder);
            written.map_err(unwritable(&folder))?;
            fs::create_dir(&tmpfs).map_err(unwritable(&tmpfs))?;
        }
        Ok(Trial {
            request,
            progress,
            paths,
        })
    }

    fn run(&mut self) -> Result<CrashReport, CrashError> {
        let mut report = self.report();
        let baseline = self.record(BASELINE, Role::Baseline, &Settings::default())?;
        self.progress.step(CONTROL, "tearing blocks");
        report.sees_torn_blocks = self.inspection(&baseline).sees_torn_blocks()?;
        let control = self.control(&baseline)?;
        // An image that does not mount says nothing about the check.
        let is_blind = !control.shows_a_loss();
        report.modes.push(control);
        if is_blind {
            report.invalid = Some(
                "on a disk that ignored its flushes for a second nothing was lost: either the check cannot see a loss, or the program wrote too little in the last second before each cut".to_owned(),
            );
            return Ok(report);
        }
        let mode = self.cut(baseline)?;
        report.modes.push(mode);
        for candidate in &self.request.candidates {
            let name = candidate.to_string();
            let recorded = self.record(&name, Role::Candidate, candidate.settings())?;
            let mode = self.cut(recorded)?;
            report.modes.push(mode);
        }
        Ok(report)
    }

    fn report(&self) -> CrashReport {
        let request = self.request;
        let kernel = rustix::system::uname();
        let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
        let Studied {
            recipe,
            command,
            prepare,
            load,
            ready,
        } = Studied::of(&request.program);
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        CrashReport {
            schema: SCHEMA,
            kind: "crash".to_owned(),
            refit: env!("CARGO_PKG_VERSION").to_owned(),
            recipe,
            command,
            with: request.with.to_string(),
            check: request.check_text.clone(),
            ack: request.ack.to_string(),
            load,
            background: request.background.clone(),
            prepare,
            ready,
            length_ns: u64::try_from(request.length.as_nanos()).unwrap_or(u64::MAX),
            stop: request.stop,
            cuts: request.cuts,
            options: request.options.clone(),
            filesystem: request.filesystem.clone(),
            disk_bytes: request.disk_bytes,
            tear_bytes: request.tear,
            kernel: format!(
                "{} {} {}",
                text(kernel.sysname()),
                text(kernel.release()),
                text(kernel.machine())
            ),
            machine: refit_run::fingerprint::fixed(&request.directory),
            mkfs: request.filesystem.tool_version(),
            seed: request.seed,
            started: since.map_or(0, |time| time.as_secs()),
            directory: request.directory.display().to_string(),
            mount: self.paths.mount.display().to_string(),
            sees_torn_blocks: None,
            modes: Vec::new(),
            invalid: None,
        }
    }

    fn record(
        &mut self,
        name: &str,
        role: Role,
        settings: &Settings,
    ) -> Result<Recorded, CrashError> {
        self.progress.step(name, "recording");
        let launch = self.request.with.join(settings).launch();
        let run = recording::record(self.request, &launch, &self.paths, &file_name(name))?;
        let recorded = Recorded {
            name: name.to_owned(),
            role,
            settings: settings.clone(),
            run,
        };
        // The configuration of a variant may take its data to another place, as to
        // a tmpfs. The baseline has shown that the check finds what is there.
        let may_be_elsewhere =
            settings.0.iter().any(|one| one.conf().is_some()) && self.may_lose(settings);
        if !may_be_elsewhere {
            self.progress.step(name, "checking the intact image");
            self.inspection(&recorded).intact()?;
        }
        Ok(recorded)
    }

    fn inspection<'b>(&'b self, recorded: &'b Recorded) -> Inspection<'b> {
        Inspection {
            paths: &self.paths,
            record: self.paths.record(&file_name(&recorded.name)),
            filesystem: &self.request.filesystem,
            check: &self.request.check,
            check_timeout: self.request.check_timeout,
            acknowledgements: &recorded.run.acknowledgements,
            starts_in_image: matches!(self.request.program, Program::Recipe(_)),
            env: &recorded.run.env,
            tear: self.request.tear,
        }
    }

    fn cut(&mut self, recorded: Recorded) -> Result<Mode, CrashError> {
        let cuts = self.cuts(&recorded)?;
        self.progress
            .step(&recorded.name, &format!("{} cuts", cuts.len()));
        let began = Instant::now();
        let states = self
            .inspection(&recorded)
            .cut(&cuts, self.request.workers)?;
        self.mode(
            recorded.name.clone(),
            recorded.role,
            &recorded,
            states,
            began.elapsed(),
        )
    }

    /// The baseline's record on a disk that ignores flushes.
    fn control(&mut self, baseline: &Recorded) -> Result<Mode, CrashError> {
        let control = self.control_of(baseline, CONTROL_CUTS)?;
        if control.shows_a_loss() {
            return Ok(control);
        }
        self.control_of(baseline, MORE_CONTROL_CUTS)
    }

    fn control_of(&mut self, baseline: &Recorded, count: usize) -> Result<Mode, CrashError> {
        let all = self.cuts(baseline)?;
        let from = self.summary(baseline)?.from_ns;
        let cuts = cuts::lying(&all, from, count);
        self.progress.step(CONTROL, &format!("{} cuts", cuts.len()));
        let began = Instant::now();
        let states = self.inspection(baseline).cut(&cuts, self.request.workers)?;
        self.mode(
            CONTROL.to_owned(),
            Role::Control,
            baseline,
            states,
            began.elapsed(),
        )
    }

    fn cuts(&self, recorded: &Recorded) -> Result<Vec<crate::image::Cut>, CrashError> {
        let record = inspection::open(&self.paths.record(&file_name(&recorded.name)))?;
        let run = &recorded.run;
        let times: Vec<u64> = run.acknowledgements.iter().map(|one| one.at).collect();
        let range = (run.from, run.to);
        Ok(cuts::choose(
            &record,
            &times,
            range,
            self.request.cuts,
            self.request.seed,
        ))
    }

    fn mode(
        &self,
        name: String,
        role: Role,
        recorded: &Recorded,
        states: Vec<State>,
        checked: Duration,
    ) -> Result<Mode, CrashError> {
        Ok(Mode {
            name,
            role,
            settings: self.settings(recorded),
            class: self
                .classes(&recorded.settings)
                .max()
                .unwrap_or(Class::Safe)
                .to_string(),
            may_lose: self.may_lose(&recorded.settings),
            bound: self.bound(&recorded.settings),
            record: self.summary(recorded)?,
            run: (role != Role::Control).then(|| recorded.run.run.clone()),
            durability: match role {
                Role::Control => None,
                Role::Baseline | Role::Candidate => recorded.run.durability.clone(),
            },
            checked_ns: u64::try_from(checked.as_nanos()).unwrap_or(u64::MAX),
            states,
        })
    }

    /// Each setting with its class, and where it was in effect.
    fn settings(&self, recorded: &Recorded) -> Vec<SettingReport> {
        let settings = recorded.settings.0.iter();
        let classes = self.classes(&recorded.settings);
        let report = |(setting, class): (&Setting, Class)| SettingReport {
            setting: setting.clone(),
            class,
            in_effect: InEffect::of(setting, &recorded.run.run),
        };
        settings.zip(classes).map(report).collect()
    }

    /// The classes of some settings, those of `conf.` as the recipe declares them.
    fn classes(&self, settings: &Settings) -> impl Iterator<Item = Class> {
        settings
            .0
            .iter()
            .map(|setting| match &self.request.program {
                Program::Command(_) => class_of(setting),
                Program::Recipe(recipe) => recipe.class_of(setting),
            })
    }

    fn may_lose(&self, settings: &Settings) -> bool {
        self.classes(settings).any(Class::risks_data)
    }

    fn bound(&self, settings: &Settings) -> Option<BoundRecord> {
        let Program::Recipe(recipe) = &self.request.program else {
            return None;
        };
        let bound = recipe.bound(settings)?;
        Some(BoundRecord {
            text: bound.to_string(),
            oldest_ns: match bound {
                Bound::Age(age) => Some(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)),
                Bound::NewestOnly => None,
            },
        })
    }

    fn summary(&self, recorded: &Recorded) -> Result<RecordSummary, CrashError> {
        let name = file_name(&recorded.name);
        let path = self.paths.record(&name);
        let record = inspection::open(&path)?;
        let run = &recorded.run;
        let first = record.entries().first().map_or(0, |entry| entry.start);
        let mut summary = RecordSummary {
            name,
            length_ns: run.to - run.from,
            from_ns: run.from.saturating_sub(first),
            acknowledged_ns: run
                .acknowledgements
                .iter()
                .map(|one| one.at.saturating_sub(first))
                .collect(),
            outside_syncs: run.outside_syncs,
            ..RecordSummary::default()
        };
        for (index, entry) in record.entries().iter().enumerate() {
            if entry.start < run.from || entry.end > run.to {
                continue;
            }
            summary.stored_bytes += record.stored_bytes(index);
            if entry.kind == Kind::Flush {
                summary.flushes += 1;
                summary.flushed_ns.push(entry.end - first);
            } else {
                summary.writes += 1;
                summary.written_bytes += entry.length;
            }
        }
        Ok(summary)
    }
}

/// The program, in the words of a report.
struct Studied {
    recipe: Option<String>,
    command: Vec<String>,
    prepare: Option<String>,
    load: Option<String>,
    ready: Option<String>,
}

impl Studied {
    fn of(program: &Program) -> Studied {
        match program {
            Program::Command(typed) => Studied {
                recipe: None,
                command: typed
                    .command
                    .iter()
                    .map(|word| word.to_string_lossy().into_owned())
                    .collect(),
                prepare: typed.prepare.clone(),
                load: typed.load.clone(),
                ready: typed.ready.clone(),
            },
            Program::Recipe(recipe) => {
                let load = recipe.file.load.command.clone();
                let promise = recipe.promise().ok();
                let service = recipe.service.as_ref();
                let is_load =
                    service.is_some() && promise.is_some_and(|promise| promise.load.is_some());
                Studied {
                    recipe: Some(recipe.typed()),
                    command: vec![
                        service.map_or_else(|| load.clone(), |service| service.start.clone()),
                    ],
                    prepare: promise.and_then(|promise| promise.prepare.clone()),
                    load: is_load.then_some(load),
                    ready: None,
                }
            }
        }
    }
}

/// A mode's name as a directory.
#[must_use]
pub fn file_name(mode: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.=@:+,".contains(c) {
            c
        } else {
            '_'
        }
    };
    mode.chars().map(plain).collect()
}
