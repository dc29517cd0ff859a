//! Makes one run of one variant of a command, and decides whether it counts.

use std::cell::Cell;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};

use refit_knobs::{Launch, Settings};
use refit_run::{Options, Outcome, Prepared, Run, Watch, prepare, printable, with_first_signals};
use refit_stats::Rng;

use crate::copies::Copies;
use crate::error::LabError;
use crate::experiment::{Role, VariantRecord};
use crate::request::{CommandSubject, Request};
use crate::warnings::Warning;
use crate::writeback::Writeback;

use super::runner::{
    Blame, Made, Runs, disk_seed, io_error, launches, next_padding, options, unsettled,
};

/// Bytes of a failed run's stderr that are shown.
const TAIL: u64 = 400;

/// Runs variants of a command.
pub struct CommandRunner<'a> {
    request: &'a Request,
    subject: &'a CommandSubject,
    launches: Vec<(Launch, Role)>,
    /// How programs are started: the same for every run.
    options: Options,
    environment_bytes: usize,
    padding: usize,
    rng: Rng,
    writeback: Writeback,
    unsettled: usize,
    copies: Option<Copies>,
    /// How many programs were prepared so far.
    prepared: Cell<u32>,
    stdout: File,
    stderr: File,
    witness: bool,
    /// Hash and length of what the baseline printed.
    expected_output: Option<(u64, u64)>,
}

impl<'a> CommandRunner<'a> {
    pub fn new(
        request: &'a Request,
        subject: &'a CommandSubject,
        settings: &[Settings],
        variants: &[VariantRecord],
    ) -> Result<Self, LabError> {
        let directory = subject.fresh_copy.as_deref().unwrap_or(Path::new("."));
        let copies = subject.fresh_copy.as_deref().map(Copies::new).transpose();
        let launches = launches(settings, variants);
        let mut runner = CommandRunner {
            request,
            subject,
            options: options(request, &launches),
            launches,
            environment_bytes: 0,
            padding: 0,
            rng: Rng::new(request.seed ^ 0x7061_6464_696e_6721),
            writeback: Writeback::new(directory, request.budget),
            unsettled: 0,
            prepared: Cell::new(0),
            copies: copies.map_err(io_error(&format!("cannot copy {}", directory.display())))?,
            stdout: tempfile::tempfile().map_err(io_error("cannot make a temporary file"))?,
            stderr: tempfile::tempfile().map_err(io_error("cannot make a temporary file"))?,
            witness: false,
            expected_output: None,
        };
        // Every variant is prepared once before anything runs: what is missing is
        // reported now, and the largest environment is known.
        for variant in 0..runner.launches.len() {
            let prepared = runner.prepare(variant, None)?;
            runner.environment_bytes = runner.environment_bytes.max(prepared.environment_bytes());
            prepared.session.remove();
        }
        // Room for the name of the variable that fills it up.
        runner.environment_bytes += 64;
        Ok(runner)
    }

    fn prepare(
        &self,
        variant: usize,
        environment_bytes: Option<usize>,
    ) -> Result<Prepared, LabError> {
        let (launch, role) = &self.launches[variant];
        let options = Options {
            bare: *role == Role::Bare,
            environment_bytes,
            seed: disk_seed(self.request.seed, &self.prepared),
            ..self.options.clone()
        };
        Ok(prepare(launch, &options, &self.subject.words)?)
    }

    fn files(&mut self) -> Result<[File; 3], LabError> {
        let null = || File::options().read(true).write(true).open("/dev/null");
        let failed = "cannot open the files of a run";
        for file in [&mut self.stdout, &mut self.stderr] {
            file.set_len(0)
                .and_then(|()| file.seek(SeekFrom::Start(0)).map(drop))
                .map_err(io_error(failed))?;
        }
        let stdout = if self.subject.same_output {
            self.stdout.try_clone()
        } else {
            null()
        };
        let stdin = match &self.subject.input {
            Some(path) => File::open(path).map_err(io_error("cannot open the file of --input"))?,
            None => null().map_err(io_error(failed))?,
        };
        Ok([
            stdin,
            stdout.map_err(io_error(failed))?,
            self.stderr.try_clone().map_err(io_error(failed))?,
        ])
    }

