//! The conformance fixture, tests/conformance/cells: each kind of program that it is built as, and its answers.

use std::fs;
use std::path::PathBuf;

use crate::fixture::{Build, Missing, executable};
use crate::locations::source_dir;
use crate::test_env::{TestEnv, described, expect_code};

/// One kind of program.
pub struct Program {
    pub name: &'static str,
    /// For people.
    pub what: &'static str,
    /// Whether LD_PRELOAD reaches it.
    pub preloadable: bool,
    compiler: &'static str,
    flags: &'static [&'static str],
    libraries: &'static [&'static str],
    pub groups: &'static [&'static str],
}

/// What every C program has.
const C_GROUPS: &[&str] = &[
    "descriptors",
    "ranges",
    "opens",
    "odd_opens",
    "writes",
    "posix_aio",
    "kernel_aio",
    "ring",
    "cancel",
];
/// And with libaio and liburing.
const GLIBC_GROUPS: &[&str] = &[
    "descriptors",
    "ranges",
    "opens",
    "odd_opens",
    "writes",
    "posix_aio",
    "kernel_aio",
    "ring",
    "cancel",
    "libaio",
    "liburing",
];
const GO_GROUPS: &[&str] = &["descriptors", "ranges", "opens", "writes"];

/// musl-gcc hides the kernel's headers together with glibc's, and musl from 1.2.4 on its names that end in 64.
const MUSL_HEADERS: &[&str] = &[
    "-D_LARGEFILE64_SOURCE",
    "-idirafter",
    "/usr/include",
    "-idirafter",
    "/usr/include/MULTIARCH",
];

pub const PROGRAMS: &[Program] = &[
    Program {
        name: "glibc",
        what: "C, dynamic, glibc",
        preloadable: true,
        compiler: "gcc",
        flags: &[],
        libraries: &["-pthread", "-luring", "-laio"],
        groups: GLIBC_GROUPS,
    },
    Program {
        name: "musl",
        what: "C, dynamic, musl",
        preloadable: true,
        compiler: "musl-gcc",
        flags: MUSL_HEADERS,
        libraries: &["-pthread"],
        groups: C_GROUPS,
    },
    Program {
        name: "glibc-static",
        what: "C, static, glibc",
        preloadable: false,
        compiler: "gcc",
        flags: &["-static"],
        libraries: &["-pthread", "-luring", "-laio"],
        groups: GLIBC_GROUPS,
    },
    Program {
        name: "musl-static",
        what: "C, static, musl",
        preloadable: false,
        compiler: "musl-gcc",
        flags: MUSL_HEADERS,
        libraries: &["-static", "-pthread"],
        groups: C_GROUPS,
    },
    Program {
        name: "i386",
        what: "C, 32-bit, dynamic, glibc",
        preloadable: false,
        compiler: "gcc",
        flags: &["-m32"],
        libraries: &["-pthread"],
        groups: C_GROUPS,
    },
    Program {
        name: "i386-static",
        what: "C, 32-bit, static, glibc",
        preloadable: false,
        compiler: "gcc",
        flags: &["-m32", "-static"],
        libraries: &["-pthread"],
        groups: C_GROUPS,
    },
    Program {
        name: "go",
        what: "Go, static",
        preloadable: false,
        compiler: "go",
        flags: &[],
        libraries: &[],
        groups: GO_GROUPS,
    },
];

/// One line of the fixture's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    pub interface: String,
    pub kind: String,
    pub result: String,
    /// Its name; `kept` where errno was not touched, `-` where there is none.
    pub errno: String,
    pub note: String,
}

/// What one group printed.
#[derive(Debug, Default)]
pub struct Answers {
    pub cells: Vec<Cell>,
    /// Why there are none.
    pub missing: Option<String>,
}

/// All of them, compiled now if need be, with their names.
pub fn executables() -> impl Iterator<Item = (Result<PathBuf, Missing>, String)> {
    let programs = PROGRAMS.iter();
    programs.map(|program| (program.executable(), format!("cells, {}", program.name)))
}

impl Program {
    pub fn named(name: &str) -> &'static Self {
        let mut programs = PROGRAMS.iter();
        programs
            .find(|program| program.name == name)
            .expect("the table names it")
    }

    /// It is called `cells` in each case.
    pub fn executable(&self) -> Result<PathBuf, Missing> {
        let dir = source_dir().join("tests/conformance");
        if self.compiler == "go" {
            return executable(&Build::of_go("cells", dir.join("cells_go/main.go")));
        }
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let with_libraries = self.groups.contains(&"libaio");
        executable(&Build {
            name: "cells".to_owned(),
            compiler: self.compiler.to_owned(),
            sources: c_sources(&dir.join("cells"), with_libraries)?,
            flags: words(self.flags),
            libraries: words(self.libraries),
        })
    }

    /// The command for a group, with an empty directory of its own. Skips the test where the program's compiler
    /// is not installed.
    pub fn words(&self, env: &TestEnv, group: &str, place: &str) -> Vec<String> {
        let executable = match self.executable() {
            Ok(path) => path.to_string_lossy().into_owned(),
            Err(Missing::Compiler(reason)) => env.skip(&format!("{}: {reason}", self.name)),
            Err(Missing::Broken(reason)) => panic!("{}: {reason}", self.name),
        };
        let dir = env.subdir(&format!("{}-{group}-{place}", self.name));
        vec![executable, group.to_owned(), dir]
    }

    /// What the bare kernel answers, with this preload beneath the program if there is one.
    pub fn bare(&self, env: &TestEnv, group: &str, preload: Option<&str>) -> Answers {
        let words = self.words(env, group, preload.map_or("bare", |_| "preload"));
        let mut command = env.command(&words[0]);
        command.args(&words[1..]);
        if let Some(preload) = preload {
            command.env("LD_PRELOAD", preload);
        }
        let output = command.output().expect("it was just compiled");
        expect_code(&output, 0);
        assert!(output.stderr.is_empty(), "{}", described(&output));
        Answers::parse(&output.stdout)
    }

    /// What a success has in errno's place.
    pub fn no_errno(&self) -> &'static str {
        if self.compiler == "go" { "-" } else { "kept" }
    }
}

fn c_sources(dir: &std::path::Path, with_libraries: bool) -> Result<Vec<PathBuf>, Missing> {
    let entries = fs::read_dir(dir)
        .map_err(|error| Missing::Broken(format!("{}: {error}", dir.display())))?;
    let mut sources: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .filter(|path| {
            with_libraries || !path.ends_with("libaio.c") && !path.ends_with("liburing.c")
        })
        .collect();
    sources.sort();
    Ok(sources)
}

impl Answers {
    pub fn parse(stdout: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stdout);
        let missing = text.lines().find_map(|line| line.strip_prefix("# "));
        Self {
            cells: text.lines().filter_map(Cell::parse).collect(),
            missing: missing.map(str::to_owned),
        }
    }
}

impl Cell {
    fn parse(line: &str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let mut words = line.splitn(5, ' ').map(str::to_owned);
        let mut word = || {
            words
                .next()
                .unwrap_or_else(|| panic!("{line} is not a cell"))
        };
        let (interface, kind, result, errno) = (word(), word(), word(), word());
        Some(Self {
            interface,
            kind,
            result,
            errno,
            note: words.next().unwrap_or_default(),
        })
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            interface,
            kind,
            result,
            errno,
            note,
        } = self;
        let space = if note.is_empty() { "" } else { " " };
        write!(f, "{interface} {kind} {result} {errno}{space}{note}")
    }
}
