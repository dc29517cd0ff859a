//! Does a program get the kernel's own answers, swapped or not?
//!
//! Every fixture runs on the bare kernel first, and its lines are what the runs under refit must print, word by
//! word, errno included. Where `sync=off` may differ, `documented` says so, and there it must. What the kernel
//! got to see is read from strace of that same run.

use std::fs;

use crate::lab::{Lab, described, expect_code};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::traced::{self, Counts, Traced, syncs};

pub const TESTS: &[Test] = &[
    test!(with_sync_on_every_answer_is_the_kernels),
    test!(with_sync_off_every_answer_is_the_kernels_or_documented),
    test!(a_preload_that_always_answers_0_would_be_noticed),
    test!(a_musl_program_is_reached_and_counted),
    test!(odirect_off_takes_o_direct_from_regular_files_only),
    test!(odirect_stays_unless_it_is_off),
    test!(a_library_of_a_plugins_own_is_found_beneath_refit),
];

/// Program and arguments; `D` is a fresh directory, `F` a fresh file.
const FIXTURES: &[&[&str]] = &[
    &["fsync_matrix", "D"],
    &["open_variants", "D"],
    &["open_oddities", "D"],
    &["cancel", "D"],
    &["pwritev2_dsync", "F"],
    &["aio_fsync", "F"],
    &["direct_write", "F"],
    &["msync_write", "7", "F"],
    &["signal_handler_fsync", "20", "F"],
    &["threads_fsync", "4", "10", "F"],
    &["closefrom", "F"],
];

/// What sync=off is documented to answer where the kernel answers `line`.
fn documented(fixture: &str, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    match (fixture, &words[..]) {
        // One probe and no fstat: these answer 0 where the kernel says EINVAL. There is no data behind them.
        ("fsync_matrix", [cell, "-1", "22"]) => {
            let (call, kind) = cell.split_once(':').expect("cells are call:kind");
            let without_data = ["proc_file", "proc_directory", "pidfd", "nsfs"].contains(&kind);
            if without_data && call.trim_start_matches("syscall_").starts_with('f') {
                return format!("{cell} 0 99");
            }
        }
        // The sync bits are gone, and F_GETFL shows it.
        ("open_variants", [variant, asked, _]) => return format!("{variant} {asked} none"),
        ("open_oddities", [case, "fd", errno, _, rest @ ..]) => {
            return format!("{case} fd {errno} none {}", rest.join(" "));
        }
        _ => {}
    }
    line.to_owned()
}

/// Calls that the C library ended before they came to the kernel: counted, since they asked, and in no trace.
fn ended_before_the_kernel(fixture: &str, bare: &[String]) -> Counts {
    let lines = |matches: fn(&str) -> bool| {
        let count = bare.iter().filter(|line| matches(line)).count();
        u64::try_from(count).expect("a fixture does not print that much")
    };
    let (call, count) = match fixture {
        "cancel" => (
            "open(O_SYNC)",
            lines(|l| l.starts_with("open") && l.ends_with("cancelled")),
        ),
        // libc refuses the template.
        "open_oddities" => ("open(O_SYNC)", lines(|l| l == "bad_template -1 22")),
        "aio_fsync" => ("aio_fsync", lines(|line| line.contains("call=-1"))),
        _ => return Counts::new(),
    };
    assert!(count > 0, "{fixture} no longer does it: {bare:?}");
    Counts::from([(call.to_owned(), count)])
}

/// The fixture's words, with a place of its own.
fn words(lab: &Lab, fixture: &[&str], place: &str) -> Vec<String> {
    let (name, args) = fixture.split_first().expect("a fixture has a name");
    let place = format!("{name}-{place}");
    let args = args.iter().map(|arg| match *arg {
        "D" => lab.subdir(&place),
        "F" => lab.file(&place, ""),
        arg => arg.to_owned(),
    });
    std::iter::once(lab.program(name)).chain(args).collect()
}

