//! The step summary of GitHub Actions: a file of Markdown that the runner shows on the page of the job.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::print;
use super::result_file::appended;

/// The runner sets it, to another file for each step.
const VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Of a larger file the runner shows nothing.
const LIMIT: u64 = 1 << 20;

/// What stands at the end of a text that was cut.
const CUT: &str =
    "\n- **cut here:** a step summary holds 1 MiB; the files that refit writes have everything\n";

/// The file of this step, open for more at its end.
pub struct StepSummary {
    file: File,
    path: PathBuf,
}

impl StepSummary {
    /// Looks before anything runs whether it can be written.
    ///
    /// # Errors
    /// The variable is not set, or the file cannot be written.
    pub fn open() -> Result<StepSummary> {
        let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else {
            bail!(
                "--github-summary: {VARIABLE} is not set: this is not a step of GitHub Actions\n  write a file: --md FILE"
            );
        };
        let path = PathBuf::from(path);
        let file = appended(&path).with_context(|| format!("--github-summary ({VARIABLE})"))?;
        Ok(StepSummary { file, path })
    }

    /// As much of it as there is room for, after what is there.
    ///
    /// # Errors
    /// The kernel's.
    pub fn append(&self, markdown: &str) -> Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        let mut file = &self.file;
        let there = file.metadata().with_context(failed)?.len();
        let room = usize::try_from(LIMIT.saturating_sub(there)).unwrap_or_default();
        // A table begins after an empty line.
        let text = fitting(&format!("\n{markdown}"), room);
        if text.is_empty() {
            print::say(format_args!(
                "--github-summary: {} has no room left: it holds 1 MiB",
                self.path.display()
            ));
            return Ok(());
        }
        file.write_all(text.as_bytes()).with_context(failed)
    }
}

/// Its first lines where all of it is more than `room` bytes; nothing where not even one fits.
fn fitting(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let Some(room) = room.checked_sub(CUT.len()) else {
        return String::new();
    };
    let mut kept = 0;
    for line in text.split_inclusive('\n') {
        if kept + line.len() > room {
            break;
        }
        kept += line.len();
    }
    // The empty line before the first says nothing.
    match text[..kept].trim().is_empty() {
        true => String::new(),
        false => text[..kept].to_owned() + CUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_after_a_line() {
        let text = format!("\n{}", "a line of text\n".repeat(100));
        assert_eq!(fitting(&text, text.len()), text);
        for room in 0..text.len() {
            let cut = fitting(&text, room);
            assert!(cut.len() <= room, "{room}");
            if !cut.is_empty() {
                let kept = cut.strip_suffix(CUT).unwrap();
                assert!(kept.ends_with("a line of text\n") && text.starts_with(kept));
            }
        }
        assert!(fitting(&text, 1000).len() > 900);
    }
}
