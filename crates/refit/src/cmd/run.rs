//! `refit run`: run a command once, and report what happened.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use refit_knobs::Settings;
use refit_launch::{End, Ended, Options, StartError, answer_within, end_as, prepare, privileged};
use refit_run::{
    Ack, Before, DurabilityCheck, DurabilityReport, HeapPaths, Ignored, InEffect, Rule, RunReport,
    SCHEMA, SettingReport, TraceFile, Watch, explain, grouped,
};
use refit_session::{Session, remove_abandoned};

use super::bounded::bounded;
use super::print::{self, say};
use super::result_file::{ResultFile, refuse_stdout, stream};
use crate::cli::RunArgs;

/// refit's own failure before the start (env(1), timeout(1)).
pub const OWN_FAILURE: u8 = 125;
/// The command was found but cannot be executed, or was not found.
pub const NOT_EXECUTABLE: u8 = 126;
pub const NOT_FOUND: u8 = 127;

/// What was typed, understood.
struct Plan {
    args: RunArgs,
    settings: Settings,
    /// Opened before the start, so that a file that cannot be written stops
    /// everything while nothing has happened.
    json: Option<ResultFile>,
    html: Option<ResultFile>,
    trace: Option<File>,
    heap_stacks: Option<ResultFile>,
    cpu_stacks: Option<ResultFile>,
    sarif: Option<ResultFile>,
    junit: Option<ResultFile>,
    /// What was found before.
    known: Option<DurabilityReport>,
}

impl Plan {
    /// What runs.
    fn program(&self) -> String {
        let typed = || self.args.command[0].display().to_string();
        self.settings.launch().program.unwrap_or_else(typed)
    }
}

/// How often refit reads what was recorded while the program runs, and while it is
/// traced: the witness and the event ring have room for what any program can do in
/// between.
const TICK: Duration = Duration::from_millis(50);
/// How often refit looks whether it is time for a sample of what the threads do.
const TIME_TICK: Duration = Duration::from_millis(5);
const TRACE_TICK: Duration = Duration::from_millis(1);

/// How long the stacks of allocations are unwound.
const TIMEOUT: Duration = Duration::from_secs(20);

pub fn main(args: RunArgs) -> ExitCode {
    match plan(args).and_then(|plan| plan.map_or(Ok(ExitCode::SUCCESS), start)) {
        Ok(code) => code,
        Err(error) => print::failed(&error, OWN_FAILURE),
    }
}

fn plan(args: RunArgs) -> Result<Option<Plan>> {
    let settings = Settings::parse(args.settings.clone())?;
    if let Some(path) = &args.input {
        read_from(path)?;
    }
    if args.explain {
        let settings: Vec<_> = settings.0.iter().map(explain).collect();
        print::result(&refit_report::explanation(&settings))?;
        return Ok(None);
    }
    if args.command.is_empty() {
        let typed: String = settings
            .0
            .iter()
            .map(|setting| format!("{setting} "))
            .collect();
        bail!("no command to run\n  write it after `--`: refit run {typed}-- COMMAND");
    }
    let is_silent = args.quiet && args.json.is_none() && args.html.is_none();
    for (option, is_given, stacks) in [
        ("--heap", args.heap, &args.heap_stacks),
        ("--cpu", args.cpu, &args.cpu_stacks),
    ] {
        if is_given && is_silent && stacks.is_none() {
            bail!(
                "{option} has nowhere to report\n  leave --quiet out, or add --json FILE or {option}-stacks FILE"
            );
        }
    }
    refuse_stdout([
        ("--json", &args.json),
        ("--html", &args.html),
        ("--trace-sync", &args.trace_sync),
        ("--heap-stacks", &args.heap_stacks),
        ("--cpu-stacks", &args.cpu_stacks),
        ("--sarif", &args.sarif),
        ("--junit", &args.junit),
    ])?;
    if args.durability {
        refuse_swapped_syncs(&settings)?;
    }
    let known = args.known.as_deref().map(known_findings).transpose()?;
    let json = args.json.as_deref().map(ResultFile::create).transpose();
    let html = args.html.as_deref().map(ResultFile::create).transpose();
    let trace = args.trace_sync.as_deref().map(stream).transpose();
    let create = |path: &Option<PathBuf>| path.as_deref().map(ResultFile::create).transpose();
    let (heap_stacks, cpu_stacks) = (create(&args.heap_stacks), create(&args.cpu_stacks));
    let (sarif, junit) = (create(&args.sarif), create(&args.junit));
    Ok(Some(Plan {
        args,
        settings,
        json: json.context("--json")?,
        html: html.context("--html")?,
        trace: trace.context("--trace-sync")?,
        heap_stacks: heap_stacks.context("--heap-stacks")?,
        cpu_stacks: cpu_stacks.context("--cpu-stacks")?,
        sarif: sarif.context("--sarif")?,
        junit: junit.context("--junit")?,
        known,
    }))
}

/// A sync that is not made covers nothing: what would be found is what was asked for.
fn refuse_swapped_syncs(settings: &Settings) -> Result<()> {
    let swaps = settings
        .0
        .iter()
        .find(|setting| setting.knob().name == "sync");
    match swaps {
        Some(setting) => bail!(
            "--durability looks at the syncs that a program makes, and {setting} takes them away\n  leave {setting} out"
        ),
        None => Ok(()),
    }
}

