//! What Postfix's own commands on this machine say.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::abandoned_dirs::remove_left;
use crate::ask::{Ask, QUESTION};

/// Where Postfix has its configuration.
pub const DIRECTORY: &str = "/etc/postfix";

fn run(words: &[&str]) -> Result<Output, String> {
    let (program, words) = words.split_first().expect("a command has a first word");
    let output = Command::new(program)
        .args(words)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .answer(QUESTION);
    output.map_err(|error| format!("{program}: {error}"))
}

/// Each line that a command prints on its standard error, once, without its own name.
fn complaints(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut found: Vec<String> = Vec::new();
    for line in text.lines() {
        let text = line.split_once(": ").map_or(line, |(_, text)| text);
        if !found.iter().any(|one| one == text) {
            found.push(text.to_owned());
        }
    }
    found
}

/// The value of a parameter, as main.cf has it.
///
/// # Errors
/// What postconf reports.
pub fn value(name: &str) -> Result<String, String> {
    let output = run(&["postconf", "-h", name])?;
    match complaints(&output).join("; ") {
        text if text.contains("fatal: ") || text.contains("unknown parameter") => Err(text),
        _ => Ok(one_line(&output)),
    }
}

/// The value of a parameter, with other parameters in place of their names.
///
/// # Errors
/// What postconf reports.
pub fn expanded(name: &str) -> Result<String, String> {
    Ok(one_line(&run(&["postconf", "-x", "-h", name])?))
}

/// What a parameter is where main.cf does not assign it; empty where Postfix knows none.
///
/// # Errors
/// What postconf reports.
pub fn default(name: &str) -> Result<String, String> {
    Ok(one_line(&run(&["postconf", "-d", "-h", name])?))
}

fn one_line(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// `postfix check`, which also makes directories that are missing.
///
/// # Errors
/// What it prints, where it ends with another code than 0.
pub fn check() -> Result<(), String> {
    let output = run(&["postfix", "check"])?;
    match output.status.success() {
        true => Ok(()),
        false => Err(match complaints(&output) {
            lines if lines.is_empty() => output.status.to_string(),
            lines => lines.join("; "),
        }),
    }
}

/// Of the directory; the process id follows.
const PLACE: &str = "/run/refit-postfix-";

/// A directory of refit's own with a main.cf, which Postfix's commands read in place of the
/// machine's. It goes with this.
struct Sample {
    dir: PathBuf,
}

impl Drop for Sample {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// What Postfix prints of its configuration with this main.cf: warnings, and values that no
/// program would start with.
///
/// # Errors
/// Why it cannot be asked.
pub fn judged(main_cf: &[u8]) -> Result<Vec<String>, String> {
    remove_left(PLACE);
    let dir = PathBuf::from(format!("{PLACE}{}", std::process::id()));
    let failed = |error: std::io::Error| format!("{}: {error}", dir.display());
    DirBuilder::new().mode(0o700).create(&dir).map_err(failed)?;
    let sample = Sample { dir: dir.clone() };
    fs::write(dir.join("main.cf"), main_cf).map_err(failed)?;
    for name in ["master.cf", "dynamicmaps.cf"] {
        let from = format!("{DIRECTORY}/{name}");
        if fs::exists(&from).map_err(failed)? {
            fs::copy(from, dir.join(name)).map_err(failed)?;
        }
    }
    let path = sample.dir.to_string_lossy().into_owned();
    let of_names = run(&["postconf", "-c", &path, "-n"])?;
    // Any command but postconf reads the values that all of them share.
    let of_values = run(&["postmap", "-c", &path, "-q", "a", "inline:{a=b}"])?;
    let both = [of_names, of_values];
    let lines = both.iter().flat_map(complaints);
    Ok(lines.map(|line| line.replace(&path, DIRECTORY)).collect())
}
