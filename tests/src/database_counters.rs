//! Are refit's numbers true of database servers? As in `counters`.
//!
//! The servers are private ones: in the test's directory, on a socket there, under a user of their own when the
//! tests run as root, set up, started and stopped within the run that is counted.

use std::fs;
use std::os::unix::fs::chown;

use crate::counters::{SETTINGS, run_in};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::TestEnv;
use crate::traced::Traced;

pub const TESTS: &[Test] = &[
    test!(of_mariadb_every_call_is_counted).limit_seconds(120),
    test!(of_mariadb_with_liburing_nothing_is_unknown).limit_seconds(120),
    test!(of_postgresql_every_call_is_counted).limit_seconds(120),
];

/// One round with each of two ways to write the log: by fdatasync, and through O_DSYNC (until 15 O_DIRECT too).
const POSTGRESQL: &str = r#"
export PGHOST=$PWD PGUSER=postgres LC_ALL=C
initdb --auth=trust --username=postgres --pgdata=data > /dev/null
for options in \
    '-c wal_sync_method=fdatasync' \
    '-c wal_sync_method=open_datasync -c wal_level=minimal -c max_wal_senders=0'
do
    pg_ctl --silent --wait --pgdata=data --log=log -o "-k $PWD -c listen_addresses='' $options" start
    {
        echo "DROP TABLE IF EXISTS t; CREATE TABLE t AS SELECT n FROM generate_series(1, 50000) n;"
        seq 1 20 | sed 's/.*/INSERT INTO t VALUES (&);/'
        echo "CHECKPOINT; SELECT count(*) FROM t;"
    } | psql --quiet --no-psqlrc --tuples-only postgres
    pg_ctl --silent --wait --pgdata=data --mode=fast stop
done"#;

fn of_postgresql_every_call_is_counted(env: &TestEnv) -> Outcome {
    // Debian keeps the server's programs off the PATH.
    let installed = newest_below("/usr/lib/postgresql", "bin/initdb");
    let Some((version, bin)) = installed else {
        env.skip("the server of postgresql is not installed");
    };
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("PATH={bin}:{path}");
    let mut kinds = vec!["fsync", "fdatasync", "sync_file_range", "open(O_SYNC)"];
    if version < 16 {
        kinds.push("open(O_DIRECT)"); // later ones went back to the page cache
    }
    for setting in SETTINGS {
        let dir = env.subdir(setting);
        let mut words = vec!["env".to_owned()];
        if env.as_root() {
            // It refuses to run as root.
            let [uid, gid] = give_to(env, "postgres", &dir);
            words.push("setpriv".into());
            words.extend([format!("--reuid={uid}"), format!("--regid={gid}")]);
            words.push("--clear-groups".into());
        }
        words.extend(["env", &path, "sh", "-ec", POSTGRESQL].map(str::to_owned));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        run_in(env, &dir, setting, &kinds, &words);
    }
    Outcome::Pass
}

/// `$1` and what follows are options of the servers.
const MARIADB: &str = r#"
PATH=$PATH:/usr/sbin
export TMPDIR=$PWD # at its start a server removes the temporary tables of others
mariadb-install-db --no-defaults "$@" --datadir=$PWD/data --auth-root-authentication-method=normal \
    --skip-test-db > /dev/null
for method in O_DIRECT O_DSYNC; do
    mariadbd --no-defaults "$@" --datadir=$PWD/data --socket=$PWD/socket --pid-file=$PWD/pid --skip-networking \
        --log-bin=binlog --sync-binlog=1 --innodb-flush-method=$method 2> log &
    client="--no-defaults --socket=$PWD/socket --user=root"
    until mariadb-admin $client --silent ping 2> /dev/null; do
        kill -0 $! || { cat log; exit 1; }
        sleep 0.1
    done
    {
        echo "CREATE DATABASE IF NOT EXISTS d; USE d; CREATE OR REPLACE TABLE t (n INT);"
        seq 1 20 | sed 's/.*/INSERT INTO t VALUES (&);/'
        echo "SELECT count(*) FROM t;"
    } | mariadb $client
    mariadb-admin $client shutdown
    wait $!
done"#;

fn mariadb(env: &TestEnv, setting: &str, option: &str, kinds: &[&str]) -> Traced {
    let dir = env.subdir(setting);
    let mut words = vec!["sh", "-ec", MARIADB, "sh", option];
    if env.as_root() {
        give_to(env, "mysql", &dir);
        words.push("--user=mysql");
    }
    run_in(env, &dir, setting, kinds, &words)
}

fn of_mariadb_every_call_is_counted(env: &TestEnv) -> Outcome {
    env.require_command("mariadb-install-db");
    let kinds = ["fdatasync", "open(O_SYNC)", "open(O_DIRECT)"];
    for setting in SETTINGS {
        let traced = mariadb(env, setting, "--skip-innodb-use-native-aio", &kinds);
        assert_eq!(traced.unknown("io_uring"), 0);
    }
    Outcome::Pass
}

fn of_mariadb_with_liburing_nothing_is_unknown(env: &TestEnv) -> Outcome {
    env.require_command("mariadb-install-db");
    for setting in SETTINGS {
        let traced = mariadb(env, setting, "--innodb-use-native-aio", &["fdatasync"]);
        if !traced
            .trace
            .calls
            .iter()
            .any(|c| c.name == "io_uring_setup")
        {
            env.skip("this mariadbd is built without liburing");
        }
        assert!(traced.straced().contains_key("io_uring_setup"));
        assert_eq!(traced.unknown("io_uring"), 0, "{:#}", traced.report);
    }
    Outcome::Pass
}

/// Gives a directory to the user of a server; skips the test where there is no such user. Its ids.
pub fn give_to(env: &TestEnv, user: &str, dir: &str) -> [u32; 2] {
    let users = fs::read_to_string("/etc/passwd").expect("every system has users");
    let Some(ids) = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let id = |at: usize| fields.get(at)?.parse().ok();
        Some([id(2)?, id(3)?]).filter(|_| fields[0] == user)
    }) else {
        env.skip(&format!("there is no user {user}"));
    };
    chown(dir, Some(ids[0]), Some(ids[1])).expect("root may give files away");
    ids
}

/// Among the directories named by a number that hold this file, the highest: its number, and the directory
/// of the file.
pub fn newest_below(path: &str, file: &str) -> Option<(u32, String)> {
    let (below, _) = file.rsplit_once('/').expect("the file lies below a name");
    fs::read_dir(path)
        .ok()?
        .flatten()
        .filter(|entry| entry.path().join(file).exists())
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .max()
        .map(|number| (number, format!("{path}/{number}/{below}")))
}
