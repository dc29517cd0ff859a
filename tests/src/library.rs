//! The preloads as files: what they show to other people's processes, what they need of them, and when
//! the dynamic linker is asked for anything.

use std::collections::BTreeSet;
use std::fs;

use crate::cells::Program;
use crate::locations::source_dir;
use crate::places;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, refit_path};

pub const TESTS: &[Test] = &[
    test!(they_export_what_their_maps_list_and_nothing_else),
    test!(they_need_no_glibc_newer_than_2_17),
    test!(nothing_in_refit_needs_a_glibc_newer_than_2_17),
    test!(they_take_nothing_by_name_that_matters),
    test!(it_looks_nothing_up_once_the_program_runs),
    test!(it_looks_up_a_plugins_liburing_once),
    test!(it_leaves_no_message_of_the_dynamic_linker),
    test!(it_starts_a_program_without_an_allocation),
    test!(it_looks_for_filters_once_a_call_depends_on_them),
    test!(it_looks_for_filters_before_proc_is_out_of_reach),
    test!(where_it_cannot_be_tried_what_is_missing_is_named),
];

/// The newest glibc that it may need: that of the oldest systems still in use (enterprise Linux 7).
const NEWEST: [u32; 2] = [2, 17];

/// Where refit put the library, as the program sees it.
fn library(env: &TestEnv) -> String {
    let output = env.refit(&["run", "--quiet", "sync=off", "--", "env"]);
    expect_code(&output, 0);
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .find_map(|line| line.strip_prefix("LD_PRELOAD="))
        .expect("sync=off preloads")
        .to_owned()
}

