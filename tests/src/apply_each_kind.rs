//! `refit apply` and `revert` of each kind of service in a tree: several at once, and where nothing can be written.

use std::process::Output;

use crate::apply::{self, SETTINGS, listing, words};
use crate::apply_together::{all_described, count, together};
use crate::places::in_own_mounts;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, refit_path};
use crate::{
    apply_mariadb, apply_postfix, apply_postgresql, apply_redis, apply_rsyslog, apply_sysctl,
    apply_wrapper,
};

pub const TESTS: &[Test] = &[
    test!(six_of_the_same_are_one).limit_seconds(120),
    test!(a_full_disk_leaves_whole_files).limit_seconds(300),
    test!(a_read_only_file_system_is_named).limit_seconds(120),
];

struct Subject {
    tree: fn(&TestEnv, &str) -> String,
    /// The words of `apply`, the service behind `--yes`.
    apply: &'static [&'static str],
}

const SUBJECTS: [Subject; 10] = [
    Subject {
        tree: apply::tree,
        apply: &["--yes", "a", SETTINGS[0], SETTINGS[1]],
    },
    // A program of refit's, and no library.
    Subject {
        tree: apply::tree,
        apply: &["--yes", "a", "thp=never"],
    },
    Subject {
        tree: apply_redis::tree,
        apply: &apply_redis::APPLY,
    },
    Subject {
        tree: apply_postgresql::tree,
        apply: &apply_postgresql::APPLY,
    },
    Subject {
        tree: apply_mariadb::tree,
        apply: &apply_mariadb::APPLY,
    },
    Subject {
        tree: apply_postfix::tree,
        apply: &apply_postfix::ALL,
    },
    Subject {
        tree: apply_postfix::tree,
        apply: &apply_postfix::ONE,
    },
    Subject {
        tree: apply_rsyslog::tree,
        apply: &apply_rsyslog::APPLY,
    },
    Subject {
        tree: apply_sysctl::tree,
        apply: &apply_sysctl::APPLY,
    },
    Subject {
        tree: apply_wrapper::tree,
        apply: &apply_wrapper::IN_PLACE,
    },
];

impl Subject {
    fn service(&self) -> &'static str {
        self.apply[1]
    }
}

fn six_of_the_same_are_one(env: &TestEnv) -> Outcome {
    for (n, subject) in SUBJECTS.iter().enumerate() {
        let root = (subject.tree)(env, &format!("tree{n}"));
        let before = listing(&root);
        let service = subject.service();
        let outputs = together(env, &root, &vec![words("apply", &root, subject.apply); 6]);
        let all = all_described(&outputs);
        assert_eq!(
            count(&outputs, 0, "applied in the tree"),
            1,
            "{service}: {all}"
        );
        assert_eq!(count(&outputs, 0, "nothing to do"), 5, "{service}: {all}");
        expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
        let outputs = together(env, &root, &vec![words("revert", &root, &[service]); 6]);
        let all = all_described(&outputs);
        assert_eq!(count(&outputs, 0, "reverted"), 1, "{service}: {all}");
        assert_eq!(
            count(&outputs, 2, "has no change of refit's"),
            5,
            "{service}: {all}"
        );
        assert_eq!(listing(&root), before, "{service}");
    }
    Outcome::Pass
}

/// Copies `tree` to a file system `t` of its own, and does what is asked there. The arguments are the words of `apply`.
const COMMON: &str = r#"
mkdir t
list() {
    ( cd t; find . -path ./var/lib/refit -prune -o ! -name fill -printf '%p %y %m %U %G %l\n' | sort
      find . -path ./var/lib/refit -prune -o -type f ! -name fill -print0 | sort -z | xargs -0 md5sum ) >"$1"
}
fresh() {
    umount t 2>/dev/null || :
    mount -t tmpfs -o mode=755,size=64m tmpfs t
    cp -a tree/. t
}
do_it() { # VERB WORD…: prints the verb, its code, what the files are as, and what it told
    code=0; verb=$1; shift
    "$refit" "$verb" --root t "$@" >told 2>&1 </dev/null || code=$?
    list now; state=else
    cmp -s now before && state=before
    cmp -s now applied && state=applied
    echo "$verb $code $state $(tr '\n' ' ' <told)"
}
fresh; list before; cp before applied; "$refit" apply --root t "$@" >told 2>&1 </dev/null || { cat told; exit 1; }; list applied
"#;

