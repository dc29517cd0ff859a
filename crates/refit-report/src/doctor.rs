//! What `refit doctor` prints: rows of a name and what was found, under headings.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use refit_run::machine::{Installed, Machine};
use refit_run::reachability::{Kind, Malloc, Reachability, Syncs, Target};
use refit_run::seccomp::Right;

/// Rows of a name and what was found, under headings.
#[derive(Debug, Default)]
pub struct Page(pub String);

impl Page {
    /// Begins a group of rows.
    pub fn heading(&mut self, text: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        let _ = writeln!(self.0, "{text}");
    }

    /// A row.
    pub fn row(&mut self, name: &str, what: impl AsRef<str>) {
        let _ = writeln!(self.0, "  {name:<14} {}", what.as_ref());
    }
}

/// What this machine allows.
#[must_use]
pub fn machine(machine: &Machine) -> String {
    let mut page = Page::default();
    page.heading("machine");
    page.row("kernel", &machine.kernel);
    page.row(
        "user",
        if machine.is_root {
            "root"
        } else {
            "not root: setuid and setgid programs, and other users' processes, are out of reach"
        },
    );

    page.heading("sync, odirect: the preload");
    match &machine.library {
        Ok(library) => page.row("library", library.display().to_string()),
        Err(error) => page.row("library", error),
    }
    match &machine.loads {
        Some(Ok(())) => page.row("test", "a dynamic program loads it"),
        Some(Err(error)) => page.row("test", error),
        None => {}
    }
    let note = if machine.session_is_on_disk {
        " (not tmpfs: counters would be written to a disk)"
    } else {
        ""
    };
    page.row(
        "session page",
        format!("{}{note}", machine.session.display()),
    );
    let rings = "syncs are reached in rings that liburing fills, and in no others";
    page.row(
        "io_uring",
        match machine.io_uring_disabled.as_deref() {
            Some("0") => format!("allowed: {rings}"),
            Some("1") => format!("allowed to privileged processes: {rings}"),
            Some("2") => "disabled".to_owned(),
            _ => "unknown".to_owned(),
        },
    );

    page.heading("sync, disk: seccomp, for what the preload cannot reach");
    page.row(
        "seccomp",
        match machine.filter {
            None => "not on this kernel: its notifications need Linux 5.19",
            Some(Right::Capability) => "allowed: CAP_SYS_ADMIN",
            Some(Right::NoNewPrivs) => "allowed: no_new_privs is set here already",
            Some(Right::None) => {
                "only with --no-new-privs, under which setuid programs lose their privilege"
            }
        },
    );

    page.heading("malloc: allocators");
    for allocator in &machine.allocators {
        page.row(allocator.known.name, installed(allocator));
    }

    page.heading("thp: transparent huge pages");
    match &machine.thp {
        Some(mode) => {
            page.row("system", mode);
            page.row(
                "grantable",
                match mode.as_str() {
                    "always" => "thp=never; thp=madvise from Linux 6.18 on",
                    "madvise" => "thp=never, thp=madvise",
                    _ => "thp=never",
                },
            );
        }
        None => page.row("system", "this kernel has none"),
    }

    page.heading("directories from which no library can be loaded (noexec)");
    page.row("noexec", directories(&machine.noexec));
    page.0
}

fn installed(allocator: &Installed) -> String {
    let package = allocator.known.package;
    match (&allocator.path, &allocator.version) {
        (Some(path), Some(version)) => format!("{} ({package} {version})", path.display()),
        (Some(path), None) => path.display().to_string(),
        (None, _) => format!("not installed: apt install {package}"),
    }
}

fn directories(noexec: &[PathBuf]) -> String {
    let names: Vec<String> = noexec
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    match names.as_slice() {
        [] => "none of the usual ones".to_owned(),
        names => names.join(", "),
    }
}

fn kind(target: &Target) -> String {
    let what = match target.kind {
        Kind::Unknown => "not a program that can be read",
        Kind::Glibc => "dynamic, glibc, 64-bit",
        Kind::Musl => "dynamic, musl, 64-bit",
        Kind::OtherLibc => "dynamic, a C library that refit does not know",
        Kind::Static => "static, 64-bit",
        Kind::OtherArchitecture => "32-bit, or for another machine",
    };
    if target.interpreter.is_empty() {
        what.to_owned()
    } else {
        format!("{what} ({})", target.interpreter)
    }
}

/// What of a program can be reached.
#[must_use]
pub fn program(path: &Path, program: &Reachability) -> String {
    let target = &program.target;
    let mut page = Page::default();
    page.heading(&path.display().to_string());
    if target.script {
        page.row("script", format!("runs {}", target.path.display()));
    }
    page.row("kind", kind(target));
    page.row(
        "exe:",
        target
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy(),
    );
    page.row("sync, disk", syncs(program.syncs));
    page.row(
        "odirect",
        match program.syncs {
            Syncs::Preload => "reached by the preload".to_owned(),
            Syncs::Filter(reason) | Syncs::Unreached(reason) => format!("not reached: {reason}"),
            Syncs::Unknown => "unknown".to_owned(),
        },
    );
    if program.syncs == Syncs::Preload {
        page.row("calls", calls(&program.sync_imports));
    }
    page.row("malloc", malloc(&program.malloc));
    if program.has_own_syscalls {
        page.row(
            "unknown",
            match program.syncs {
                Syncs::Filter(_) => {
                    "it makes system calls by instructions of its own: the filter reaches the syncs among them"
                }
                _ => {
                    "it makes system calls by instructions of its own: syncs among them are not seen by the preload"
                }
            },
        );
    }
    page.0
}

fn syncs(syncs: Syncs) -> String {
    match syncs {
        Syncs::Preload => "reached by the preload".to_owned(),
        Syncs::Filter(reason) => {
            format!("reached by a seccomp filter; not by the preload: {reason}")
        }
        Syncs::Unreached(reason) => {
            let remedy = match reason {
                "setuid" | "setgid" | "file capabilities" => "root reaches it",
                _ => "root reaches it, or --no-new-privs",
            };
            format!("not reached: {reason}; {remedy}")
        }
        Syncs::Unknown => "unknown".to_owned(),
    }
}

fn malloc(malloc: &Malloc) -> String {
    match malloc {
        Malloc::Swapped => {
            "swapped; libraries opened with RTLD_DEEPBIND keep the C library's".to_owned()
        }
        Malloc::Linked(library) => format!(
            "swapped by any allocator but glibc: the program links {}, which serves it otherwise",
            library.display()
        ),
        Malloc::OwnExport => {
            "not swapped: the program exports a malloc of its own, which wins over any preload"
                .to_owned()
        }
        Malloc::Musl => "not swapped: the allocators are built for glibc".to_owned(),
        Malloc::Unreached => "not swapped".to_owned(),
    }
}

/// The sync calls that the executable itself imports; its libraries may make
/// others.
fn calls(imports: &[String]) -> String {
    if imports.is_empty() {
        "none imported by the executable itself; its libraries may make some".to_owned()
    } else {
        imports.join(", ")
    }
}
