//! Path scopes: decided at the moment of the sync, by the file. `--trace-sync` says what became of each call, and
//! strace of the same run says which of them the kernel saw.

use serde_json::Value;

use crate::call_by_call;
use crate::runner::{Outcome, Test};
use crate::strace::Trace;
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(the_file_decides_and_neither_its_descriptor_nor_an_old_name),
    test!(of_several_scopes_the_last_match_wins),
    test!(a_scope_through_a_link_is_the_directory_itself),
    test!(in_another_root_the_call_is_real_and_reported_so),
    test!(a_scope_that_matched_nothing_is_reported),
    test!(an_executables_scope_and_a_paths_scope_meet),
    test!(a_comparison_warns_of_a_scope_that_nothing_matched),
    test!(a_file_without_a_name_is_in_its_directory),
];

struct Scoped {
    /// The program's own lines.
    lines: Vec<String>,
    /// `inside fsync suppressed`: who was asked, of each call in order.
    answers: Vec<(String, String, String)>,
    trace: Trace,
    messages: String,
    report: Value,
}

fn run(env: &TestEnv, settings: &[&str], command: &[&str]) -> Scoped {
    let ran = call_by_call::run(env, "fsync,fdatasync,syncfs,sync,msync", settings, command);
    let field = |call: &Value, name: &str| call[name].as_str().unwrap_or("-").to_owned();
    let answers = ran.calls.iter().map(|call| {
        (
            field(call, "path"),
            field(call, "call"),
            field(call, "answer"),
        )
    });
    Scoped {
        lines: ran.stdout.lines().map(str::to_owned).collect(),
        answers: answers.collect(),
        trace: ran.trace,
        messages: ran.messages,
        report: ran.report,
    }
}

impl Scoped {
    /// Traced calls with this answer, and what strace saw of the real ones.
    fn count(&self, answer: &str) -> usize {
        self.answers
            .iter()
            .filter(|(_, _, given)| given == answer)
            .count()
    }

    fn strace_agrees(&self) {
        let seen = self
            .trace
            .calls
            .iter()
            .filter(|call| call.name != "msync" || call.args.contains("MS_SYNC"));
        let real = self.count("real");
        assert_eq!(
            seen.count(),
            real,
            "{:?}\n{:#?}",
            self.answers,
            self.trace.calls
        );
        assert!(real > 0, "{:?}", self.answers);
    }
}

fn directories(env: &TestEnv) -> [String; 2] {
    [env.subdir("in"), env.subdir("out")]
}

fn the_file_decides_and_neither_its_descriptor_nor_an_old_name(env: &TestEnv) -> Outcome {
    let [inside, outside] = directories(env);
    let program = env.program("scope_fsync");
    let scoped = run(
        env,
        &[&format!("sync@{inside}/=off")],
        &[&program, &inside, &outside],
    );
    // Label, whether it is left out, what F_GETFL shows.
    let expected = [
        ("inside", true, ""),
        ("outside", false, ""),
        ("moved_out", false, ""),
        ("moved_in", true, ""),
        ("another_number", true, ""),
        ("number_of_another_file", false, ""),
        ("stream", true, ""),
        ("unlinked", true, ""),
        ("directory_inside", true, ""),
        ("directory_outside", false, ""),
        ("through_a_link", true, ""),
        ("below_a_descriptor", true, ""),
        ("fdatasync_inside", true, ""),
        ("opened_sync_inside", true, " append cloexec"),
        ("opened_sync_outside", false, " sync append"),
        // What it covers may lie outside too.
        ("mapping_inside", false, ""),
        ("filesystem", false, ""),
    ];
    let lines: Vec<String> = expected
        .iter()
        .map(|(label, _, flags)| format!("{label} 0{flags}"))
        .collect();
    assert_eq!(scoped.lines, lines);
    let answers: Vec<(&str, bool)> = std::iter::zip(&expected, &scoped.answers)
        .map(|((label, ..), (_, _, answer))| (*label, answer == "suppressed"))
        .collect();
    let wanted: Vec<(&str, bool)> = expected
        .iter()
        .map(|(label, off, _)| (*label, *off))
        .collect();
    assert_eq!(answers, wanted, "{:#?}", scoped.answers);
    assert_eq!(
        scoped.answers.len(),
        expected.len(),
        "{:#?}",
        scoped.answers
    );
    scoped.strace_agrees();
    let moved = &scoped.answers[2].0;
    assert_eq!(
        *moved,
        format!("{outside}/a"),
        "the trace names the file as it was called then"
    );
    Outcome::Pass
}

