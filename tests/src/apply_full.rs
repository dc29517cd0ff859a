//! `refit apply`, `confirm` and `revert` where a file cannot be written: full, read-only and failing file systems.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Output, Stdio};

use crate::apply::{SETTINGS, UNTIL_CONFIRMED, listing, words};
use crate::apply_redis;
use crate::places::in_own_mounts;
use crate::points::Points;
use crate::runner::{Outcome, Test};
use crate::sys::kill_point::{KillPoint, run_to};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, refit_path};

pub const TESTS: &[Test] = &[
    test!(a_full_disk_leaves_all_as_it_was).limit_seconds(180),
    test!(a_limit_of_file_size_leaves_all_as_it_was).limit_seconds(180),
    test!(what_is_read_only_is_named),
    test!(each_call_that_fails_leaves_a_whole_state).limit_seconds(300),
];

const SERVICE: &str = "redis-server@one";

/// Prints lines `VERB PAGES CODE STATE`, STATE being `before`, `applied` or `else`, then `> ` and what refit told. With
/// each number of free pages, until one is enough.
const FULL: &str = r#"
mkdir t
list() {
    ( cd t; find . -path ./var/lib/refit -prune -o ! -name fill -printf '%p %y %m %U %G %l\n' | sort
      find . -path ./var/lib/refit -prune -o -type f ! -name fill ! -name '*.timer' -print0 | sort -z | xargs -0 md5sum ) >"$1"
}
fresh() {
    umount t 2>/dev/null || :
    mount -t tmpfs -o mode=755,size=64m tmpfs t
    cp -a tree/. t
}
tell() {
    list now; state=else
    cmp -s now before && state=before
    cmp -s now applied && state=applied
    echo "$1 $2 $code $state"
    sed 's/^/> /' told
}
do_it() {
    code=0; verb=$1; shift
    "$refit" "$verb" --root t "$@" >told 2>&1 </dev/null || code=$?
}
fill() { cat /dev/zero >t/fill 2>/dev/null || :; }
fresh; list before; cp before applied; do_it apply $how; [ $code = 0 ]; list applied
pages=0; code=2
until [ $code = 0 ]; do
    fresh
    used=$(df --output=used -k t | tail -n 1)
    mount -o remount,size=$((used + 4 * pages))k t
    do_it apply $how; tell apply $pages
    pages=$((pages + 1)); [ $pages -lt 100 ]
done
fresh; do_it apply $how; fill; do_it $then $service; tell $then 0
rm t/fill; do_it $then $service; tell $then 1
"#;

fn a_full_disk_leaves_all_as_it_was(env: &TestEnv) -> Outcome {
    let tree = apply_redis::tree(env, "tree");
    assert!(tree.ends_with("/tree"));
    let redis = format!("--yes {SERVICE} {} conf.maxmemory=1gb", SETTINGS[0]);
    let unit = format!("--yes a {} env.X=1", SETTINGS[0]);
    let trial = format!("--yes --confirm-within=1h a {}", SETTINGS[0]);
    for (how, then, service, on_full) in [
        (&redis, "revert", SERVICE, ("2", "applied")),
        // Nothing has to be written to take a drop-in back.
        (&unit, "revert", "a", ("0", "before")),
        (&trial, "confirm", "a", ("2", "applied")),
    ] {
        let refit = refit_path();
        let head = format!("refit={refit}; how='{how}'; then={then}; service={service}\n");
        let script = head + FULL + "umount t; rmdir t\n";
        let output = in_own_mounts(env, &script)
            .output()
            .expect("unshare is there");
        expect_code(&output, 0);
        let (mut named, mut refused, mut ends) = (BTreeSet::new(), 0, Vec::new());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for part in text
            .split_inclusive("\n")
            .collect::<Vec<_>>()
            .chunk_by(|_, next| next.starts_with("> "))
        {
            let told = part.concat();
            let head: Vec<&str> = part[0].split_whitespace().collect();
            match head[..] {
                ["apply", _, "0", "applied"] => ends.push(("0", "applied")),
                ["apply", _, "2", "before"] => {
                    let file = told
                        .split_once("/t/")
                        .and_then(|(_, rest)| rest.split_once(": No space"));
                    let (file, _) = file.unwrap_or_else(|| panic!("no file is named: {told}"));
                    named.insert(file.to_owned());
                    refused += 1;
                }
                [_, "0", code, state] if head[0] == then => {
                    assert_eq!((code, state), on_full, "{told}");
                    assert!(code == "0" || told.contains("No space left"), "{told}");
                }
                [_, "1", code, _] if head[0] == then => {
                    // After the revert that was done there is none.
                    assert_eq!(code == "2", on_full.0 == "0", "{told}");
                }
                _ => panic!("{told}"),
            }
        }
        assert_eq!(ends.len(), 1, "{text}");
        println!("counted: {how}: refused with {refused} numbers of pages, naming {named:?}");
        assert!(refused > 3 && named.len() > 2, "{named:?}");
    }
    Outcome::Pass
}

