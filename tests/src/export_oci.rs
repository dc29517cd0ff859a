//! `refit export oci`: what it prints, given to Podman and runc as they are; the kernel's tracepoints tell what was synced.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use crate::containers::{
    DEFAULT, container, durable, podman, require_containers, require_default, run, static_root,
};
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, described, expect_code, refit_path};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(podman_answers_syncs_and_keeps_its_own_profile).limit_seconds(120),
    test!(what_a_profile_blocks_stays_blocked).limit_seconds(120),
    test!(runc_takes_the_profile_without_a_given_one).limit_seconds(120),
    test!(podman_mounts_an_allocator_and_sets_variables),
    test!(a_build_under_refit_does_not_sync).limit_seconds(240),
];

/// What sync=off answers.
pub const CALLS: [&str; 5] = ["fsync", "fdatasync", "sync", "syncfs", "sync_file_range"];

/// What `refit export oci` printed, as a shell reads it, and its messages.
pub fn exported(env: &TestEnv, args: &[&str]) -> (Vec<String>, String) {
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
    // Where the loader names a library, it is: below /lib, or below /usr/lib.
    let directories = ["lib", "lib64", "usr", "bin"].into_iter();
    let directories = directories.filter(|name| Path::new(&context).join(name).is_dir());
    let base: String = directories
        .map(|name| format!("COPY {name} /{name}\n"))
        .collect();
    let base = format!("FROM scratch\n{base}COPY fsync_once /fsync_once\n");
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
        // Without limits of its own Podman raises those of this machine, which is not permitted everywhere.
        let build = "build --network none --isolation oci --ulimit nofile=1024:1024 \
                     --ulimit nproc=1024:1024 --no-cache --file";
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
