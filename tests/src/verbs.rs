//! The smaller verbs and knobs: doctor, demo, --explain; thp, tz, env and preload.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};

use crate::locations::{allocator_file, system_library};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_refused, refit_path};

pub const TESTS: &[Test] = &[
    test!(doctor_says_what_the_machine_allows),
    test!(doctor_says_what_of_a_program_can_be_reached),
    test!(explain_starts_nothing),
    test!(help_is_a_verb_and_has_headings),
    test!(what_is_mistyped_gets_the_nearest),
    test!(huge_pages_are_taken_away_as_far_as_a_process_may_ask),
    test!(variables_and_libraries_reach_the_program),
    test!(the_demo_compares_a_mail_queue).limit_seconds(150),
    test!(the_demo_ends_with_a_table_on_a_slow_disk).limit_seconds(240),
    test!(the_demo_ends_with_a_table_on_a_busy_machine).limit_seconds(240),
    test!(too_little_time_gives_numbers_without_a_verdict),
    test!(the_demo_prices_a_log_line).limit_seconds(90),
];

fn stdout(env: &TestEnv, args: &[&str], code: i32) -> String {
    let output = env.refit(args);
    expect_code(&output, code);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn doctor_says_what_the_machine_allows(env: &TestEnv) -> Outcome {
    let page = stdout(env, &["doctor"], 0);
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc is mounted");
    assert!(page.contains(kernel.trim()), "{page}");
    assert!(page.contains("a dynamic program loads it"), "{page}");
    for name in ["jemalloc", "mimalloc", "tcmalloc"] {
        let row = page
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        let row = row.unwrap_or_else(|| panic!("no row for {name} in {page}"));
        let file = allocator_file(name);
        if Path::new(&system_library(file)).exists() {
            assert!(row.contains(file), "{row}");
        } else {
            let remedy = "not installed; install it: apt install";
            assert!(row.contains(remedy), "{row}");
        }
    }
    let row = |name: &str| {
        let mut rows = page.lines().map(str::trim_start);
        let row = rows.find(|line| line.starts_with(name));
        row.unwrap_or_else(|| panic!("no row for {name} in {page}"))
    };
    let mounts = std::fs::read_to_string("/proc/mounts").expect("/proc is mounted");
    let has_second = mounts
        .lines()
        .any(|line| line.split(' ').nth(2) == Some("cgroup2"));
    assert_eq!(row("cgroups").contains('2'), has_second, "{page}");
    let has_pressure = Path::new("/proc/pressure/io").exists();
    assert_eq!(!row("pressure").contains("not available"), has_pressure);
    if !env.as_root() {
        assert!(row("witness").contains("only root"), "{page}");
        assert!(row("crash lab").contains("root is needed"), "{page}");
    }
    Outcome::Pass
}

fn doctor_says_what_of_a_program_can_be_reached(env: &TestEnv) -> Outcome {
    let page = stdout(env, &["doctor", &env.program("fsync_once")], 0);
    assert!(page.contains("dynamic, glibc, 64-bit"), "{page}");
    assert!(page.contains("calls          fsync"), "{page}");
    // The same as `run` does: root has a filter for what no preload reaches.
    let (code, syncs) = if env.as_root() {
        (0, "reached by a seccomp filter; not by the preload: static")
    } else {
        (1, "not reached: static; root reaches it, or --no-new-privs")
    };
    let static_program = env.program("static_fsync");
    let page = stdout(env, &["doctor", &static_program], code);
    assert!(
        page.contains(&format!("sync, disk     {syncs}\n")),
        "{page}"
    );
    assert!(
        page.contains("odirect        not reached: static\n"),
        "{page}"
    );
    let report = env.report(&[
        "run",
        "sync=off",
        "--",
        &static_program,
        &env.path("static"),
    ]);
    let reached = report["coverage"]["processes_reached"].as_u64();
    assert_eq!(reached == Some(1), code == 0, "{report}");
    let page = stdout(env, &["doctor", &env.program("musl_fsync")], 0);
    assert!(page.contains("dynamic, musl"), "{page}");
    let page = stdout(env, &["doctor", &env.program("inline_asm_fsync")], 0);
    assert!(page.contains("by instructions of its own"), "{page}");
    let page = stdout(env, &["doctor", &env.program("own_malloc")], 0);
    assert!(
        page.contains("malloc         not swapped: the program exports"),
        "{page}"
    );
    let page = stdout(env, &["doctor", &env.program("linked_jemalloc")], 0);
    let linked = "swapped by any allocator but glibc: the program links /";
    assert!(
        page.contains(linked) && page.contains("/libjemalloc.so.2,"),
        "{page}"
    );
    let script = env.file("script", "#!/bin/sh\ntrue\n");
    expect_code(&env.run(&["chmod", "+x", &script]), 0);
    let page = stdout(env, &["doctor", &script], 0);
    assert!(page.contains("script         runs /bin/sh"), "{page}");
    let missing = env.refit(&["doctor", "no-such-command"]);
    expect_code(&missing, 2);
    let messages = String::from_utf8_lossy(&missing.stderr);
    assert!(messages.contains("`no-such-command`"), "{messages}");
    Outcome::Pass
}

fn help_is_a_verb_and_has_headings(env: &TestEnv) -> Outcome {
    let all = stdout(env, &["help"], 0);
    for verb in ["run", "compare", "crash", "report", "doctor", "demo"] {
        assert!(
            all.contains(&format!("\n  {verb} ")),
            "{verb} is not in {all}"
        );
        let help = stdout(env, &["help", verb], 0);
        assert_eq!(help, stdout(env, &[verb, "--help"], 0));
        assert!(help.contains(&format!("Usage: refit {verb}")), "{help}");
        // Every option has a heading of its own, but for the one that prints this.
        let (_, options) = help.split_once("\nOptions:\n").expect("a last heading");
        let options = options.split("\n\n").next().unwrap_or_default();
        let names = options
            .lines()
            .filter(|line| line.contains("  -") || line.contains("  --"));
        let names: Vec<&str> = names.collect();
        assert_eq!(names.len(), 1, "{help}");
        assert!(names[0].contains("-h, --help"), "{help}");
    }
    let check = stdout(env, &["help", "recipes", "check"], 0);
    assert!(check.contains("\nInstances of a recipe:\n"), "{check}");
    expect_code(&env.refit(&["help", "nonsense"]), 2);
    Outcome::Pass
}

fn explain_starts_nothing(env: &TestEnv) -> Outcome {
    let file = env.path("file");
    let text = stdout(
        env,
        &["run", "--explain", "sync=off", "--", "touch", &file],
        0,
    );
    for part in [
        "sync=off",
        "loses-on-crash",
        "not covered",
        "io_uring",
        "preload",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!Path::new(&file).exists());
    let text = stdout(env, &["run", "--explain"], 0);
    assert!(text.contains("observes"), "{text}");
    Outcome::Pass
}

/// The kernel's own word for it: THP_enabled in /proc/PID/status.
fn what_is_mistyped_gets_the_nearest(env: &TestEnv) -> Outcome {
    let command = ["sync=off", "--", "true"];
    for (typed, meant) in [
        (&["compare", "--jsn", "x"][..], "did you mean --json?"),
        (&["compare", "--confirm", "x"], "it is --remeasure now"),
        (&["status", "--check"], "it is --exit-code now"),
        (&["compere"], "did you mean refit compare?"),
        (&["recipes", "shw"], "did you mean refit recipes show?"),
        (
            &["export", "kubernetes", "compar"],
            "did you mean refit export kubernetes compare?",
        ),
        (
            &["compare", "snyc=off"],
            "unknown setting `snyc`; did you mean `sync=off`?",
        ),
    ] {
        expect_refused(env, &[typed, &command].concat(), &[meant]);
    }
    // What is like nothing gets no proposal, least of all to pass it to the command.
    let output = env.refit(&["compare", "--no-such-thing", "sync=off", "--", "true"]);
    expect_code(&output, 2);
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!messages.contains("tip:"), "{messages}");
    Outcome::Pass
}

