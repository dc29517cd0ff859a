//! `refit recipes new --from`: a private instance with an administrator's configuration.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::compared::printed;
use crate::crash::require_lab;
use crate::recipe_folder::{finish, refit};
use crate::recipes::{check, require};
use crate::remains::{base, nothing_left};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_printed, expect_refused};

pub const TESTS: &[Test] = &[
    test!(a_redis_keeps_its_settings_and_loses_its_secrets).limit_seconds(120),
    test!(an_odd_redis_starts_or_its_line_and_the_reason_are_told).limit_seconds(120),
    test!(a_postgresql_keeps_its_settings).limit_seconds(300),
    test!(a_configuration_is_compared_and_cut).limit_seconds(300),
    test!(what_is_refused_writes_nothing),
];

/// Writes the recipe; what was printed.
pub fn new(env: &TestEnv, name: &str, option: &str, source: &str) -> String {
    let output = finish(&mut refit(env, &["recipes", "new", name, option, source]));
    let next = format!("{name} written; next: refit recipes check ./{name}");
    expect_printed(&output, 0, &next);
    printed(&output)
}

/// A file that its owner alone may read.
pub fn private_file(env: &TestEnv, name: &str, text: &str) {
    let path = env.file(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("it is the test's");
}

/// No file of the folder holds one of these texts.
pub fn expect_without(folder: &Path, texts: &[&str]) {
    for entry in fs::read_dir(folder).expect("it is a folder") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            expect_without(&path, texts);
            continue;
        }
        let content = fs::read(&path).expect("it can be read");
        let content = String::from_utf8_lossy(&content);
        for text in texts {
            assert!(!content.contains(text), "{} in {}", text, path.display());
        }
    }
}

/// Runs the recipe unchanged, and then with a question to the running server as a part of its check: the answers.
pub fn asked(env: &TestEnv, name: &str, shipped: &str, question: &str) -> String {
    let folder = format!("./{name}");
    let output = check(env, &folder, &[]);
    require(env, shipped, &output);
    let baseline = format!("ok      {name}: baseline: ");
    expect_printed(&output, 0, &baseline);
    assert!(
        !printed(&output).contains("FAILED"),
        "{}",
        described(&output)
    );
    let file = env.path(&format!("{name}/recipe.toml"));
    let text = fs::read_to_string(&file).expect("it was written");
    let command = "command = \"sh $REFIT_RECIPE/check.sh";
    assert_eq!(text.matches(command).count(), 1, "{text}");
    let changed = text.replace(command, &format!("{command} && {question}"));
    fs::write(&file, changed).expect("the test's directory is ours");
    // Variants that change what was asked for fail: they answer differently.
    let output = check(env, &folder, &["--yes"]);
    fs::write(&file, text).expect("the test's directory is ours");
    nothing_left(env, name);
    printed(&output)
        .lines()
        .find(|line| line.starts_with(&baseline))
        .unwrap_or_else(|| panic!("{}", described(&output)))
        .to_owned()
}

pub fn expect_written(env: &TestEnv, name: &str) {
    let file = env.path(name);
    assert!(Path::new(&file).is_file(), "{file} was not written");
}