    /// Why a run does not count, and whether that is final.
    fn failure(
        &mut self,
        variant: usize,
        run: &Run,
        timed_out: bool,
        directory: Option<&Path>,
    ) -> Result<(Option<String>, bool), LabError> {
        if timed_out {
            let limit = self.subject.timeout.unwrap_or_default();
            return Ok((
                Some(format!(
                    "did not end within {:.1} s (--timeout)",
                    limit.as_secs_f64()
                )),
                true,
            ));
        }
        let exit = match run.exit {
            Outcome::Code(0) => None,
            Outcome::Code(code) => Some(format!("exit code {code}")),
            Outcome::Signal(signal) => Some(format!("killed by signal {signal}")),
        };
        if let Some(exit) = exit {
            let tail = self
                .stderr_tail()
                .map_err(io_error("cannot read the stderr of a run"))?;
            return Ok((Some(format!("{exit}{tail}")), false));
        }
        if self.subject.same_output {
            let output = self
                .output()
                .map_err(io_error("cannot read the stdout of a run"))?;
            // A baseline that differs from itself is found by the hidden one, and a
            // candidate that ran before both by its next run.
            if matches!(self.launches[variant].1, Role::Baseline | Role::Hidden) {
                self.expected_output.get_or_insert(output);
            }
            if self
                .expected_output
                .is_some_and(|expected| expected != output)
            {
                return Ok((
                    Some("printed something else than the baseline (--same-output)".to_owned()),
                    true,
                ));
            }
        }
        if let Some(check) = self.subject.check.as_deref() {
            let status = shell(check, directory)
                .status()
                .map_err(io_error("--check"))?;
            if !status.success() {
                return Ok((Some(format!("--check failed: {status}")), true));
            }
        }
        Ok((None, false))
    }

    fn output(&mut self) -> io::Result<(u64, u64)> {
        self.stdout.seek(SeekFrom::Start(0))?;
        let (mut hasher, mut length) = (DefaultHasher::new(), 0);
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let n = self.stdout.read(&mut bytes)?;
            if n == 0 {
                return Ok((hasher.finish(), length));
            }
            hasher.write(&bytes[..n]);
            length += n as u64;
        }
    }

    /// The end of a failed run's stderr, as ` (…)`.
    fn stderr_tail(&mut self) -> io::Result<String> {
        let length = self.stderr.seek(SeekFrom::End(0))?;
        self.stderr
            .seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        (&mut self.stderr).take(TAIL).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).replace(['\n', '\t'], " ");
        Ok(match text.trim() {
            "" => String::new(),
            text => format!(" ({})", printable(text)),
        })
    }

    fn hook(
        &self,
        option: &str,
        command: Option<&str>,
        directory: Option<&Path>,
    ) -> Result<(), LabError> {
        let Some(command) = command else {
            return Ok(());
        };
        let status = shell(command, directory)
            .status()
            .map_err(io_error(option))?;
        if status.success() {
            return Ok(());
        }
        Err(LabError::Io {
            action: format!("{option} '{command}' failed"),
            cause: io::Error::other(status.to_string()),
        })
    }
}

impl Runs for CommandRunner<'_> {
    fn next_pair(&mut self) {
        self.padding = next_padding(&mut self.rng);
    }

    fn check_room(&self, runs: usize) -> Result<(), LabError> {
        let Some(copies) = &self.copies else {
            return Ok(());
        };
        let needed = copies.bytes.saturating_mul(runs as u64);
        let free = copies.free_bytes();
        if needed > free / 10 * 9 {
            return Err(LabError::NoRoom {
                needed_mib: needed >> 20,
                free_mib: free >> 20,
            });
        }
        Ok(())
    }

    fn call_witness(&mut self) {
        self.witness = true;
    }

    fn run(&mut self, variant: usize) -> Result<Made, LabError> {
        let directory = match &mut self.copies {
            Some(copies) => Some(
                copies
                    .fresh()
                    .map_err(io_error("cannot make a fresh copy"))?,
            ),
            None => None,
        };
        self.hook(
            "--prepare",
            self.subject.prepare.as_deref(),
            directory.as_deref(),
        )?;
        if !self.writeback.wait() {
            self.unsettled += 1;
        }
        let mut prepared = self.prepare(variant, Some(self.environment_bytes + self.padding))?;
        let files = self.files()?;
        let mut watch = Watch::begin(&prepared, true);
        if self.witness {
            watch = watch.with_witness();
        }
        let ended = prepared.measure(
            files,
            directory.as_deref(),
            self.subject.timeout,
            !self.witness,
            || watch.tick(),
        );
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                prepared.session.remove();
                return Err(LabError::Start {
                    command: self.launches[variant]
                        .0
                        .program
                        .clone()
                        .unwrap_or_else(|| self.subject.words[0].display().to_string()),
                    cause: error.0,
                });
            }
        };
        let run = watch.finish(&ended, &prepared.session);
        if run.survivors.is_empty() {
            prepared.session.remove();
        }
        let (failure, at_once) =
            self.failure(variant, &run, ended.timed_out, directory.as_deref())?;
        self.hook(
            "--conclude",
            self.subject.conclude.as_deref(),
            directory.as_deref(),
        )?;
        Ok(Made {
            run,
            load: None,
            failure,
            memory: None,
            blame: if at_once {
                Blame::VariantAtOnce
            } else {
                Blame::Variant
            },
        })
    }

    fn warnings(&self) -> Vec<Warning> {
        unsettled(self.unsettled).into_iter().collect()
    }
}

/// A hook: a shell command of the user. Its output goes to stderr, as progress does.
fn shell(command: &str, directory: Option<&Path>) -> Command {
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(command)
        .stdin(Stdio::null())
        .stdout(io::stderr());
    if let Some(directory) = directory {
        shell.current_dir(directory);
    }
    with_first_signals(&mut shell);
    shell
}
