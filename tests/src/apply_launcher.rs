//! The program that a change places to start a service's own: what that is told of its syncs then, as root, as another
//! user, and where the kernel takes no filter.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::apply::{listing, words};
use crate::apply_postfix::{WITHOUT_SYNCS, tree};
use crate::containers::durable;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_printed};

pub const TESTS: &[Test] = &[
    test!(a_filter_answers_where_the_kernel_takes_it),
    test!(no_durable_call_of_the_program_is_left),
    test!(the_program_is_the_one_that_is_named),
];

/// A launcher as a change places it, which everybody may run.
fn launcher(env: &TestEnv) -> String {
    let root = tree(env, "tree");
    expect_code(&env.refit(&words("apply", &root, &WITHOUT_SYNCS)), 0);
    for dir in [env.dir(), root.as_ref()] {
        fs::set_permissions(dir, Permissions::from_mode(0o755)).expect("it is ours");
    }
    let files = listing(&root);
    let mut placed = files.keys().filter(|path| path.ends_with("/launcher"));
    format!("{root}/{}", placed.next().expect("it is placed"))
}

/// What a program is told of two syncs of a file, one of a pipe and one of a closed descriptor (EINVAL, EBADF).
const REAL: &str = "0 0 22 9 \n";
const DROPPED: &str = "0 0 0 0 \n";

fn a_filter_answers_where_the_kernel_takes_it(env: &TestEnv) -> Outcome {
    env.require_command("setpriv");
    let launcher = launcher(env);
    let [program, dynamic] = ["static_errors", "fsync_errors"].map(|name| env.program(name));
    let place = env.subdir("everybodys");
    fs::set_permissions(&place, Permissions::from_mode(0o777)).expect("it is ours");
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--inh-caps=-all",
    ];
    // Without CAP_SYS_ADMIN the kernel takes a filter only with no_new_privs: here the caller's, below the launcher's.
    let no_new_privs = ["setpriv", "--no-new-privs"];
    let of_this_user = if env.as_root() { DROPPED } else { REAL };
    let mut cases = vec![(&[][..], of_this_user, 0), (&no_new_privs[..], DROPPED, 1)];
    if env.as_root() {
        cases.push((&nobody[..], REAL, 0));
    }
    for (at, (first, answers, rights_given_up)) in cases.into_iter().enumerate() {
        for (name, program) in [("static", &program), ("dynamic", &dynamic)] {
            let file = format!("{place}/{at}-{name}");
            let plain = [first, &[program, "2", &file]].concat();
            expect_printed(&env.run(&plain), 0, REAL);
            let launched = [first, &[&*launcher, "sync=off", program, "2", &file]].concat();
            expect_printed(&env.run(&launched), 0, answers);
        }
        let status = [&launcher, "sync=off", "/bin/cat", "/proc/self/status"];
        let status = env.run(&[first, &status].concat());
        expect_printed(&status, 0, &format!("NoNewPrivs:\t{rights_given_up}\n"));
        let filters = String::from_utf8_lossy(&status.stdout).contains("Seccomp_filters:\t0\n");
        assert_eq!(filters, answers == REAL, "{first:?}");
        let words = ["no-new-privs", "sync=off"];
        let file = format!("{place}/{at}-no-new-privs");
        let launched = [first, &[&launcher], &words, &[&program, "2", &file]].concat();
        expect_printed(&env.run(&launched), 0, DROPPED);
        let status = [
            first,
            &[&launcher],
            &words,
            &["/bin/cat", "/proc/self/status"],
        ]
        .concat();
        expect_printed(&env.run(&status), 0, "NoNewPrivs:\t1\n");
    }
    Outcome::Pass
}

/// By the witness, which root has.
fn no_durable_call_of_the_program_is_left(env: &TestEnv) -> Outcome {
    env.require_root();
    let launcher = launcher(env);
    for (name, left) in [
        ("static_fsync", 0),
        ("static_sync_calls", 0),
        // Of another architecture: the real call.
        #[cfg(target_arch = "x86_64")]
        ("static_i386_fsync", 1),
    ] {
        let words = [env.program(name), env.path(name)];
        assert!(durable(env, name, &words) > 0, "{name}");
        fs::remove_file(env.path(name)).expect("the program made it");
        let _ = fs::remove_dir(env.path(&format!("{name}.d")));
        let launched = [&[launcher.clone(), "sync=off".to_owned()], &words[..]].concat();
        assert_eq!(durable(env, name, &launched), left, "{name}");
    }
    Outcome::Pass
}

fn the_program_is_the_one_that_is_named(env: &TestEnv) -> Outcome {
    let launcher = launcher(env);
    let run = |words: &[&str]| env.run(&[&[&*launcher], words].concat());
    for settings in [
        &[][..],
        &["sync=off"],
        &["thp=never"],
        &["thp=never", "no-new-privs", "sync=off"],
    ] {
        let shell = [
            settings,
            &["/bin/sh", "-c", "echo $0 $1; exit 7", "a b", "c"],
        ]
        .concat();
        expect_printed(&run(&shell), 7, "a b c\n");
        let own = [settings, &["/bin/cat", "/proc/self/cmdline"]].concat();
        expect_printed(&run(&own), 0, "/bin/cat\0/proc/self/cmdline\0");
    }
    let huge = run(&["thp=never", "/bin/cat", "/proc/self/status"]);
    expect_printed(&huge, 0, "THP_enabled:\t0\n");
    for (words, code) in [
        (&["sync=off", "/nonexistent"][..], 127),
        (&["sync=off", "/"], 126),
        (&["sync=off"], 127),
        (&["sync=on", "/bin/true"], 127),
    ] {
        expect_code(&run(words), code);
    }
    Outcome::Pass
}
