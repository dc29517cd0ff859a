//! refit under small resource limits and on full file systems: it does its work or names the limit. It leaves nothing
//! behind, hangs nowhere, and is killed by no signal; nor is the program because of it.

use std::collections::BTreeMap;

use crate::library::exported;
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, described, expect_code, refit_path};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(few_descriptors_are_named).limit_seconds(180),
    test!(a_session_is_made_whole_or_not_at_all),
    test!(little_memory_is_named).limit_seconds(180),
    test!(few_processes_are_named).limit_seconds(120),
    test!(the_smallest_stacks_are_enough).limit_seconds(180),
];

/// What beside their exports takes a way through refit: raw calls, and functions that end in one that refit answers.
const BESIDE: [&str; 3] = ["creat", "write", "close"];

/// Exports that no program calls, and why.
const NOT_CALLED: [(&str, &str); 5] = [
    ("refit_sync_has_own_seccomp", "librefit-heap.so asks it"),
    ("refit_heap_is_of_allocator", "librefit-heap-new.so asks it"),
    ("refit_heap_note", "librefit-heap-new.so asks it"),
    ("refit_heap_forget", "librefit-heap-new.so asks it"),
    ("refit_heap_malloc_beneath", "librefit-heap-new.so asks it"),
];

/// A thread of PTHREAD_STACK_MIN, and a signal handler of MINSIGSTKSZ and 4 KiB more, where the call works without refit:
/// every function that the preloads export.
fn the_smallest_stacks_are_enough(env: &TestEnv) -> Outcome {
    let mut functions = exported(env);
    for (name, why) in NOT_CALLED {
        assert!(functions.remove(name), "{name} is not exported: {why}");
    }
    functions.extend(BESIDE.map(str::to_owned));
    let (program, file) = (env.program("small_stacks"), env.path("file"));
    let refit = refit_path();
    let mut needed: BTreeMap<_, Vec<u64>> = BTreeMap::new();
    for place in ["thread", "signal"] {
        let bare = [&*program, place, &file];
        let off = [&[&*refit, "run", "sync=off", "--"], &bare[..]].concat();
        let observed = [&[&*refit, "run", "--"], &bare[..]].concat();
        let heap = [&[&*refit, "run", "--heap", "--"], &bare[..]].concat();
        let judged = [&[&*refit, "run", "--durability", "--"], &bare[..]].concat();
        for words in [&bare[..], &off, &observed, &heap, &judged] {
            let mut words = words.to_vec();
            words.extend(functions.iter().map(String::as_str));
            let output = env.run(&words);
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            // The last line is of the function that ended it.
            let last = text.lines().last().unwrap_or_default();
            assert!(
                output.status.success(),
                "{last}, in {place}: {}",
                described(&output)
            );
            let mut missing = functions.clone();
            for line in text.lines() {
                let Some((name, rest)) = line.split_once(' ') else {
                    panic!("{line:?} in {text}")
                };
                missing.remove(name);
                let bytes = rest.split(' ').next().and_then(|word| word.parse().ok());
                let bytes = bytes.or_else(|| rest.ends_with("in this liburing").then_some(0));
                let bytes = bytes.unwrap_or_else(|| panic!("{line:?} in {text}"));
                let key = (place, name.to_owned());
                needed.entry(key).or_default().push(bytes);
            }
            assert!(missing.is_empty(), "{words:?}: {missing:?} in {text}");
        }
    }
    println!(
        "counted: bytes of the stack without refit, with sync=off, observed, with --heap, with --durability:"
    );
    for ((place, call), bytes) in &needed {
        println!("    {place} {call}: {bytes:?}");
    }
    println!("counted: functions: {}", functions.len());
    Outcome::Pass
}

/// What a script printed: a line `LIMIT CODE LEFT`, then the lines of stderr, which begin with `> `; by limit.
fn by_limit(text: &str) -> BTreeMap<u64, (i32, u64, Vec<String>)> {
    let mut all = BTreeMap::new();
    let mut last = 0;
    for line in text.lines() {
        if let Some(messages) = line.strip_prefix("> ") {
            let entry: &mut (i32, u64, Vec<String>) =
                all.get_mut(&last).expect("a head comes first");
            entry.2.push(messages.to_owned());
        } else {
            let words: Vec<&str> = line.split(' ').collect();
            let [limit, code, left] = words[..] else {
                panic!("{line:?} in {text}")
            };
            last = limit.parse().expect("a limit is a number");
            let [code, left] = [code, left].map(|word| word.parse::<u64>().expect("a number"));
            all.insert(
                last,
                (
                    i32::try_from(code).expect("a code is small"),
                    left,
                    Vec::new(),
                ),
            );
        }
    }
    all
}

/// Runs these words under each limit, as root in mounts of its own; sessions that are left count.
fn swept(env: &TestEnv, limits: &str, words: &str) -> BTreeMap<u64, (i32, u64, Vec<String>)> {
    let script = format!(
        "mount -t tmpfs -o mode=755 tmpfs /run; mount -t tmpfs -o mode=1777 tmpfs /dev/shm
        refit={}
        for limit in {limits}; do
            ( {words} ) >out 2>err </dev/null && code=0 || code=$?
            echo $limit $code $(find /run /dev/shm -name 'refit-*' | wc -l)
            sed 's/^/> /' err
            rm -rf /run/refit /dev/shm/refit*
        done",
        refit_path()
    );
    printed_by(env, &script)
}

