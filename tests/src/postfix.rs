//! A mail server beneath refit: a master that clears the environment, daemons that give up root and enter a
//! chroot, and a setgid program that cannot be reached. The server is a private one: see `mailer`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::family::{self, Family};
use crate::mailer::{Mailer, files_below};
use crate::ran::{Ran, number};
use crate::runner::{Outcome, Test};
use crate::strace::{Call, Trace};
use crate::test;
use crate::test_env::{TestEnv, expect_code, refit_path, wait_until};

pub const TESTS: &[Test] = &[
    test!(a_scope_on_cleanup_takes_its_fsyncs_and_no_other_daemons),
    test!(observed_it_counts_as_strace_does_daemon_by_daemon),
    test!(left_running_it_keeps_its_settings_and_its_session),
    test!(a_scope_on_incoming_is_about_the_files_and_one_on_cleanup_about_the_daemon),
];

const SCOPE: &str = "sync@exe:cleanup=off";

/// From its start to its end: 200 mails by SMTP, one by sendmail(1), and one more that nobody takes; it bounces,
/// which is how another daemon than cleanup comes to sync.
const WHOLE_LIFE: [&str; 7] = [
    "session",
    "start",
    "smtp:200",
    "by-hand:b@example.test",
    "by-hand:b@gone.test",
    "drain",
    "stop",
];
const ARRIVED: usize = 202;

const SYNC_CALLS: &str = "fsync,fdatasync,sync,syncfs,sync_file_range,msync";

fn a_scope_on_cleanup_takes_its_fsyncs_and_no_other_daemons(env: &TestEnv) -> Outcome {
    let mailer = Mailer::new(env);
    let before = system_files();
    let cleanup = mailer.daemon("cleanup");

    // Without refit, and without its variables.
    let calls = format!("{},{SYNC_CALLS}", family::CALLS);
    let (output, trace) = env.strace(&calls, &mailer.steps(&WHOLE_LIFE[1..]));
    expect_code(&output, 0);
    mailer.expect_delivered(ARRIVED);
    let plain = Family::new(&trace, []).count(Call::is_sync);
    assert!(plain.get(&cleanup) > Some(&0), "{plain:?}");
    assert!(plain.get(&mailer.daemon("bounce")) > Some(&0), "{plain:?}");

    let script = mailer.steps(&WHOLE_LIFE);
    let (output, report) = env.refit_json(&[&["run", SCOPE, "--"], &script[..]].concat());
    expect_code(&output, 0);
    mailer.expect_delivered(ARRIVED);
    let suppressed = counted(&report, "suppressed");
    assert_eq!(
        suppressed,
        BTreeMap::from([(cleanup.clone(), plain[&cleanup])])
    );
    for daemon in ["master", "qmgr", "pickup", "smtpd", "smtp"] {
        let reached = executable(&report, &mailer.daemon(daemon));
        assert!(reached.is_some(), "{daemon} was not reached");
    }
    let mut others = plain;
    // postdrop too, which is setgid: the filter is beneath it.
    others.remove(&cleanup);
    assert!(others.keys().any(|program| program.ends_with("/postdrop")));
    assert_eq!(counted(&report, "real"), others);
    let unreached = report["coverage"]["unreached"].as_array().expect("a list");
    assert_eq!(unreached.len(), 0, "{unreached:?}");

    assert_eq!(report["survivors"], Value::Array(Vec::new()));
    mailer.expect_gone();
    assert!(!Path::new(&mailer.session()).exists());
    let kept = fs::read_dir("/var/lib/refit").expect("the library lies there");
    let kept = kept.flatten().map(|entry| entry.file_name());
    // Recipes that somebody agreed to, and changes of this machine's services, are none of a run's.
    let is_of_others = |name: &OsString| name == "agreed" || name == "changes";
    let kept: Vec<_> = kept.filter(|name| !is_of_others(name)).collect();
    assert_eq!(kept, ["lib"]);
    assert!(system_files() == before, "/etc/postfix was changed");
    Outcome::Pass
}

