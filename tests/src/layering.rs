//! Who may use whom, and where `unsafe` and what belongs to an architecture may stand: read from the manifests and sources themselves.

use std::fs;
use std::path::{Path, PathBuf};

use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::rust_code::{code_only, has_word};
use crate::test;
use crate::test_env::TestEnv;

pub const TESTS: &[Test] = &[
    test!(crates_use_only_what_they_may).once(),
    test!(unsafe_stands_in_sys_modules_only).once(),
    test!(one_file_prints).once(),
    test!(an_architecture_stands_in_its_own_files).once(),
];

/// crate, and the crates of ours that it may use. A new crate needs a line.
const MAY_USE: &[(&str, &[&str])] = &[
    ("refit-knobs", &[]),
    ("refit-packages", &[]),
    ("refit-manual", &["refit-knobs"]),
    ("refit-stats", &[]),
    ("refit-load", &["refit-stats"]),
    ("refit-servers", &["refit-knobs"]),
    ("refit-preload", &[]),
    ("refit-session", &["refit-preload"]),
    (
        "refit-launch",
        &["refit-knobs", "refit-packages", "refit-session"],
    ),
    ("refit-meter", &["refit-session"]),
    ("refit-durability", &["refit-meter", "refit-session"]),
    (
        "refit-run",
        &[
            "refit-durability",
            "refit-knobs",
            "refit-launch",
            "refit-meter",
            "refit-packages",
            "refit-session",
        ],
    ),
    (
        "refit-recipe",
        &[
            "refit-knobs",
            "refit-load",
            "refit-packages",
            "refit-run",
            "refit-servers",
        ],
    ),
    (
        "refit-lab",
        &[
            "refit-knobs",
            "refit-load",
            "refit-run",
            "refit-recipe",
            "refit-stats",
        ],
    ),
    (
        "refit-index",
        &[
            "refit-knobs",
            "refit-packages",
            "refit-run",
            "refit-recipe",
            "refit-servers",
        ],
    ),
    (
        "refit-crash",
        &[
            "refit-knobs",
            "refit-packages",
            "refit-run",
            "refit-recipe",
            "refit-servers",
        ],
    ),
    ("refit-schema", &["refit-servers"]),
    (
        "refit-services",
        &[
            "refit-knobs",
            "refit-packages",
            "refit-run",
            "refit-schema",
            "refit-servers",
        ],
    ),
    (
        "refit-report",
        &[
            "refit-stats",
            "refit-run",
            "refit-lab",
            "refit-crash",
            "refit-services",
        ],
    ),
];

/// Files that name stdout or stderr: the printer, which makes what others wrote
/// printable; the bar, whose text is the printer's; and the runner and the question about
/// a service's health, which give a command of the user's own stderr in place of stdout.
const PRINT: &[&str] = &[
    "crates/refit/src/cmd/print.rs",
    "crates/refit/src/cmd/progress.rs",
    "crates/refit-lab/src/comparison/command_runner.rs",
    "crates/refit-services/src/health.rs",
];

/// What names an architecture, or is of one: its files are `arch.rs` and those in a directory `arch`.
const OF_AN_ARCHITECTURE: &[&str] = &[
    "target_arch",
    "x86_64",
    "x86-64",
    "X86_64",
    "i386",
    "aarch64",
    "AARCH64",
    "AUDIT_ARCH",
    "asm!",
    "__asm__",
];

/// The command itself, which may use all of them.
const COMMAND: &str = "refit";

/// Damaged input for the tests of any crate: no part of refit.
const TESTING: &str = "refit-fuzz";

/// Packages that may hold `unsafe`, in their `sys` modules.
const MAY_BE_UNSAFE: &[&str] = &[
    "crates/refit-session",
    "crates/refit-launch",
    "crates/refit-load",
    "crates/refit-meter",
    "crates/refit-crash",
    "crates/refit-services",
    "tests",
];

