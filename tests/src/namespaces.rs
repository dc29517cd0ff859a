//! A program that leaves for namespaces of its own: the session can be hidden from it, or belong to nobody there. A plain
//! `sync=off` holds all the same. The kernel's own tracepoints judge.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::runner::{Outcome, Test};
use crate::seccomp::run;
use crate::test;
use crate::test_env::{TestEnv, described};

pub const TESTS: &[Test] = &[
    test!(a_mount_over_the_session_hides_no_sync),
    test!(an_unmapped_root_hides_no_sync),
    test!(every_other_namespace_hides_no_sync),
];

const SETTINGS: [&[&str]; 3] = [
    &["sync=off"],
    &["--backend", "seccomp", "sync=off"],
    &["sync@exe:fsync_once=off"],
];

/// Each script syncs a file once, by a dynamic program; so it does without a swap, and not with one.
pub fn hold(env: &TestEnv, scripts: &[String]) {
    for script in scripts {
        let words = ["sh", "-ec", script];
        let bare = env.run(&words);
        if !bare.status.success() {
            env.skip(&format!("not here: {script}: {}", described(&bare)));
        }
        let real = run(env, &["tz=UTC"], &words);
        assert_eq!(real.durable, 1, "{script}: {}", real.messages);
        for settings in SETTINGS {
            let off = run(env, settings, &words);
            assert_eq!(off.durable, 0, "{settings:?} {script}: {}", off.messages);
            // What answered without a count is unknown, and not real.
            let coverage = &off.report["coverage"];
            assert!(
                coverage["processes_reached"] == coverage["processes_seen"]
                    || !coverage["unknown"].as_array().is_none_or(Vec::is_empty),
                "{settings:?} {script}: {}",
                off.messages
            );
        }
    }
}

/// The program, with a file that every user may write; as one command.
pub fn sync_once(env: &TestEnv) -> String {
    let all = |path: &str, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    let (program, file) = (env.path("fsync_once"), env.file("file", ""));
    fs::copy(env.program("fsync_once"), &program).expect("both are ours");
    all(&program, 0o755);
    all(&file, 0o666);
    all(&env.path(""), 0o777);
    format!("{program} {file}")
}

fn a_mount_over_the_session_hides_no_sync(env: &TestEnv) -> Outcome {
    env.require_root();
    let sync = sync_once(env);
    let hidden = |places: &str, ending: &str| {
        format!(
            "unshare -m sh -ec 'for place in {places}; do mount -t tmpfs tmpfs $place; done; {ending}'"
        )
    };
    hold(
        env,
        &[
            hidden("/run", &format!("exec {sync}")),
            hidden("/run /dev/shm", &format!("{sync}; :")),
            hidden("/var/lib", &format!("exec {sync}")),
            hidden("/run /var/lib", &format!("env -i {sync}; :")),
            hidden("/run", &format!("unshare -p -f {sync}; :")),
        ],
    );
    Outcome::Pass
}

/// There the session's owner is nobody (user_namespaces(7)), and the library trusts nobody's page.
fn an_unmapped_root_hides_no_sync(env: &TestEnv) -> Outcome {
    env.require_root();
    let sync = sync_once(env);
    let dropped = "setpriv --reuid=64999 --regid=64999 --clear-groups";
    let [up, go] = ["up", "go"].map(|name| env.path(name));
    let mapped = |then: &str| {
        format!(
            "rm -f {up} {go}; mkfifo -m 666 {up} {go}
            unshare -U --keep-caps sh -ec 'echo $$ >{up}; read line <{go}; {then}' &
            read pid <{up}; echo 1000 64999 1 >/proc/$pid/uid_map; echo >{go}; wait $!"
        )
    };
    hold(
        env,
        &[
            format!("unshare -U {sync}"),
            format!("unshare -U sh -c '{sync}; :'"),
            format!("{dropped} unshare --map-root-user {sync}"),
            format!("{dropped} unshare --map-root-user sh -c '{sync}; :'"),
            mapped(&format!("setpriv --reuid=1000 {sync}; :")),
            mapped(&format!("exec setpriv --reuid=1000 sh -c \"{sync}; :\"")),
        ],
    );
    Outcome::Pass
}

fn every_other_namespace_hides_no_sync(env: &TestEnv) -> Outcome {
    env.require_root();
    let sync = sync_once(env);
    let each = [
        "-i",
        "-n",
        "-u",
        "-C",
        "-pf",
        "-pf --mount-proc",
        "-imnuCpf",
    ];
    let scripts: Vec<String> = each
        .iter()
        .map(|options| format!("unshare {options} sh -c '{sync}; :'"))
        .collect();
    hold(env, &scripts);
    Outcome::Pass
}