fn limited(env: &TestEnv, bytes: usize, words: &[&str]) -> Output {
    let mut command = env.command("prlimit");
    command.arg(format!("--fsize={bytes}")).arg(refit_path());
    command.args(words).stdin(Stdio::null());
    command.output().expect("prlimit is there")
}

fn a_limit_of_file_size_leaves_all_as_it_was(env: &TestEnv) -> Outcome {
    env.require_command("prlimit");
    let root = apply_redis::tree(env, "tree");
    let before = listing(&root);
    let apply = words("apply", &root, &apply_redis::APPLY);
    let mut counted = BTreeMap::new();
    for bytes in (0..).step_by(400) {
        let output = limited(env, bytes, &apply);
        if output.status.success() {
            break;
        }
        expect_message(&output, 2, "File too large");
        expect_message(&output, 2, &root);
        assert_eq!(listing(&root), before, "{bytes}");
        *counted.entry("apply").or_insert(0) += 1;
    }
    let applied = listing(&root);
    let revert = words("revert", &root, &[SERVICE]);
    for bytes in (0..).step_by(4) {
        let output = limited(env, bytes, &revert);
        if output.status.success() {
            break;
        }
        expect_message(&output, 2, "redis-one.conf: File too large");
        assert_eq!(listing(&root), applied, "{bytes}");
        expect_code(&env.refit(&words("status", &root, &[SERVICE])), 0);
        *counted.entry("revert").or_insert(0) += 1;
    }
    assert_eq!(listing(&root), before);
    println!("counted: refused: {counted:?}");
    assert!(
        counted.len() == 2 && counted.values().all(|count| *count > 3),
        "{counted:?}"
    );
    Outcome::Pass
}

/// Of a tree `t` the part that is named becomes read-only; each command, and its code.
const READ_ONLY: &str = r#"
mkdir t; mount -t tmpfs -o mode=755 tmpfs t; cp -a tree/. t; mkdir -p t/run
list() { ( cd t; find . -path ./var/lib/refit -prune -o -printf '%p %y %m %U %G\n' | sort; find etc usr -type f | sort | xargs md5sum ); }
do_it() { code=0; told=$("$refit" "$@" 2>&1 </dev/null) || code=$?; }
is() { [ $code = $1 ] || { echo "$part: code $code, not $1: $told"; exit 1; }; case $told in *"$2"*) ;; *) echo "$part: no $2 in: $told"; exit 1;; esac; }
same() { list >now; cmp now "$1" || { echo "$part: not $1: $told"; diff now $1; exit 1; }; }
list >before
for part in . etc usr var; do
    mount --bind t/$part t/$part; mount -o remount,bind,ro t/$part
    cd "$PWD"; do_it apply --root t --yes $service $settings; is 2 'Read-only file system'; is 2 "/t/"; same before
    do_it status --root t; is 0 'nothing is applied'
    umount t/$part
done
do_it apply --root t --yes $service $settings; is 0 applied; list >applied
for part in . etc var; do
    mount --bind t/$part t/$part; mount -o remount,bind,ro t/$part
    do_it revert --root t $service; is 2 'Read-only file system'; is 2 "/t/"; same applied
    do_it status --root t --exit-code; is 0 ': applied'
    umount t/$part