fn observed_it_counts_as_strace_does_daemon_by_daemon(env: &TestEnv) -> Outcome {
    let mailer = Mailer::new(env);
    let json = env.path("report.json");
    let refit = refit_path();
    let script = mailer.steps(&WHOLE_LIFE);
    let words = [&[&refit, "run", "--json", &json, "--"], &script[..]].concat();
    let calls = format!("{},{SYNC_CALLS}", family::CALLS);
    let (output, trace) = env.strace(&calls, &words);
    expect_code(&output, 0);
    mailer.expect_delivered(ARRIVED);
    let ran = Ran::new(&output, trace, &json);
    let family = Family::new(&ran.trace, []);

    // What refit saw is what strace saw, but for the programs that refit names as not reached.
    let (mut reached, mut unreached) = (family.count(Call::is_sync), 0);
    for entry in ran.list("/coverage/unreached") {
        let program = entry["name"].as_str().expect("text");
        unreached += reached.remove(program).unwrap_or_default();
    }
    assert_eq!(ran.unreached("postdrop", "setgid"), 2);
    assert!(unreached > 0, "postdrop syncs its mails");
    assert!(reached.get(&mailer.daemon("cleanup")) > Some(&0));
    assert_eq!(counted(&ran.report, "seen"), reached);
    assert_eq!(counted(&ran.report, "real"), reached);
    assert_eq!(counted(&ran.report, "suppressed"), BTreeMap::new());

    // Every daemon's process, though the master cleared their environment.
    let daemons = |program: &&String| program.starts_with(&mailer.daemons);
    let mut compared = 0;
    for program in family.processes.keys().filter(daemons) {
        // A script is its interpreter's.
        if let Some(entry) = executable(&ran.report, program) {
            assert_eq!(
                number(&entry["processes"]),
                family.processes[program],
                "{program}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 8, "{:?}", family.processes);
    assert!(!Path::new(&mailer.session()).exists());
    mailer.expect_gone();
    Outcome::Pass
}

fn left_running_it_keeps_its_settings_and_its_session(env: &TestEnv) -> Outcome {
    let mailer = Mailer::new(env);
    env.require_command("strace");
    let cleanup = mailer.daemon("cleanup");
    // The mail by hand passes all daemons: they are there when it has left.
    let script = mailer.steps(&["session", "start", "by-hand:b@example.test", "drain"]);
    let (output, report) = env.refit_json(&[&["run", SCOPE, "--"], &script[..]].concat());
    expect_code(&output, 0);
    mailer.expect_delivered(1);
    let running = mailer.running();
    assert!(
        running
            .iter()
            .any(|(_, program)| *program == mailer.daemon("master"))
    );
    let survivors = report["survivors"].as_array().expect("a list");
    let survivors = survivors.iter().map(|survivor| {
        let pid = u32::try_from(number(&survivor["pid"])).expect("pids are ints");
        let program = survivor["executable"].as_str().expect("text");
        (pid, program.to_owned())
    });
    let mut survivors: Vec<_> = survivors.collect();
    survivors.sort();
    assert!(
        survivors.iter().eq(&running),
        "{survivors:?}\nand in truth: {running:?}"
    );
    let messages = String::from_utf8_lossy(&output.stderr);
    let named = |line: &str| line.contains("still running") && line.contains("cleanup (pid ");
    assert!(messages.lines().any(named), "{messages}");

    // Another run leaves alone what is in use.
    env.report(&["run", "--", "true"]);
    assert!(Path::new(&mailer.session()).join("policy").exists());

    let log = env.path("log");
    let mut strace = env.command("strace");
    strace.args(["-f", "-qq", "-o", &log, "-e", "signal=none", "-e"]);
    strace.arg(format!("trace={},{SYNC_CALLS}", family::CALLS));
    for (pid, _) in &running {
        strace.args(["-p", &pid.to_string()]);
    }
    let strace = strace.stdin(Stdio::null()).spawn();
    let mut strace = strace.expect("strace is installed");
    let tracer = format!("TracerPid:\t{}", strace.id());
    wait_until("strace to watch them all", || {
        running.iter().all(|(pid, _)| {
            let status = fs::read_to_string(format!("/proc/{pid}/status"));
            status.is_ok_and(|status| status.lines().any(|line| line == tracer))
        })
    });
    expect_code(&env.run(&mailer.steps(&["smtp:50", "drain"])), 0);
    mailer.expect_delivered(50);
    expect_code(&env.run(&mailer.steps(&["stop"])), 0);
    // It ends with the last of them.
    strace.wait().expect("it is our child");

    let trace = Trace::parse(&fs::read_to_string(&log).expect("strace wrote it"));
    let family = Family::new(&trace, running);
    assert!(
        family.processes.get(&cleanup) > Some(&0),
        "the master started another cleanup: {:?}",
        family.processes
    );
    // Each descriptor is checked by a call that does nothing, and none is synced.
    assert_eq!(family.count(Call::is_sync).get(&cleanup), None);
    let checked = family
        .count(|call| call.name == "sync_file_range" && !call.is_sync() && call.result == "0");
    assert_eq!(checked.get(&cleanup), Some(&50));

    env.report(&["run", "--", "true"]);
    assert!(!Path::new(&mailer.session()).exists());
    mailer.expect_gone();
    Outcome::Pass
}

/// cleanup makes mails durable in incoming/, and those that are held in hold/: what a scope on the directory leaves
/// and one on the daemon takes. cleanup lives in a chroot without /proc, so only refit itself can tell its files.
fn a_scope_on_incoming_is_about_the_files_and_one_on_cleanup_about_the_daemon(
    env: &TestEnv,
) -> Outcome {
    const STEPS: [&str; 6] = ["start", "smtp:40", "hold:7", "drain", "purge", "stop"];
    let mailer = Mailer::new(env);
    env.require_command("strace");
    let cleanup = mailer.daemon("cleanup");

    let log = env.path("fsyncs");
    let strace = [
        "strace",
        "-f",
        "-y",
        "-qq",
        "-e",
        "trace=fsync",
        "-e",
        "signal=none",
        "-o",
        &log,
    ];
    let plain = env.run(&[&strace, &mailer.steps(&STEPS)[..]].concat());
    expect_code(&plain, 0);
    mailer.expect_delivered(40);
    let log = fs::read_to_string(&log).expect("strace wrote it");
    let fsyncs = |path: &str| log.lines().filter(|line| line.contains(path)).count() as u64;
    let all = log.lines().filter(|line| line.contains("fsync(")).count() as u64;
    let (inside, held) = (
        fsyncs("/queue/incoming/") + fsyncs("/queue/active/"),
        fsyncs("/queue/hold/"),
    );
    assert!(inside > 0 && held > 0 && inside + held == all, "{log}");

    let answers = |settings: &[&str]| {
        let words = [&["run"], settings, &["--"], &mailer.steps(&STEPS)[..]].concat();
        let (output, report) = env.refit_json(&words);
        expect_code(&output, 0);
        mailer.expect_delivered(40);
        let of = |field| {
            counted(&report, field)
                .get(&cleanup)
                .copied()
                .unwrap_or_default()
        };
        let unknown = report["coverage"]["path_unknown"]
            .as_u64()
            .unwrap_or_default();
        [of("suppressed"), of("real"), unknown]
    };
    // qmgr may have moved a mail on before its fsync is asked about.
    let scopes =
        ["incoming", "active"].map(|queue| format!("sync@{}/{queue}/=off", mailer.queue()));
    let scopes = scopes.each_ref().map(String::as_str);
    assert_eq!(answers(&[SCOPE]), [all, 0, 0]);
    assert_eq!(answers(&scopes), [inside, held, 0]);
    // Nothing is guessed where nobody can look.
    let alone = [&["--backend", "preload"], &scopes[..]].concat();
    assert_eq!(answers(&alone), [0, all, all]);
    mailer.expect_gone();
    Outcome::Pass
}

/// The files of the system's own instance.
fn system_files() -> Vec<(String, Option<Vec<u8>>)> {
    let files = files_below("/etc/postfix").into_iter();
    files
        .map(|file| (file.clone(), fs::read(file).ok()))
        .collect()
}

fn executable<'a>(report: &'a Value, program: &str) -> Option<&'a Value> {
    let all = report["executables"].as_array().expect("a list");
    all.iter().find(|entry| entry["executable"] == *program)
}

/// One field of refit's counts of sync calls by program; programs without any are left out.
fn counted(report: &Value, field: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for entry in report["executables"].as_array().expect("a list") {
        let program = entry["executable"].as_str().expect("text").to_owned();
        let calls = entry["calls"].as_object().expect("an object").iter();
        let syncs = calls.filter(|(name, _)| SYNC_CALLS.split(',').any(|call| call == *name));
        let count = syncs.map(|(_, calls)| number(&calls[field])).sum();
        if count > 0 {
            counts.insert(program, count);
        }
    }
    counts
}
