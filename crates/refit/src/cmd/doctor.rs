//! `refit doctor`: what this machine allows, and what of a program can be
//! reached. It changes nothing, except that `--probe-disk` writes a file.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use refit_launch::allocator::{KNOWN, find};
use refit_launch::place::{is_noexec, place_library, test_load};
use refit_launch::seccomp::{Right, kernel_suffices, right};
use refit_launch::target::{Kind, Target, find_in_path};
use refit_launch::thp::system_mode;
use refit_session::{base, is_tmpfs};

use crate::cli::DoctorArgs;
use crate::reachability::{Malloc, Reachability, Syncs};

pub fn main(args: &DoctorArgs) -> ExitCode {
    if let Some(directory) = &args.probe_disk {
        return super::probe::main(directory, args.json.as_deref());
    }
    let (text, code) = match &args.command {
        None => (machine(args.allocator_dir.as_deref()), 0),
        Some(name) => match find_in_path(name, std::env::var_os("PATH").as_deref()) {
            Some(path) => command(&path),
            None => {
                let _ = writeln!(
                    io::stderr(),
                    "refit: there is no command `{}`\n  give a path, or a name that is in PATH: refit doctor sqlite3",
                    name.display()
                );
                return ExitCode::from(2);
            }
        },
    };
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::from(2),
    }
}

/// Rows of `name  what`, with a heading.
pub struct Page(pub String);

impl Page {
    pub fn heading(&mut self, text: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        let _ = writeln!(self.0, "{text}");
    }

    pub fn row(&mut self, name: &str, what: impl AsRef<str>) {
        let _ = writeln!(self.0, "  {name:<14} {}", what.as_ref());
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
}

fn machine(allocator_dir: Option<&Path>) -> String {
    let mut page = Page(String::new());
    let root = rustix::process::geteuid().is_root();
    page.heading("machine");
    let uname = rustix::system::uname();
    page.row(
        "kernel",
        format!(
            "{} {}",
            uname.sysname().to_string_lossy(),
            uname.release().to_string_lossy()
        ),
    );
    page.row(
        "user",
        if root {
            "root"
        } else {
            "not root: setuid and setgid programs, and other users' processes, are out of reach"
        },
    );

    page.heading("sync, odirect: the preload");
    match place_library() {
        Ok(library) => {
            page.row("library", library.display().to_string());
            page.row(
                "test",
                match test_load(&library, std::slice::from_ref(&library)) {
                    Ok(()) => "a dynamic program loads it".to_owned(),
                    Err(error) => error.to_string(),
                },
            );
        }
        Err(error) => page.row("library", error.to_string()),
    }
    let session = base();
    page.row(
        "session page",
        format!(
            "{}{}",
            session.display(),
            if is_tmpfs(&session) || !session.exists() {
                ""
            } else {
                " (not tmpfs: counters would be written to a disk)"
            }
        ),
    );
    page.row(
        "io_uring",
        match read("/proc/sys/kernel/io_uring_disabled").as_deref() {
            Some("0") => "allowed: syncs are reached in rings that liburing fills, and in no others",
            Some("1") => {
                "allowed to privileged processes: syncs are reached in rings that liburing fills, and in no others"
            }
            Some("2") => "disabled",
            _ => "unknown",
        },
    );

    page.heading("sync, disk: seccomp, for what the preload cannot reach");
    page.row("seccomp", seccomp());

    page.heading("malloc: allocators");
    for known in KNOWN {
        match find(&known, allocator_dir) {
            Some(path) => page.row(
                known.name,
                format!("{}{}", path.display(), version(&path, known.package)),
            ),
            None => page.row(
                known.name,
                format!("not installed: apt install {}", known.package),
            ),
        }
    }

    page.heading("thp: transparent huge pages");
    match system_mode() {
        Some(mode) => {
            page.row("system", &mode);
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
    let places = noexec_places();
    page.row(
        "noexec",
        if places.is_empty() {
            "none of the usual ones".to_owned()
        } else {
            places.join(", ")
        },
    );
    page.0
}

/// Whether a filter can be installed, and by which right.
fn seccomp() -> &'static str {
    match (kernel_suffices(), right()) {
        (false, _) => "not on this kernel: its notifications need Linux 5.19",
        (true, Right::Capability) => "allowed: CAP_SYS_ADMIN",
        (true, Right::NoNewPrivs) => "allowed: no_new_privs is set here already",
        (true, Right::None) => {
            "only with --no-new-privs, under which setuid programs lose their privilege"
        }
    }
}

/// ` (5.3.0-1)`: the version of a Debian package, as dpkg noted it.
fn version(path: &Path, package: &str) -> String {
    let packaged = path.starts_with("/usr/lib") || path.starts_with("/lib");
    let status = read("/var/lib/dpkg/status")
        .filter(|_| packaged)
        .unwrap_or_default();
    status
        .split("\n\n")
        .find(|entry| {
            entry
                .lines()
                .any(|line| line == format!("Package: {package}"))
        })
        .and_then(|entry| {
            entry
                .lines()
                .find_map(|line| line.strip_prefix("Version: "))
        })
        .map(|version| format!(" ({package} {version})"))
        .unwrap_or_default()
}

fn noexec_places() -> Vec<String> {
    let own = ["XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME"]
        .iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from);
    let usual = ["/tmp", "/var/tmp", "/var/lib", "/run", "/dev/shm"];
    let mut places: Vec<String> = usual
        .iter()
        .map(PathBuf::from)
        .chain(own)
        .filter(|path| is_noexec(path).unwrap_or(false))
        .map(|path| path.display().to_string())
        .collect();
    places.dedup();
    places
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

fn command(path: &Path) -> (String, u8) {
    let program = Reachability::of(path);
    let target = &program.target;
    let mut page = Page(String::new());
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
    let is_reached = matches!(program.syncs, Syncs::Preload | Syncs::Filter(_));
    (page.0, u8::from(!is_reached))
}

fn syncs(syncs: Syncs) -> String {
    match syncs {
        Syncs::Preload => "reached by the preload".to_owned(),
        Syncs::Filter(reason) => {
            format!("reached by a seccomp filter; not by the preload: {reason}")
        }
        Syncs::Unreached(reason) => {
            let remedy = match (kernel_suffices(), reason) {
                (true, "setuid" | "setgid" | "file capabilities") => "; root reaches it",
                (true, _) => "; root reaches it, or --no-new-privs",
                (false, _) => "",
            };
            format!("not reached: {reason}{remedy}")
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