/// With more and more free pages, until they are enough; then a revert on a full disk, and one with space again.
const FULL: &str = r#"
pages=0; code=2
until [ $code = 0 ]; do
    fresh
    used=$(df --output=used -k t | tail -n 1)
    mount -o remount,size=$((used + 4 * pages))k t
    do_it apply "$@"
    pages=$((pages + 1)); [ $pages -lt 100 ]
done
fresh; "$refit" apply --root t "$@" >told 2>&1 </dev/null
cat /dev/zero >t/fill 2>/dev/null || :
do_it revert "$service"
rm t/fill
[ $code = 0 ] || do_it revert "$service"
"#;

const READ_ONLY: &str = r#"
fresh; mount -o remount,ro t
do_it apply "$@"
mount -o remount,rw t
"$refit" apply --root t "$@" >told 2>&1 </dev/null
mount -o remount,ro t
do_it revert "$service"
mount -o remount,rw t
do_it revert "$service"
"#;

/// The lines that a script prints of a subject: verb, code, state, and what was told.
fn lines(env: &TestEnv, subject: &Subject, script: &str) -> Vec<[String; 4]> {
    let tree = (subject.tree)(env, "tree");
    let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
    let all: Vec<String> = subject.apply.iter().map(|word| quoted(word)).collect();
    let head = format!(
        "refit={}; service={}; set -- {}\n",
        refit_path(),
        quoted(subject.service()),
        all.join(" ")
    );
    let script = format!("{head}{COMMON}{script}umount t; rmdir t\n");
    let output: Output = in_own_mounts(env, &script)
        .output()
        .expect("unshare is there");
    expect_code(&output, 0);
    std::fs::remove_dir_all(tree).expect("the tree is ours");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let parts = text.lines().map(|line| {
        let mut words = line.splitn(4, ' ').map(str::to_owned);
        std::array::from_fn(|_| words.next().unwrap_or_default())
    });
    parts.collect()
}

fn a_full_disk_leaves_whole_files(env: &TestEnv) -> Outcome {
    for subject in &SUBJECTS {
        let service = subject.service();
        let (mut refused, mut applied, mut reverts) = (0, 0, Vec::new());
        for [verb, code, state, told] in lines(env, subject, FULL) {
            match [&*verb, &*code, &*state] {
                ["apply", "2", "before"] => {
                    assert!(
                        told.contains("/t/") && told.contains("No space"),
                        "{service}: {told}"
                    );
                    refused += 1;
                }
                ["apply", "0", "applied"] => applied += 1,
                ["revert", "2", "applied"] => {
                    assert!(
                        told.contains("/t/") && told.contains("No space"),
                        "{service}: {told}"
                    );
                    reverts.push("refused");
                }
                ["revert", "0", "before"] => reverts.push("reverted"),
                _ => panic!("{service}: {verb} {code} {state} {told}"),
            }
        }
        println!(
            "counted: {service}: apply refused with {refused} numbers of pages; on a full disk: {reverts:?}"
        );
        assert!(
            refused > 1 && applied == 1,
            "{service}: {refused} {applied}"
        );
        assert!(
            [&["refused", "reverted"][..], &["reverted"]].contains(&&*reverts),
            "{service}: {reverts:?}"
        );
    }
    Outcome::Pass
}

fn a_read_only_file_system_is_named(env: &TestEnv) -> Outcome {
    for subject in &SUBJECTS {
        let service = subject.service();
        let all = lines(env, subject, READ_ONLY);
        let ends: Vec<[&str; 3]> = all
            .iter()
            .map(|[verb, code, state, _]| [&**verb, &**code, &**state])
            .collect();
        let expected = [
            ["apply", "2", "before"],
            ["revert", "2", "applied"],
            ["revert", "0", "before"],
        ];
        assert_eq!(ends, expected, "{service}: {all:?}");
        for [_, _, _, told] in &all[..2] {
            assert!(
                told.contains("/t/") && told.contains("Read-only file system"),
                "{service}: {told}"
            );
        }
    }
    Outcome::Pass
}
