//! `--prove`, of a comparison and of a tuning: the power of what risks data is cut, by `refit crash` in a process of its own.
//! Whatever ends that process ends its mounts and programs, and what was measured before is
//! still printed.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use refit_crash::CrashReport;
use refit_crash::filesystem::Kind;
use refit_crash::machine_lacks;
use refit_knobs::Settings;
use refit_lab::Comparison;
use refit_recipe::Recipe;
use refit_report::Proof;
use refit_run::{doze, interruptions, with_first_signals};

use super::exit_code::{FAILED, TROUBLE};
use crate::cli::{CompareArgs, ReachArgs};
use crate::cmd::print;

/// Between two looks at the process.
const TICK: Duration = Duration::from_millis(100);

/// What has to be typed otherwise, before anything is measured.
pub fn refuse(args: &CompareArgs, recipe: Option<&Recipe>) -> Result<()> {
    if !args.prove {
        if args.cuts.is_some() {
            bail!("--cuts is for --prove; add it, or leave out --cuts");
        }
        return Ok(());
    }
    let Some(recipe) = recipe else {
        bail!(
            "--prove needs a recipe, whose [promise] defines what is acknowledged\n  name one: refit compare append-log --prove\n  or cut a command: refit crash --check CHECK --ack SOURCE VARIANT -- COMMAND"
        );
    };
    if args.cuts == Some(0) {
        bail!("--cuts 0: nothing would be checked; take at least 1");
    }
    recipe.promise()?;
    let with = Settings::parse(args.with.clone())?;
    if recipe.with_load(&with.launch().load)?.open_loop().is_some() {
        bail!(
            "--prove cuts under the load of the recipe's promise, and load.rate is another one; leave out one of the two"
        );
    }
    Ok(())
}

/// Why no power can be cut on this machine. The comparison can be made all the same.
pub fn missing(recipe: &Recipe) -> Option<String> {
    let lacks = machine_lacks(Kind::Ext4);
    if !lacks.is_empty() {
        return Some(format!(
            "simulated power cuts cannot be made here: {}",
            lacks.join("; ")
        ));
    }
    recipe.promise_missing()
}

/// Cuts the baseline, every variant that risks data, and those that the recipe's promise names. With it the exit code
/// where the measurement's own is 0.
pub fn prove(args: &CompareArgs, recipe: &Recipe, comparison: &Comparison) -> (Proof, u8) {
    let also = recipe.promise().map(|promise| &promise.also[..]);
    let is_named = |name: &String| also.as_ref().is_ok_and(|also| also.contains(name));
    let candidates = comparison.experiment.candidates();
    let names: Vec<&str> = candidates
        .filter(|(_, variant)| variant.risks_data() || is_named(&variant.name))
        .map(|(_, variant)| &*variant.name)
        .collect();
    if names.is_empty() {
        let why = "no variant that is left risks data by its class; refit crash cuts any variant";
        return (Proof::NotCut(why.to_owned()), 0);
    }
    let missing = match comparison.experiment.interrupted {
        true => Some("the comparison was interrupted".to_owned()),
        false => missing(recipe),
    };
    if let Some(why) = missing {
        return (Proof::NotCut(why), TROUBLE);
    }
    let cuts = Cuts {
        with: &args.with,
        quiet: args.quiet,
        cuts: args.cuts,
        seed: args.seed,
        allocator_dir: args.allocator_dir.as_deref(),
        reach: &args.reach,
    };
    match cuts.make(recipe, &names, None) {
        Ok(report) => {
            let code = code(&report);
            (Proof::Cut(Box::new(report)), code)
        }
        Err(error) => (Proof::NotCut(format!("{error:#}")), TROUBLE),
    }
}

/// What was typed that power cuts take over.
pub struct Cuts<'a> {
    pub with: &'a [OsString],
    pub quiet: bool,
    /// Of each mode; `None`: as in the recipe.
    pub cuts: Option<usize>,
    pub seed: Option<u64>,
    pub allocator_dir: Option<&'a Path>,
    pub reach: &'a ReachArgs,
}