/// What an earlier run has found.
fn known_findings(path: &Path) -> Result<DurabilityReport> {
    let context = || format!("--known {}", path.display());
    let text = std::fs::read(path).with_context(context)?;
    let report: RunReport = serde_json::from_slice(&text)
        .context("it is not the --json of a run")
        .with_context(context)?;
    let durability = report.durability;
    durability
        .context("the run that it is of had no --durability")
        .with_context(context)
}

/// Makes the file the standard input of refit, and so of the program.
fn read_from(path: &Path) -> Result<()> {
    let file = super::input::open(path)?;
    rustix::stdio::dup2_stdin(file).context("--input: cannot make it the standard input")
}

fn start(mut plan: Plan) -> Result<ExitCode> {
    remove_abandoned();
    let results = [
        &plan.json,
        &plan.html,
        &plan.heap_stacks,
        &plan.cpu_stacks,
        &plan.sarif,
        &plan.junit,
    ];
    let has_file = plan.trace.is_some() || results.iter().any(|file| file.is_some());
    let count = !plan.args.quiet || has_file || plan.args.durability;
    let acknowledges = Ack::told(&plan.args.ack).map_err(|why| anyhow!("--ack: {why}"))?;
    let options = Options {
        count,
        follow_env: !plan.args.no_follow_env,
        allocator_dir: plan.args.allocator_dir.clone(),
        trace: plan.trace.is_some(),
        heap: plan.args.heap,
        durability: plan.args.durability.then_some(acknowledges),
        reach: plan.args.reach.reach(),
        seed: plan.args.seed.unwrap_or_else(crate::cli::new_seed),
        ..Options::default()
    };
    if let Some(cost) = privileged::cost(&options.reach) {
        say(cost);
    }
    let mut prepared = prepare(&plan.settings.launch(), &options, &plan.args.command)?;
    if !count {
        let error = prepared.replace();
        return Ok(not_started(&plan, prepared.session, &error));
    }
    let mut watch = Watch::begin(&prepared, plan.json.is_some() || plan.html.is_some())
        .with_witness()
        .with_time_account();
    if plan.args.purge {
        watch = watch.with_purge();
    }
    if plan.args.cpu {
        watch = match watch.with_cpu_profile() {
            Ok(watch) => watch,
            Err(why) => {
                prepared.session.remove();
                bail!("--cpu: there are no samples: {why}");
            }
        };
    }
    let check = match prepared.file_ring.take() {
        None => None,
        Some(ring) => {
            let ignored = Ignored::new(plan.args.ignore.clone());
            match DurabilityCheck::begin(ring, ignored) {
                Ok(check) => Some(check),
                Err(why) => {
                    prepared.session.remove();
                    bail!("--durability: nobody follows the program: {why}");
                }
            }
        }
    };
    let event_ring = prepared.event_ring.as_ref();
    let mut trace = plan
        .trace
        .take()
        .and_then(|file| Some(TraceFile::new(event_ring?, file)));
    let every = if trace.is_some() {
        TRACE_TICK
    } else {
        TIME_TICK
    };
    let mut looked = Instant::now();
    let tick = || {
        trace.iter_mut().for_each(TraceFile::tick);
        watch.sample_time(&prepared.session);
        if looked.elapsed() >= TICK {
            watch.tick();
            looked = Instant::now();
        }
    };
    let before = Before::look(&plan.args.command);
    match prepared.run(every, tick) {
        Ok(ended) => {
            if let (Some(trace), Some(path)) = (trace, &plan.args.trace_sync) {
                finish_trace(trace, path);
            }
            finish(plan, prepared.session, watch, check, &ended, before)
        }
        Err(error) => {
            watch.close_in_background();
            Ok(not_started(&plan, prepared.session, &error))
        }
    }
}

fn finish_trace(trace: TraceFile, path: &Path) {
    let path = path.display();
    match trace.finish() {
        Ok(0) => {}
        Ok(lost) => say(format_args!(
            "--trace-sync: {path} lacks {} calls, which came faster than they could be written",
            grouped(lost)
        )),
        Err(error) => say(format_args!(
            "--trace-sync: {path} is not complete: {error}"
        )),
    }
}

fn not_started(plan: &Plan, session: Session, error: &StartError) -> ExitCode {
    session.remove();
    say(format_args!("cannot run {}: {error}", plan.program()));
    ExitCode::from(if error.0.kind() == io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_EXECUTABLE
    })
}

/// Who allocated what is live, as far as that can be told: the stacks and the files with their functions are what the
/// program left, and may have no end.
fn heap_paths(watch: &Watch) -> Vec<HeapPaths> {
    if !watch.counts_heap() {
        return Vec::new();
    }
    let read = || serde_json::to_vec(&watch.heap_paths()).unwrap_or_default();
    let why = match answer_within(TIMEOUT, read) {
        Ok(Some(answer)) => match serde_json::from_slice(&answer) {
            Ok(paths) => return paths,
            Err(error) => error.to_string(),
        },
        Ok(None) => format!("they were not unwound within {} s", TIMEOUT.as_secs()),
        Err(error) => error.to_string(),
    };
    say(format_args!(
        "--heap: the stacks of what is live cannot be read: {why}"
    ));
    Vec::new()
}

