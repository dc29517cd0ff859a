//! A server that runs in a tree, whose tables `refit apply` gives an index.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::apply::words;
use crate::apply_schema::{CUSTOMER, Shop};
use crate::sys;
use crate::test_env::{TestEnv, described, refit_path, wait_until};

pub const COLUMNS: &str =
    "customer_id integer NOT NULL, created_at timestamp NOT NULL, status smallint NOT NULL";

/// A server in a tree, and a client of it.
pub struct Server {
    pub child: Child,
    /// The server's user where the tests run as root: servers refuse root.
    pub user: Option<(u32, u32)>,
    pub client: Vec<String>,
    pub dump: Vec<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // PostgreSQL has a segment of shared memory (System V), which stays where it is killed.
        if self.client[0].ends_with("psql") {
            sys::send_signal(self.child.id().cast_signed(), libc::SIGQUIT);
            let _ = sys::ended_within(self.child.id(), Duration::from_secs(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn command(user: Option<(u32, u32)>, words: &[String]) -> Command {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .stdin(Stdio::null())
        .current_dir("/");
    if let Some((uid, gid)) = user {
        command.gid(gid).uid(uid);
    }
    command
}

pub fn printed(user: Option<(u32, u32)>, words: &[String]) -> String {
    let output = command(user, words).output().expect("it starts");
    assert!(output.status.success(), "{words:?}: {}", described(&output));
    String::from_utf8(output.stdout).expect("text")
}

/// Waits until a server does what these words ask.
pub fn answered(what: &str, user: Option<(u32, u32)>, words: &[String]) {
    wait_until(what, || {
        let output = command(user, words).output().expect("it starts");
        output.status.success()
    });
}

pub fn own(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl Server {
    pub fn sql(&self, sql: &str) -> String {
        printed(self.user, &[&*self.client, &[sql.to_owned()]].concat())
    }

    /// All definitions, without the words that pg_dump makes up.
    pub fn dump(&self) -> String {
        let text = printed(self.user, &self.dump);
        let lines = text.lines().filter(|line| !line.contains("restrict "));
        lines.fold(String::new(), |text, line| text + line + "\n")
    }

    pub fn shop(&self, env: &TestEnv, root: &str, service: &str, test: impl Fn(&Shop)) {
        test(&Shop {
            env,
            root: root.to_owned(),
            service,
            sql: &|sql| self.sql(sql),
            dump: &|| self.dump(),
            drop_of: &|index| match service.starts_with("mariadb") {
                true => format!("DROP INDEX {index} ON orders"),
                false => format!("DROP INDEX {index}"),
            },
        });
    }
}

pub fn user(env: &TestEnv, name: &str) -> Option<(u32, u32)> {
    let id = |what: &str| {
        let words = own(&["/usr/bin/id", what, name]);
        printed(None, &words).trim().parse().expect("a number")
    };
    env.as_root().then(|| (id("-u"), id("-g")))
}

/// A MariaDB in a tree with an empty database `shop`; its socket is run/mysqld/mysqld.sock.
pub fn mariadb(env: &TestEnv, root: &str, options: &[&str]) -> Server {
    let user = user(env, "mysql");
    made(root, user, &["var/lib/mysql", "run/mysqld"]);
    let (data, socket) = (
        format!("--datadir={root}/var/lib/mysql"),
        format!("--socket={root}/run/mysqld/mysqld.sock"),
    );
    // At its start a server removes the temporary tables of others.
    let temporary = format!("TMPDIR={root}/run/mysqld");
    let auth = "--auth-root-authentication-method=normal";
    let words = [
        "/usr/bin/env",
        &temporary,
        "/usr/bin/mariadb-install-db",
        "--no-defaults",
        auth,
        "--skip-test-db",
        &data,
    ];
    printed(user, &own(&words));
    let log = fs::File::create(env.path("server.log")).expect("ours");
    let pid = format!("--pid-file={root}/run/mysqld/pid");
    let words = [
        "/usr/bin/env",
        &temporary,
        "/usr/sbin/mariadbd",
        "--no-defaults",
        "--skip-networking",
        &data,
        &socket,
        &pid,
    ];
    let words = own(&[&words[..], options].concat());
    let child = command(user, &words).stderr(log).spawn();
    let client = |program: &str| own(&[program, "--no-defaults", "--user=root", &socket]);
    let server = Server {
        child: child.expect("it starts"),
        user,
        client: [client("/usr/bin/mariadb"), own(&["-BN", "shop", "-e"])].concat(),
        dump: [
            client("/usr/bin/mariadb-dump"),
            own(&["-d", "--skip-dump-date", "shop"]),
        ]
        .concat(),
    };
    let create = [
        client("/usr/bin/mariadb"),
        own(&["-e", "CREATE DATABASE shop"]),
    ]
    .concat();
    answered("MariaDB", user, &create);
    server
}

/// Directories of a tree that belong to the server's user.
pub fn made(root: &str, user: Option<(u32, u32)>, dirs: &[&str]) {
    for dir in dirs {
        let path = Path::new(root).join(dir);
        fs::create_dir_all(&path).expect("the tree is ours");
        if let Some((uid, gid)) = user {
            chown(&path, Some(uid), Some(gid)).expect("as root");
        }
    }
}

/// The client that refit started.
pub fn child_of(refit: &Child) -> i32 {
    let path = format!("/proc/{0}/task/{0}/children", refit.id());
    let mut pid = None;
    wait_until("a client", || {
        pid = fs::read_to_string(&path)
            .unwrap_or_default()
            .trim()
            .parse()
            .ok();
        pid.is_some()
    });
    pid.expect("waited for")
}

/// Kills refit, and then its client.
pub fn killed(mut refit: Child) {
    let client = child_of(&refit);
    refit.kill().expect("ours");
    refit.wait().expect("ours");
    // It is nobody's child that this test could wait for.
    crate::sys::kill_hard(client);
    wait_until("the client's end", || {
        !Path::new(&format!("/proc/{client}")).exists()
    });
}

/// Ends a client that reads statements.
pub fn ended(mut other: Child) {
    drop(other.stdin.take());
    other.wait().expect("ours");
}

/// `refit apply` of an index, which goes on.
pub fn begun(shop: &Shop) -> Child {
    let words = words("apply", &shop.root, &["--yes", shop.service, CUSTOMER]);
    let mut refit = shop.env.command(&refit_path());
    let refit = refit.args(words).stderr(Stdio::null());
    refit.spawn().expect("it starts")
}
