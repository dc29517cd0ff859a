//! A pipe that nobody writes to, where refit looks for files: refit does not wait for it.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Output;

use crate::crash::require_lab;
use crate::recipe_folder::RecipeFolder;
use crate::remains::base;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, refit_path};

pub const TESTS: &[Test] = &[
    test!(the_clean_up_of_crash_does_not_open_another_user_s_pipe),
    test!(the_clean_up_of_instances_does_not_open_another_user_s_pipe),
    test!(a_history_passes_over_a_pipe),
    test!(doctor_names_what_is_not_a_regular_file),
];

/// Ends long before the test's own limit, with 124, where refit waits for a pipe.
fn refit(env: &TestEnv, words: &[&str]) -> Output {
    env.run(&[&["timeout", "60", &refit_path()], words].concat())
}

/// Old enough to be taken for what a killed refit left.
fn make_old_pipe(env: &TestEnv, path: &str) {
    let script = "mkfifo -m 666 \"$0\" && touch -d '3 days ago' \"$0\"";
    let output = env.run(&["sh", "-c", script, path]);
    assert!(output.status.success(), "{}", described(&output));
}

const NOBODY: Option<u32> = Some(65534);

/// Removes what had to be outside the test's directory.
struct Outside(String);

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
        let _ = fs::remove_dir(&self.0);
    }
}

/// Digits of a name that no other test has now.
fn digits() -> String {
    format!("{:012x}", std::process::id())
}

fn the_clean_up_of_crash_does_not_open_another_user_s_pipe(env: &TestEnv) -> Outcome {
    require_lab(env);
    let pipe = Outside(format!("/var/tmp/refit-crash-{}", digits()));
    make_old_pipe(env, &pipe.0);
    chown(&pipe.0, NOBODY, NOBODY).expect("root may give files away");
    let program = env.program("append_log");
    let command = format!("{program} $REFIT_MOUNT/a.log 20 300");
    let options = "--quiet --check log:a.log --ack fd:1 --size 64M --cuts 20 --";
    let words: Vec<&str> = options.split(' ').collect();
    let output = refit(
        env,
        &[&["crash"], &*words, &["sh", "-c", &command]].concat(),
    );
    expect_code(&output, 0);
    fs::symlink_metadata(&pipe.0).expect("refit removes nothing that is another user's");
    Outcome::Pass
}

/// The directory on tmpfs is root's and in use, by a refit with another `--dir`; the one with its lock is not.
fn the_clean_up_of_instances_does_not_open_another_user_s_pipe(env: &TestEnv) -> Outcome {
    env.require_root();
    let name = format!("refit-lab-{}", digits());
    let in_use = Outside(format!("/dev/shm/{name}"));
    fs::create_dir(&in_use.0).expect("/dev/shm is there");
    let folder = RecipeFolder::command(env, "mine");
    let other = format!("{}/{name}", base(env));
    fs::create_dir(&other).expect("it is the test's");
    make_old_pipe(env, &format!("{other}/lock"));
    chown(&other, NOBODY, NOBODY).expect("root may give files away");
    folder.write();
    let dir = base(env);
    let output = refit(env, &["recipes", "check", "./mine", "--yes", "--dir", &dir]);
    expect_code(&output, 0);
    // A lock that another user made says nothing of it.
    fs::remove_file(format!("{other}/lock")).expect("root removes it");
    fs::write(format!("{other}/lock"), "").expect("it is the test's");
    chown(format!("{other}/lock"), NOBODY, NOBODY).expect("root may give files away");
    let output = refit(env, &["recipes", "check", "./mine", "--yes", "--dir", &dir]);
    expect_code(&output, 0);
    assert!(fs::exists(&in_use.0).expect("/dev/shm can be read"));
    Outcome::Pass
}

fn a_history_passes_over_a_pipe(env: &TestEnv) -> Outcome {
    let log = env.subdir("log");
    make_old_pipe(env, &format!("{log}/a.json"));
    let output = refit(env, &["report", "--history", &log]);
    expect_code(&output, 2);
    let text = described(&output);
    assert!(text.contains("no comparison in"), "{text}");
    Outcome::Pass
}

fn doctor_names_what_is_not_a_regular_file(env: &TestEnv) -> Outcome {
    make_old_pipe(env, &env.path("pipe"));
    for name in ["./pipe", "/dev/zero", "/tmp"] {
        let output = refit(env, &["doctor", name]);
        expect_code(&output, 2);
        let text = described(&output);
        let sentence = format!(
            "refit: {name} is not a regular file\n  name a program: refit doctor sqlite3\n"
        );
        assert!(text.contains(&sentence), "{text}");
    }
    Outcome::Pass
}
