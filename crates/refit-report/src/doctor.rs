//! What `refit doctor` prints: rows of a name and what was found, under headings.

use std::path::{Path, PathBuf};

use refit_lab::DiskProfile;
use refit_lab::experiment::Setting;
use refit_run::arch::{self, TESTED};
use refit_run::machine::{Installed, Machine, SystemMode};
use refit_run::reachability::{Kind, Malloc, Reachability, Syncs, Target};
use refit_run::seccomp::Right;

use crate::format::{duration, grouped};
use crate::page::Page;

/// What this machine allows; `crash_lacks`: what it lacks for simulated power cuts.
#[must_use]
pub fn machine(machine: &Machine, crash_lacks: &[String]) -> String {
    let mut page = Page::default();
    page.heading("machine");
    page.row("kernel", &machine.kernel);
    page.row(
        "architecture",
        format!("{}: refit is tested for it {TESTED}", arch::NAME),
    );
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
    let rings = "syncs are reached in rings that liburing or one thread through syscall(3) submits to, and in no others";
    page.row(
        "io_uring",
        match machine.io_uring_disabled.as_deref() {
            Some("0") => format!("allowed: {rings}"),
            Some("1") => format!("allowed to privileged processes: {rings}"),
            Some("2") => "disabled".to_owned(),
            // The switch came with that version.
            None if machine.kernel_version < (6, 6) => {
                format!("allowed, where this kernel is built with it: {rings}")
            }
            _ => "unknown".to_owned(),
        },
    );

    page.heading("sync, disk: seccomp, for what the preload cannot reach");
    page.row(
        "seccomp",
        match (machine.filter, &machine.emulator) {
            (None, Some(emulator)) => {
                format!("not here: {emulator}, which emulates this program, has none")
            }
            (None, None) => {
                "for a plain sync=off, uncounted; scopes, disk= and --backend seccomp need its notifications, of Linux 5.19"
                    .to_owned()
            }
            (Some(Right::Capability), _) => "allowed: CAP_SYS_ADMIN".to_owned(),
            (Some(Right::NoNewPrivs), _) => "allowed: no_new_privs is set here already".to_owned(),
            (Some(Right::None), _) => {
                "only with --no-new-privs, under which setuid programs lose their privilege"
                    .to_owned()
            }
        },
    );

    page.heading("malloc: allocators");
    for allocator in &machine.allocators {
        page.row(allocator.known.name, installed(allocator));
    }

    page.heading("thp: transparent huge pages");
    page.row("system", machine.thp.to_string());
    if let SystemMode::Marked(mode) = &machine.thp {
        page.row(
            "grantable",
            match mode.as_str() {
                "always" => "thp=never; thp=madvise from Linux 6.18 on",
                "madvise" => "thp=never, thp=madvise",
                _ => "thp=never",
            },
        );
    }

    measured(machine, &mut page);
    page.heading("crash: simulated power cuts");
    page.row(
        "crash lab",
        match crash_lacks {
            [] => "FUSE, loop devices and mkfs.ext4 are there".to_owned(),
            lacks => format!("not here: {}", lacks.join("; ")),
        },
    );

    page.heading("directories from which no library can be loaded (noexec)");
    page.row("noexec", directories(&machine.noexec));
    page.text()
}

/// What the kernel tells of programs and services, and what a newer one would tell.
fn measured(machine: &Machine, page: &mut Page) {
    page.heading("measure: what the kernel tells");
    page.row(
        "witness",
        match &machine.witness {
            Ok(seen) => {
                let losses = if seen.counts_losses {
                    ""
                } else {
                    "; this kernel does not tell how many it missed, only that it missed some"
                };
                format!(
                    "counts durable calls that reach {}{losses}",
                    seen.filesystems.join(", ")
                )
            }
            Err(reason) => format!("not here: {reason}"),
        },
    );
    page.row(
        "cgroups",
        match machine.cgroups.as_slice() {
            [] => "none are mounted: services cannot be distinguished",
            [1] => "version 1",
            [2] => "version 2",
            _ => "versions 1 and 2",
        },
    );
    page.row(
        "memory peak",
        if machine.tells_peaks {
            "of a service: available"
        } else {
            "of a service: not available; version 2 has it since Linux 5.19, where its memory controller is"
        },
    );
    page.row(
        "pressure",
        if machine.tells_pressure {
            "available (PSI)"
        } else {
            "not available: this kernel has no PSI, or it is off (psi=1 at boot switches it on)"
        },
    );
    page.row(
        "heap",
        if machine.kernel_version < (5, 14) {
            "counted; forked children and threads beyond the 30th have no counters of their own before Linux 5.14"
        } else {
            "counted, in forked children and threads too"
        },
    );
}

