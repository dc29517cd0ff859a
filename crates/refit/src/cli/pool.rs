//! `refit pool`.

use std::path::PathBuf;

use clap::Args;

use super::OUTPUT;

/// Read comparisons of several machines as one: the effect on each, across all, on the next
///
/// Each RESULT is a file that `refit compare --json` wrote, or a directory of them. All
/// must be of the same command or recipe, with the same variants. A machine counts once,
/// however many results it has; its name is in the result (`refit compare --machine`).
///
/// Exit code: 0, or 2 when results cannot be read or do not belong together.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct PoolArgs {
    /// Stored comparisons, or directories of them
    #[arg(value_name = "RESULT", required = true)]
    pub results: Vec<PathBuf>,

    #[command(flatten)]
    pub output: PoolOutput,
}

/// Files that a pool is drawn into.
#[derive(Args, Clone, Default)]
pub struct PoolOutput {
    /// Write everything that was computed (docs/pool.schema.json)
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub json: Option<PathBuf>,

    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub md: Option<PathBuf>,

    /// Write one self-contained HTML page
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub html: Option<PathBuf>,

    /// Draw the effect on each machine as SVG: a forest plot
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub svg: Option<PathBuf>,
}
