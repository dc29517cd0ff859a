//! `--input FILE`: what a command reads as its standard input.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Opens a file that every run can read from its beginning.
pub fn open(path: &Path) -> Result<File> {
    let file =
        File::open(path).with_context(|| format!("--input: cannot read {}", path.display()))?;
    let meta = file.metadata().context("--input")?;
    if meta.is_file() || path == Path::new("/dev/null") {
        return Ok(file);
    }
    bail!(
        "--input: {} is not a regular file, so not every run could read it from its beginning\n  store it in one first: cat {} > FILE",
        path.display(),
        path.display()
    )
}
