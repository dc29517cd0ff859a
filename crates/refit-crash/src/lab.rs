//! From a request to its verdicts: record each mode, cut it, look what is left.
//!
//! refit itself only waits. The lab works in mount and pid namespaces of its own:
//! whatever ends it ends all of its processes, and with them go its mounts and
//! its loop devices.

use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use refit_knobs::{Class, Settings};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::cuts;
use crate::error::{CrashError, io_error};
use crate::filesystem::Kind as FsKind;
use crate::record::Kind;
use crate::recording::{self, Paths, answer, own_proc};
use crate::report::{BASELINE, CONTROL, CrashReport, Mode, RecordSummary, Role, SCHEMA, State};
use crate::request::Request;
use crate::stage::{Played, read_all, words};
use crate::sys::process::{fork, own_mounts, own_pids};
use crate::trial::{self, Trial};

/// Cuts of the control: it has to lose, not to be counted.
const CONTROL_CUTS: usize = 12;

/// What is under way, as it changes.
pub trait Progress {
    /// `mode` is being recorded, checked and so on.
    fn step(&mut self, mode: &str, what: &str);
}

/// Asks the lab. The records stay in the request's directory.
///
/// # Errors
/// There is no verdict. The directory is left to the caller.
pub fn crash(request: &Request, progress: &mut impl Progress) -> Result<CrashReport, CrashError> {
    let missing = missing(request);
    if !missing.is_empty() {
        return Err(CrashError::Missing(missing));
    }
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)
        .map_err(|error| io_error("cannot make a pipe")(error.into()))?;
    own_pids().map_err(io_error("cannot make a pid namespace"))?;
    let mut lab = fork(move || {
        let result = enter()
            .map_err(io_error("cannot enter namespaces"))
            .and_then(|()| Lab::new(request, progress)?.work());
        i32::from(answer(&to, result).is_err())
    })
    .map_err(io_error("cannot fork"))?;
    let bytes = read_all(from).map_err(io_error("cannot hear of the lab"))?;
    let code = lab.wait();
    let result: Result<CrashReport, String> = serde_json::from_slice(&bytes)
        .map_err(|_| CrashError::Refused(format!("the lab ended with {code} and said nothing")))?;
    result.map_err(CrashError::Refused)
}

/// Mounts are the lab's own from here on, and nothing of them leaves it.
pub(crate) fn enter() -> std::io::Result<()> {
    own_mounts()?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    own_proc()
}

/// What the machine lacks for this request.
#[must_use]
pub fn missing(request: &Request) -> Vec<String> {
    let mut missing = machine_lacks(request.filesystem.kind);
    if let Some(tool) = request.check.tool()
        && !is_there(&tool)
    {
        missing.push(format!(
            "{} is not installed; --check needs it",
            tool.display()
        ));
    }
    missing
}

/// What the machine lacks for any simulated power cut.
#[must_use]
pub fn machine_lacks(kind: FsKind) -> Vec<String> {
    let mut missing = Vec::new();
    if !rustix::process::geteuid().is_root() {
        missing.push("root is needed to mount file systems".to_owned());
        return missing;
    }
    for (path, what) in [("/dev/fuse", "FUSE"), ("/dev/loop-control", "loop devices")] {
        let opened = fs::File::options().read(true).write(true).open(path);
        if let Err(error) = opened {
            missing.push(format!("{what}: {path}: {error}"));
        }
    }
    let mkfs = format!("mkfs.{}", kind.name());
    if !is_there(mkfs.as_ref()) {
        missing.push(format!("{mkfs} is not installed"));
    }
    missing
}

fn is_there(tool: &std::path::Path) -> bool {
    if tool.is_absolute() {
        return tool.exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(tool).exists())
}

struct Lab<'a, P> {
    request: &'a Request,
    progress: &'a mut P,
    paths: Paths,
}

/// A mode that has been recorded.
struct Recorded {
    name: String,
    role: Role,
    settings: Settings,
    played: Played,
}

impl<'a, P: Progress> Lab<'a, P> {
    fn new(request: &'a Request, progress: &'a mut P) -> Result<Self, CrashError> {
        let mount = match &request.mount {
            Some(mount) => mount.clone(),
            None => {
                let mount = request.directory.join("mount");
                fs::create_dir_all(&mount)
                    .map_err(io_error(format!("cannot make {}", mount.display())))?;
                mount
            }
        };
        let paths = Paths {
            directory: request.directory.clone(),
            mount,
        };
        Ok(Lab {
            request,
            progress,
            paths,
        })
    }

