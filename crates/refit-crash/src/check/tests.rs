use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::smtp::{END, ID};

fn find(check: &str, make: impl FnOnce(&Path)) -> Found {
    let directory = tempfile::tempdir().expect("a directory");
    make(directory.path());
    let acked = directory.path().join("acked");
    fs::write(&acked, "1\n2\n").expect("writable");
    let image = CheckedImage {
        mount: directory.path(),
        acknowledged: &acked,
        dir: None,
        env: &[],
        timeout: Duration::from_secs(5),
    };
    let check: Check = check.parse().expect("a check");
    check.find(&image).expect("it runs")
}

fn ids(found: &Found) -> Vec<&str> {
    let mut ids: Vec<&str> = found.ids.iter().map(String::as_str).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn whole_lines_count_and_torn_ones_do_not() {
    let log = |dir: &Path| fs::write(dir.join("a.log"), b"1\n2\n\0\0\0\n4\n5").expect("writable");
    assert_eq!(ids(&find("log:a.log", log)), ["1", "2", "4"]);
    assert_eq!(ids(&find("lines:a.log", log)), ["1", "2", "4"]);
    let log = |dir: &Path| fs::write(dir.join("a.log"), b"x id=7 y\nnothing\n").expect("writable");
    assert_eq!(ids(&find(r"log:a.log:id=(\d+)", log)), ["7"]);
    assert_eq!(find("log:a.log", |_| ()), Found::default());
}

#[test]
fn a_command_prints_what_it_finds() {
    let found = find(
        "cat \"$REFIT_ACKED\"; echo '!3'; cat $REFIT_MOUNT/x",
        |dir| {
            fs::write(dir.join("x"), "9\n").expect("writable");
        },
    );
    assert_eq!(ids(&found), ["1", "2", "9"]);
    assert!(found.damaged.contains("3") && found.broken.is_none());
}

#[test]
fn a_command_that_fails_says_that_the_state_is_no_good() {
    let found = find("echo 1; echo torn >&2; exit 3", |_| ());
    assert_eq!(
        found.broken.as_deref(),
        Some("the check ended with 3: torn")
    );
    // The cause comes last.
    let found = find("seq 1000 >&2; echo torn >&2; exit 3", |_| ());
    let words = found.broken.expect("it failed");
    assert!(
        words.ends_with("1000\ntorn") && words.len() < 400,
        "{words}"
    );
}

#[test]
fn mails_are_found_whole_or_in_part() {
    let found = find("mail:box", |dir| {
        for sub in ["box/new", "box/tmp", "box/incoming"] {
            fs::create_dir_all(dir.join(sub)).expect("writable");
        }
        let whole = |n: u32| format!("{ID}{n}\n\nbody\n{END}{n}\n");
        fs::write(dir.join("box/new/a"), whole(1)).expect("writable");
        fs::write(dir.join("box/new/b"), format!("{ID}2\n\nbo")).expect("writable");
        fs::write(dir.join("box/tmp/c"), whole(3)).expect("writable");
        fs::write(dir.join("box/incoming/d"), whole(4)).expect("writable");
    });
    assert_eq!(ids(&found), ["1"]);
    assert!(found.damaged.contains("2") && found.damaged.len() == 1);
}

#[test]
fn invalid_checks_are_refused() {
    for (text, message) in [
        ("sqlite:t.db", "has no query"),
        ("log:/var/log/x", "below $REFIT_MOUNT"),
        ("log:../x", "below $REFIT_MOUNT"),
        ("log:x:(", "("),
    ] {
        let error = text.parse::<Check>().expect_err(text);
        assert!(error.contains(message), "{error}");
    }
    assert!(matches!("ls: x".parse(), Ok(Check::Command(_))));
}
