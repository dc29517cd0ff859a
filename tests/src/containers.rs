//! Containers for tests: Podman and runc in the test's own directory, and the syncs of what they run.

use std::fs;
use std::process::Output;

use crate::compared::{list, number};
use crate::ran::base;
use crate::seccomp::{self, Seen};
use crate::test_env::{TestEnv, described};

/// Podman's own seccomp profile, as Debian packages it.
pub const DEFAULT: &str = "/usr/share/containers/seccomp.json";

/// Skips the test where that is missing.
pub fn require_default(env: &TestEnv) {
    if fs::metadata(DEFAULT).is_err() {
        env.skip(&format!("no {DEFAULT} (golang-github-containers-common)"));
    }
}

/// Podman with everything that it keeps below the test's directory, where it is to be started.
pub fn podman(env: &TestEnv) -> Vec<String> {
    env.require_root();
    for command in ["podman", "runc", "conmon"] {
        env.require_command(command);
    }
    let mut words = vec!["podman".to_owned()];
    for (option, directory) in [("--root", "store"), ("--tmpdir", "tmp")] {
        words.extend([option.to_owned(), env.path(directory)]);
    }
    // Podman refuses a word of more than 50 characters here, which the path of a checkout may have.
    words.extend(["--runroot".to_owned(), "run".to_owned()]);
    let fixed =
        "--storage-driver vfs --cgroup-manager cgroupfs --events-backend file --runtime runc";
    words.extend(fixed.split(' ').map(str::to_owned));
    words
}

/// `podman run` with these options in the root that was made; the limits are some that every machine has.
pub fn container(env: &TestEnv, options: &[String], command: &[&str]) -> Vec<String> {
    let mut words = podman(env);
    let fixed = "run --rm --network none --ulimit nofile=1024:1024 --ulimit nproc=4096:4096";
    words.extend(fixed.split(' ').map(str::to_owned));
    words.extend_from_slice(options);
    words.extend(["--rootfs".to_owned(), env.path("root")]);
    words.extend(command.iter().map(|word| (*word).to_owned()));
    words
}

pub fn run(env: &TestEnv, words: &[String]) -> Output {
    env.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Skips the test where no container can be run at all.
pub fn require_containers(env: &TestEnv) {
    let bare = run(env, &container(env, &[], &["/busybox", "true"]));
    if !bare.status.success() {
        env.skip(&format!(
            "podman cannot run a container here: {}",
            described(&bare)
        ));
    }
}

/// The calls for durability that this program made, as the kernel saw them. The runtime makes some of its own.
pub fn durable(env: &TestEnv, program: &str, words: &[String]) -> u64 {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Seen { report, .. } = seccomp::run(env, &["tz=UTC"], &words);
    let callers = list(&report["witness"]["seen"]["callers"]).iter();
    let ours = callers.filter(|caller| base(&caller["executable"]) == program);
    ours.map(|caller| number(&caller["calls"]) as u64).sum()
}

/// A root with static programs.
pub fn static_root(env: &TestEnv) {
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