fn crates_use_only_what_they_may(_: &TestEnv) -> Outcome {
    let dirs = entries(&source_dir().join("crates"));
    let names: Vec<String> = dirs.iter().map(|dir| name_of(dir)).collect();
    let mut faults = Vec::new();
    for (dir, name) in dirs.iter().zip(&names) {
        let declared = own_dependencies(&read(&dir.join("Cargo.toml")));
        let code: Vec<String> = rust_files(dir)
            .iter()
            .map(|file| code_only(&read(file)))
            .collect();
        let imported = imports(&code, &names);
        faults.extend(faults_of(name, &declared, &imported));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    Outcome::Pass
}

fn one_file_prints(_: &TestEnv) -> Outcome {
    let root = source_dir();
    let words = ["println!", "print!", "stdout()", "stderr()"];
    let mut found = Vec::new();
    for package in entries(&root.join("crates")) {
        for file in rust_files(&package.join("src")) {
            let code = code_only(&read(&file));
            if !file.ends_with("tests.rs") && words.iter().any(|word| code.contains(word)) {
                let place = file.strip_prefix(&root).expect("found below the root");
                found.push(place.display().to_string());
            }
        }
    }
    found.sort();
    let mut expected = PRINT.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected, "who prints, and who may");
    Outcome::Pass
}

fn an_architecture_stands_in_its_own_files(_: &TestEnv) -> Outcome {
    let root = source_dir();
    let mut faults = Vec::new();
    let mut own = 0;
    for package in entries(&root.join("crates")) {
        for file in files(&package, &["rs", "c", "h", "S"]) {
            if is_of_an_architecture(file.strip_prefix(&root).expect("found below the root")) {
                own += 1;
            } else if let Some(line) = architecture_in(&read(&file)) {
                faults.push(format!("{}: {line}", file.display()));
            }
        }
    }
    assert!(own > 8, "only {own} files of an architecture");
    assert!(
        faults.is_empty(),
        "outside of its files:\n{}",
        faults.join("\n")
    );
    Outcome::Pass
}

/// arch.rs, or anything below a directory `arch`; and tests with their samples, which say what they expect of each.
fn is_of_an_architecture(path: &Path) -> bool {
    let directories = ["arch", "tests"];
    let files = ["arch.rs", "tests.rs", "sample.rs"];
    path.iter()
        .any(|part| directories.iter().any(|name| part == *name))
        || files.iter().any(|name| path.ends_with(name))
}

/// The first line that names an architecture, but for comments, tests, and the versions of symbols, which C has no
/// other way to ask for.
fn architecture_in(source: &str) -> Option<&str> {
    let code = source.split("#[cfg(test)]\nmod ").next()?;
    code.lines().map(str::trim).find(|line| {
        let is_comment = ["//", "/*", "*"]
            .iter()
            .any(|start| line.starts_with(start));
        !is_comment
            && !line.contains(".symver")
            && OF_AN_ARCHITECTURE.iter().any(|word| line.contains(word))
    })
}

fn name_of(dir: &Path) -> String {
    let name = dir.file_name().expect("a directory entry has a name");
    name.to_string_lossy().into_owned()
}

/// What is wrong with the dependencies that a crate declares and those that its
/// sources name.
fn faults_of(name: &str, declared: &[String], imported: &[String]) -> Vec<String> {
    let unused = declared.iter().filter(|used| !imported.contains(used));
    let unused = unused.map(|used| format!("{name} declares {used} and never imports it"));
    if name == COMMAND {
        return unused.collect();
    }
    let Some((_, allowed)) = MAY_USE.iter().find(|(package, _)| *package == name) else {
        return vec![format!("{name} has no line in MAY_USE")];
    };
    let forbidden = |used: &&String| *used != name && !allowed.contains(&used.as_str());
    // A table that allows more than there is would not notice when it comes.
    let undeclared = allowed
        .iter()
        .filter(|one| !declared.iter().any(|used| used == *one))
        .map(|one| format!("{name} may use {one}, and does not: take it out of MAY_USE"));
    let declares = declared.iter().filter(forbidden);
    let imports = imported.iter().filter(forbidden);
    declares
        .map(|used| format!("{name} must not depend on {used}"))
        .chain(imports.map(|used| format!("{name} must not import {used}")))
        .chain(unused)
        .chain(undeclared)
        .collect()
}

/// Which of these crates some code names.
fn imports(code: &[String], crates: &[String]) -> Vec<String> {
    let named = |name: &&String| {
        let word = name.replace('-', "_");
        code.iter().any(|code| has_word(code, &word))
    };
    crates
        .iter()
        .filter(|name| *name != COMMAND)
        .filter(named)
        .cloned()
        .collect()
}

