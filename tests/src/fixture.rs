//! The programs of tests/: each compiled once, kept under a name made of all that went into it.
//!
//! In tests/programs a C program may begin with `// build: [COMPILER] FLAGS…`, where MULTIARCH stands for the name of
//! this machine's directories and -m32 for programs of 32 bits, which on arm64 another compiler makes; a directory with
//! a `main.go` is a static Go program, and a file in Rust is a static one too, unless it begins with `// build: FLAGS…`. The executable's own name is the
//! program's name, so that `exe:` scopes match it.

use std::ffi::OsStr;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::locations::{multiarch, source_dir};
use crate::sys;

/// A static Go program, and its name where it is built as a dynamic one.
const STATIC_GO: &str = "static_go";
const DYNAMIC_GO: &str = "dynamic_go";
/// The Go program with C in it.
const CGO: &str = "cgo_fsync";

/// Why there is no such program.
pub enum Missing {
    /// Its compiler is not on this machine.
    Compiler(String),
    /// It does not exist, or does not compile.
    Broken(String),
}

/// What an executable is made of.
pub struct Build {
    /// The file's own name.
    pub name: String,
    /// `go`, `rustc`, or a C compiler.
    pub compiler: String,
    pub sources: Vec<PathBuf>,
    /// Before and after the sources.
    pub flags: Vec<String>,
    pub libraries: Vec<String>,
}

/// The C compiler that makes programs of 32 bits where gcc has no -m32. They are static: a loader for them need not
/// be there.
const NARROW_COMPILER: &str = "arm-linux-gnueabihf-gcc";

/// The executable of program `name` of tests/programs, compiled now if need be.
pub fn program(name: &str) -> Result<PathBuf, Missing> {
    let dir = source_dir().join("tests/programs");
    let folder = if name == DYNAMIC_GO { STATIC_GO } else { name };
    let go = dir.join(folder).join("main.go");
    if go.exists() {
        return executable(&Build::of_go(name, go));
    }
    let rust = dir.join(name).with_extension("rs");
    if rust.exists() {
        let flags = flags(&rust)?.unwrap_or_else(|| "-Ctarget-feature=+crt-static".to_owned());
        let flags = flags.split_whitespace().map(str::to_owned);
        return executable(&Build {
            name: name.to_owned(),
            compiler: "rustc".to_owned(),
            sources: vec![rust],
            flags: ["--edition=2024".to_owned()]
                .into_iter()
                .chain(flags)
                .collect(),
            libraries: Vec::new(),
        });
    }
    let source = dir.join(name).with_extension("c");
    let build = flags(&source)?.unwrap_or_default();
    let mut words = build.split_whitespace().peekable();
    let compiler = words
        .next_if(|word| !word.starts_with('-'))
        .unwrap_or("gcc");
    executable(&Build {
        name: name.to_owned(),
        compiler: compiler.to_owned(),
        sources: vec![source],
        flags: Vec::new(),
        libraries: words.map(str::to_owned).collect(),
    })
}

/// What a source says of how it is compiled, in its first line.
fn flags(source: &Path) -> Result<Option<String>, Missing> {
    let text = read(source)?;
    let first = text.lines().next();
    let flags = first.and_then(|line| line.strip_prefix("// build:"));
    Ok(flags.map(str::to_owned))
}

/// The executable, compiled now if need be.
pub fn executable(build: &Build) -> Result<PathBuf, Missing> {
    let place = fixtures_dir().join(build.fingerprint()?);
    let executable = place.join(&build.name);
    if executable.exists() {
        return Ok(executable);
    }
    let broken = |path: &Path, error| Missing::Broken(format!("{}: {error}", path.display()));
    let failure = place.join(format!("{}.failure", build.name));
    // Where only another user may compile, what his compiler said is the reason.
    let is_others = fs::metadata(&place).is_ok_and(|place| place.uid() != sys::euid());
    if is_others && let Ok(reason) = fs::read_to_string(&failure) {
        return Err(Missing::Broken(reason));
    }
    fs::create_dir_all(&place).map_err(|error| broken(&place, error))?;
    // Two tests may want the same program at once: each compiles its own, and the first stays. It may be running, and
    // refit tells of a program whose file was replaced.
    let unfinished = place.join(format!("{}.{}", build.name, std::process::id()));
    let compiled = compile(build.command(&unfinished));
    if let Err(Missing::Broken(reason)) = &compiled {
        fs::write(&failure, reason).map_err(|error| broken(&failure, error))?;
    }
    compiled?;
    let linked = fs::hard_link(&unfinished, &executable);
    let _ = fs::remove_file(&unfinished);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(broken(&executable, error))
        }
        _ => Ok(executable),
    }
}