fn of_several_scopes_the_last_match_wins(env: &TestEnv) -> Outcome {
    let [inside, outside] = directories(env);
    let program = env.program("write_fsync");
    let (off, on) = (format!("{inside}/x.log"), format!("{inside}/y.db"));
    let answer = |settings: &[&str], file: &str| {
        let scoped = run(env, settings, &[&program, "3", file]);
        [scoped.count("suppressed"), scoped.count("real")]
    };
    let tree = format!("sync@{inside}/=off");
    let except = format!("sync@{inside}/*.db=on");
    assert_eq!(answer(&[&tree, &except], &off), [3, 0]);
    assert_eq!(answer(&[&tree, &except], &on), [0, 3]);
    assert_eq!(answer(&[&except, &tree], &on), [3, 0]);
    assert_eq!(answer(&["sync=off", &except], &on), [0, 3]);
    assert_eq!(
        answer(&["sync=off", &except], &format!("{outside}/z")),
        [3, 0]
    );
    assert_eq!(answer(&[&except, "sync=off"], &on), [3, 0]);
    assert_eq!(answer(&[&tree], &format!("{outside}/z")), [0, 3]);
    Outcome::Pass
}

fn a_scope_through_a_link_is_the_directory_itself(env: &TestEnv) -> Outcome {
    let [inside, outside] = directories(env);
    let link = format!("{outside}/link");
    std::os::unix::fs::symlink(&inside, &link).expect("the directory is ours");
    let program = env.program("write_fsync");
    let file = format!("{inside}/f");
    let scoped = run(
        env,
        &[&format!("sync@{link}/=off")],
        &[&program, "2", &file],
    );
    assert_eq!([scoped.count("suppressed"), scoped.count("real")], [2, 0]);
    Outcome::Pass
}

fn in_another_root_the_call_is_real_and_reported_so(env: &TestEnv) -> Outcome {
    env.require_root();
    // Inside, /f is a name that the scope covers outside.
    let root = env.subdir("root");
    let program = env.program("chroot_fsync");
    let scoped = run(env, &["sync@/f=off"], &[&program, &root]);
    assert_eq!([scoped.count("suppressed"), scoped.count("real")], [0, 1]);
    scoped.strace_agrees();
    assert_eq!(scoped.report["coverage"]["path_unknown"], 1);
    assert!(
        scoped.messages.contains("their file is unknown"),
        "{}",
        scoped.messages
    );
    Outcome::Pass
}

