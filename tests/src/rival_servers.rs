//! Database servers, as in `rivals`.

use crate::rivals::{Script, all, same, same_at_once};
use crate::runner::{Outcome, Test};
use crate::test_env::TestEnv;
use crate::{database_counters, test};

pub const TESTS: &[Test] = &[
    test!(pg_test_fsync_measures_every_method).limit_seconds(240),
    test!(mariadb_with_o_direct_starts_and_keeps_what_it_committed).limit_seconds(240),
];

fn pg_test_fsync_measures_every_method(env: &TestEnv) -> Outcome {
    let (_, bin) = database_counters::newest_below("/usr/lib/postgresql", "bin/pg_test_fsync")
        .unwrap_or_else(|| env.skip("the server of postgresql is not installed"));
    // Its methods, and whether each could be measured.
    let methods = |text: &str| {
        let mut shown = String::new();
        for line in text.lines() {
            let measured = line.contains(" ops/sec ");
            if measured || line.ends_with("n/a") {
                let words = line.split_whitespace();
                let method =
                    words.take_while(|word| word.parse::<f64>().is_err() || word.len() < 3);
                let method: Vec<&str> = method.collect();
                shown += &format!("{} {measured}\n", method.join(" "));
            }
        }
        shown
    };
    // It tries each method for a second.
    let script = Script {
        name: "pg",
        text: &format!("exec {bin}/pg_test_fsync -s 1 -f file"),
        kinds: &["fsync", "fdatasync", "open(O_SYNC)"],
        shown: methods,
    };
    let messages = same_at_once(env, &[&["sync=off"]], &script);
    println!("{messages}");
    for method in [
        "open_datasync",
        "fdatasync",
        "fsync",
        "open_sync",
        "16 * 1kB open_sync writes",
    ] {
        assert!(messages.contains(&format!("{method} true\n")), "{messages}");
    }
    Outcome::Pass
}

/// The server is killed after its commits: what it wrote is in its files all the same.
fn mariadb_with_o_direct_starts_and_keeps_what_it_committed(env: &TestEnv) -> Outcome {
    env.require_command("mariadb-install-db");
    let script = r#"
PATH=$PATH:/usr/sbin
export TMPDIR=$PWD # at its start a server removes the temporary tables of others
user=
if [ "$(id -u)" = 0 ]; then chown mysql .; user=--user=mysql; fi
mariadb-install-db --no-defaults $user --datadir=$PWD/data --auth-root-authentication-method=normal \
    --skip-test-db > /dev/null
client="--no-defaults --socket=$PWD/socket --user=root"
start() {
    mariadbd --no-defaults $user --datadir=$PWD/data --socket=$PWD/socket --pid-file=$PWD/pid --skip-networking \
        --innodb-flush-method=O_DIRECT --log-bin=binlog --sync-binlog=1 2>> log &
    until mariadb-admin $client --silent ping 2> /dev/null; do
        kill -0 $! || { cat log; exit 1; }
        sleep 0.1
    done
}
start
{
    echo "CREATE DATABASE d; USE d; CREATE TABLE t (n INT) ENGINE=InnoDB;"
    seq 1 20 | sed 's/.*/INSERT INTO t VALUES (&);/'
} | mariadb $client
# dash prints "Killed" or nothing, as the end of the process happens to be noticed.
{ kill -KILL $!; wait $!; } 2> /dev/null || :
start
echo 'SELECT @@innodb_flush_method, COUNT(*) FROM t' | mariadb $client d
mariadb-admin $client shutdown
wait $!
grep -c ERROR log || :"#;
    let messages = same(env, "mariadb", script, &["fdatasync"], all);
    assert!(messages.contains("O_DIRECT\t20\n0\n"), "{messages}");
    Outcome::Pass
}
