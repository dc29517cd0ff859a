//! `refit doctor --probe-disk`: what a flush costs here, in figures and as the setting that emulates it.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use refit_lab::probe;
use refit_report::doctor;

use super::print;
use super::result_file::{ResultFile, is_stdout};

/// Exits with 0, with 1 where a flush waits for no disk, and with 2 without samples.
pub fn main(directory: &Path, json: Option<&Path>) -> ExitCode {
    match sample(directory, json) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => print::failed(&error, 2),
    }
}

/// Whether it is a disk.
fn sample(directory: &Path, json: Option<&Path>) -> Result<bool> {
    let file = json.map(ResultFile::create).transpose()?;
    if directory.is_dir() {
        print::say(format_args!(
            "appending lines to a new file in {} and flushing each, for 3 to 10 s",
            directory.display()
        ));
    }
    let profile = probe(directory)?;
    let mut stored = None;
    if let (Some(file), Some(path)) = (file, json) {
        let mut text = serde_json::to_string(&profile)?;
        text.push('\n');
        file.write(text.as_bytes())?;
        if is_stdout(path) {
            return Ok(profile.is_disk());
        }
        let path = path
            .canonicalize()
            .with_context(|| format!("cannot find {}", path.display()))?;
        stored = Some(path);
    }
    print::result(&doctor::disk(&profile, stored.as_deref()))?;
    Ok(profile.is_disk())
}
