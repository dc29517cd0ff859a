//! What can go wrong around a run, on purpose or not: wrong words, places that cannot be used, full disks,
//! small limits. (Thousands of processes, and the end of refit itself: endurance.rs.)

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, described, expect_code, refit_path};
use crate::{places, test};

pub const TESTS: &[Test] = &[
    test!(a_wrong_word_is_refused_before_anything_runs),
    test!(a_command_that_cannot_start_gives_envs_codes),
    test!(a_library_that_cannot_be_loaded_gives_125),
    test!(a_damaged_cache_heals_itself),
    test!(a_noexec_cache_falls_back_or_is_named),
    test!(a_strict_umask_shuts_nobody_out),
    test!(a_dropped_program_fills_no_room_of_roots),
    test!(sessions_of_root_cannot_be_listed),
    test!(nothing_stays_behind_after_a_failed_start),
    test!(a_full_disk_for_json_is_reported_and_changes_no_code),
    test!(a_small_file_size_limit_kills_nobody),
    test!(a_small_stack_is_named),
];

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn a_wrong_word_is_refused_before_anything_runs(env: &TestEnv) -> Outcome {
    let file = env.path("touched");
    for (word, named, offered) in [
        ("sync=drop", "drop", "off"),
        ("sinc=off", "sinc", "sync"),
        ("sync@exe:=off", "exe:", "NAME"),
        ("malloc=jemaloc", "jemaloc", "jemalloc"),
    ] {
        let output = env.refit(&["run", word, "--", "touch", &file]);
        expect_code(&output, 125);
        let messages = stderr(&output);
        assert!(messages.starts_with("refit: "), "{messages}");
        assert!(
            messages.contains(named) && messages.contains(offered),
            "{messages}"
        );
        assert!(!Path::new(&file).exists(), "{word} ran the command");
    }
    expect_code(
        &env.refit(&["run", "--no-such-option", "--", "touch", &file]),
        125,
    );
    expect_code(&env.refit(&["run", "sync=off"]), 125);
    assert!(!Path::new(&file).exists());
    expect_code(&env.refit(&["run", "sync=off", "--", "touch", &file]), 0);
    assert!(Path::new(&file).exists());
    Outcome::Pass
}

fn a_command_that_cannot_start_gives_envs_codes(env: &TestEnv) -> Outcome {
    let plain = env.file("plain", "no program\n");
    let script = env.file("script", "#!/missing/interpreter\n");
    fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("it is ours");
    let missing = env.path("missing");
    let below_a_file = format!("{plain}/below");
    for (command, code) in [
        (missing.as_str(), 127),
        ("no-such-command-on-any-path", 127),
        (&script, 127),
        (&plain, 126),
        (&env.subdir("directory"), 126),
        (&below_a_file, 126),
    ] {
        expect_code(&env.run(&["env", "--", command]), code);
        for options in [
            &["run"][..],
            &["run", "--quiet"],
            &["run", "--quiet", "sync=off"],
        ] {
            let output = env.refit(&[options, &["--", command]].concat());
            expect_code(&output, code);
            assert!(stderr(&output).contains(command), "{}", described(&output));
        }
    }
    Outcome::Pass
}

fn a_library_that_cannot_be_loaded_gives_125(env: &TestEnv) -> Outcome {
    let file = env.path("touched");
    let text = env.file("text.so", "not a library\n");
    let unreadable = env.file("unreadable.so", "");
    fs::set_permissions(&unreadable, Permissions::from_mode(0o000)).expect("it is ours");
    let missing = env.path("missing.so");
    let mut libraries = vec![(&text, "cannot load"), (&missing, "No such file")];
    if !env.as_root() {
        libraries.push((&unreadable, "Permission denied")); // root may read it
    }
    for (library, reason) in libraries {
        let word = format!("preload={library}");
        let output = env.refit(&["run", &word, "--", "touch", &file]);
        expect_code(&output, 125);
        let messages = stderr(&output);
        assert!(
            messages.contains(library) && messages.contains(reason),
            "{messages}"
        );
        assert!(!Path::new(&file).exists());
    }
    Outcome::Pass
}

