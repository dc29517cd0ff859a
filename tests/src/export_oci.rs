//! `refit export oci`: what it prints, given to Podman and runc as they are; the kernel's tracepoints tell what was synced.

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::compared::{list, number};
use crate::ran::base;
use crate::runner::{Outcome, Test};
use crate::seccomp::{self, Seen};
use crate::test_env::{TestEnv, described, expect_code, expect_message, refit_path};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(podman_answers_syncs_and_keeps_its_own_profile).limit_seconds(120),
    test!(what_a_profile_blocks_stays_blocked).limit_seconds(120),
    test!(runc_takes_the_profile_without_a_given_one).limit_seconds(120),
    test!(podman_mounts_an_allocator_and_sets_variables),
    test!(a_build_under_refit_does_not_sync).limit_seconds(240),
    test!(every_other_rule_of_a_profile_is_kept),
    test!(a_shell_reads_the_options_as_they_are_meant),
    test!(what_a_container_cannot_have_is_refused),
];

/// As Debian packages it for Podman.
const DEFAULT: &str = "/usr/share/containers/seccomp.json";

const CALLS: [&str; 5] = ["fsync", "fdatasync", "sync", "syncfs", "sync_file_range"];

fn require_default(env: &TestEnv) {
    if fs::metadata(DEFAULT).is_err() {
        env.skip(&format!("no {DEFAULT} (golang-github-containers-common)"));
    }
}