fn installed(allocator: &Installed) -> String {
    match (&allocator.path, &allocator.package) {
        (Some(path), Some((package, version))) => {
            format!("{} ({package} {version})", path.display())
        }
        (Some(path), None) => path.display().to_string(),
        (None, _) => format!("not installed; {}", allocator.install),
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

pub(crate) fn kind(target: &Target) -> String {
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
                _ if program.takes_filter && program.target.own_calls => {
                    "it is Go, which makes system calls by instructions of its own: a filter reaches the syncs among them"
                }
                _ if program.takes_filter => {
                    "it makes system calls by instructions of its own: a filter reaches the syncs among them where \
                     refit starts it; where another program does, that needs a path or program scope, or --backend seccomp"
                }
                _ => {
                    "it makes system calls by instructions of its own: syncs among them are not seen by the preload"
                }
            },
        );
    }
    page.text()
}

pub(crate) fn syncs(syncs: Syncs) -> String {
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

pub(crate) fn malloc(malloc: &Malloc) -> String {
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

/// The percentiles of a `disk=` setting, by name and quantile.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// What a flush costs, in figures and as the setting that emulates it; and the file
/// that holds the profile, if there is one.
#[must_use]
pub fn disk(profile: &DiskProfile, stored: Option<&Path>) -> String {
    let mut page = Page::default();
    page.heading(&format!(
        "{}: {} flushes in {}",
        profile.directory,
        grouped(profile.samples_ns.len()),
        duration(profile.took_ns as f64)
    ));
    page.row("operation", &profile.operation);
    for (name, known) in [
        ("filesystem", &profile.filesystem),
        ("device", &profile.device),
    ] {
        page.row(name, known.as_deref().unwrap_or("unknown"));
    }
    for (name, quantile) in PERCENTILES {
        page.row(
            name,
            match profile.percentile(quantile) {
                Ok(percentile) => format!(
                    "{:<9} 95 % interval [{}, {}]",
                    duration(percentile.value),
                    duration(percentile.low),
                    duration(percentile.high)
                ),
                Err(too_few) => too_few.to_string(),
            },
        );
    }
    page.row("max", duration(profile.max_ns() as f64));
    page.row("stalls", stalls(profile));
    page.row(
        "note",
        "these figures include delays by other processes that used the disk or the processors",
    );
    if profile.is_disk() {
        page.row("setting", setting(profile));
    } else {
        page.row("no disk", no_disk(profile));
    }
    if let Some(path) = stored {
        page.row("profile", format!("disk={}", path.display()));
    }
    page.text()
}

fn stalls(profile: &DiskProfile) -> String {
    let stalls = profile.stalls();
    match stalls.count {
        0 => "none: no flush took 10 times the median".to_owned(),
        count => format!(
            "{count} took 10 times the median or longer, at most {} in a row: {:.1} % of all waiting",
            stalls.in_a_row,
            stalls.share * 100.0
        ),
    }
}

fn no_disk(profile: &DiskProfile) -> String {
    if profile.in_memory {
        "this file system is in memory: there is nothing to wait for, and nothing to emulate"
            .to_owned()
    } else {
        "a flush returns faster than any device can answer: it does not wait for one (a file system in memory, \
         barriers switched off, or a cache that answers for the disk)"
            .to_owned()
    }
}

/// The setting to type, with three significant digits.
fn setting(profile: &DiskProfile) -> String {
    let percentiles: Vec<String> = PERCENTILES
        .iter()
        .filter_map(|(name, quantile)| {
            let percentile = profile.percentile(*quantile).ok()?;
            Some(format!("{name}={}ns", three_digits(percentile.value)))
        })
        .collect();
    let word = format!("disk={}", percentiles.join(","));
    // Parsed and printed again: in the units that people write.
    word.parse::<Setting>()
        .map_or(word, |setting| setting.to_string())
}

fn three_digits(ns: f64) -> u64 {
    let unit = 10_f64.powf((ns.log10().floor() - 2.0).max(0.0));
    ((ns / unit).round() * unit) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_keeps_three_digits() {
        for (ns, rounded) in [
            (7.0, 7),
            (999.0, 999),
            (1_234_567.0, 1_230_000),
            (59_999_000_000.0, 60_000_000_000),
        ] {
            assert_eq!(three_digits(ns), rounded);
        }
    }
}
