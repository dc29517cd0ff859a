//! A private Postfix: Debian's programs with a configuration, a queue and a loopback address of their own, and an
//! smtp-sink that takes all mail. The system's own instance, if there is one, is neither asked nor changed.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::test_env::{TestEnv, expect_code, wait_until};

/// The programs without which none of this can be tried.
const COMMANDS: [&str; 7] = [
    "postfix",
    "postconf",
    "sendmail",
    "smtp-source",
    "smtp-sink",
    "unshare",
    "mount",
];

pub struct Mailer {
    dir: String,
    address: String,
    script: String,
    sink: Child,
    /// Where the daemons' programs lie.
    pub daemons: String,
}

impl Mailer {
    /// Makes the configuration and starts the smtp-sink; Postfix itself is started by the step `start`. Skips the
    /// test without root, which Postfix needs, or without Postfix.
    pub fn new(env: &TestEnv) -> Self {
        env.require_root();
        for command in COMMANDS {
            env.require_command(command);
        }
        env.require_namespaces(&["--mount"]);
        let daemons = env.run(&["postconf", "-d", "-h", "daemon_directory"]);
        expect_code(&daemons, 0);
        let daemons = String::from_utf8(daemons.stdout).expect("the directory's name is text");

        // Daemons and the sink drop their privileges.
        fs::set_permissions(env.dir(), Permissions::from_mode(0o755)).expect("it is ours");
        let dir = env.subdir("mailer");
        for (name, user) in [
            ("conf", "root"),
            ("queue", "root"),
            ("data", "postfix"),
            ("sink", "nobody"),
        ] {
            let path = env.subdir(&format!("mailer/{name}"));
            expect_code(&env.run(&["chown", user, &path]), 0);
        }
        // One for each process, so that two tests never meet; outgoing connections come from 127.0.0.1.
        let [_, a, b, c] = std::process::id().to_be_bytes();
        let address = format!("127.{}.{b}.{c}", u32::from(a) + 1);
        for (name, text) in [
            ("main.cf", include_str!("../postfix/main.cf")),
            ("master.cf", include_str!("../postfix/master.cf")),
        ] {
            let text = text.replace("DIR", &dir).replace("ADDRESS", &address);
            env.file(&format!("mailer/conf/{name}"), &text);
        }
        let script = env.file("steps.sh", include_str!("../postfix/steps.sh"));

        let mut sink = env.command("smtp-sink");
        sink.current_dir(format!("{dir}/sink"));
        sink.args(["-u", "nobody", "-d", "%M.", &format!("{address}:2626")]);
        let sink = sink
            .arg("1000")
            .stdin(Stdio::null())
            .spawn()
            .expect("smtp-sink is installed");
        let mailer = Self {
            dir,
            address,
            script,
            sink,
            daemons: daemons.trim_end().to_owned(),
        };
        wait_until("smtp-sink", || {
            TcpStream::connect((mailer.address.as_str(), 2626)).is_ok()
        });
        mailer
    }

    /// The command that does these steps of tests/postfix/steps.sh.
    pub fn steps<'a>(&'a self, steps: &[&'a str]) -> Vec<&'a str> {
        [&["sh", &self.script, &self.dir, &self.address], steps].concat()
    }

    /// Its queue directory.
    pub fn queue(&self) -> String {
        format!("{}/queue", self.dir)
    }

    /// The program of a daemon.
    pub fn daemon(&self, name: &str) -> String {
        format!("{}/{name}", self.daemons)
    }

    /// The session directory of the refit around the step `session`.
    pub fn session(&self) -> String {
        let path = format!("{}/session", self.dir);
        let session = fs::read_to_string(&path).expect("the step `session` was done");
        session.trim_end().to_owned()
    }

    /// Fails unless exactly so many different mails arrived at the sink since the last time that this was asked,
    /// and none is on its way.
    #[track_caller]
    pub fn expect_delivered(&self, expected: usize) {
        let mut ids = BTreeSet::new();
        for path in files_below(&format!("{}/sink", self.dir)) {
            let mail = fs::read_to_string(&path).expect("the sink wrote it");
            let mut lines = mail.lines();
            let id = lines.find(|line| line.to_ascii_lowercase().starts_with("message-id:"));
            ids.insert(id.expect("each mail has an id").to_owned());
            fs::remove_file(&path).expect("it is below the test's directory");
        }
        assert_eq!(ids.len(), expected, "mails at the sink\n{}", self.log());
        for queue in [
            "maildrop", "incoming", "active", "deferred", "hold", "corrupt",
        ] {
            let left = files_below(&format!("{}/queue/{queue}", self.dir));
            assert!(left.is_empty(), "{queue}: {left:?}\n{}", self.log());
        }
    }

    /// The daemons that run: their pids and programs.
    pub fn running(&self) -> BTreeSet<(u32, String)> {
        let queue = format!("{}/queue", self.dir);
        let processes = fs::read_dir("/proc").expect("/proc is mounted").flatten();
        processes
            .filter_map(|entry| {
                let cwd = fs::read_link(entry.path().join("cwd")).ok()?;
                let program = fs::read_link(entry.path().join("exe")).ok()?;
                let pid = entry.file_name().to_str()?.parse().ok()?;
                let ours = cwd.starts_with(&queue);
                ours.then_some((pid, program.to_str()?.to_owned()))
            })
            .collect()
    }

    /// Fails if anything of it runs or is mounted.
    #[track_caller]
    pub fn expect_gone(&self) {
        assert_eq!(self.running(), BTreeSet::new());
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("/proc is mounted");
        assert!(!mounts.contains(&self.dir), "{mounts}");
    }

    fn log(&self) -> String {
        fs::read_to_string(format!("{}/log", self.dir)).unwrap_or_default()
    }
}

impl Drop for Mailer {
    fn drop(&mut self) {
        // Of a test that failed something may still run; afterwards nobody waits for the sink.
        if Path::new(&self.dir).join("queue/pid/master.pid").exists() {
            let stop = ["-c", &format!("{}/conf", self.dir), "stop"];
            let _ = std::process::Command::new("postfix").args(stop).output();
        }
        let _ = self.sink.kill();
        let _ = self.sink.wait();
    }
}

/// All files below a directory.
pub fn files_below(dir: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path().display().to_string();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                dirs.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}