impl Cuts<'_> {
    /// Cuts the baseline and these variants, in a process of its own, which is ended at `latest`.
    ///
    /// # Errors
    /// Interrupted, too late, or that of `refit crash`.
    pub fn make(
        &self,
        recipe: &Recipe,
        names: &[&str],
        latest: Option<Instant>,
    ) -> Result<CrashReport> {
        cut(&words(self, recipe, names), latest)
    }
}

/// What was typed for the comparison, as words of `refit crash`. The commands of the recipe have been
/// agreed to.
fn words(args: &Cuts, recipe: &Recipe, names: &[&str]) -> Vec<OsString> {
    let mut words = vec![OsString::from("--yes")];
    if args.quiet {
        words.push("--quiet".into());
    }
    for with in args.with {
        words.extend(["--with".into(), with.clone()]);
    }
    if let Some(cuts) = args.cuts {
        words.extend(["--cuts".into(), cuts.to_string().into()]);
    }
    if let Some(seed) = args.seed {
        words.extend(["--seed".into(), seed.to_string().into()]);
    }
    if let Some(directory) = args.allocator_dir {
        words.extend(["--allocator-dir".into(), directory.into()]);
    }
    words.extend(["--ends-with".into(), std::process::id().to_string().into()]);
    words.extend(args.reach.words().into_iter().map(OsString::from));
    words.push(recipe.typed().into());
    words.extend(names.iter().map(OsString::from));
    words
}

/// `refit crash` with these words, in a process of its own, which is ended at `latest`.
///
/// # Errors
/// Interrupted, too late, or its own.
pub fn cut(words: &[OsString], latest: Option<Instant>) -> Result<CrashReport> {
    let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
    let [json, failure] = ["crash.json", "failure"].map(|name| directory.path().join(name));
    let refit = std::env::current_exe().context("cannot find refit itself")?;
    let mut command = Command::new(refit);
    command
        .args(["crash", "--json"])
        .arg(&json)
        .arg("--failure")
        .arg(&failure)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let ended = run(with_first_signals(&mut command), latest)?;
    let Some(ended) = ended else {
        if interruptions() == 0 {
            bail!("the budget ended during the power cuts");
        }
        bail!("interrupted during the power cuts");
    };
    if let Ok(why) = fs::read_to_string(failure) {
        bail!("{why}");
    }
    read(&json).with_context(|| format!("refit crash ended ({ended})"))
}

/// Waits for its end; `None`: interrupted or too late, and it was killed. The kernel then ends all that it
/// started.
fn run(command: &mut Command, latest: Option<Instant>) -> Result<Option<ExitStatus>> {
    let mut child = command.spawn().context("cannot start refit crash")?;
    loop {
        if let Some(status) = ended(child.try_wait())? {
            return Ok((interruptions() == 0).then_some(status));
        }
        if interruptions() > 0 || latest.is_some_and(|latest| Instant::now() >= latest) {
            // It may have ended by the same Ctrl-C.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        doze(TICK);
    }
}

fn ended(status: io::Result<Option<ExitStatus>>) -> Result<Option<ExitStatus>> {
    status.context("cannot wait for refit crash")
}

fn read(json: &Path) -> Result<CrashReport> {
    let text = fs::read_to_string(json).context("it left no report")?;
    serde_json::from_str(&text).context("its report cannot be read")
}

fn code(report: &CrashReport) -> u8 {
    let mut modes = report.modes.iter();
    match &report.invalid {
        Some(_) => TROUBLE,
        None if modes.any(|mode| report.breaks_class(mode)) => FAILED,
        None => 0,
    }
}

/// Says before the measurement that no power will be cut.
pub fn warn(args: &CompareArgs, recipe: Option<&Recipe>) {
    if let Some(missing) = recipe.filter(|_| args.prove).and_then(missing) {
        print::say(format_args!(
            "--prove: {missing}\n  what the variants gain is measured all the same"
        ));
    }
}
