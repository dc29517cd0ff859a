//! `run --durability` and real programs: those that do it right are silent, and known faults are found.
//!
//! The faults are those of "All File Systems Are Not Created Equal" (Pillai et al., OSDI 2014, table 3), as far as Debian's
//! programs still have them, and of the reports that docs/durability.md names.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::durability::{IN_PLACE, NAME, REMOVED, REPLACED, findings, heavy, judged};
use crate::ran::number;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(known_faults_are_found),
    test!(who_syncs_well_is_silent),
    test!(dpkg_syncs_files_and_not_their_directories),
    test!(postgresql_is_silent).limit_seconds(120),
    test!(redis_is_silent_but_for_a_directory_of_its_own),
    test!(crash_tells_what_no_sync_covers).limit_seconds(120),
];

/// What a program does wrong.
struct Fault {
    name: &'static str,
    /// Done before, without refit.
    before: &'static str,
    script: &'static str,
    rules: &'static [&'static str],
    /// The end of a path that a finding names.
    path: &'static str,
}

const GIT: &str = "git init -q g; cd g; git config user.name a; git config user.email a@b; echo 1 > f; git add f; \
                   git commit -qm 1; sync; echo 2 > f; git add f; sync";

const FAULTS: &[Fault] = &[
    // COMMIT_EDITMSG is truncated, and the index replaced; core.fsync has `loose-object` and `index` for what is durable.
    Fault {
        name: "git",
        before: GIT,
        script: "cd g; git commit -qm 2",
        rules: &[IN_PLACE, REPLACED],
        path: "/g/.git/index",
    },
    // CURRENT is renamed after the sync of the directory, and the old manifest and log are removed.
    Fault {
        name: "leveldb",
        before: "",
        script: "/usr/bin/python3 -c \"import plyvel\nfor i in 1, 2:\n d = plyvel.DB('db', create_if_missing=True); d.put(b'a', b'b', sync=True); d.close()\"",
        rules: &[NAME, REMOVED],
        path: "/db/CURRENT",
    },
    // The new file is synced, and its directory never.
    Fault {
        name: "gdbm",
        before: "",
        script: "/usr/bin/python3 -c \"import dbm.gnu; d = dbm.gnu.open('g.db', 'c'); d['a'] = 'b'; d.sync(); d.reorganize(); d.close()\"",
        rules: &[NAME],
        path: "/g.db",
    },
    Fault {
        name: "rsync",
        before: "mkdir to; echo 1 > to/f; mkdir from; echo 2.0 > from/f; sync",
        script: "rsync -a from/ to",
        rules: &[REPLACED],
        path: "/to/f",
    },
    Fault {
        name: "rsync_fsync",
        before: "mkdir to; echo 1 > to/f; mkdir from; echo 2.0 > from/f; sync",
        script: "rsync -a --fsync from/ to",
        rules: &[NAME],
        path: "/to/f",
    },
    Fault {
        name: "sort",
        before: "",
        script: "sort -o old old",
        rules: &[IN_PLACE],
        path: "/old",
    },
];

fn known_faults_are_found(env: &TestEnv) -> Outcome {
    for command in ["git", "rsync", "sort"] {
        env.require_command(command);
    }
    for (module, package) in [("plyvel", "python3-plyvel"), ("dbm.gnu", "python3-gdbm")] {
        let import = format!("import {module}");
        if !env
            .run(&["/usr/bin/python3", "-c", &import])
            .status
            .success()
        {
            env.skip(&format!("{package} is not installed"));
        }
    }
    for fault in FAULTS {
        let directory = env.subdir(&format!("{}.before", fault.name));
        let script = format!("cd {directory}; {}", fault.before);
        expect_code(&env.run(&["sh", "-c", &script]), 0);
        let script = format!(
            "cp -a {directory}/. . && sync && exec sh -c '{}'",
            fault.script.replace('\'', "'\\''")
        );
        let (output, report) = judged(env, fault.name, &[], &["sh", "-c", &script]);
        expect_code(&output, 0);
        let expected: BTreeSet<&str> = fault.rules.iter().copied().collect();
        assert_eq!(heavy(&report), expected, "{}: {report:#}", fault.name);
        let named = findings(&report).iter().any(|finding| {
            let path = finding["path"].as_str().expect("a path");
            finding["level"] != "note" && path.ends_with(fault.path)
                || finding["circumstance"]["replaced_by"]
                    .as_str()
                    .is_some_and(|path| path.ends_with(fault.path))
        });
        assert!(named, "{}: {report:#}", fault.name);
    }
    Outcome::Pass
}

