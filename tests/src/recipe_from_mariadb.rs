//! `refit recipes new --from /etc/mysql`: a private MariaDB with an administrator's configuration.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::recipe_folder::{finish, refit};
use crate::recipe_from::{
    asked, expect_texts, expect_untouched, expect_without, new, private_file, trap,
};
use crate::recipes::require;
use crate::remains::base;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_printed};

pub const TESTS: &[Test] = &[
    test!(a_mariadb_keeps_its_settings_and_loses_its_secrets).limit_seconds(300),
    test!(a_mariadb_that_commits_later_is_compared_with_one_that_waits).limit_seconds(300),
];

fn a_mariadb_keeps_its_settings_and_loses_its_secrets(env: &TestEnv) -> Outcome {
    let (master, port) = trap();
    env.subdir("mysql");
    env.subdir("mysql/conf [d]");
    env.file(
        "mysql/conf [d]/50 tuned.cnf",
        "[mariadb]\ninnodb_flush_log_at_timeout = 3 # seconds\nlog_bin = /var/log/mysql/mysql-bin.log\n\
         [client]\npassword = hidden-two\n[mysqld]\nmax_connections = 78\n",
    );
    env.file("mysql/conf [d]/60.txt", "[mysqld]\nmax_connections = 1\n");
    env.file(
        "mysql/conf [d]/70\nport=1.cnf",
        "[mysqld]\nmax_connections = 2\n",
    );
    private_file(
        env,
        "mysql/conf [d]/80-keys.cnf",
        "[mysqld]\nloose_custom_secret = hidden-three\n",
    );
    symlink("/no/such.cnf", env.path("mysql/conf [d]/90-gone.cnf")).expect("it is ours");
    // As Debian links it.
    symlink("real.cnf", env.path("mysql/my.cnf")).expect("it is ours");
    private_file(
        env,
        "mysql/real.cnf",
        &format!(
            "# password of before: hidden-four\n[client-server]\nsocket = /run/mysqld/mysqld.sock\n[mysqld]\n\
             port = {port}\nbind-address = 0.0.0.0\ndatadir=/var/lib/mysql\nmax_connections = 77\n\
             innodb-buffer-pool-size = 48M\nwsrep_on = ON\nwsrep_cluster_address = gcomm://127.0.0.1:{port}\n\
             wsrep_sst_auth = root:hidden-one\nread_only = ON\nautocommit = 0\n\
             ssl_key = /etc/mysql/key.pem\ngeneral_log = ON\ngeneral_log_file = /var/log/mysql/mysql.log\nbasedir = /usr\n\
             init_file = /etc/mysql/init.sql\n!includedir {}\n",
            env.path("mysql/../mysql/conf [d]"),
        ),
    );
    let told = new(env, "mine", "--from", &env.path("mysql"));
    expect_texts(
        &told,
        &[
            &format!("  port {port} ("),
            "  datadir /var/lib/mysql (",
            "  log-bin /var/log/mysql/mysql-bin.log",
            "  wsrep-sst-auth: no other server is asked (",
            "  wsrep-cluster-address: no other server is asked (",
            "  ssl-key: no key is copied (",
            "  read-only: the load writes (",
            "  init-file: its statements are for the real server (",
            "80-keys.cnf: not everybody may read it, and it holds a password",
            "port=1.cnf: a configuration cannot name it",
            "  basedir /usr",
        ],
    );
    let hidden = ["hidden-one", "hidden-two", "hidden-three", "hidden-four"];
    expect_without(Path::new(&env.path("mine")), &hidden);
    let toml = fs::read_to_string(env.path("mine/recipe.toml")).expect("it was written");
    // A second longer than innodb_flush_log_at_timeout.
    expect_texts(
        &toml,
        &["[conf.innodb_flush_log_at_trx_commit.0]", "bound = \"4s\""],
    );
    let question = "mariadb --defaults-file=my.cnf -BNe 'SELECT @@max_connections, @@innodb_buffer_pool_size, \
                    @@innodb_flush_log_at_timeout, @@log_bin, @@skip_networking, @@wsrep_on, @@read_only, @@autocommit, \
                    @@port' && mariadb --defaults-file=my.cnf -BNe 'SELECT @@datadir, @@socket, @@general_log_file, \
                    @@log_bin_basename' | sed s,$REFIT_DIR,DIR,g";
    let answers = asked(env, "mine", "mariadb-commits", question);
    expect_texts(
        &answers,
        &[
            "78 50331648 3 1 1 0 0 1 0 DIR/data/ DIR/socket",
            "DIR/data/mysql-bin",
        ],
    );
    assert!(!answers.contains("/var/log"), "{answers}");
    expect_untouched(&master);
    Outcome::Pass
}

fn a_mariadb_that_commits_later_is_compared_with_one_that_waits(env: &TestEnv) -> Outcome {
    let main = env.file("my.cnf", "[server]\ninnodb-flush-log-at-trx-commit = 2\n");
    let told = new(env, "mine", "--from", &main);
    expect_texts(&told, &["a commit does not wait for the disk"]);
    let toml = fs::read_to_string(env.path("mine/recipe.toml")).expect("it was written");
    let own = "[conf.innodb_flush_log_at_trx_commit.2]";
    assert!(!toml.contains(own), "{toml}");
    let fewer = toml.replace("operations = 20000\n", "operations = 2000\n");
    assert_ne!(fewer, toml);
    fs::write(env.path("mine/recipe.toml"), fewer).expect("the test's directory is ours");
    let base = base(env);
    let waits = "conf.innodb_flush_log_at_trx_commit=1";
    let args = [
        "compare", "./mine", "--dir", &base, "--rounds", "2", "--yes", waits,
    ];
    let output = finish(&mut refit(env, &args));
    require(env, "mariadb-commits", &output);
    expect_printed(&output, 0, &format!("\n{waits} "));
    Outcome::Pass
}