/// The program has ended: refit reports, and ends in the same way.
fn finish(
    mut plan: Plan,
    session: Session,
    mut watch: Watch,
    check: Option<DurabilityCheck>,
    ended: &Ended,
    before: Before,
) -> ! {
    let is_success = matches!(ended.end, End::Exited(0));
    let durability = check.map(|check| durability(check, is_success, plan.known.take()));
    let run = watch.finish(ended, &session);
    let heap_paths = heap_paths(&watch);
    let cpu = match watch.cpu_profile() {
        Some(Err(why)) => {
            say(format_args!("--cpu: the samples cannot be read: {why}"));
            None
        }
        sampled => sampled.and_then(Result::ok),
    };
    watch.close_in_background();
    if run.survivors.is_empty() {
        session.remove();
    }
    let report = RunReport {
        schema: SCHEMA,
        kind: "run".to_owned(),
        refit: env!("CARGO_PKG_VERSION").to_owned(),
        command: plan
            .args
            .command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        settings: plan
            .settings
            .0
            .iter()
            .map(|setting| SettingReport::new(setting.clone(), InEffect::of(setting, &run)))
            .collect(),
        repetition: before.compare(&run),
        heap_paths,
        cpu,
        durability: durability.as_ref().and_then(|known| known.clone().ok()),
        run,
    };
    if let Some(found) = &report.durability {
        write_findings(&mut plan, found, &report.refit);
    }
    if let Some(file) = plan.json
        && let Err(error) = write_json(file, &report)
    {
        say(format_args!("--json: {error:#}"));
    }
    let shown = bounded(&report);
    if let Some(file) = plan.html
        && let Err(error) = file.write(refit_report::run_html(&shown).as_bytes())
    {
        say(format_args!("--html: {error:#}"));
    }
    let cpu = shown.cpu.as_ref().map(refit_report::cpu_profile);
    for (option, file, path, profile) in [
        (
            "--heap-stacks",
            plan.heap_stacks,
            &plan.args.heap_stacks,
            Some(refit_report::heap_profile(&shown.heap_paths)),
        ),
        ("--cpu-stacks", plan.cpu_stacks, &plan.args.cpu_stacks, cpu),
    ] {
        if let (Some(file), Some(path), Some(profile)) = (file, path, profile) {
            let extension = path.extension().and_then(OsStr::to_str);
            if let Err(error) = file.write(profile.file(extension).as_bytes()) {
                say(format_args!("{option}: {error:#}"));
            }
        }
    }
    if !plan.args.quiet {
        print::drawn(&refit_report::run_summary(
            &shown,
            print::width_of_messages(),
        ));
    }
    if is_success && gate(&plan.args.fail_on, durability) {
        end_as(End::Exited(1));
    }
    end_as(ended.end)
}

/// For code-scanning pages and test pages.
fn write_findings(plan: &mut Plan, found: &DurabilityReport, version: &str) {
    let directory = std::env::current_dir().unwrap_or_default();
    let words = plan.args.command.iter().map(|word| word.to_string_lossy());
    let words: Vec<String> = words.map(|word| refit_report::shell_word(&word)).collect();
    let sarif = || refit_report::sarif(found, version, &directory);
    let junit = || {
        let fail_on = &plan.args.fail_on;
        refit_report::durability_junit(found, &words.join(" "), fail_on)
    };
    let texts = [
        ("--sarif", plan.sarif.take(), sarif()),
        ("--junit", plan.junit.take(), junit()),
    ];
    for (option, file, text) in texts {
        if let Some(file) = file
            && let Err(error) = file.write(text.as_bytes())
        {
            say(format_args!("{option}: {error:#}"));
        }
    }
}

/// What no sync covered, as far as that can be told.
fn durability(
    check: DurabilityCheck,
    is_success: bool,
    known: Option<DurabilityReport>,
) -> Result<DurabilityReport, String> {
    let mut found = check.finish(is_success)?;
    if let Some(known) = known {
        found.mark_known(&known);
    }
    Ok(found)
}

/// Whether a rule is broken that the run is to fail on; where that is not known, it may be.
fn gate(fail_on: &[Rule], found: Option<Result<DurabilityReport, String>>) -> bool {
    match found {
        None => false,
        Some(Ok(found)) if !fail_on.is_empty() && (found.programs == 0 || found.lost > 0) => {
            say(
                "--fail-on: not all was seen of what was done to files, so the rules count as broken",
            );
            true
        }
        Some(Ok(found)) => found
            .new_findings()
            .any(|finding| fail_on.contains(&finding.rule)),
        Some(Err(why)) => {
            say(format_args!(
                "--durability: what was found cannot be read: {why}"
            ));
            !fail_on.is_empty()
        }
    }
}

fn write_json(file: ResultFile, report: &RunReport) -> Result<()> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    file.write(text.as_bytes())
}