fn a_scope_that_matched_nothing_is_reported(env: &TestEnv) -> Outcome {
    let [inside, outside] = directories(env);
    let program = env.program("write_fsync");
    let [used, unused] = [
        format!("sync@{inside}/=off"),
        format!("sync@{outside}/=off"),
    ];
    let file = format!("{inside}/f");
    let settings = [
        &used,
        &unused,
        "sync@exe:nobody=off",
        "sync@exe:write_fsync=on",
        &used,
    ];
    let scoped = run(env, &settings, &[&program, "1", &file]);
    let unmatched = [format!("sync@{outside}/"), "sync@exe:nobody".to_owned()];
    let messages = scoped.report["coverage"]["unmatched_scopes"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    // The first of two equal ones decides nothing either.
    assert!(
        unmatched
            .iter()
            .all(|scope| messages.iter().any(|messages| messages == scope.as_str())),
        "{messages:?}"
    );
    assert!(
        !messages
            .iter()
            .any(|messages| messages == "sync@exe:write_fsync"),
        "{messages:?}"
    );
    assert!(
        scoped.messages.contains("nothing matched sync@exe:nobody"),
        "{}",
        scoped.messages
    );
    Outcome::Pass
}

fn an_executables_scope_and_a_paths_scope_meet(env: &TestEnv) -> Outcome {
    let [inside, _] = directories(env);
    let program = env.program("write_fsync");
    let (file, tree) = (format!("{inside}/f"), format!("sync@{inside}/=off"));
    let answer = |settings: &[&str]| {
        let scoped = run(env, settings, &[&program, "2", &file]);
        [scoped.count("suppressed"), scoped.count("real")]
    };
    assert_eq!(answer(&[&tree, "sync@exe:write_fsync=on"]), [0, 2]);
    assert_eq!(answer(&["sync@exe:write_fsync=on", &tree]), [2, 0]);
    assert_eq!(answer(&[&tree, "sync@exe:other=on"]), [2, 0]);
    Outcome::Pass
}

fn a_comparison_warns_of_a_scope_that_nothing_matched(env: &TestEnv) -> Outcome {
    let [inside, outside] = directories(env);
    let (program, file) = (env.program("write_fsync"), format!("{inside}/f"));
    let [used, unused] = [&inside, &outside].map(|dir| format!("sync@{dir}/=off"));
    let words = [
        "compare", "--quiet", "--rounds", "14", &used, &unused, "--", &program, "2", &file,
    ];
    let output = env.refit(&words);
    expect_code(&output, 0);
    let table = String::from_utf8_lossy(&output.stdout).replace("\n  ", " ");
    assert!(
        table.contains(&format!("nothing matched sync@{outside}/")),
        "{table}"
    );
    assert!(
        !table.contains(&format!("nothing matched sync@{inside}/")),
        "{table}"
    );
    Outcome::Pass
}

/// O_TMPFILE: known by its directory, opened without O_DSYNC in the scope, and as asked outside of it.
fn a_file_without_a_name_is_in_its_directory(env: &TestEnv) -> Outcome {
    let [inside, outside] = directories(env);
    let scope = format!("sync@{inside}/=off");
    let program = env.program("unnamed_file");
    let bare = env.run(&[&program, &outside]);
    if bare.status.code() == Some(3) {
        env.skip("this file system has no O_TMPFILE");
    }
    expect_code(&bare, 0);
    let bare = String::from_utf8_lossy(&bare.stdout).into_owned();
    assert!(
        bare.contains("open: linked 0, mode 644, sync 1, unnamed 1\n"),
        "{bare}"
    );
    for backend in ["auto", "preload"] {
        let run = |directory: &str| {
            let words = [
                "run",
                "--backend",
                backend,
                &scope,
                "--",
                &program,
                directory,
            ];
            let (output, report) = env.refit_json(&words);
            expect_code(&output, 0);
            (String::from_utf8_lossy(&output.stdout).into_owned(), report)
        };
        let (printed, report) = run(&inside);
        assert_eq!(printed, bare.replace("sync 1", "sync 0"), "{backend}");
        let opens = &report["totals"]["open(O_SYNC)"];
        assert_eq!(
            (&opens["seen"], &opens["suppressed"]),
            (&4.into(), &4.into())
        );
        assert_eq!(
            report["settings"][0]["in_effect"], "everywhere",
            "{report:#}"
        );
        let (printed, report) = run(&outside);
        assert_eq!(printed, bare, "{backend}");
        let opens = &report["totals"]["open(O_SYNC)"];
        assert_eq!(
            (&opens["seen"], &opens["real"]),
            (&4.into(), &4.into()),
            "{report:#}"
        );
    }
    if env.as_root() {
        // Its opens come to the guardian alone, which leaves them.
        let fixed = env.program("static_unnamed_file");
        let (output, report) = env.refit_json(&["run", &scope, "--", &fixed, &inside]);
        expect_code(&output, 0);
        assert_eq!(String::from_utf8_lossy(&output.stdout), bare);
        assert_eq!(
            report["coverage"].get("unmatched_scopes"),
            None,
            "{report:#}"
        );
        let installed = &report["coverage"]["seccomp"]["installed"];
        assert_eq!(installed["left_synchronous"], 4, "{report:#}");
    }
    Outcome::Pass
}