    fn work(&mut self) -> Result<CrashReport, CrashError> {
        let mut report = self.report();
        let baseline = self.record(BASELINE, Role::Baseline, &Settings::default())?;
        let control = self.control(&baseline)?;
        // That a state does not mount says nothing about the check.
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
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        CrashReport {
            schema: SCHEMA,
            kind: "crash".to_owned(),
            refit: env!("CARGO_PKG_VERSION").to_owned(),
            command: words(&request.command),
            with: request.with.to_string(),
            check: request.check_text.clone(),
            ack: request.ack.to_string(),
            load: request.load.clone(),
            beside: request.beside.clone(),
            prepare: request.prepare.clone(),
            ready: request.ready.clone(),
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
            machine: refit_lab::machine(&request.directory),
            mkfs: request.filesystem.tool_version(),
            seed: request.seed,
            started: since.map_or(0, |time| time.as_secs()),
            directory: request.directory.display().to_string(),
            mount: self.paths.mount.display().to_string(),
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
        let all = self
            .request
            .with
            .join(settings)
            .map_err(|error| CrashError::Refused(error.to_string()))?;
        let launch = all.launch();
        let played = recording::record(self.request, &launch, &self.paths, &file_name(name))?;
        let recorded = Recorded {
            name: name.to_owned(),
            role,
            settings: settings.clone(),
            played,
        };
        self.progress.step(name, "checking the intact image");
        self.trial(&recorded).intact()?;
        Ok(recorded)
    }

    fn trial<'b>(&'b self, recorded: &'b Recorded) -> Trial<'b> {
        Trial {
            paths: &self.paths,
            record: self.paths.record(&file_name(&recorded.name)),
            filesystem: &self.request.filesystem,
            check: &self.request.check,
            check_timeout: self.request.check_timeout,
            promises: &recorded.played.promises,
            tear: self.request.tear,
        }
    }

    fn cut(&mut self, recorded: Recorded) -> Result<Mode, CrashError> {
        let cuts = self.cuts(&recorded)?;
        self.progress
            .step(&recorded.name, &format!("{} cuts", cuts.len()));
        let began = Instant::now();
        let states = self.trial(&recorded).cut(&cuts, self.request.workers)?;
        self.mode(
            recorded.name.clone(),
            recorded.role,
            &recorded,
            states,
            began.elapsed(),
        )
    }

    /// The baseline's record on a disk that lies.
    fn control(&mut self, baseline: &Recorded) -> Result<Mode, CrashError> {
        let all = self.cuts(baseline)?;
        let from = self.summary(baseline)?.from_ns;
        let cuts = cuts::lying(&all, from, CONTROL_CUTS);
        self.progress.step(CONTROL, &format!("{} cuts", cuts.len()));
        let began = Instant::now();
        let states = self.trial(baseline).cut(&cuts, self.request.workers)?;
        self.mode(
            CONTROL.to_owned(),
            Role::Control,
            baseline,
            states,
            began.elapsed(),
        )
    }

    fn cuts(&self, recorded: &Recorded) -> Result<Vec<crate::image::Cut>, CrashError> {
        let record = trial::open(&self.paths.record(&file_name(&recorded.name)))?;
        let played = &recorded.played;
        let times: Vec<u64> = played.promises.iter().map(|promise| promise.at).collect();
        let range = (played.from, played.to);
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
        let settings = &recorded.settings.0;
        Ok(Mode {
            name,
            role,
            class: recorded.settings.class().to_string(),
            may_lose: settings
                .iter()
                .any(|one| matches!(one.class(), Class::LosesOnCrash | Class::BoundedLoss)),
            record: self.summary(recorded)?,
            run: (role != Role::Control).then(|| recorded.played.run.clone()),
            checked_ns: u64::try_from(checked.as_nanos()).unwrap_or(u64::MAX),
            states,
        })
    }

    fn summary(&self, recorded: &Recorded) -> Result<RecordSummary, CrashError> {
        let name = file_name(&recorded.name);
        let path = self.paths.record(&name);
        let record = trial::open(&path)?;
        let played = &recorded.played;
        let first = record.entries().first().map_or(0, |entry| entry.start);
        let mut summary = RecordSummary {
            name,
            length_ns: played.to - played.from,
            from_ns: played.from.saturating_sub(first),
            acknowledged_ns: played
                .promises
                .iter()
                .map(|promise| promise.at.saturating_sub(first))
                .collect(),
            ..RecordSummary::default()
        };
        for (index, entry) in record.entries().iter().enumerate() {
            if entry.start < played.from || entry.end > played.to {
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
