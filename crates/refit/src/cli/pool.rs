//! `refit pool`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::output::PoolOutput;

const KUBERNETES: &str = "With --from kubernetes";

/// Read comparisons of several machines as one: the effect on each, on all, on another one
///
/// Each RESULT is a file that `refit compare --json` wrote, or a directory of them. All
/// must be of the same command or recipe, with the same variants. A machine counts once,
/// however many results it has; its name is in the result (`refit compare --machine`).
///
/// With --from kubernetes, RESULT is job/NAME: a finished Job that `refit export kubernetes
/// compare` made. Each index that completed counts once, its node is the machine; indexes
/// that failed or whose pod is gone are named. It asks kubectl, which needs the rights to
/// get jobs, to list pods and to get their logs.
///
/// Exit code: 0, or 2 when results cannot be read or do not belong together.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "refit pool [OPTIONS] RESULT...\n       refit pool [OPTIONS] --from kubernetes job/NAME..."
)]
pub struct PoolArgs {
    /// Stored comparisons, or directories of them
    #[arg(value_name = "RESULT", required = true)]
    pub results: Vec<PathBuf>,

    /// Where the results are
    #[arg(long, value_name = "PLACE")]
    pub from: Option<PoolFrom>,

    #[command(flatten)]
    pub kubernetes: KubernetesJob,

    #[command(flatten)]
    pub output: PoolOutput,
}

/// Where results are that are no files.
#[derive(Clone, Copy, ValueEnum)]
pub enum PoolFrom {
    /// The logs of a Job's pods
    Kubernetes,
}

/// Where a Job is.
#[derive(Args)]
pub struct KubernetesJob {
    /// Namespace of the Job [default: that of kubectl's context]
    #[arg(short, long, value_name = "NAME", requires = "from", help_heading = KUBERNETES)]
    pub namespace: Option<String>,

    /// Context of kubectl [default: its current one]
    #[arg(long, value_name = "NAME", requires = "from", help_heading = KUBERNETES)]
    pub context: Option<String>,

    /// The kubectl to run
    #[arg(long, value_name = "PATH", requires = "from", default_value = "kubectl", help_heading = KUBERNETES)]
    pub kubectl: PathBuf,

    /// Leave these indexes out, for example 3,7
    #[arg(long, value_name = "INDEX", requires = "from", value_delimiter = ',', help_heading = KUBERNETES)]
    pub without: Vec<u32>,
}