fn huge_pages_are_taken_away_as_far_as_a_process_may_ask(env: &TestEnv) -> Outcome {
    let grep = ["grep", "THP_enabled", "/proc/self/status"];
    let enabled = |args: &[&str]| {
        let output = env.refit(&[args, &grep].concat());
        expect_code(&output, 0);
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .ends_with('1')
    };
    assert!(
        enabled(&["run", "--quiet", "--"]),
        "somebody else disabled it"
    );
    assert!(!enabled(&["run", "--quiet", "thp=never", "--"]));
    let mode = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .unwrap_or_else(|error| env.skip(&format!("no huge pages: {error}")));
    let always = env.refit(&["run", "thp=always", "--", "true"]);
    if mode.contains("[always]") {
        expect_code(&always, 0);
    } else {
        expect_code(&always, 125);
        let messages = String::from_utf8_lossy(&always.stderr);
        assert!(messages.contains("can only be given less"), "{messages}");
    }
    Outcome::Pass
}

fn variables_and_libraries_reach_the_program(env: &TestEnv) -> Outcome {
    let library = &system_library("libjemalloc.so.2");
    let setting = format!("preload={library}");
    let output = env.refit(&[
        "run",
        "--quiet",
        "tz=right/Japan",
        "env.GREETING=a=b c",
        &setting,
        "--",
        "sh",
        "-c",
        "env; cat /proc/self/maps",
    ]);
    expect_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    for line in ["TZ=right/Japan", "GREETING=a=b c"] {
        assert!(
            stdout.lines().any(|l| l == line),
            "{line} is not in {stdout}"
        );
    }
    assert!(stdout.contains("libjemalloc"), "{}", described(&output));
    Outcome::Pass
}