fn unsafe_stands_in_sys_modules_only(_: &TestEnv) -> Outcome {
    let root = source_dir();
    let mut packages = entries(&root.join("crates"));
    packages.push(root.join("tests"));
    let mut faults = Vec::new();
    let mut seen = 0;
    for package in packages {
        let may = MAY_BE_UNSAFE
            .iter()
            .any(|allowed| package == root.join(allowed));
        for file in rust_files(&package) {
            seen += 1;
            let inside = file
                .strip_prefix(&package)
                .expect("found below the package");
            // A program that tests run may do what others' programs do.
            if inside.starts_with("programs") {
                continue;
            }
            if !(may && is_sys(inside)) && has_word(&code_only(&read(&file)), "unsafe") {
                faults.push(file.display().to_string());
            }
        }
    }
    assert!(seen > 5, "only {seen} Rust files below {}", root.display());
    assert!(
        faults.is_empty(),
        "unsafe outside a sys module:\n{}",
        faults.join("\n")
    );
    Outcome::Pass
}

/// The packages of ours that a manifest names in any kind of dependency section.
fn own_dependencies(manifest: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_dependencies = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            in_dependencies = section.ends_with("dependencies");
            // [dependencies.refit-x]
            if let Some((kind, package)) = section.rsplit_once('.')
                && kind.ends_with("dependencies")
                && package.starts_with(COMMAND)
            {
                found.push(package.to_owned());
            }
        } else if in_dependencies {
            let end = line
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '-')
                .unwrap_or(line.len());
            let package = &line[..end];
            if package == COMMAND || (package.starts_with("refit-") && package != TESTING) {
                found.push(package.to_owned());
            }
        }
    }
    found
}

/// sys.rs, or anything below a directory `sys`.
fn is_sys(path: &Path) -> bool {
    path.ends_with("sys.rs")
        || path
            .parent()
            .is_some_and(|dirs| dirs.iter().any(|dir| dir == "sys"))
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    files(dir, &["rs"])
}

fn files(dir: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    entries(dir)
        .into_iter()
        .filter(|path| !path.ends_with("target"))
        .flat_map(|path| match path.extension() {
            _ if path.is_dir() => files(&path, extensions),
            Some(extension) if extensions.iter().any(|known| extension == *known) => vec![path],
            _ => Vec::new(),
        })
        .collect()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = listing
        .map(|entry| entry.expect("a readable directory").path())
        .collect();
    paths.sort();
    paths
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_dependency_is_seen() {
        let manifest = "\
[package]
name = \"refit-x\"
[dependencies]
refit-knobs.workspace = true
serde = \"1\"
[dev-dependencies]
refit-stats = { path = \"../refit-stats\" }
[target.'cfg(unix)'.dependencies]
refit-meter.workspace = true
[dependencies.refit-launch]
workspace = true
[lints]
refit-nothing = true
";
        assert_eq!(
            own_dependencies(manifest),
            ["refit-knobs", "refit-stats", "refit-meter", "refit-launch"]
        );
    }

    #[test]
    fn an_import_that_the_table_forbids_is_found() {
        let crates = ["refit", "refit-launch", "refit-meter", "refit-session"].map(str::to_owned);
        let code = |text: &str| [code_only(text)];
        let found = imports(
            &code("use refit_launch::prepare;\nlet s = \"refit_meter\"; // refit_session"),
            &crates,
        );
        assert_eq!(found, ["refit-launch"]);
        let session = ["refit-session".to_owned()];
        assert_eq!(
            faults_of("refit-meter", &session, &found),
            [
                "refit-meter must not import refit-launch",
                "refit-meter declares refit-session and never imports it"
            ]
        );
        let none = faults_of("refit-meter", &session, &session);
        assert!(none.is_empty(), "{none:?}");
        assert_eq!(
            faults_of("refit-new", &[], &[]),
            ["refit-new has no line in MAY_USE"]
        );
    }

    #[test]
    fn what_is_of_an_architecture_is_found() {
        let good = "// as on x86_64\n__asm__(\".symver a,a@B\");\nfn a() {}\n#[cfg(test)]\nmod tests { X86_64 }";
        assert_eq!(architecture_in(good), None);
        for bad in ["#[cfg(target_arch = \"a\")]", "\t__asm__(\"nop\");"] {
            let source = format!("int a;\n{bad}\n");
            assert_eq!(architecture_in(&source), Some(bad.trim()));
        }
    }

    #[test]
    fn a_sys_module_is_a_file_or_a_directory() {
        for (path, expected) in [
            ("src/sys.rs", true),
            ("src/sys/mod.rs", true),
            ("src/sys/a.rs", true),
            ("src/system.rs", false),
        ] {
            assert_eq!(is_sys(Path::new(path)), expected, "{path}");
        }
    }
}