done
do_it revert --root t $service; is 0 reverted; same before
do_it apply --root t --yes --confirm-within=1h a $settings_of_unit; is 0 applied; list >trial
for part in . etc var; do
    mount --bind t/$part t/$part; mount -o remount,bind,ro t/$part
    do_it confirm --root t a; is 2 'Read-only file system'; is 2 "/t/"; same trial
    do_it status --root t --exit-code; is 0 'unless it is confirmed'
    umount t/$part
done
do_it confirm --root t a; is 0 confirmed
do_it revert --root t a; is 0 reverted; rmdir t/run 2>/dev/null; mkdir t/run; same before
umount t
"#;

fn what_is_read_only_is_named(env: &TestEnv) -> Outcome {
    apply_redis::tree(env, "tree");
    let head = format!(
        "refit={}; service={SERVICE}; settings='{} conf.maxmemory=1gb'; settings_of_unit={}\n",
        refit_path(),
        SETTINGS[0],
        SETTINGS[0]
    );
    let output = in_own_mounts(env, &(head + READ_ONLY))
        .output()
        .expect("unshare is there");
    expect_code(&output, 0);
    Outcome::Pass
}

fn each_call_that_fails_leaves_a_whole_state(env: &TestEnv) -> Outcome {
    let mut counted = BTreeMap::new();
    for verb in ["apply", "confirm", "revert"] {
        let (apply, service): (&[&str], _) = match verb {
            "confirm" => (&UNTIL_CONFIRMED, "a"),
            _ => (&apply_redis::APPLY, SERVICE),
        };
        let told = env.path("told");
        let begin = |root: &str| {
            let apply = words("apply", root, apply);
            if verb != "apply" {
                expect_code(&env.refit(&apply), 0);
            }
            let other = words(verb, root, &[service]);
            let mut command = env.refit_command(if verb == "apply" { &apply } else { &other });
            let file = fs::File::create(&told).expect("the directory is ours");
            command.stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(file);
            command
        };
        let run = |command: &mut Command, n| {
            let (calls, _) = run_to(command, Some(KillPoint::Fail(n))).expect("it is traced");
            calls
        };
        let root = apply_redis::tree(env, "tree");
        // None of them fails.
        let calls = run(&mut begin(&root), usize::MAX);
        fs::remove_dir_all(&root).expect("the tree is ours");
        let points = Points::of(1..=calls);
        println!("counted: {verb}: {points}");
        for &n in &points.tried {
            let root = apply_redis::tree(env, "tree");
            let before = listing(&root);
            let mut command = begin(&root);
            let begun = listing(&root);
            assert!(run(&mut command, n) >= n, "{verb} {n} of {calls}");
            let told = fs::read_to_string(&told).expect("just written");
            let status = env.refit(&words("status", &root, &["--json", "-"]));
            expect_code(&status, 0);
            let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
            let phase = status["services"]
                .get(0)
                .map(|one| one["phase"].to_string());
            let now = listing(&root);
            let state = match (now == begun, &phase) {
                (true, _) => "as it was",
                (false, None) => "reverted",
                (false, Some(phase)) if phase == "\"applied\"" => "done",
                (false, Some(_)) => "interrupted",
            };
            if verb == "apply" && phase.is_none() {
                assert_eq!(now, before, "{verb} {n}: {told}");
            }
            assert!(verb != "apply" || phase.is_none(), "{verb} {n}: {told}");
            *counted.entry((verb, state)).or_insert(0) += 1;
            if phase.is_some() {
                expect_code(&env.refit(&words("revert", &root, &[service])), 0);
            }
            assert_eq!(listing(&root), before, "{verb} {n}: {told}");
            let is_named = told.contains(&root) && told.contains("Input/output error");
            let is_silent = state != "as it was" && !told.contains("refit: ");
            assert!(is_named || is_silent, "{verb} {n}: {told}");
            fs::remove_dir_all(&root).expect("the tree is ours");
        }
    }
    println!("counted: {counted:?}");
    Outcome::Pass
}