/// Looks for the demo's table in what it printed.
fn is_table_of_the_demo(table: &str) {
    let messages = table
        .strip_prefix("A small mail queue: ")
        .and_then(|rest| rest.split(' ').next())
        .and_then(|number| number.parse::<u32>().ok())
        .unwrap_or_else(|| panic!("how many messages? {table}"));
    let row = table.lines().find(|line| line.starts_with("sync=off"));
    // Two syncs for each message.
    let suppressed = format!("({} suppressed)", 2 * messages);
    assert!(row.is_some_and(|row| row.contains(&suppressed)), "{table}");
    assert!(table.contains("overhead of refit"), "{table}");
    // The answer names no command that would need the demo's directory, which is gone.
    assert!(!table.contains("refit crash sync=off"), "{table}");
    // In any case, and as root by power cuts.
    assert!(table.contains("What sync=off risks"), "{table}");
}

fn the_demo_compares_a_mail_queue(env: &TestEnv) -> Outcome {
    let table = stdout(env, &["demo", "--dir", &env.dir().display().to_string()], 0);
    is_table_of_the_demo(&table);
    let left = std::fs::read_dir(env.dir()).expect("it is ours").count();
    assert_eq!(left, 0, "the demo left something behind");
    let text = table.replace('\n', " ");
    let is_ours = |path| File::options().read(true).write(true).open(path).is_ok();
    if ["/dev/fuse", "/dev/loop-control"].into_iter().all(is_ours) {
        assert!(
            text.contains("the program itself lost nothing in "),
            "{table}"
        );
        let is_lost = ["`sync=off` lost ", "`sync=off` left damage"];
        assert!(is_lost.iter().any(|words| text.contains(words)), "{table}");
    } else {
        assert!(
            text.contains("No power was cut here to show it: root"),
            "{table}"
        );
    }
    Outcome::Pass
}

fn the_demo_ends_with_a_table_on_a_slow_disk(env: &TestEnv) -> Outcome {
    // Anyone else has no filter beneath a program.
    env.require_root();
    let (refit, dir) = (refit_path(), env.dir().display().to_string());
    let disk = ["run", "--quiet", "--backend", "seccomp", "disk=10ms", "--"];
    let demo = [refit.as_str(), "demo", "--budget", "30s", "--dir", &dir];
    let table = stdout(env, &[&disk[..], &demo].concat(), 0);
    is_table_of_the_demo(&table);
    // What one run may cost is measured first.
    assert!(table.contains("instead of 200"), "{table}");
    Outcome::Pass
}

fn the_demo_ends_with_a_table_on_a_busy_machine(env: &TestEnv) -> Outcome {
    let _loops: Vec<BusyLoop> = (0..4).map(|_| BusyLoop::start()).collect();
    let dir = env.dir().display().to_string();
    let table = stdout(env, &["demo", "--budget", "30s", "--dir", &dir], 0);
    is_table_of_the_demo(&table);
    Outcome::Pass
}

/// A process that uses a processor until it is dropped.
struct BusyLoop(Child);

impl BusyLoop {
    fn start() -> BusyLoop {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]);
        BusyLoop(shell.spawn().expect("there is a shell"))
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn too_little_time_gives_numbers_without_a_verdict(env: &TestEnv) -> Outcome {
    // There is time for two round pairs after the first, or for the first only, and for that
    // on a machine too that takes twice as long for it.
    for (budget, seconds) in [("5s", "0.2"), ("10s", "0.9")] {
        let command = [
            "compare", "--budget", budget, "env.A=1", "--", "sleep", seconds,
        ];
        let table = stdout(env, &command, 0);
        let row = table.lines().find(|line| line.starts_with("env.A=1 "));
        let row = row.unwrap_or_else(|| panic!("no row in {table}"));
        let has_time = row.contains(" ms ") || row.contains(" s ");
        assert!(has_time && row.contains(" % "), "{table}");
        assert!(row.contains("unbounded"), "{table}");
        assert!(table.contains("too few runs: "), "{table}");
        assert!(
            table.contains("6 round pairs")
                && table.contains("would probably settle it: --budget "),
            "{table}"
        );
    }
    Outcome::Pass
}

fn the_demo_prices_a_log_line(env: &TestEnv) -> Outcome {
    let table = stdout(
        env,
        &["demo", "fsync", "--dir", &env.dir().display().to_string()],
        0,
    );
    for mode in ["none ", "fflush ", "fsync ", "both "] {
        assert!(
            table.lines().any(|line| line.starts_with(mode)),
            "{mode} is not in {table}"
        );
    }
    expect_code(&env.refit(&["demo", "nonsense"]), 2);
    Outcome::Pass
}
