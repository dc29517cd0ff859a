//! Opens with O_SYNC that only the guardian can do without it: the program sees what the kernel would have given it,
//! but for the bit.

use std::fs;

use crate::runner::{Outcome, Test};
use crate::seccomp::run;
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(an_open_differs_from_the_kernels_in_nothing_but_the_bit),
    test!(an_opener_is_nobody_where_the_program_is),
    test!(in_a_chroot_names_are_the_chroots),
    test!(a_path_scope_takes_the_bit_below_it_alone),
    test!(a_full_descriptor_table_empties_no_file),
];

/// Regular files that exist or are made, by a path that means the same to everybody.
const TAKEN: [&str; 10] = [
    "new",
    "exclusive",
    "dsync",
    "read",
    "emptied",
    "link",
    "up",
    "in",
    "forbidden",
    "own_forbidden",
];

/// The program's lines without refit and with, each in a fresh directory.
fn both(env: &TestEnv, settings: &[&str], more: &[&str]) -> [Vec<String>; 2] {
    env.require_root();
    let program = env.program("static_opens");
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let fresh = |name: &str| {
        let directory = env.subdir(name);
        std::os::unix::fs::chown(&directory, Some(65534), Some(65534)).expect("root may");
        directory
    };
    let bare = env.run(&[&[&*program, &*fresh("bare")], more].concat());
    expect_code(&bare, 0);
    let seen = run(
        env,
        settings,
        &[&[&*program, &*fresh("refit")], more].concat(),
    );
    let _ = fs::remove_dir_all(env.path("bare"));
    let _ = fs::remove_dir_all(env.path("refit"));
    [
        lines(&String::from_utf8_lossy(&bare.stdout)),
        lines(&seen.stdout),
    ]
}

fn differ_in_the_bit([bare, refit]: [Vec<String>; 2]) {
    assert_eq!(bare.len(), refit.len(), "{bare:#?}{refit:#?}");
    assert!(bare.len() > 20, "{bare:#?}");
    let mut taken = 0;
    for (bare, refit) in bare.iter().zip(&refit) {
        let name = bare.split(' ').next().expect("a line has a word");
        let may_go = TAKEN.contains(&name) && bare.contains("sync=1");
        let expected = if may_go {
            bare.replace("sync=1", "sync=0")
        } else {
            bare.clone()
        };
        assert_eq!(*refit, expected);
        taken += usize::from(may_go);
    }
    assert!(taken >= 8, "{taken}");
}

fn an_open_differs_from_the_kernels_in_nothing_but_the_bit(env: &TestEnv) -> Outcome {
    for settings in [
        &["sync=off"][..],
        &["sync@exe:static_opens=off"],
        &["--backend", "seccomp", "sync=off"],
    ] {
        differ_in_the_bit(both(env, settings, &[]));
    }
    Outcome::Pass
}

fn an_opener_is_nobody_where_the_program_is(env: &TestEnv) -> Outcome {
    let lines = both(env, &["sync=off"], &["65534"]);
    let forbidden = lines[0].iter().filter(|line| line.ends_with("errno=13"));
    assert_eq!(forbidden.count(), 2, "{:#?}", lines[0]);
    assert!(lines[1][0].contains("owner=65534:65534"), "{}", lines[1][0]);
    differ_in_the_bit(lines);
    Outcome::Pass
}

fn in_a_chroot_names_are_the_chroots(env: &TestEnv) -> Outcome {
    env.require_root();
    let root = env.subdir("root");
    fs::copy(env.program("static_opens"), format!("{root}/static_opens")).expect("both are ours");
    for name in ["dir", "dev", "etc"] {
        fs::create_dir(format!("{root}/{name}")).expect("the directory is ours");
    }
    let chroot = env.program("chroot_exec");
    let words = [&*chroot, &*root, "/static_opens", "/dir"];
    let bare = env.run(&words);
    expect_code(&bare, 0);
    fs::remove_dir_all(format!("{root}/dir")).expect("the directory is ours");
    fs::create_dir(format!("{root}/dir")).expect("the directory is ours");
    let seen = run(env, &["--backend", "seccomp", "sync=off"], &words);
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    differ_in_the_bit([
        lines(&String::from_utf8_lossy(&bare.stdout)),
        lines(&seen.stdout),
    ]);
    Outcome::Pass
}

fn a_path_scope_takes_the_bit_below_it_alone(env: &TestEnv) -> Outcome {
    let inside = format!("sync@{}/refit/below/=off", env.dir().display());
    let [bare, refit] = both(env, &[&inside], &[]);
    for (bare, refit) in bare.iter().zip(&refit) {
        let expected = if bare.starts_with("in ") {
            bare.replace("sync=1", "sync=0")
        } else {
            bare.clone()
        };
        assert_eq!(*refit, expected);
    }
    Outcome::Pass
}

/// The kernel looks for a descriptor first, and touches no file when there is none.
fn a_full_descriptor_table_empties_no_file(env: &TestEnv) -> Outcome {
    let program = env.program("static_full_table");
    let file = env.file("file", "kept");
    let seen = run(env, &["sync=off"], &[&program, &file]);
    assert_eq!(seen.stdout, "errno=24\n");
    assert_eq!(fs::read_to_string(&file).expect("it is ours"), "kept");
    Outcome::Pass
}
