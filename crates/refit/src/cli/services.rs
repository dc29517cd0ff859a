//! `refit plan`, `apply`, `confirm`, `status`, `revert`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use refit_knobs::Class;

use super::{OUTPUT, SETTINGS, complete, duration};

/// Show what applying settings to a service would change, and change nothing
///
/// Exit codes: 0; 2 when these settings cannot be applied to this service.
#[derive(Args)]
#[command(verbatim_doc_comment, after_long_help = kinds())]
pub struct PlanArgs {
    /// The service: a unit, as systemctl knows it, or another of those that --help lists; with --from
    /// the default is the one that the recipe stands for
    #[arg(value_name = "SERVICE", required_unless_present = "from")]
    pub service: Option<String>,

    /// Settings, as in `refit run`: malloc=jemalloc, or of the service's own configuration:
    /// conf.NAME=VALUE; --help lists what each service can have
    #[arg(value_name = "SETTINGS", add = ArgValueCompleter::new(complete::settings))]
    pub settings: Vec<OsString>,

    /// The settings of the winner of a comparison, stored by `refit compare --json`
    #[arg(long, value_name = "RESULT", conflicts_with = "settings", help_heading = SETTINGS)]
    pub from: Option<PathBuf>,

    /// Until the next reboot: in files below /run, or taken back before any service starts
    #[arg(long, help_heading = SETTINGS)]
    pub trial: bool,

    /// Take the change back after TIME, and at a reboot, unless `refit confirm` keeps it
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "trial", help_heading = SETTINGS)]
    pub confirm_within: Option<Duration>,

    /// Accept that a power cut can take what the service acknowledged: of settings of this class;
    /// loses-data: that a schema destroys what the plan lists
    #[arg(long, value_name = "CLASS", value_parser = class, help_heading = SETTINGS)]
    pub accept: Option<Class>,

    /// Apply without a measured result (--from RESULT); refit status shows that it is unmeasured
    #[arg(long, requires = "accept", help_heading = SETTINGS)]
    pub no_evidence: bool,

    /// A shell command that ends with 0 where the service does its work, within 60 s: asked before
    /// the change and after it, and by `refit confirm`. Where it does not, the change is taken back
    #[arg(long, value_name = "COMMAND", help_heading = SETTINGS)]
    pub health: Option<String>,

    #[command(flatten)]
    pub tree: TreeArgs,
}

/// What can be named as a service, and what each can have.
fn kinds() -> String {
    let lines = refit_services::kinds()
        .map(|(form, about, settings)| format!("\n  {form}\n      {about}: {settings}"));
    format!("Services and their settings:{}", lines.collect::<String>())
}

fn class(word: &str) -> Result<Class, String> {
    let is_risk = |class: &Class| class.risks_data() || *class == Class::LosesData;
    let mut risks = Class::ALL.into_iter().filter(is_risk);
    risks
        .find(|class| class.to_string() == word)
        .ok_or_else(|| {
            "no class that risks data; take bounded-loss, loses-on-crash or loses-data".to_owned()
        })
}

/// Make settings permanent on a service, and see that its processes have them
///
/// What is edited is recorded first: `refit revert SERVICE` restores it byte for
/// byte. A change that does not take effect is taken back at once.
///
/// Exit codes: 0, also when nothing is left to do; 1 when the change did not take
/// effect and was taken back; 2 when it cannot be made; 3 when what was applied
/// before differs now.
#[derive(Args)]
#[command(verbatim_doc_comment, after_long_help = kinds())]
pub struct ApplyArgs {
    #[command(flatten)]
    pub plan: PlanArgs,

    /// Do not ask
    #[arg(long)]
    pub yes: bool,

    /// Change nothing and ask nothing: print whether this would change anything, with exit code 0
    /// in both cases
    #[arg(long)]
    pub check: bool,

    /// Print edits and commands on the standard output
    #[arg(long, help_heading = OUTPUT)]
    pub diff: bool,
}

/// Keep a change that was applied with --confirm-within or --trial
///
/// Exit codes: 0, also when it was confirmed before; 1 when it is not in effect any more
/// once its files are in /etc; 2 when there is no change, or it was taken back; 3 when it
/// differs from what was applied.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct ConfirmArgs {
    /// The service
    #[arg(value_name = "SERVICE")]
    pub service: String,

    #[command(flatten)]
    pub tree: TreeArgs,
}

/// Show what is applied, and what differs from it: in the files, in what systemd has
/// loaded, in the processes
///
/// Exit codes: 0; 1 with --exit-code when anything differs; 2 when it cannot be read; 3 with
/// --export when anything differs.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct StatusArgs {
    /// Services; the default is all that have a change
    #[arg(value_name = "SERVICE")]
    pub services: Vec<String>,

    /// Exit with 1 when anything differs from what was applied
    #[arg(long)]
    pub exit_code: bool,

    /// Write JSON to FILE; `-`: stdout, in place of the text
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub json: Option<PathBuf>,

    /// Write metrics for node_exporter's textfile collector (docs/metrics.md)
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub openmetrics: Option<PathBuf>,

    /// Print what is applied as commands that apply it, a line each, here or on another machine;
    /// what differs is refused (3). `refit status DATABASE --export schema` prints the schema of a
    /// database as a file for schema=FILE, also of one without a change
    #[arg(long, conflicts_with_all = ["json", "exit_code", "openmetrics"], help_heading = OUTPUT)]
    pub export: bool,

    #[command(flatten)]
    pub tree: TreeArgs,
}

/// Take a change back: bytes, mode, owner, files and directories that were not there
///
/// Exit codes: 0; 1 when the service does not accept the settings that are left: SETTINGS
/// stay then; 2 when there is no change; 3 when a file was changed by somebody else
/// since: nothing is reverted then.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct RevertArgs {
    /// The service
    #[arg(value_name = "SERVICE")]
    pub service: String,

    /// These settings alone, as status shows them, or their names: malloc, conf.NAME; the others stay.
    /// The default is the whole change
    #[arg(value_name = "SETTINGS", conflicts_with = "unconfirmed")]
    pub settings: Vec<String>,

    /// Only a change that waits to be confirmed: the timer of --confirm-within runs this
    #[arg(long)]
    pub unconfirmed: bool,

    /// Likewise, before any service starts
    #[arg(long, requires = "unconfirmed", hide = true)]
    pub at_boot: bool,

    #[command(flatten)]
    pub tree: TreeArgs,
}

/// Which files.
#[derive(Args)]
pub struct TreeArgs {
    /// The tree below DIR, an image for example, in place of this machine: files only
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}