fn lines(stdout: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// What the bare kernel answers, with this preload beneath it if there is one.
fn without_refit(lab: &Lab, fixture: &[&str], preload: Option<&str>) -> Vec<String> {
    let words = words(lab, fixture, preload.map_or("bare", |_| "preload"));
    let mut command = lab.command(&words[0]);
    command.args(&words[1..]);
    if let Some(preload) = preload {
        command.env("LD_PRELOAD", preload);
    }
    let output = command.output().expect("the fixture was just compiled");
    expect_code(&output, 0);
    assert!(output.stderr.is_empty(), "{}", described(&output));
    lines(&output.stdout)
}

fn under_refit(lab: &Lab, fixture: &[&str], settings: &[&str]) -> Traced {
    let words = words(lab, fixture, &settings.join("+"));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let traced = traced::run(lab, settings, &words);
    let said = &traced.output.stderr;
    assert!(said.is_empty(), "{words:?}: {}", described(&traced.output));
    traced.all_reached();
    traced
}

/// The lines that are not as they should be, each with what it should be.
fn wrong(expected: &[String], got: &[String]) -> Vec<String> {
    assert_eq!(expected.len(), got.len(), "{expected:#?}\n{got:#?}");
    std::iter::zip(expected, got)
        .filter(|(expected, got)| expected != got)
        .map(|(expected, got)| format!("{got}    (should be {expected})"))
        .collect()
}

/// The two counts of one run, once what never came to the kernel is taken from refit's and the syncs of
/// aio_fsync are under its name in strace's too (its helper thread makes them).
fn comparable(
    fixture: &str,
    bare: &[String],
    mut refit: Counts,
    mut straced: Counts,
) -> [Counts; 2] {
    for (call, early) in ended_before_the_kernel(fixture, bare) {
        if let Some(count) = refit.get_mut(&call) {
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

fn with_sync_on_every_answer_is_the_kernels(lab: &Lab) -> Outcome {
    for fixture in FIXTURES {
        let bare = without_refit(lab, fixture, None);
        let traced = under_refit(lab, fixture, &["sync=on"]);
        let wrong = wrong(&bare, &lines(&traced.output.stdout));
        assert!(wrong.is_empty(), "{fixture:?}: {wrong:#?}");
        println!("{}: {} exact", fixture[0], bare.len());
        for field in ["seen", "real"] {
            let [refit, straced] =
                comparable(fixture[0], &bare, traced.refit(field), traced.straced());
            assert_eq!(refit, straced, "{fixture:?}: refit's {field}, strace's");
            assert!(!refit.is_empty(), "{fixture:?} made no call that counts");
        }
        assert_eq!(traced.refit("suppressed"), Counts::new(), "{fixture:?}");
    }
    Outcome::Pass
}

fn with_sync_off_every_answer_is_the_kernels_or_documented(lab: &Lab) -> Outcome {
    for fixture in FIXTURES {
        let bare = without_refit(lab, fixture, None);
        let expected: Vec<String> = bare.iter().map(|l| documented(fixture[0], l)).collect();
        let differences = std::iter::zip(&bare, &expected).filter(|(b, e)| b != e);
        let differences = differences.count();
        let traced = under_refit(lab, fixture, &["sync=off"]);
        let wrong = wrong(&expected, &lines(&traced.output.stdout));
        assert!(wrong.is_empty(), "{fixture:?}: {wrong:#?}");
        println!(
            "{}: {} exact, {differences} documented differences",
            fixture[0],
            bare.len() - differences
        );
        // aio_fsync has to complete through aio_error; O_DIRECT is another knob's.
        if ["aio_fsync", "direct_write"].contains(&fixture[0]) {
            let [refit, straced] =
                comparable(fixture[0], &bare, traced.refit("real"), traced.straced());
            assert_eq!(refit, straced, "{fixture:?}: refit's real, strace's");
            assert_eq!(traced.refit("suppressed"), Counts::new(), "{fixture:?}");
        } else {
            traced.only_real_calls_reach_the_kernel();
        }
    }
    Outcome::Pass
}

fn a_preload_that_always_answers_0_would_be_noticed(lab: &Lab) -> Outcome {
    let mutant = lab.program("always_zero");
    for (fixture, at_least) in [(FIXTURES[0], 200), (FIXTURES[1], 50), (FIXTURES[3], 4)] {
        let bare = without_refit(lab, fixture, None);
        let expected: Vec<String> = bare.iter().map(|l| documented(fixture[0], l)).collect();
        let wrong = wrong(&expected, &without_refit(lab, fixture, Some(&mutant)));
        println!("{}: {} of {} wrong", fixture[0], wrong.len(), bare.len());
        assert!(wrong.len() >= at_least, "{fixture:?}: only {wrong:#?}");
    }
    Outcome::Pass
}

fn a_musl_program_is_reached_and_counted(lab: &Lab) -> Outcome {
    let on = under_refit(lab, &["musl_fsync", "F"], &["sync=on"]);
    on.seen_is_what_strace_saw();
    let off = under_refit(lab, &["musl_fsync", "F"], &["sync=off"]);
    off.only_real_calls_reach_the_kernel();
    for (traced, field) in [(on, "real"), (off, "suppressed")] {
        assert_eq!(syncs(&traced.refit(field)), 1, "{field}");
        let executable = &traced.report["executables"][0];
        assert_eq!(executable["executable"], lab.program("musl_fsync"));
        assert_eq!(executable["calls"]["fsync"]["seen"], 1);
    }
    Outcome::Pass
}

fn odirect_off_takes_o_direct_from_regular_files_only(lab: &Lab) -> Outcome {
    let bare = direct_lines(lab);
    let traced = under_refit(lab, &["direct_write", "F"], &["odirect=off"]);
    let buffered: Vec<String> = bare
        .iter()
        .map(|line| {
            let (how, _) = line.split_once(' ').expect("lines begin with how");
            // Through the page cache any alignment will do.
            format!("{how} buffered aligned=4096 misaligned=4096")
        })
        .collect();
    assert_eq!(lines(&traced.output.stdout), buffered);
    // The kernel still judges the open and the F_SETFL; the flag goes afterwards.
    assert_eq!(traced.refit("suppressed"), traced.straced());
    assert_eq!(traced.refit("real"), Counts::new());
    let taken = traced.trace.calls.iter().filter(|call| {
        call.name == "fcntl" && call.args.contains("F_SETFL") && !call.args.contains("O_DIRECT")
    });
    assert_eq!(taken.count(), 2);

    // Neither a FIFO's packets nor a device's answer, nor any sync bit, is touched.
    let bare = without_refit(lab, &["open_oddities", "D"], None);
    assert!(
        bare.iter()
            .any(|line| line == "setfl_fifo_packets 0 99 none direct")
    );
    let odd = under_refit(lab, &["open_oddities", "D"], &["odirect=off"]);
    assert_eq!(wrong(&bare, &lines(&odd.output.stdout)), [""; 0]);
    let refit = odd.refit("suppressed");
    assert_eq!(refit, Counts::new(), "refit took away");
    Outcome::Pass
}

fn odirect_stays_unless_it_is_off(lab: &Lab) -> Outcome {
    let bare = direct_lines(lab);
    for settings in [
        &["sync=on"][..],
        &["odirect=on"],
        &["sync=off", "odirect=on"],
    ] {
        let traced = under_refit(lab, &["direct_write", "F"], settings);
        assert_eq!(lines(&traced.output.stdout), bare, "{settings:?}");
        traced.seen_is_what_strace_saw();
    }
    Outcome::Pass
}

/// What direct_write prints on the bare kernel; skips the test where that has no O_DIRECT.
fn direct_lines(lab: &Lab) -> Vec<String> {
    let probe = lab.run(&[&lab.program("direct_write"), &lab.file("probe", "")]);
    if probe.status.code() == Some(3) {
        lab.skip("the filesystem of the tests has no O_DIRECT");
    }
    let bare = without_refit(lab, &["direct_write", "F"], None);
    assert_eq!(bare.len(), 2);
    assert!(
        bare.iter().all(|line| line.contains(" direct ")),
        "{bare:?}"
    );
    fs::remove_file(lab.path("direct_write-bare")).expect("the fixture made it");
    bare
}

/// The plugin's liburing is loaded late and for the plugin alone, yet its calls come to refit first.
fn a_library_of_a_plugins_own_is_found_beneath_refit(lab: &Lab) -> Outcome {
    let words = [lab.program("dlopen_uring"), lab.program("uring_plugin")];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let bare = lab.run(&words);
    if bare.status.code() == Some(3) {
        lab.skip("this kernel gives no io_uring");
    }
    expect_code(&bare, 0);
    let traced = traced::run(lab, &["sync=off"], &words);
    assert_eq!(traced.output.stdout, bare.stdout);
    let two = Counts::from([("io_uring_setup".to_owned(), 2)]);
    assert_eq!(traced.straced(), two);
    assert_eq!(traced.refit("seen"), two);
    assert_eq!(traced.unknown("io_uring"), 0, "liburing's submits are seen");
    Outcome::Pass
}
