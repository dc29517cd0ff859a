//! `refit watch PID --cpu`: where what already runs is on the processors.

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use refit_run::{CpuSampling, count_interruptions, doze, has_ended, interruptions};
use rustix::process::{Resource, getrlimit, setrlimit};

use super::target::target;
use crate::cli::WatchArgs;
use crate::cmd::print;
use crate::cmd::result_file::ResultFile;

/// How often it is looked whether the time is over.
const TICK: Duration = Duration::from_millis(20);

pub fn main(args: &WatchArgs) -> ExitCode {
    match watch(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failed(&error, 2),
    }
}

fn watch(args: &WatchArgs) -> Result<()> {
    if args.what.is_empty() {
        bail!(
            "--cpu samples processes or a unit, not the whole machine\n  name them: refit watch $(pgrep -o NAME) --cpu"
        );
    }
    let stacks = args.cpu_stacks.as_deref();
    let stacks = stacks.map(ResultFile::create).transpose();
    let stacks = stacks.context("--cpu-stacks")?;
    let processes = target(&args.what)?.processes();
    count_interruptions();
    // A descriptor for each thread and processor.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    // Where it cannot be, the limit is named.
    let _ = setrlimit(Resource::Nofile, files);
    let sampling = CpuSampling::of_processes(&processes);
    let sampling = sampling.map_err(|why| {
        anyhow!("--cpu: there are no samples: {why}\n  watch processes of your own, or as root")
    })?;
    let began = Instant::now();
    let is_over = || args.time.is_some_and(|time| began.elapsed() >= time);
    let is_alive = |pid: &u32| !has_ended(Path::new("/proc"), *pid);
    while !is_over() && !print::has_lost_reader() && interruptions() == 0 {
        if !processes.iter().any(is_alive) {
            print::say("all that was watched has ended");
            break;
        }
        doze(TICK);
    }
    let profile = sampling.finish();
    let profile = profile.map_err(|why| anyhow!("--cpu: the samples cannot be read: {why}"))?;
    if let (Some(file), Some(path)) = (stacks, &args.cpu_stacks) {
        let extension = path.extension().and_then(OsStr::to_str);
        let drawn = refit_report::cpu_profile(&profile).file(extension);
        file.write(drawn.as_bytes()).context("--cpu-stacks")?;
    }
    print::result(&refit_report::cpu_lines(&profile))
}
