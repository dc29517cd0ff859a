//! Builds the libraries that go beneath a program and the programs that start one, and leaves them in
//! `OUT_DIR`, where `lib.rs` embeds them; and a static library of what refit itself has to see in the
//! same way as the preload does: executables, patterns of paths, the emulated disk.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One shared object.
struct Library {
    /// Its sources, and the list of its exports, lie in this directory, ...
    directory: &'static str,
    sources: &'static [&'static str],
    /// ... but for these, of `sync/`, ...
    shared: &'static [&'static str],
    /// ... and these, of the target's directory in `arch/`.
    of_architecture: &'static [&'static str],
}

const SYNC: Library = Library {
    directory: "sync",
    sources: &[
        "start.c",
        "state.c",
        "symbol.c",
        "clock.c",
        "slot.c",
        "next.c",
        "others.c",
        "executable.c",
        "fd_link.c",
        "session_file.c",
        "session_page.c",
        "decision.c",
        "own_seccomp.c",
        "prctl.c",
        "path.c",
        "pattern.c",
        "disk.c",
        "call_record.c",
        "sync.c",
        "open.c",
        "aio.c",
        "io_uring.c",
        "io_uring_entry.c",
        "own_ring.c",
        "ring_memory.c",
        "syscall.c",
        "exec.c",
        "filter.c",
        "privileges.c",
        "shell.c",
        "exec_environment.c",
        "departure.c",
        "target.c",
    ],
    shared: &[],
    of_architecture: &["stubs.S"],
};

const HEAP: Library = Library {
    directory: "heap",
    sources: &[
        "start.c",
        "address_space.c",
        "allocate.c",
        "allocate_other.c",
        "beneath.c",
        "counters.c",
        "early.c",
        "file_pages.c",
        "give_up.c",
        "object_list.c",
        "own_counters.c",
        "own_memory.c",
        "pending.c",
        "process_block.c",
        "purge.c",
        "samples.c",
        "settle.c",
        "small.c",
        "shadow.c",
        "state.c",
    ],
    shared: &[
        "call_stack.c",
        "clock.c",
        "executable.c",
        "script_stack.c",
        "session_file.c",
        "symbol.c",
        "wiped_page.c",
    ],
    of_architecture: &[],
};

const DURABILITY: Library = Library {
    directory: "durability",
    sources: &[
        "closes.c",
        "descriptors.c",
        "events.c",
        "names.c",
        "next_calls.c",
        "opens.c",
        "streams.c",
        "syncs.c",
        "writes.c",
    ],
    shared: &[
        "call_stack.c",
        "clock.c",
        "fd_link.c",
        "script_stack.c",
        "symbol.c",
        "wiped_page.c",
    ],
    of_architecture: &[],
};

const HEAP_NEW: Library = Library {
    directory: "heap_new",
    sources: &["operators.c"],
    shared: &["symbol.c"],
    of_architecture: &[],
};

/// What belongs to the architecture: `arch.h` is found by its directory.
fn architecture() -> PathBuf {
    let name = env::var_os("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    Path::new("arch").join(name)
}

fn compiler(files: impl IntoIterator<Item = PathBuf>) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .files(files)
        .include("sync")
        .include("heap")
        .include("durability")
        .include(architecture())
        .std("c11")
        .define("_GNU_SOURCE", None)
        .pic(true)
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wpedantic")
        .flag("-fvisibility=hidden")
        // No loop becomes a call of strlen or memset: another preload may define it.
        .flag("-fno-tree-loop-distribute-patterns")
        .flag("-fno-plt")
        // Both end up in other people's processes: no surprises from a
        // distribution's default flags.
        .flag("-U_FORTIFY_SOURCE")
        .flag("-fno-stack-protector")
        // Atomic additions of arm64 would go through libgcc, which asks the C
        // library what the processor can do.
        .flag_if_supported("-mno-outline-atomics");
    build
}

impl Library {
    fn files(&self) -> impl Iterator<Item = PathBuf> {
        let own = self.sources.iter();
        let own = own.map(|name| Path::new(self.directory).join(name));
        let shared = self.shared.iter();
        let shared = shared.map(|name| Path::new("sync").join(name));
        let of_architecture = self.of_architecture.iter();
        own.chain(shared)
            .chain(of_architecture.map(|name| architecture().join(name)))
    }

    /// Leaves it in `out`, and returns what it contains.
    fn build(&self, out: &Path) -> Vec<u8> {
        let name = format!("librefit-{}.so", self.directory.replace('_', "-"));
        let mut build = compiler(self.files());
        build.cargo_metadata(false);
        // It defines malloc: what the compiler knows of that function would make
        // calls of itself of its body.
        build
            .flag("-fno-builtin-malloc")
            .flag("-fno-builtin-calloc");
        let objects = build.compile_intermediates();
        // cc makes archives only (rust-lang/cc-rs issue 594), so the link is ours.
        let linker = build.get_compiler();
        let status = Command::new(linker.path())
            // refit itself is static, and cc passes that on.
            .args(linker.args().iter().filter(|flag| *flag != "-static"))
            .args(["-shared", "-Wl,-z,now"])
            // Two segments instead of five, and no mprotect: 0.03 ms less for each
            // program that is started. Relro would guard nothing here: the pointers
            // to the next functions are writable data anyway.
            .args(["-Wl,-z,noseparate-code", "-Wl,-z,norelro"])
            .arg("-Wl,-z,noexecstack")
            .arg(format!("-Wl,-soname,{name}"))
            .arg(format!(
                "-Wl,--version-script={}/exports.map",
                self.directory
            ))
            .arg("-s")
            .arg("-o")
            .arg(out.join(&name))
            .args(&objects)
            .status()
            .expect("run the C linker");
        assert!(status.success(), "linking {name} failed: {status}");
        fs::read(out.join(name)).expect("the linker wrote it")
    }
}

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let libraries = [SYNC, HEAP, HEAP_NEW, DURABILITY];
    let mut bytes = Vec::new();
    for library in &libraries {
        println!("cargo::rerun-if-changed={}", library.directory);
        bytes.extend(library.build(&out));
    }
    println!("cargo::rerun-if-changed=spawn");
    println!("cargo::rerun-if-changed=arch");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=REFIT_LIBRARY_HASH={:016x}", fnv(&bytes));

    let seen_by_refit = ["target.c", "pattern.c", "disk.c"];
    compiler(seen_by_refit.map(|name| Path::new("sync").join(name))).compile("refit_target");
    for name in ["spawn", "launcher"] {
        link_program(name, &out.join(name));
    }
}

/// A program of one page: no C library, no start-up code, nothing to relocate.
fn link_program(name: &str, path: &Path) {
    let mut build = compiler([PathBuf::from(format!("spawn/{name}.c"))]);
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
    assert!(status.success(), "linking {name} failed: {status}");
}

/// FNV-1a, 64 bits: names a directory, guards nothing.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