/// `--programs`: compiles all, and `others` with them, so that a run without compilers (another user's) finds them
/// ready.
pub fn compile_all(others: impl Iterator<Item = (Result<PathBuf, Missing>, String)>) -> ExitCode {
    let mut status = ExitCode::SUCCESS;
    let programs = names().into_iter().map(|name| (program(&name), name));
    for (made, name) in programs.chain(others) {
        match made {
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
        .filter(|path| {
            let is_source = |extension| path.extension() == Some(OsStr::new(extension));
            path.is_dir() || is_source("c") || is_source("rs")
        })
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .chain([DYNAMIC_GO.to_owned()])
        .collect();
    names.sort();
    names
}

fn fixtures_dir() -> PathBuf {
    std::env::var_os("REFIT_FIXTURES").map_or_else(
        || crate::locations::target_dir().join("fixtures"),
        PathBuf::from,
    )
}

const C_FLAGS: &[&str] = &["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"];

impl Build {
    /// A Go program: static, but for [`DYNAMIC_GO`] and [`CGO`].
    pub fn of_go(name: &str, source: PathBuf) -> Self {
        Self {
            name: name.to_owned(),
            compiler: "go".to_owned(),
            sources: vec![source],
            flags: if name == DYNAMIC_GO {
                vec!["-buildmode=pie".to_owned()]
            } else {
                Vec::new()
            },
            libraries: Vec::new(),
        }
    }

    /// The compiler's version is left out: asking for it would cost more than most of these builds.
    fn fingerprint(&self) -> Result<String, Missing> {
        let mut hasher = DefaultHasher::new();
        (C_FLAGS, &self.compiler, &self.flags, &self.libraries).hash(&mut hasher);
        for source in &self.sources {
            read_with_includes(source)?.hash(&mut hasher);
        }
        Ok(format!("{:016x}", hasher.finish()))
    }

    fn command(&self, executable: &Path) -> Command {
        let is_narrow = self.words().any(|word| word == "-m32");
        let cross = is_narrow && std::env::consts::ARCH != "x86_64";
        let compiler = if cross {
            NARROW_COMPILER
        } else {
            &self.compiler
        };
        let mut command = Command::new(compiler);
        if self.compiler == "go" {
            command.args(["build", "-o"]).arg(executable);
            command
                .env("CGO_ENABLED", if self.name == CGO { "1" } else { "0" })
                .env("GOTOOLCHAIN", "local")
                .env("GO111MODULE", "off");
            if std::env::var_os("HOME").is_none_or(|home| !Path::new(&home).is_dir()) {
                command.env("GOCACHE", fixtures_dir().join("go-cache"));
            }
        } else {
            let is_c = self.compiler != "rustc";
            command.args(C_FLAGS.iter().filter(|_| is_c));
            if self.compiler == "musl-gcc" && std::env::consts::ARCH == "aarch64" {
                // What libgcc has for atomic operations there calls __getauxval, which only glibc has.
                command.arg("-mno-outline-atomics");
            }
            command.arg("-o").arg(executable);
        }
        let flag = |flag: &String| match flag.as_str() {
            "-m32" if cross => "-static".to_owned(),
            other => other.replace("MULTIARCH", &multiarch()),
        };
        command
            .args(self.flags.iter().map(flag))
            .args(&self.sources)
            .args(self.libraries.iter().map(flag));
        command
    }

    fn words(&self) -> impl Iterator<Item = &String> {
        self.flags.iter().chain(&self.libraries)
    }
}

fn read(source: &Path) -> Result<String, Missing> {
    fs::read_to_string(source)
        .map_err(|error| Missing::Broken(format!("{}: {error}", source.display())))
}

/// The source, with the text of all that it includes from its own directory after it.
fn read_with_includes(source: &Path) -> Result<String, Missing> {
    let mut text = read(source)?;
    let included: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("#include \"")?.strip_suffix('"'))
        .map(str::to_owned)
        .collect();
    for file in included {
        text += &read_with_includes(&source.with_file_name(file))?;
    }
    Ok(text)
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