/// What it printed, as a shell reads it, and its messages.
fn exported(env: &TestEnv, args: &[&str]) -> (Vec<String>, String) {
    let output = env.refit(&[&["export", "oci"], args].concat());
    expect_code(&output, 0);
    let line = String::from_utf8(output.stdout).expect("it is text");
    assert_eq!(line.matches('\n').count(), 1, "{line:?}");
    let shell = env.run(&["bash", "-c", &format!("printf '%s\\0' {line}")]);
    expect_code(&shell, 0);
    let words = String::from_utf8(shell.stdout).expect("it is text");
    let words = words.split_terminator('\0').map(str::to_owned).collect();
    (words, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Podman with everything that it keeps below the test's directory.
fn podman(env: &TestEnv) -> Vec<String> {
    env.require_root();
    for command in ["podman", "runc", "conmon"] {
        env.require_command(command);
    }
    let mut words = vec!["podman".to_owned()];
    for (option, directory) in [
        ("--root", "store"),
        ("--runroot", "run"),
        ("--tmpdir", "tmp"),
    ] {
        words.extend([option.to_owned(), env.path(directory)]);
    }
    let fixed =
        "--storage-driver vfs --cgroup-manager cgroupfs --events-backend file --runtime runc";
    words.extend(fixed.split(' ').map(str::to_owned));
    words
}

/// `podman run` with these options in the root that was made; the limits are some that every machine has.
fn container(env: &TestEnv, options: &[String], command: &[&str]) -> Vec<String> {
    let mut words = podman(env);
    let fixed = "run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=4096:4096";
    words.extend(fixed.split(' ').map(str::to_owned));
    words.extend_from_slice(options);
    words.extend(["--rootfs".to_owned(), env.path("root")]);
    words.extend(command.iter().map(|word| (*word).to_owned()));
    words
}

fn run(env: &TestEnv, words: &[String]) -> Output {
    env.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Skips the test where no container can be run at all.
fn require_containers(env: &TestEnv) {
    let bare = run(env, &container(env, &[], &["/busybox", "true"]));
    if !bare.status.success() {
        env.skip(&format!(
            "podman cannot run a container here: {}",
            described(&bare)
        ));
    }
}

/// The calls for durability that this program made, as the kernel saw them. The runtime makes some of its own.
fn durable(env: &TestEnv, program: &str, words: &[String]) -> u64 {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Seen { report, .. } = seccomp::run(env, &["tz=UTC"], &words);
    let callers = list(&report["witness"]["seen"]["callers"]).iter();
    let ours = callers.filter(|caller| base(&caller["executable"]) == program);
    ours.map(|caller| number(&caller["calls"]) as u64).sum()
}

/// A root with static programs.
fn static_root(env: &TestEnv) {
    env.require_command("busybox");
    let root = env.subdir("root");
    for directory in ["proc", "dev", "sys", "tmp", "etc"] {
        env.subdir(&format!("root/{directory}"));
    }
    let busybox = env.run(&["sh", "-c", "command -v busybox"]);
    let busybox = String::from_utf8_lossy(&busybox.stdout).trim().to_owned();
    fs::copy(busybox, format!("{root}/busybox")).expect("both are there");
    for program in ["static_fsync", "static_i386_fsync", "static_sync_calls"] {
        fs::copy(env.program(program), format!("{root}/{program}")).expect("both are there");
    }
}

fn security(profile: &str) -> Vec<String> {
    vec!["--security-opt".to_owned(), format!("seccomp={profile}")]
}

fn podman_answers_syncs_and_keeps_its_own_profile(env: &TestEnv) -> Outcome {
    env.require_root();
    require_default(env);
    static_root(env);
    require_containers(env);
    let (options, messages) = exported(
        env,
        &["sync=off", "--profile", DEFAULT, "--seccomp", "off.json"],
    );
    assert_eq!(options, security(&env.path("off.json")));
    assert!(messages.contains("loses-on-crash"), "{messages}");
    assert!(!messages.contains("without --profile"), "{messages}");
    for program in ["static_fsync", "static_i386_fsync"] {
        let sync = format!("/{program}");
        let command = [&*sync, "/file"];
        let real = container(env, &security(DEFAULT), &command);
        assert_eq!(durable(env, program, &real), 1, "{program}");
        fs::remove_file(env.path("root/file")).expect("the program made it");
        // Other calls are made: it succeeds, and has written.
        assert_eq!(
            durable(env, program, &container(env, &options, &command)),
            0,
            "{program}"
        );
        assert_eq!(fs::read(env.path("root/file")).expect("likewise"), b"x");
    }
    let all = run(
        env,
        &container(env, &options, &["/static_sync_calls", "/all"]),
    );
    let errors = errors(&all);
    assert_eq!(errors.len(), CALLS.len() + 1, "{errors:?}");
    assert!(errors.values().all(|error| *error == 0), "{errors:?}");
    let status = [
        "/busybox",
        "grep",
        "-E",
        "^Seccomp:.*2$",
        "/proc/self/status",
    ];
    expect_code(&run(env, &container(env, &options, &status)), 0);
    Outcome::Pass
}

/// The default profile, in which some calls fail with an error of our own.
fn stricter(env: &TestEnv) -> String {
    let text = fs::read_to_string(DEFAULT).expect("it is there");
    let mut profile: Value = serde_json::from_str(&text).expect("it is JSON");
    let blocked = ["fdatasync", "mkdir", "mkdirat"];
    let rules = profile["syscalls"].as_array_mut().expect("rules");
    for rule in rules.iter_mut() {
        let names = rule["names"].as_array_mut().expect("names");
        names.retain(|name| !blocked.contains(&name.as_str().expect("a name")));
    }
    rules.push(json!({"names": ["fdatasync"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}));
    rules.push(json!({"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13}));
    env.file("stricter.json", &profile.to_string())
}

fn what_a_profile_blocks_stays_blocked(env: &TestEnv) -> Outcome {
    env.require_root();
    require_default(env);
    static_root(env);
    require_containers(env);
    let given = stricter(env);
    let (options, messages) = exported(
        env,
        &["sync=off", "--profile", &given, "--seccomp", "off.json"],
    );
    assert!(
        messages.contains("decides by itself about fdatasync: that stays"),
        "{messages}"
    );
    let command = ["/static_fsync", "/file"];
    assert_eq!(
        durable(
            env,
            "static_fsync",
            &container(env, &security(&given), &command)
        ),
        1
    );
    assert_eq!(
        durable(env, "static_fsync", &container(env, &options, &command)),
        0
    );
    for options in [&security(&given), &options] {
        let output = run(
            env,
            &container(env, options, &["/static_sync_calls", "/all"]),
        );
        let errors = errors(&output);
        let found = ["fdatasync", "mkdir", "fsync"].map(|call| errors[call]);
        assert_eq!(found, [28, 13, 0], "{errors:?}");
    }
    Outcome::Pass
}

/// What static_sync_calls printed: the errno of each call.
fn errors(output: &Output) -> BTreeMap<String, i32> {
    expect_code(output, 0);
    let text = String::from_utf8_lossy(&output.stdout);
    let of = |line: &str| {
        let (name, number) = line.split_once(' ').expect("a name and a number");
        (name.to_owned(), number.parse().expect("a number"))
    };
    text.lines().map(of).collect()
}

/// Without Podman, which translates a profile: the file is one of the runtime specification too.
fn runc_takes_the_profile_without_a_given_one(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_command("runc");
    static_root(env);
    let (_, messages) = exported(env, &["sync=off", "--seccomp", "off.json"]);
    assert!(
        messages.contains("the runtime's own protection is dropped"),
        "{messages}"
    );
    expect_code(&env.run(&["runc", "spec"]), 0);
    let read = |name: &str| -> Value {
        let text = fs::read_to_string(env.path(name)).expect("it was written");
        serde_json::from_str(&text).expect("it is JSON")
    };
    let profile = read("off.json");
    let mut config = read("config.json");
    config["process"]["terminal"] = false.into();
    config["process"]["rlimits"] = json!([]);
    config["root"] = json!({"path": "root", "readonly": false});
    let words: Vec<String> = ["runc", "--root", &env.path("state"), "run", "test"]
        .map(str::to_owned)
        .into();
    for program in ["static_fsync", "static_i386_fsync"] {
        config["process"]["args"] = json!([format!("/{program}"), "/file"]);
        for (seccomp, expected) in [(Value::Null, 1), (profile.clone(), 0)] {
            config["linux"]["seccomp"] = seccomp;
            if config["linux"]["seccomp"].is_null() {
                config["linux"]
                    .as_object_mut()
                    .expect("an object")
                    .remove("seccomp");
            }
            env.file("config.json", &config.to_string());
            assert_eq!(durable(env, program, &words), expected, "{program}");
        }
    }
    Outcome::Pass
}

fn podman_mounts_an_allocator_and_sets_variables(env: &TestEnv) -> Outcome {
    env.require_root();
    let (options, messages) = exported(
        env,
        &["malloc=jemalloc", "tz=UTC", "env.A=b c", "env.B=$(id)'\""],
    );
    assert!(
        messages.contains("the image needs the C library"),
        "{messages}"
    );
    let mount = options
        .windows(2)
        .find(|pair| pair[0] == "-v")
        .expect("a mount");
    let library = mount[1].split(':').next().expect("a path");
    assert!(!env.run(&["ldd", library]).stdout.is_empty(), "{library}");
    places::chroot(env, "root", &["/bin/cat", library]);
    let bare = run(env, &container(env, &[], &["/cat", "/proc/self/maps"]));
    if !bare.status.success() {
        env.skip(&format!(
            "podman cannot run a container here: {}",
            described(&bare)
        ));
    }
    assert!(!String::from_utf8_lossy(&bare.stdout).contains("/refit/"));
    let output = run(
        env,
        &container(
            env,
            &options,
            &["/cat", "/proc/self/maps", "/proc/self/environ"],
        ),
    );
    expect_code(&output, 0);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("/refit/1/libjemalloc"), "{text}");
    for variable in ["TZ=UTC\0", "A=b c\0", "B=$(id)'\"\0"] {
        assert!(text.contains(variable), "{variable:?} {text}");
    }
    Outcome::Pass
}

fn a_build_under_refit_does_not_sync(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_command("busybox");
    let podman = podman(env);
    static_root(env);
    let context = places::chroot(env, "context", &["/bin/true", &env.program("fsync_once")]);
    fs::create_dir_all(format!("{context}/bin")).expect("it is ours");
    fs::rename(format!("{context}/true"), format!("{context}/bin/true")).expect("likewise");
    fs::copy(env.path("root/busybox"), format!("{context}/bin/sh")).expect("likewise");
    fs::copy(refit_path(), format!("{context}/refit")).expect("likewise");
    let base = "FROM scratch\nCOPY lib /lib\nCOPY lib64 /lib64\nCOPY bin /bin\nCOPY fsync_once /fsync_once\n";
    let export = |command: &[&str]| {
        let output = env.refit(
            &[
                &["export", "oci", "--dockerfile", "sync=off", "--"],
                command,
            ]
            .concat(),
        );
        expect_code(&output, 0);
        String::from_utf8(output.stdout).expect("it is text")
    };
    let plain = export(&["/fsync_once", "/file"]);
    assert!(
        plain.ends_with("/refit run sync=off -- /fsync_once /file\n"),
        "{plain}"
    );
    let list = export(&["/bin/sh", "-c", "/fsync_once '/a file' && : \"$0\""]);
    for (instruction, expected) in [("RUN /fsync_once /file\n", 1), (&plain, 0), (&list, 0)] {
        let file = env.file("Dockerfile", &format!("{base}{instruction}"));
        let mut words = podman.clone();
        let build =
            "build --network none --isolation oci --ulimit nofile=1024:1024 --no-cache --file";
        words.extend(build.split(' ').map(str::to_owned));
        words.extend([file, context.clone()]);
        assert_eq!(
            durable(env, "fsync_once", &words),
            expected,
            "{instruction}"
        );
    }
    Outcome::Pass
}

/// What a profile decides about each call, by the conditions.
fn decisions(profile: &Value) -> BTreeMap<String, Vec<String>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for rule in list(&profile["syscalls"]) {
        let mut conditions = rule.clone();
        conditions
            .as_object_mut()
            .expect("an object")
            .remove("names");
        for name in list(&rule["names"]) {
            let name = name.as_str().expect("a name").to_owned();
            all.entry(name).or_default().push(conditions.to_string());
        }
    }
    all
}

fn every_other_rule_of_a_profile_is_kept(env: &TestEnv) -> Outcome {
    require_default(env);
    exported(
        env,
        &["sync=off", "--profile", DEFAULT, "--seccomp", "off.json"],
    );
    let read = |path: &str| -> Value {
        let text = fs::read_to_string(path).expect("it is there");
        serde_json::from_str(&text).expect("it is JSON")
    };
    let (mut given, mut made) = (read(DEFAULT), read(&env.path("off.json")));
    let (mut before, mut after) = (decisions(&given), decisions(&made));
    for call in CALLS {
        let allowed = before.remove(call).expect("it is allowed there");
        assert!(
            allowed.iter().all(|rule| rule.contains("SCMP_ACT_ALLOW")),
            "{call}"
        );
        let swapped = after.remove(call).expect("it is swapped here");
        assert_eq!(swapped.len(), allowed.len(), "{call}");
        for rule in swapped {
            let rule: Value = serde_json::from_str(&rule).expect("it is ours");
            assert_eq!(
                [&rule["action"], &rule["errnoRet"]],
                [&json!("SCMP_ACT_ERRNO"), &json!(0)]
            );
        }
    }
    assert!(before.len() > 300 && before == after);
    for profile in [&mut given, &mut made] {
        profile
            .as_object_mut()
            .expect("an object")
            .remove("syscalls");
    }
    assert_eq!(given, made);
    Outcome::Pass
}

fn a_shell_reads_the_options_as_they_are_meant(env: &TestEnv) -> Outcome {
    let library = env.file("library.so", "");
    let file = env.path("it's a $(profile).json");
    let preload = format!("preload={library}");
    let (options, _) = exported(
        env,
        &[
            "sync=off",
            &preload,
            "env.A=x\ny",
            "tz=UTC",
            "--seccomp",
            &file,
        ],
    );
    let expected = [
        "--security-opt".to_owned(),
        format!("seccomp={file}"),
        "-v".to_owned(),
        format!("{library}:/refit/1/library.so:ro"),
        "-e".to_owned(),
        "LD_PRELOAD=/refit/1/library.so".to_owned(),
        "-e".to_owned(),
        "A=x\ny".to_owned(),
        "-e".to_owned(),
        "TZ=UTC".to_owned(),
    ];
    assert_eq!(options, expected);
    let text = fs::read_to_string(file).expect("it was written");
    let profile: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut names: Vec<&Value> = list(&profile["syscalls"][0]["names"]).iter().collect();
    names.sort_by_key(|name| name.as_str());
    let mut calls = CALLS;
    calls.sort_unstable();
    assert_eq!(names, calls);
    Outcome::Pass
}

fn what_a_container_cannot_have_is_refused(env: &TestEnv) -> Outcome {
    let blocked = json!({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW"}]});
    let blocked = env.file("blocked.json", &blocked.to_string());
    let (text, array) = (
        env.file("text.json", "no JSON"),
        env.file("array.json", "[]"),
    );
    let colon = env.subdir("a:b");
    env.file("a:b/libjemalloc.so.2", "");
    let none = format!("preload={}", env.path("none.so"));
    for (args, message) in [
        (
            &["disk=8ms"][..],
            "refit run disk=8ms -- COMMAND, in a build by --dockerfile",
        ),
        (&["disk=fail:EIO"], "options of a container cannot do this"),
        (&["sync@exe:a=off"], "options of a container cannot do this"),
        (&["odirect=off"], "options of a container cannot do this"),
        (&["thp=never"], "options of a container cannot do this"),
        (&["conf.a=b"], "options of a container cannot do this"),
        (
            &["program=/bin/true"],
            "options of a container cannot do this",
        ),
        (&["sync=off"], "name a new one: --seccomp FILE"),
        (
            &["tz=UTC", "--seccomp", "new.json"],
            "--seccomp is for sync=off",
        ),
        (
            &["sync=off", "--seccomp", "none/new.json"],
            "there is no directory",
        ),
        (
            &[
                "sync=off",
                "--seccomp",
                "new.json",
                "--profile",
                "none.json",
            ],
            "cannot read none.json",
        ),
        (
            &["sync=off", "--seccomp", "new.json", "--profile", &text],
            "is not JSON",
        ),
        (
            &["sync=off", "--seccomp", "new.json", "--profile", &array],
            "it is not a seccomp profile",
        ),
        (
            &["sync=off", "--seccomp", "new.json", "--profile", &blocked],
            "it blocks every sync call by itself",
        ),
        (&["sync=off", "--profile", &array], "--seccomp <FILE>"),
        (&["tz=UTC", "--", "true"], "leave out `-- true`"),
        (
            &["--dockerfile", "sync=off"],
            "no command for the instruction",
        ),
        (
            &["malloc=jemalloc", "--allocator-dir", &colon],
            "copy it to a path without colons",
        ),
        (&[&none], "there is no library"),
        (&["malloc=nothing"], "malloc"),
        (&[], "SETTINGS"),
    ] {
        let output = env.refit(&[&["export", "oci"], args].concat());
        expect_message(&output, 2, message);
        assert!(output.stdout.is_empty(), "{}", described(&output));
        assert!(fs::metadata(env.path("new.json")).is_err(), "{args:?}");
    }
    Outcome::Pass
}
