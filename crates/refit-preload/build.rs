//! Builds `librefit-sync.so` and the spawner and leaves them in `OUT_DIR`, where
//! `lib.rs` embeds them; and a static library of what refit itself has to see in the same way as the
//! preload does: executables, patterns of paths, the emulated disk.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: [&str; 24] = [
    "start.c",
    "state.c",
    "next.c",
    "session_page.c",
    "decision.c",
    "own_seccomp.c",
    "path.c",
    "pattern.c",
    "disk.c",
    "call_record.c",
    "sync.c",
    "open.c",
    "aio.c",
    "io_uring.c",
    "own_ring.c",
    "syscall.c",
    "exec.c",
    "filter.c",
    "privileges.c",
    "shell.c",
    "exec_environment.c",
    "departure.c",
    "target.c",
    "stubs.S",
];

fn compiler(sources: &[&str]) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .files(sources.iter().map(|name| Path::new("sync").join(name)))
        .std("c11")
        .define("_GNU_SOURCE", None)
        .pic(true)
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wpedantic")
        .flag("-fvisibility=hidden")
        .flag("-fno-plt")
        // Both end up in other people's processes: no surprises from a
        // distribution's default flags.
        .flag("-U_FORTIFY_SOURCE")
        .flag("-fno-stack-protector");
    build
}

fn main() {
    println!("cargo::rerun-if-changed=sync");
    println!("cargo::rerun-if-changed=spawn");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));

    let mut shared = compiler(&SOURCES);
    shared.cargo_metadata(false);
    let objects = shared.compile_intermediates();
    // cc makes archives only (rust-lang/cc-rs issue 594), so the link is ours.
    let linker = shared.get_compiler();
    let status = Command::new(linker.path())
        // refit itself is static, and cc passes that on.
        .args(linker.args().iter().filter(|flag| *flag != "-static"))
        .args(["-shared", "-Wl,-z,now"])
        // Two segments instead of five, and no mprotect: 0.03 ms less for each
        // program that is started. Relro would guard nothing here: the pointers
        // to the next functions are writable data anyway.
        .args(["-Wl,-z,noseparate-code", "-Wl,-z,norelro"])
        .args(["-Wl,-z,noexecstack", "-Wl,-soname,librefit-sync.so"])
        .arg("-Wl,--version-script=sync/exports.map")
        .arg("-s")
        .arg("-o")
        .arg(out.join("librefit-sync.so"))
        .args(&objects)
        .status()
        .expect("run the C linker");
    assert!(
        status.success(),
        "linking librefit-sync.so failed: {status}"
    );

    let bytes = fs::read(out.join("librefit-sync.so")).expect("the linker wrote it");
    println!("cargo::rustc-env=REFIT_LIBRARY_HASH={:016x}", fnv(&bytes));

    compiler(&["target.c", "pattern.c", "disk.c"]).compile("refit_target");
    link_spawner(&out.join("refit-spawn"));
}

/// A program of one page: no C library, no start-up code, nothing to relocate.
fn link_spawner(path: &Path) {
    let mut build = compiler(&["../spawn/spawn.c"]);
    build.cargo_metadata(false).pic(false);
    let objects = build.compile_intermediates();
    let linker = build.get_compiler();
    let status = Command::new(linker.path())
        .args(linker.args())
        .args(["-static", "-no-pie", "-nostdlib", "-nostartfiles"])
        .args(["-Wl,-z,noseparate-code", "-Wl,-z,norelro"])
        .args(["-Wl,-z,noexecstack", "-Wl,--build-id=none", "-s", "-o"])
        .arg(path)
        .args(&objects)
        .status()
        .expect("run the C linker");
    assert!(status.success(), "linking the spawner failed: {status}");
}

/// FNV-1a, 64 bits: names a directory, guards nothing.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