/// Where all of them lie, each with the directory of its source.
fn libraries(env: &TestEnv) -> [(&'static str, String); 4] {
    // Those that count the heap, and that tells of files, are placed by a run that does.
    expect_code(
        &env.refit(&["run", "--heap", "--durability", "--", "true"]),
        0,
    );
    let sync = library(env);
    let directories = ["sync", "heap", "heap_new", "durability"];
    directories.map(|directory| {
        let name = format!("librefit-{}.so", directory.replace('_', "-"));
        (directory, sync.replace("librefit-sync.so", &name))
    })
}

fn stdout_of(env: &TestEnv, words: &[&str]) -> String {
    env.require_command(words[0]);
    let output = env.run(words);
    expect_code(&output, 0);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn they_export_what_their_maps_list_and_nothing_else(env: &TestEnv) -> Outcome {
    for (directory, library) in libraries(env) {
        let map = format!("crates/refit-preload/{directory}/exports.map");
        let map = fs::read_to_string(source_dir().join(map)).expect("it is part of the source");
        let (_, listed) = map.split_once("global:").expect("it has a global part");
        let (listed, _) = listed.split_once("local:").expect("and a local one");
        let listed: BTreeSet<&str> = listed
            .split(';')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        assert!(listed.len() > 10, "{listed:?}");

        let exported = exported_by(env, &library);
        let exported: BTreeSet<&str> = exported.iter().map(String::as_str).collect();
        assert_eq!(exported, listed, "{directory}");
    }
    Outcome::Pass
}

fn exported_by(env: &TestEnv, library: &str) -> BTreeSet<String> {
    let symbols = stdout_of(env, &["nm", "-D", "--defined-only", library]);
    let names = symbols.lines().filter_map(|line| line.split(' ').nth(2));
    let plain = names.map(|symbol| symbol.split('@').next().unwrap_or_default());
    plain.map(str::to_owned).collect()
}

/// What the preloads answer in the place of libraries of the program; not what the durability library passes on alone.
pub fn exported(env: &TestEnv) -> BTreeSet<String> {
    let libraries = libraries(env).into_iter();
    libraries
        .filter(|(directory, _)| *directory != "durability")
        .flat_map(|(_, library)| exported_by(env, &library))
        .collect()
}

/// `GLIBC_2.17`: its numbers.
fn version_of_glibc(name: &str) -> Vec<u32> {
    name.strip_prefix("GLIBC_")
        .unwrap_or_else(|| panic!("no version of glibc: {name}"))
        .split('.')
        .map(|part| part.parse().expect("versions are numbers"))
        .collect()
}

fn they_need_no_glibc_newer_than_2_17(env: &TestEnv) -> Outcome {
    for (directory, library) in libraries(env) {
        let versions = stdout_of(env, &["readelf", "-V", "-W", &library]);
        let needed: BTreeSet<&str> = versions
            .lines()
            .filter_map(|line| line.split_once("Name: "))
            .filter_map(|(_, rest)| rest.split(' ').next())
            .collect();
        // What the first glibc of this architecture has.
        let oldest = match std::env::consts::ARCH {
            "x86_64" => "GLIBC_2.2.5",
            _ => "GLIBC_2.17",
        };
        assert!(needed.contains(oldest), "{versions}");
        for name in needed {
            assert!(
                version_of_glibc(name)[..] <= NEWEST[..],
                "{directory}: {name}"
            );
        }
    }
    Outcome::Pass
}

/// refit itself is static, so all versions of glibc in its file are named by what it holds: the libraries, and the programs of
/// the demo, which a newer glibc must not make its own.
fn nothing_in_refit_needs_a_glibc_newer_than_2_17(_: &TestEnv) -> Outcome {
    let refit = fs::read(refit_path()).expect("it can be read");
    let word = |at: usize| {
        let end = |byte: &u8| !byte.is_ascii_alphanumeric() && !b"_.".contains(byte);
        let rest = &refit[at..];
        let length = rest.iter().position(end).unwrap_or(rest.len());
        String::from_utf8_lossy(&rest[..length]).into_owned()
    };
    let found = |(at, window): (usize, &[u8])| (window == b"GLIBC_2.").then(|| word(at));
    let versions: BTreeSet<String> = refit.windows(8).enumerate().filter_map(found).collect();
    assert!(!versions.is_empty());
    for name in &versions {
        assert!(version_of_glibc(name)[..] <= NEWEST[..], "{versions:?}");
    }
    Outcome::Pass
}

/// All that they take from other objects by name, each with the reason why it may be: whatever another preload defines in
/// its place must not matter. A weak one need not be there. The functions of libdl, libpthread and librt, which are in libc
/// since glibc 2.34, must not be needed: a program may have none of these.
const IMPORTS: &[(&str, &str)] = &[
    (
        "__environ",
        "data of the C library: where the program's environment is",
    ),
    ("environ", "the same"),
    (
        "__errno_location",
        "the thread's errno, which a result is told by",
    ),
    (
        "dl_iterate_phdr",
        "takes the loader's lock: for what comes later by dlopen, and for the heap library",
    ),
    (
        "getauxval",
        "user, page size, name: a wrong answer leads to real calls",
    ),
    ("memcpy", "copies, or the program breaks without refit"),
    ("memset", "the same"),
    (
        "_r_debug weak",
        "data of glibc's loader: the list of objects",
    ),
    ("_dl_debug_addr weak", "the same of musl's"),
    ("gnu_get_libc_version weak", "a constant"),
    ("__register_atfork weak", "adds a handler"),
    ("pthread_atfork weak", "the same in musl"),
    (
        "pthread_testcancel weak",
        "a cancellation point stays one, whoever cancels",
    ),
    ("__cxa_finalize weak", "of the compiler's start files"),
    ("__gmon_start__ weak", "the same"),
    ("_ITM_deregisterTMCloneTable weak", "the same"),
    ("_ITM_registerTMCloneTable weak", "the same"),
    ("refit_heap_forget", "refit's own: of another of them"),
    ("refit_heap_is_of_allocator", "the same"),
    ("refit_heap_note", "the same"),
    ("refit_sync_has_own_seccomp weak", "the same"),
];

fn they_take_nothing_by_name_that_matters(env: &TestEnv) -> Outcome {
    for (directory, library) in libraries(env) {
        let symbols = stdout_of(env, &["nm", "-D", "--undefined-only", &library]);
        let taken = symbols.lines().map(|line| {
            let (kind, symbol) = line.trim().split_once(' ').expect("a kind and a name");
            let name = symbol.split('@').next().unwrap_or_default();
            let weak = if kind == "U" { "" } else { " weak" };
            format!("{name}{weak}")
        });
        let taken: BTreeSet<String> = taken.collect();
        assert!(taken.contains("dl_iterate_phdr"), "{directory}: {symbols}");
        for name in taken {
            let is_allowed = IMPORTS.iter().any(|(allowed, _)| *allowed == name);
            assert!(is_allowed, "{directory}: {name}");
        }
        let section = stdout_of(env, &["readelf", "-d", "-W", &library]);
        for line in section.lines().filter(|line| line.contains("(NEEDED)")) {
            let is_libc = ["[libc.so.6]", "[ld-linux-aarch64.so.1]"];
            assert!(is_libc.iter().any(|name| line.contains(name)), "{line}");
        }
    }
    Outcome::Pass
}

/// The dynamic linker's own log: which file asked for which symbol, before and after it handed over control.
fn it_looks_nothing_up_once_the_program_runs(env: &TestEnv) -> Outcome {
    let once = env.program("fsync_once");
    let cells = Program::named("glibc");
    let groups = cells.groups.iter();
    let programs = groups
        .map(|group| cells.words(env, group, "looked-up"))
        .chain([
            vec![
                env.program("exec_storm"),
                "2".to_owned(),
                once.clone(),
                env.file("once", ""),
            ],
            vec![env.program("spawn_clearenv"), once, env.file("spawned", "")],
        ]);
    let asks = format!("binding file {} ", library(env));
    for (at, words) in programs.enumerate() {
        let logs_dir = env.subdir(&format!("{at}-log"));
        let output = format!("LD_DEBUG_OUTPUT={logs_dir}/log");
        let under = ["run", "--quiet", "sync=off", "--", "env"];
        let debug = ["LD_DEBUG=libs,bindings", &output];
        let command: Vec<&str> = words.iter().map(String::as_str).collect();
        expect_code(&env.refit(&[&under, &debug[..], &command].concat()), 0);

        let mut logs = 0;
        let dir = fs::read_dir(&logs_dir).expect("it is ours");
        for entry in dir {
            let path = entry.expect("the directory stays").path();
            let text = fs::read_to_string(&path).expect("the linker writes text");
            let (before, after) = text
                .split_once("transferring control: ")
                .unwrap_or_else(|| panic!("{words:?}: the program never started\n{text}"));
            let count = |part: &str| part.lines().filter(|line| line.contains(&asks)).count();
            assert!(count(before) > 3, "{words:?}: it is not bound:\n{text}");
            let late: Vec<&str> = after.lines().filter(|line| line.contains(&asks)).collect();
            assert!(late.is_empty(), "{words:?}: {late:#?}");
            logs += 1;
        }
        assert!(logs > 0, "{words:?}: LD_DEBUG wrote nothing");
    }
    Outcome::Pass
}

/// How often the linker was asked for a symbol once the program ran: the lines `symbol=NAME;  lookup in file=…`.
fn lookups(env: &TestEnv, submits: &str) -> usize {
    let words = [env.program("dlopen_uring"), env.program("uring_plugin")];
    let logs_dir = env.subdir(&format!("{submits}-log"));
    let output = format!("LD_DEBUG_OUTPUT={logs_dir}/log");
    let under = ["run", "--quiet", "sync=off", "--", "env"];
    let debug = ["LD_DEBUG=files,symbols", &output];
    let run = env.refit(&[&under, &debug[..], &[&words[0], &words[1], submits]].concat());
    if run.status.code() == Some(3) {
        env.skip("this kernel gives no io_uring");
    }
    expect_code(&run, 0);
    let dir = fs::read_dir(&logs_dir).expect("it is ours");
    let logs = dir.map(|entry| {
        let path = entry.expect("the directory stays").path();
        fs::read_to_string(&path).expect("the linker writes text")
    });
    logs.filter_map(|text| {
        let (_, after) = text.split_once("transferring control: ")?;
        Some(
            after
                .lines()
                .filter(|line| line.contains("symbol="))
                .count(),
        )
    })
    .sum()
}

/// liburing came with a plugin, and for it alone (RTLD_LOCAL): what its calls lead to is found once.
fn it_looks_up_a_plugins_liburing_once(env: &TestEnv) -> Outcome {
    let (few, many) = (lookups(env, "10"), lookups(env, "1000"));
    assert!(few > 0, "the plugin was opened without a lookup");
    assert_eq!(few, many, "lookups of 10 and of 1000 submits");
    Outcome::Pass
}

/// A lookup that fails is the C library's first allocation in a small program: brk(2), and a random number.
fn it_starts_a_program_without_an_allocation(env: &TestEnv) -> Outcome {
    env.require_command("strace");
    let log = env.path("log");
    let calls = |under: &[&str]| {
        let strace = ["strace", "-qq", "-e", "trace=brk,getrandom", "-o", &log];
        let words = [under, &strace, &["true"]].concat();
        expect_code(&env.run(&words), 0);
        fs::read_to_string(&log)
            .expect("strace wrote it")
            .lines()
            .count()
    };
    let under = [&*refit_path(), "run", "--quiet", "sync=off", "--"];
    let (bare, with) = (calls(&[]), calls(&under));
    assert!(bare > 0, "ld.so asks for the break");
    assert_eq!(with, bare);
    Outcome::Pass
}

/// The lines of strace(1) with these calls of a command under refit, which counts nothing.
fn calls_of(env: &TestEnv, calls: &str, command: &[&str]) -> Vec<String> {
    env.require_command("strace");
    let (log, trace) = (env.path("calls"), format!("trace={calls}"));
    let under = [&*refit_path(), "run", "--quiet", "sync=off", "--"];
    let strace = [
        "strace",
        "-f",
        "-qq",
        "-e",
        &trace,
        "-e",
        "signal=none",
        "-o",
        &log,
    ];
    expect_code(&env.run(&[&under, &strace[..], command].concat()), 0);
    let log = fs::read_to_string(&log).expect("strace wrote it");
    log.lines().map(str::to_owned).collect()
}

/// To read /proc/self/status takes longer than all else that it does at a start.
fn it_looks_for_filters_once_a_call_depends_on_them(env: &TestEnv) -> Outcome {
    let looks = |command: &[&str]| {
        let opened = calls_of(env, "open,openat", command);
        assert!(!opened.is_empty(), "{command:?} loads a library");
        let looks = opened
            .iter()
            .filter(|line| line.contains("/proc/self/status"));
        looks.count()
    };
    let script = "/bin/true; /bin/true; (/bin/true); :";
    let fsync = [env.program("fsync_once"), env.path("file")];
    assert_eq!(looks(&["true"]), 0, "it asks for no sync");
    assert_eq!(looks(&[&fsync[0], &fsync[1]]), 1, "fsync");
    for shell in ["sh", "bash"] {
        assert_eq!(
            looks(&[shell, "-c", script]),
            1,
            "{shell}: its children need not"
        );
    }
    Outcome::Pass
}

fn it_looks_for_filters_before_proc_is_out_of_reach(env: &TestEnv) -> Outcome {
    let (program, root) = (env.program("chroot_fsync"), env.subdir("root"));
    let privileged = places::privileged(env);
    let words = [privileged, &[&*program, &root]].concat();
    let synced = calls_of(env, "fsync,chroot", &words);
    assert!(
        synced.iter().any(|line| line.contains("chroot(")),
        "{synced:#?}"
    );
    assert!(
        !synced.iter().any(|line| line.contains("fsync(")),
        "{synced:#?}"
    );
    Outcome::Pass
}

fn it_leaves_no_message_of_the_dynamic_linker(env: &TestEnv) -> Outcome {
    for name in ["first_dlerror", "musl_first_dlerror"] {
        let program = env.program(name);
        let output = env.refit(&["run", "--quiet", "sync=off", "--", &program]);
        expect_code(&output, 0);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(printed, "none\n", "{name}");
    }
    Outcome::Pass
}

/// An image may have no other program than the one that is run.
fn where_it_cannot_be_tried_what_is_missing_is_named(env: &TestEnv) -> Outcome {
    let root = places::chroot(env, "root", &[&env.program("fsync_once")]);
    fs::copy(refit_path(), format!("{root}/refit")).expect("it is ours");
    env.subdir("root/tmp");
    let command = [
        "chroot",
        &root,
        "/refit",
        "run",
        "sync=off",
        "--",
        "/fsync_once",
        "/file",
    ];
    let output = env.run(&[places::privileged(env), &command].concat());
    expect_message(&output, 125, "that needs /bin/true and /dev/null");
    assert!(
        fs::metadata(format!("{root}/file")).is_err(),
        "nothing has run"
    );
    Outcome::Pass
}
