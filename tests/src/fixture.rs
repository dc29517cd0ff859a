//! The programs of tests/programs: each compiled once, kept under a name made of all that went into it.
//!
//! A C program may begin with `// build: [COMPILER] FLAGS…`; a directory with a `main.go` is a static Go
//! program. The executable's own name is the program's name, so that `exe:` scopes match it.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::lab::source_dir;

/// Why there is no such program.
pub enum Missing {
    /// Its compiler is not on this machine.
    Compiler(String),
    /// It does not exist, or does not compile.
    Broken(String),
}

/// The executable of program `name`, compiled now if need be.
pub fn program(name: &str) -> Result<PathBuf, Missing> {
    let dir = source_dir().join("tests/programs");
    let go = dir.join(name).join("main.go");
    let c = dir.join(name).with_extension("c");
    let is_go = go.exists();
    let source = if is_go { go } else { c };
    let text = read_with_includes(&source)
        .map_err(|error| Missing::Broken(format!("{}: {error}", source.display())))?;
    let place = fixtures_dir().join(fingerprint(&text));
    let executable = place.join(name);
    if executable.exists() {
        return Ok(executable);
    }
    fs::create_dir_all(&place)
        .map_err(|error| Missing::Broken(format!("{}: {error}", place.display())))?;
    // Two tests may want the same program at once: each compiles its own, the last one stays.
    let unfinished = place.join(format!("{name}.{}", std::process::id()));
    let command = if is_go {
        go_build(&source, &unfinished)
    } else {
        c_build(&text, &source, &unfinished)
    };
    compile(command)?;
    fs::rename(&unfinished, &executable)
        .map_err(|error| Missing::Broken(format!("{}: {error}", executable.display())))?;
    Ok(executable)
}

/// `--programs`: compiles all, so that a run without compilers (another user's) finds them ready.
pub fn compile_all() -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    for name in names() {
        match program(&name) {
            Ok(path) => println!("{}", path.display()),
            Err(Missing::Compiler(reason)) => println!("skipped {name}: {reason}"),
            Err(Missing::Broken(reason)) => {
                eprintln!("refit-tests: {name}: {reason}");
                status = ExitCode::FAILURE;
            }
        }
    }
    status
}

fn names() -> Vec<String> {
    let Ok(entries) = fs::read_dir(source_dir().join("tests/programs")) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() || path.extension() == Some(OsStr::new("c")))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

fn fixtures_dir() -> PathBuf {
    std::env::var_os("REFIT_FIXTURES")
        .map_or_else(|| crate::lab::target_dir().join("fixtures"), PathBuf::from)
}

/// The source, with the text of what it includes from its own directory after it.
fn read_with_includes(source: &Path) -> io::Result<String> {
    let mut text = fs::read_to_string(source)?;
    let included: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'))
        .map(str::to_owned)
        .collect();
    for file in included {
        text += &fs::read_to_string(source.with_file_name(file))?;
    }
    Ok(text)
}

/// The compiler's version is left out: asking for it would cost more than most of these builds.
fn fingerprint(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (text, C_FLAGS).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

const C_FLAGS: &[&str] = &["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"];

fn c_build(text: &str, source: &Path, executable: &Path) -> Command {
    let build = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("// build:"))
        .unwrap_or_default();
    let mut words = build.split_whitespace().peekable();
    let compiler = words
        .next_if(|word| !word.starts_with('-'))
        .unwrap_or("gcc");
    let mut command = Command::new(compiler);
    command
        .args(C_FLAGS)
        .arg("-o")
        .arg(executable)
        .arg(source)
        .args(words);
    command
}

fn go_build(source: &Path, executable: &Path) -> Command {
    let mut command = Command::new("go");
    command.args(["build", "-o"]).arg(executable).arg(source);
    command
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local")
        .env("GO111MODULE", "off");
    if std::env::var_os("HOME").is_none_or(|home| !Path::new(&home).is_dir()) {
        command.env("GOCACHE", fixtures_dir().join("go-cache"));
    }
    command
}

fn compile(mut command: Command) -> Result<(), Missing> {
    let compiler = command.get_program().to_string_lossy().into_owned();
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Missing::Compiler(format!("{compiler} is not installed")));
        }
        Err(error) => return Err(Missing::Broken(format!("{compiler}: {error}"))),
    };
    if output.status.success() {
        return Ok(());
    }
    Err(Missing::Broken(format!(
        "{command:?}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    )))
}