fn who_syncs_well_is_silent(env: &TestEnv) -> Outcome {
    env.require_command("mdb_load");
    let dump = "VERSION=3\\nformat=print\\ntype=btree\\nHEADER=END\\n k\\n v\\nDATA=END\\n";
    let script = format!(
        "mkdir db; printf '{dump}' > dump; sync; mdb_load -f dump db; sync .; mdb_load -f dump db"
    );
    let (output, report) = judged(env, "lmdb", &[], &["sh", "-c", &script]);
    expect_code(&output, 0);
    assert_eq!(heavy(&report), BTreeSet::new(), "{report:#}");
    assert!(number(&report["syncs"]) >= 2, "{report:#}");
    Outcome::Pass
}

/// From initdb over DDL, inserts, ALTER SYSTEM and checkpoints to its end; each row that it sends acknowledges.
/// Its journal and its database are silent.
fn dpkg_syncs_files_and_not_their_directories(env: &TestEnv) -> Outcome {
    let package = env.subdir("package");
    let control = "Package: refit-test\\nVersion: 1\\nArchitecture: all\\nMaintainer: nobody <nobody@localhost>\\n\
                   Description: a test\\n";
    let root = env.subdir("root");
    let script = format!(
        "set -e; cd {package}; mkdir -p DEBIAN usr/share/refit-test; printf '{control}' >DEBIAN/control; \
         for i in 1 2 3; do echo $i >usr/share/refit-test/$i; done; dpkg-deb --root-owner-group --build . ../one.deb; \
         mkdir -p {root}/var/lib/dpkg/info {root}/var/lib/dpkg/updates {root}/var/lib/dpkg/triggers; \
         touch {root}/var/lib/dpkg/status"
    );
    expect_code(&env.run(&["sh", "-c", &script]), 0);
    let root = format!("--root={root}");
    let (words, file) = (
        [
            "dpkg",
            &root,
            "--force-not-root",
            "--force-bad-path",
            "--refuse-unsafe-io",
            "-i",
        ],
        env.path("one.deb"),
    );
    let (output, report) = judged(env, "dpkg", &[], &[&words[..], &[&file]].concat());
    expect_code(&output, 0);
    assert_eq!(heavy(&report), BTreeSet::from([NAME]), "{report:#}");
    for finding in findings(&report)
        .iter()
        .filter(|one| one["level"] != "note")
    {
        let path = finding["path"].as_str().expect("a path");
        assert!(path.contains("/usr/share/refit-test/"), "{finding:#}");
    }
    assert!(number(&report["syncs"]) > 10, "{report:#}");
    Outcome::Pass
}

fn postgresql_is_silent(env: &TestEnv) -> Outcome {
    if fs::read_dir("/usr/lib/postgresql").is_err() {
        env.skip("PostgreSQL is not installed");
    }
    let as_server = match env.as_root() {
        true => "setpriv --reuid=postgres --regid=postgres --clear-groups",
        false => "",
    };
    let script = format!(
        "set -e; data=$PWD/data; mkdir $data; cd /; [ $(id -u) != 0 ] || chown postgres $data; as='{as_server}'\n\
         bin=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)\n\
         $as $bin/initdb -D $data -A trust -U postgres >/dev/null\n\
         $as $bin/pg_ctl -D $data -o \"-k $data -h ''\" -l $data/server.log -w start >/dev/null\n\
         sql() {{ $as $bin/psql -h $data -U postgres -q -c \"$1\"; }}\n\
         trap '$as $bin/pg_ctl -D $data -m immediate stop >/dev/null || true' EXIT\n\
         sql 'create table t(a int)'; sql 'insert into t select generate_series(1, 1000)'\n\
         sql \"alter system set work_mem='8MB'\"; sql checkpoint; sql 'create index on t(a)'\n\
         sql 'alter table t add column b int default 7'; sql 'drop table t; create table t(a int)'\n\
         for i in 1 2 3; do sql \"insert into t values ($i)\"; done\n\
         $as $bin/pg_ctl -D $data -m fast -w stop >/dev/null; trap - EXIT\n"
    );
    // Programs of another user enter the directories above, too.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(env.dir(), open).expect("it is ours");
    let (output, report) = judged(
        env,
        "postgres",
        &["--ack", "socket"],
        &["sh", "-c", &script],
    );
    expect_code(&output, 0);
    assert_eq!(heavy(&report), BTreeSet::new(), "{}", described(&output));
    assert!(number(&report["syncs"]) > 50, "{}", described(&output));
    assert!(number(&report["events"]) > 1000, "{}", described(&output));
    Outcome::Pass
}