/// Runs a script as root in mounts of its own.
fn printed_by(env: &TestEnv, script: &str) -> BTreeMap<u64, (i32, u64, Vec<String>)> {
    let output = places::in_own_mounts(env, script)
        .output()
        .expect("unshare is there");
    expect_code(&output, 0);
    by_limit(&String::from_utf8_lossy(&output.stdout))
}

/// Every end is one of these codes, and a code of refit's own comes with a sentence.
fn as_it_must(seen: &BTreeMap<u64, (i32, u64, Vec<String>)>, what: &str) {
    for (limit, (code, left, messages)) in seen {
        let about = format!("{what}, limit {limit}: code {code}, {left} left, {messages:#?}");
        assert!([0, 125, 126].contains(code), "{about}");
        assert_eq!(*left, 0, "{about}");
        let own = messages.iter().any(|line| line.starts_with("refit: "));
        assert!(*code == 0 || own, "{about}");
    }
}

fn few_descriptors_are_named(env: &TestEnv) -> Outcome {
    for settings in [
        "sync=off",
        "--backend seccomp sync=off",
        "disk=1ms",
        "sync@exe:a=off",
    ] {
        let words = format!("ulimit -n $limit; exec timeout 20 $refit run {settings} -- true");
        let seen = swept(env, "$(seq 4 24) 64", &words);
        as_it_must(&seen, settings);
        assert_eq!(seen[&64].0, 0, "{seen:?}");
        let mut named = 0;
        for (limit, (code, _, messages)) in &seen {
            // A machine where it is there or not, whatever the limit.
            let line = messages
                .iter()
                .find(|line| line.contains("witness: not available"));
            let Some(line) = line.filter(|_| *code == 0) else {
                continue;
            };
            let limited = line.contains("ulimit -n");
            let there = !seen[&64]
                .2
                .iter()
                .any(|line| line.contains("witness: not available"));
            assert!(
                limited || !there,
                "{settings}, limit {limit}: {messages:#?}"
            );
            named += usize::from(limited || !there);
        }
        // With more processes of its own refit does not come to the witness.
        assert!(named > 0 || settings != "sync=off", "{seen:?}");
    }
    Outcome::Pass
}

/// No inode for the lock, or for the directory of the reports, and no room for the policy.
fn a_session_is_made_whole_or_not_at_all(env: &TestEnv) -> Outcome {
    for (option, limits) in [("nr_inodes", "$(seq 2 8)"), ("size", "4k 16k 64k 256k")] {
        let script = format!(
            "refit={}
            for limit in {limits}; do
                mount -t tmpfs -o mode=755,{option}=$limit tmpfs /run
                mount -t tmpfs -o mode=1777,{option}=$limit tmpfs /dev/shm
                $refit run --quiet --json report sync=off -- true 2>err && code=0 || code=$?
                echo ${{limit%k}} $code $(find /run /dev/shm -name 'refit-*' | wc -l)
                sed 's/^/> /' err
                umount -l /run /dev/shm
            done",
            refit_path()
        );
        let seen = printed_by(env, &script);
        as_it_must(&seen, option);
        assert!(seen.values().any(|(code, ..)| *code == 125), "{seen:?}");
        assert!(seen.values().any(|(code, ..)| *code == 0), "{seen:?}");
    }
    Outcome::Pass
}

fn little_memory_is_named(env: &TestEnv) -> Outcome {
    for settings in ["sync=off", "--backend seccomp sync=off"] {
        // 77: too little for the kernel or ld.so to start it.
        let words = format!(
            "ulimit -v $limit; $refit --version >/dev/null 2>&1 || exit 77; exec $refit run {settings} -- true"
        );
        let mut seen = swept(env, "$(seq 3000 300 30000) 200000", &words);
        seen.retain(|_, (code, ..)| *code != 77);
        assert!(seen.len() > 10, "{seen:?}");
        for (limit, (code, left, messages)) in &seen {
            let about = format!("{settings}, {limit} KiB: code {code}, {left} left, {messages:#?}");
            // 127: ld.so has no room for the program.
            assert!([0, 125, 126, 127].contains(code), "{about}");
            assert_eq!(*left, 0, "{about}");
            assert!(*code == 0 || !messages.is_empty(), "{about}");
        }
        assert_eq!(seen[&200_000].0, 0, "{seen:?}");
    }
    Outcome::Pass
}

/// A user of its own has them all to itself.
fn few_processes_are_named(env: &TestEnv) -> Outcome {
    let refit = places::public(env, &refit_path());
    for settings in [
        "sync=off",
        "--no-new-privs --backend seccomp sync=off",
        "disk=1ms",
    ] {
        let words = format!(
            "exec setpriv --reuid=64999 --regid=64999 --clear-groups --inh-caps=-all \
            env HOME=/nonexistent sh -c 'ulimit -u $0; exec {refit} run {settings} -- true' $limit"
        );
        let seen = swept(env, "$(seq 1 6) 20", &words);
        as_it_must(&seen, settings);
        assert_eq!(seen[&20].0, 0, "{settings}: {seen:?}");
    }
    Outcome::Pass
}
