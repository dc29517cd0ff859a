//! What came to the kernel, by strace of the very run that refit counted: with sync=on all of it, with sync=off
//! only what refit says was real.

use crate::cells::{Cell, Program};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};
use crate::traced::{self, Counts, Traced, syncs};

pub const TESTS: &[Test] = &[
    test!(of_cells_all_is_counted_and_only_the_real_is_passed_on).limit_seconds(180),
    test!(of_programs_all_is_counted_and_only_the_real_is_passed_on),
    test!(a_musl_program_is_reached_and_counted),
    test!(a_library_of_a_plugins_own_is_found_beneath_refit),
];

/// Program and arguments; `F` is a fresh file.
const PROGRAMS: &[&[&str]] = &[
    &["direct_write", "F"],
    &["msync_write", "7", "F"],
    &["signal_handler_fsync", "20", "F"],
    &["threads_fsync", "4", "10", "F"],
    &["closefrom", "F"],
];

/// What strace can judge: it sees no operation inside a ring, only the ring.
const GROUPS: &[&str] = &[
    "descriptors",
    "ranges",
    "opens",
    "odd_opens",
    "writes",
    "posix_aio",
    "cancel",
];

/// Calls that the C library ended before they came to the kernel: counted, since they asked, and in no trace.
fn ended_before_the_kernel(group: &str, bare: &[Cell]) -> Counts {
    let count = |matches: fn(&Cell) -> bool| {
        let count = bare.iter().filter(|cell| matches(cell)).count();
        u64::try_from(count).expect("a fixture does not print that much")
    };
    let (call, count) = match group {
        "cancel" => (
            "open(O_SYNC)",
            count(|c| c.interface.starts_with("open") && c.result == "1"),
        ),
        // libc refuses the template.
        "odd_opens" => (
            "open(O_SYNC)",
            count(|c| c.kind == "not_a_template" && c.errno == "EINVAL"),
        ),
        "posix_aio" => ("aio_fsync", count(|c| c.result == "-1")),
        _ => return Counts::new(),
    };
    assert!(count > 0, "{group} no longer does it: {bare:?}");
    Counts::from([(call.to_owned(), count)])
}

/// The two counts of one run, once what never came to the kernel is taken from refit's and the syncs of
/// aio_fsync are under its name in strace's too (its helper thread makes them).
fn comparable(early: &Counts, mut refit: Counts, mut straced: Counts) -> [Counts; 2] {
    for (call, early) in early {
        if let Some(count) = refit.get_mut(call) {
            *count -= early;
        }
    }
    if refit.contains_key("aio_fsync") {
        let syncs = ["fsync", "fdatasync"].map(|call| straced.remove(call).unwrap_or_default());
        straced.insert("aio_fsync".into(), syncs.iter().sum());
    }
    refit.retain(|_, count| *count > 0);
    [refit, straced]
}

fn under_refit(env: &TestEnv, setting: &str, words: &[String]) -> Traced {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let traced = traced::run(env, &[setting], &words);
    let messages = &traced.output.stderr;
    assert!(
        messages.is_empty(),
        "{words:?}: {}",
        described(&traced.output)
    );
    traced.all_reached();
    traced
}

/// Counts of a command under both settings; `never_off` are programs in which nothing can be suppressed.
fn compare(what: &str, early: &Counts, never_off: bool, mut run: impl FnMut(&str) -> Traced) {
    let on = run("sync=on");
    for field in ["seen", "real"] {
        let [refit, straced] = comparable(early, on.refit(field), on.straced());
        assert_eq!(refit, straced, "{what}: refit's {field}, strace's");
        assert!(!refit.is_empty(), "{what} made no call that counts");
    }
    assert_eq!(on.refit("suppressed"), Counts::new(), "{what}");

    let off = run("sync=off");
    if never_off {
        let [refit, straced] = comparable(early, off.refit("real"), off.straced());
        assert_eq!(refit, straced, "{what}: refit's real, strace's");
        assert_eq!(off.refit("suppressed"), Counts::new(), "{what}");
    } else {
        off.only_real_calls_reach_the_kernel();
    }
}

fn of_cells_all_is_counted_and_only_the_real_is_passed_on(env: &TestEnv) -> Outcome {
    env.require_command("strace");
    for program in ["glibc", "musl"].map(Program::named) {
        for group in GROUPS {
            let bare = program.bare(env, group, None).cells;
            let early = ended_before_the_kernel(group, &bare);
            // aio_fsync has to complete through aio_error.
            let never_off = *group == "posix_aio";
            let what = format!("{}, {group}", program.name);
            compare(&what, &early, never_off, |setting| {
                under_refit(env, setting, &program.words(env, group, setting))
            });
        }
    }
    Outcome::Pass
}

fn of_programs_all_is_counted_and_only_the_real_is_passed_on(env: &TestEnv) -> Outcome {
    for words in PROGRAMS {
        let named = |place: &str, words: &[&str]| -> Vec<String> {
            let (name, args) = words.split_first().expect("a program has a name");
            let file = env.file(&format!("{name}-{place}"), "");
            let args = args
                .iter()
                .map(|arg| if *arg == "F" { &file } else { *arg }.to_owned());
            std::iter::once(env.program(name)).chain(args).collect()
        };
        let bare = named("bare", words);
        let bare = env.run(&bare.iter().map(String::as_str).collect::<Vec<_>>());
        expect_code(&bare, 0);
        // O_DIRECT is another knob's.
        let never_off = words[0] == "direct_write";
        compare(words[0], &Counts::new(), never_off, |setting| {
            let traced = under_refit(env, setting, &named(setting, words));
            let [got, bare] =
                [&traced.output, &bare].map(|output| String::from_utf8_lossy(&output.stdout));
            assert_eq!(got, bare, "{words:?} {setting}");
            traced
        });
    }
    Outcome::Pass
}

fn a_musl_program_is_reached_and_counted(env: &TestEnv) -> Outcome {
    let words = [env.program("musl_fsync"), env.path("file")];
    let on = under_refit(env, "sync=on", &words);
    on.seen_is_what_strace_saw();
    let off = under_refit(env, "sync=off", &words);
    off.only_real_calls_reach_the_kernel();
    for (traced, field) in [(on, "real"), (off, "suppressed")] {
        assert_eq!(syncs(&traced.refit(field)), 1, "{field}");
        let executable = &traced.report["executables"][0];
        assert_eq!(executable["executable"], env.program("musl_fsync"));
        assert_eq!(executable["calls"]["fsync"]["seen"], 1);
    }
    Outcome::Pass
}

/// The plugin's liburing is loaded late and for the plugin alone, yet its calls come to refit first.
fn a_library_of_a_plugins_own_is_found_beneath_refit(env: &TestEnv) -> Outcome {
    let words = [env.program("dlopen_uring"), env.program("uring_plugin")];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let bare = env.run(&words);
    if bare.status.code() == Some(3) {
        env.skip("this kernel gives no io_uring");
    }
    expect_code(&bare, 0);
    let traced = traced::run(env, &["sync=off"], &words);
    assert_eq!(traced.output.stdout, bare.stdout);
    let two = Counts::from([("io_uring_setup".to_owned(), 2)]);
    assert_eq!(traced.straced(), two);
    assert_eq!(traced.refit("seen"), two);
    assert_eq!(traced.unknown("io_uring"), 0, "liburing's submits are seen");
    Outcome::Pass
}