pub fn expect_texts(text: &str, expected: &[&str]) {
    for part in expected {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

/// A port of 127.0.0.1 that nobody may come to.
pub fn trap() -> (TcpListener, u16) {
    let trap = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    trap.set_nonblocking(true).expect("it is a socket");
    let port = trap.local_addr().expect("it has one").port();
    (trap, port)
}

pub fn expect_untouched(trap: &TcpListener) {
    let came = trap.accept();
    assert!(came.is_err(), "the private instance connected: {came:?}");
}

fn a_redis_keeps_its_settings_and_loses_its_secrets(env: &TestEnv) -> Outcome {
    let (master, port) = trap();
    private_file(env, "secret.conf", "requirepass hidden-three\n");
    let extra = "maxmemory 123mb\nmaxmemory-policy allkeys-lru\nappendfsync everysec\n";
    let extra = env.file("extra.conf", extra);
    let main = env.file(
        "redis.conf",
        &format!(
            "# an administrator's\nport 6399\nbind 0.0.0.0\ndaemonize yes\npidfile /run/redis/other.pid\n\
             dir /var/lib/redis\nlogfile /var/log/redis/other.log\ndatabases 5\nappendonly yes\n\
             appendfsync always\nrequirepass \"hidden-one\"\nmasterauth hidden-two\nreplicaof 127.0.0.1 {port}\n\
             user alice on >hidden-four ~* +@all\nrename-command INCR \"\"\nrename-command FLUSHALL \"\"\n\
             syslog-enabled yes\ntls-key-file /etc/ssl/private/redis.key\nunixsocket /run/redis/redis.sock\n\
             include {extra}\ninclude {}\n",
            env.path("secret.conf"),
        ),
    );
    let told = new(env, "mine", "--from", &main);
    expect_texts(
        &told,
        &[
            "  port 6399 (",
            "  dir /var/lib/redis (",
            "  unixsocket /run/redis/redis.sock (",
            "  requirepass: a password (",
            "  masterauth: a password (",
            "  user: accounts and their passwords (",
            "  replicaof: no other server is asked (",
            "  rename-command INCR: the load uses it (",
            "  syslog-enabled: the system's log is not written to (",
        ],
    );
    let toml = fs::read_to_string(env.path("mine/recipe.toml")).expect("it was written");
    expect_texts(&toml, &["# - requirepass: a password (", "# - port 6399 ("]);
    let left_out = "secret.conf: not everybody may read it, and it holds a password";
    expect_texts(&told, &[left_out]);
    let secrets = ["hidden-one", "hidden-two", "hidden-three", "hidden-four"];
    expect_without(Path::new(&env.path("mine")), &secrets);
    let question = "redis-cli -s socket config get maxmemory && redis-cli -s socket config get maxmemory-policy && \
                    redis-cli -s socket config get appendfsync && redis-cli -s socket config get databases && \
                    redis-cli -s socket config get port && redis-cli -s socket config get requirepass && \
                    redis-cli -s socket role | head -n 1 && \
                    stat -c %u:%g /proc/$(redis-cli -s socket info server | tr -d '\\r' | sed -n 's/^process_id://p')";
    let answers = asked(env, "mine", "redis-aof", question);
    expect_texts(
        &answers,
        &[
            "maxmemory 128974848 maxmemory-policy allkeys-lru appendfsync everysec databases 5 port 0 requirepass master",
        ],
    );
    // Which as root is an account that owns nothing else, as in the shipped recipe.
    let account = answers.rsplit("master ").next().unwrap_or_default();
    let uid: u32 = account
        .split(':')
        .next()
        .and_then(|uid| uid.parse().ok())
        .unwrap_or_else(|| panic!("no account in {answers}"));
    println!("counted: the server's account: {account}");
    assert!(![0, 65534].contains(&uid) || !env.as_root(), "{answers}");
    expect_untouched(&master);
    Outcome::Pass
}

fn an_odd_redis_starts_or_its_line_and_the_reason_are_told(env: &TestEnv) -> Outcome {
    let (master, port) = trap();
    let odd = |text: &str| env.file("redis.conf", text);
    // A vertical tab is white space to Redis; each of these lines would keep the private copy from answering.
    let file = odd(&format!(
        "appendonly yes\n\x0breplicaof 127.0.0.1 {port}\n\x0brequirepass\x0bhidden\nmin-replicas-to-write 1\n\
         maxclients 2\nunixsocketperm 0\nproc-title-template \"\u{e9} {{title}}\"\r\nlogfile /no/such/log\n"
    ));
    new(env, "odd", "--from", &file);
    let file = env.path("odd/recipe.toml");
    let toml = fs::read_to_string(&file).expect("it was written");
    expect_texts(
        &toml,
        &[
            "min-replicas-to-write: no other",
            "maxclients 2: the load has",
        ],
    );
    expect_without(Path::new(&env.path("odd")), &["hidden"]);
    let output = check(env, "./odd", &[]);
    require(env, "redis-aof", &output);
    expect_printed(&output, 0, "ok      odd: baseline: ");
    expect_untouched(&master);
    for (name, line, reasons) in [
        (
            "unknown",
            "nosuch-setting 1",
            // Redis 7 has a bad directive, Redis 8 an unresolved configuration.
            &["'nosuch-setting 1'"][..],
        ),
        (
            "quotes",
            "maxmemory \"1mb",
            &["'maxmemory \"1mb'", "Unbalanced quotes"],
        ),
        (
            "module",
            "loadmodule /usr/lib/no.so",
            &["/usr/lib/no.so", "No such file"],
        ),
    ] {
        let file = odd(&format!("appendonly yes\n{line}\n"));
        new(env, name, "--from", &file);
        let output = check(env, &format!("./{name}"), &[]);
        expect_printed(&output, 1, &format!("FAILED  {name}: baseline: "));
        expect_texts(&printed(&output), reasons);
    }
    // Redis reads the two as one line.
    let nul = odd(&format!("appendonly yes\nrepl\0\nicaof 127.0.0.1 {port}\n"));
    let quoted = format!("{}/redis.conf", env.subdir("a\"b"));
    fs::copy(&nul, &quoted).expect("the directory is ours");
    for (file, text) in [
        (&nul, "a NUL byte in line 2"),
        (&quoted, "without quotation"),
    ] {
        let words = ["recipes", "new", "none", "--from", file];
        expect_refused(env, &words, &[file, text]);
    }
    Outcome::Pass
}

fn a_postgresql_keeps_its_settings(env: &TestEnv) -> Outcome {
    env.subdir("conf.d");
    env.file(
        "conf.d/tuned.conf",
        "shared_buffers = 48MB\nwal_writer_delay = 100ms\nsynchronous_standby_names = 'other'\n",
    );
    env.file("key.pem", "-----BEGIN PRIVATE KEY-----\nhidden-key\n");
    let archived = env.path("archived");
    let key = env.path("key.pem");
    let main = env.file(
        "postgresql.conf",
        &format!(
            "data_directory = '/var/lib/postgresql/15/main'\nport = 5433 # another\nwork_mem = 7MB\n\
             listen_addresses = '*'\narchive_mode = on\narchive_command = 'touch {archived}'\nssl = on\n\
             ssl_key_file = '{key}'\nprimary_conninfo = 'host=db password=hidden-one'\ncommit_delay = 10\n\
             log_line_prefix = '%m it''s [%p] '\ninclude_dir 'conf.d'\n"
        ),
    );
    let told = new(env, "mine", "--from", &main);
    expect_texts(
        &told,
        &[
            "  port 5433 (",
            "  data_directory /var/lib/postgresql/15/main (",
            "  archive_command: the archive is that of the real server (",
            "  ssl_key_file: nobody comes over a network",
            "  primary_conninfo: no other server is asked (",
            "  synchronous_standby_names: a commit would wait",
        ],
    );
    expect_without(Path::new(&env.path("mine")), &["hidden-key", "hidden-one"]);
    let toml = fs::read_to_string(env.path("mine/recipe.toml")).expect("it was written");
    // Three times wal_writer_delay.
    expect_texts(&toml, &["bound = \"300ms\""]);
    let question = ". $REFIT_RECIPE/path.sh && for s in shared_buffers work_mem wal_writer_delay commit_delay \
                    listen_addresses archive_mode ssl synchronous_standby_names data_directory; do \
                    echo $s $(psql -XAtc \\\"SHOW $s\\\" | sed s,$REFIT_DIR,DIR,); done";
    let answers = asked(env, "mine", "postgres-pgbench", question);
    expect_texts(
        &answers,
        &[
            "shared_buffers 48MB work_mem 7MB wal_writer_delay 100ms commit_delay 10 listen_addresses archive_mode off \
             ssl off synchronous_standby_names data_directory DIR/data",
        ],
    );
    assert!(!Path::new(&archived).exists());
    Outcome::Pass
}

fn a_configuration_is_compared_and_cut(env: &TestEnv) -> Outcome {
    require_lab(env);
    let main = env.file(
        "redis.conf",
        "appendonly yes\nappendfsync always\nport 6399\n",
    );
    new(env, "mine", "--from", &main);
    let base = base(env);
    let args = [
        "compare", "./mine", "--dir", &base, "--rounds", "2", "sync=off",
    ];
    let output = finish(&mut refit(env, &args));
    require(env, "redis-aof", &output);
    expect_printed(&output, 0, "\nsync=off ");
    let record = env.path("record");
    let args = [
        "crash", "./mine", "--record", &record, "--cuts", "5", "sync=off",
    ];
    let output = finish(&mut refit(env, &args));
    expect_printed(&output, 0, "loses, as its class allows");
    Outcome::Pass
}

fn what_is_refused_writes_nothing(env: &TestEnv) -> Outcome {
    let new = ["recipes", "new"];
    let odd = env.file("odd.txt", "port 1\n");
    let sentinel = env.file("redis-sentinel.conf", "sentinel monitor a 127.0.0.1 1 2\n");
    for (more, texts) in [
        (
            &["mine", "--from", "/no/such"][..],
            &["cannot read /no/such", "/etc/redis/redis.conf"][..],
        ),
        (
            &["mine", "--from", &odd],
            &[
                "is not a configuration that refit knows",
                "--template daemon",
            ],
        ),
        (&["mine", "--from", &sentinel], &["Sentinel", "redis.conf"]),
        (&["A b", "--from", "/etc/redis"], &["invalid name `A b`"]),
        (
            &["mine", "--from", "/etc/redis", "--template", "mail"],
            &["cannot be used with"],
        ),
    ] {
        expect_refused(env, &[&new[..], more].concat(), texts);
    }
    assert!(!Path::new(&env.path("mine")).exists());
    Outcome::Pass
}