fn a_damaged_cache_heals_itself(env: &TestEnv) -> Outcome {
    // Root's is everybody's: there it is done to one that nobody else sees.
    let script = format!(
        "set -e; export XDG_CACHE_HOME={}
        library() {{ {} run --quiet -- printenv LD_PRELOAD; }}
        placed=$(library); cp $placed good; ls $placed
        for damage in 'truncate -s 100' 'chmod 0' 'rm' 'cp /etc/passwd'; do
            $damage $placed; test $(library) = $placed; cmp good $placed
        done",
        env.subdir("cache"),
        refit_path()
    );
    let output = if env.as_root() {
        let mounts = "mount -t tmpfs -o mode=755 tmpfs /var/lib";
        let mut command = places::in_own_mounts(env, &format!("{mounts}; {script}"));
        command.output().expect("unshare is there")
    } else {
        env.run(&["sh", "-c", &script])
    };
    expect_code(&output, 0);
    assert_eq!(stderr(&output), "");
    let placed = String::from_utf8_lossy(&output.stdout);
    assert!(placed.ends_with("/librefit-sync.so\n"), "{placed}");
    Outcome::Pass
}

fn a_noexec_cache_falls_back_or_is_named(env: &TestEnv) -> Outcome {
    for file in [refit_path(), env.program("fsync_once")] {
        places::public(env, &file);
    }
    let script = "
        mkdir cache out; chmod 1777 out
        mount -t tmpfs -o noexec,mode=1777 tmpfs cache
        mount -t tmpfs -o mode=1777 tmpfs /var/tmp
        mount -t tmpfs -o mode=1777 tmpfs /dev/shm
        cached() { nobody env XDG_CACHE_HOME=/mnt/cache \"$@\"; }
        cached ./refit run --quiet --json out/json sync=off -- \\
            sh -c 'printenv LD_PRELOAD >out/preload; ./fsync_once out/file'
        umount /var/tmp
        mount -t tmpfs -o noexec,mode=1777 tmpfs /var/tmp
        cached ./refit run -- touch out/touched 2>out/both || echo $? >out/both.code
        mount -t tmpfs -o noexec,mode=0755 tmpfs /var/lib
        ./refit run -- touch out/touched 2>out/root || echo $? >out/root.code";
    let output = places::in_own_mounts(env, script).output();
    expect_code(&output.expect("unshare is there"), 0);
    let read = |name: &str| {
        fs::read_to_string(env.path(&format!("out/{name}"))).expect("the script wrote it")
    };
    let preload = read("preload");
    assert!(preload.starts_with("/var/tmp/refit-65534/"), "{preload}");
    let report: Value = serde_json::from_str(&read("json")).expect("the report is JSON");
    assert_eq!(report["totals"]["fsync"]["suppressed"], 1, "{report:#}");
    for (name, places) in [
        ("both", &["/mnt/cache/refit/", "/var/tmp/refit-65534/"][..]),
        ("root", &["/var/lib/refit/lib/"]),
    ] {
        let messages = read(name);
        assert_eq!(read(&format!("{name}.code")), "125\n", "{messages}");
        assert!(messages.contains("noexec"), "{messages}");
        for place in places {
            assert!(messages.contains(place), "{place} is not in: {messages}");
        }
    }
    assert!(!Path::new(&env.path("out/touched")).exists());
    Outcome::Pass
}

/// What drops root's privileges has to reach the library and the session, also when both were first made under a umask
/// that forbids it, and when an earlier refit left them so.
fn a_strict_umask_shuts_nobody_out(env: &TestEnv) -> Outcome {
    for file in [refit_path(), env.program("fsync_once")] {
        places::public(env, &file);
    }
    let script = "
        mkdir out; chmod 1777 out
        mount -t tmpfs tmpfs /run; mount -t tmpfs -o mode=755 tmpfs /var/lib
        drop='setpriv --reuid=65534 --regid=65534 --clear-groups'
        swapped() { # NAME: how a program without privileges was reached
            ./refit run --quiet --json $1 --backend preload sync=off -- $drop ./fsync_once out/$1
        }
        (umask 077; swapped first)
        (umask 027; swapped second)
        chmod 0700 /var/lib/refit /var/lib/refit/lib /var/lib/refit/lib/* /run/refit
        swapped third
        find /var/lib/refit /run/refit -maxdepth 0 -printf '%m '";
    let output = places::in_own_mounts(env, script).output();
    let output = output.expect("unshare is there");
    expect_code(&output, 0);
    for name in ["first", "second", "third"] {
        let text = fs::read_to_string(env.path(name)).expect("the script wrote it");
        let report: Value = serde_json::from_str(&text).expect("the report is JSON");
        assert_eq!(
            report["totals"]["fsync"]["suppressed"], 1,
            "{name}: {report:#}"
        );
    }
    assert_eq!(String::from_utf8_lossy(&output.stdout), "755 711 ");
    Outcome::Pass
}

/// The names are what keeps another user from putting files there.
fn sessions_of_root_cannot_be_listed(env: &TestEnv) -> Outcome {
    places::public(env, &refit_path());
    let script = "
        mount -t tmpfs tmpfs /run
        mkdir -m 0755 /run/refit
        ./refit run -- sh -c 'ls /run/refit | wc -l
            setpriv --reuid=65534 --regid=65534 --clear-groups ls /run/refit 2>&1 || echo $?'";
    let output = places::in_own_mounts(env, script).output();
    let output = output.expect("unshare is there");
    expect_code(&output, 0);
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!((lines[0], lines[2]), ("1", "2"), "{text}");
    assert!(lines[1].contains("Permission denied"), "{text}");
    Outcome::Pass
}

/// Who gave up root's rights takes up room only where every user may; a refit that is killed leaves no more of it than
/// the next one removes.
fn a_dropped_program_fills_no_room_of_roots(env: &TestEnv) -> Outcome {
    env.require_root();
    for file in [refit_path(), env.program("fsync_once")] {
        places::public(env, &file);
    }
    let script = "
        mkdir out; chmod 1777 out
        mount -t tmpfs -o size=8m tmpfs /run; mount -t tmpfs -o mode=1777,size=16m tmpfs /dev/shm
        drop='setpriv --reuid=65534 --regid=65534 --clear-groups'
        room() { df --output=avail -k /run | tail -n 1; }
        export drop; before=$(room)
        ./refit run --json report.json -- sh -c '
            $drop ./fsync_once out/file
            $drop sh -c \"head -c 64M /dev/zero >$REFIT_SESSION/images/x\" 2>/dev/null
            $drop sh -c \": >$REFIT_SESSION/x\" 2>/dev/null || echo closed
            df --output=avail -k /run | tail -n 1'
        echo $before
        find /run /dev/shm -name 'refit-*'
        rmdir /dev/shm/refit; $drop mkdir -m 777 /dev/shm/refit # taken by another user
        ./refit run --quiet --json other.json -- $drop ./fsync_once out/file
        ./refit run -- sh -c 'until [ -s $REFIT_SESSION/lock ]; do :; done; kill -9 $PPID' || echo $?
        for i in $(seq 50); do
            ./refit run -- true
            find /run /dev/shm -name 'refit-*' | grep -q . || break
        done
        find /run /dev/shm -name 'refit-*'";
    let output = places::in_own_mounts(env, script).output();
    let output = output.expect("unshare is there");
    expect_code(&output, 0);
    let text = String::from_utf8_lossy(&output.stdout);
    let [closed, during, before, killed] = text.lines().collect::<Vec<_>>()[..] else {
        panic!("{}", described(&output));
    };
    let kib = |word: &str| word.trim().parse::<u64>().expect("KiB");
    assert_eq!((closed, killed), ("closed", "137"));
    assert!(kib(during) + 1024 > kib(before), "{text}");
    for name in ["report.json", "other.json"] {
        let report = fs::read_to_string(env.path(name)).expect("refit wrote it");
        let report: Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!(report["totals"]["fsync"]["real"], 1, "{name}: {report:#}");
    }
    Outcome::Pass
}

fn nothing_stays_behind_after_a_failed_start(env: &TestEnv) -> Outcome {
    let script = format!(
        "mount -t tmpfs tmpfs /run; mount -t tmpfs -o mode=1777 tmpfs /dev/shm
        refit='{} run'
        $refit -- sh -c 'ls -d $REFIT_SESSION'; $refit -- /missing || echo $?
        $refit --quiet -- /missing || echo $?; $refit --quiet -- /etc/passwd || echo $?
        $refit preload=/missing -- true || echo $?; $refit sync=drop -- true || echo $?
        (ulimit -f 4; $refit -- true || echo $?)
        find /run /dev/shm -name 'refit-*'",
        refit_path()
    );
    let output = places::in_own_mounts(env, &script).output();
    let output = output.expect("unshare is there");
    expect_code(&output, 0);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let mut lines = stdout.lines();
    let session = lines.next().unwrap_or_default();
    assert!(session.starts_with("/run/refit/refit-"), "{stdout}");
    let codes: Vec<&str> = lines.collect();
    assert_eq!(
        codes,
        ["127", "127", "126", "125", "125", "125"],
        "{}",
        described(&output)
    );
    Outcome::Pass
}

fn a_full_disk_for_json_is_reported_and_changes_no_code(env: &TestEnv) -> Outcome {
    let file = env.path("touched");
    let script = format!("touch {file}; exit 7");
    let full = env.refit(&[
        "run",
        "--quiet",
        "--json",
        "/dev/full",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    expect_code(&full, 7);
    let messages = stderr(&full);
    assert!(
        messages.contains("--json: ")
            && messages.contains("/dev/full")
            && messages.contains("No space left"),
        "{messages}"
    );
    assert!(Path::new(&file).exists());
    let nowhere = env.path("missing/json");
    let other = env.path("other");
    let refused = env.refit(&["run", "--json", &nowhere, "--", "touch", &other]);
    expect_code(&refused, 125);
    assert!(stderr(&refused).contains(&nowhere));
    assert!(!Path::new(&other).exists());
    Outcome::Pass
}

/// Beyond RLIMIT_FSIZE a write raises SIGXFSZ, which kills: refit's own files must not be the cause.
fn a_small_file_size_limit_kills_nobody(env: &TestEnv) -> Outcome {
    let (program, file) = (env.program("fsync_once"), env.path("file"));
    let script = format!("ulimit -f 4; {program} {file}");
    expect_code(&env.run(&["sh", "-c", &script]), 0);
    let (output, report) = env.refit_json(&["run", "--quiet", "--", "sh", "-c", &script]);
    expect_code(&output, 0);
    assert_eq!(stderr(&output), "");
    let unknown = &report["coverage"]["unknown"];
    assert_eq!(unknown[0]["what"], "never reported", "{report:#}");
    assert_eq!(report["totals"].get("fsync"), None, "{report:#}");
    // And the signal is the program's own again.
    let beyond = "ulimit -f 4; dd if=/dev/zero of=big bs=8k count=1 2>/dev/null";
    for words in [&["run", "--"][..], &["run", "--quiet", "--"]] {
        let output = env.refit(&[words, &["sh", "-c", &format!("{beyond}; echo $?")]].concat());
        assert_eq!(String::from_utf8_lossy(&output.stdout), "153\n");
    }
    Outcome::Pass
}

fn a_small_stack_is_named(env: &TestEnv) -> Outcome {
    let file = env.path("touched");
    for (words, code) in [("run sync=off --", 125), ("compare sync=off --", 2)] {
        let script = format!("ulimit -s 16; exec {} {words} touch {file}", refit_path());
        let output = env.run(&["bash", "-c", &script]);
        expect_code(&output, code);
        let wanted = "refit: the limit of the stack is 16 KiB and refit needs 128: ulimit -s 128\n";
        assert_eq!(stderr(&output), wanted);
    }
    assert!(!Path::new(&file).exists());
    let script = format!("ulimit -s 128; exec {} run -- touch {file}", refit_path());
    expect_code(&env.run(&["bash", "-c", &script]), 0);
    assert!(Path::new(&file).exists());
    Outcome::Pass
}