/// It makes its directory of append-only files and never syncs the one above.
fn redis_is_silent_but_for_a_directory_of_its_own(env: &TestEnv) -> Outcome {
    env.require_command("redis-server");
    let script = "redis-server --port 0 --unixsocket $PWD/s --dir $PWD --appendonly yes --appendfsync always --save '' >/dev/null &\n\
        server=$!\n\
        cli() { redis-cli -s $PWD/s \"$@\" >/dev/null 2>&1; }\n\
        until cli ping; do kill -0 $server || exit 9; done\n\
        for i in 1 2 3 4 5; do cli set k$i v; done\n\
        cli save; cli shutdown nosave; wait $server\n";
    let (output, report) = judged(env, "redis", &["--ack", "socket"], &["sh", "-c", script]);
    expect_code(&output, 0);
    let heavy = findings(&report)
        .iter()
        .filter(|one| one["level"] != "note");
    let paths: Vec<&str> = heavy
        .map(|one| one["path"].as_str().expect("a path"))
        .collect();
    let [path] = paths[..] else {
        panic!("{paths:?}: {}", described(&output));
    };
    assert!(path.ends_with("/appendonlydir"), "{path}");
    assert!(number(&report["syncs"]) >= 5, "{report:#}");
    Outcome::Pass
}

/// A program that renames without a sync of the directory, and the same with one.
fn crash_tells_what_no_sync_covers(env: &TestEnv) -> Outcome {
    crate::crash::require_lab(env);
    let script = "import os, sys\n\
        place = os.environ['REFIT_MOUNT']\n\
        for i in range(1, 200):\n \
         f = os.open(f'{place}/tmp', os.O_CREAT | os.O_WRONLY | os.O_TRUNC); os.write(f, b'x'); os.fsync(f); os.close(f)\n \
         os.rename(f'{place}/tmp', f'{place}/item{i}')\n \
         if sys.argv[1] == 'right':\n  \
          d = os.open(place, os.O_RDONLY); os.fsync(d); os.close(d)\n \
         print(i, flush=True)\n";
    let program = env.file("renames.py", script);
    let check =
        "cd $REFIT_MOUNT && for item in item*; do [ ! -s $item ] || echo ${item#item}; done";
    let crash = |how: &str, json: &str| {
        let records = env.path(how);
        let options = [
            "crash", "--cuts", "30", "--record", &records, "--ack", "fd:1", "--check", check,
        ];
        let words = ["--json", json, "--", "python3", &program, how];
        env.refit(&[&options[..], &words].concat())
    };
    let (wrong, right) = (env.path("wrong.json"), env.path("right.json"));
    let text = "not covered by a sync: name-unsynced: ";
    let output = crash("wrong", &wrong);
    assert!(described(&output).contains(text), "{}", described(&output));
    let output = crash("right", &right);
    expect_message(&output, 0, "");
    assert!(
        !described(&output).contains("not covered by a sync"),
        "{}",
        described(&output)
    );
    let read = |path: &str| -> Value {
        serde_json::from_slice(&fs::read(path).expect("it was written")).expect("JSON")
    };
    let report = read(&right);
    let events = number(&crate::crash::mode(&report, "baseline")["durability"]["events"]);
    assert!(events > 500, "{events}");
    Outcome::Pass
}
