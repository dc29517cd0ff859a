//! The recipe postfix-tables where its README promises something for the worst case: mail waits for a script that
//! fails, and is not lost; a kind of table is built for one version of Postfix.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use crate::mailer::files_below;
use crate::mapd::{free_port, readable};
use crate::processes::{children, status_line};
use crate::recipes::folder;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, wait_until};

pub const TESTS: &[Test] = &[
    test!(mail_waits_for_a_script_and_is_not_lost).limit_seconds(120),
    test!(headers_of_another_version_are_refused),
];

/// A Postfix that is set up, started and stopped by the recipe's scripts.
struct Instance<'a> {
    env: &'a TestEnv,
    variables: Vec<(&'static str, String)>,
    smtp: u16,
    running: Option<Child>,
    sink: Option<Child>,
}

impl<'a> Instance<'a> {
    fn new(env: &'a TestEnv, kind: &str) -> Self {
        env.require_root();
        for command in ["postfix", "postmap", "smtp-sink"] {
            env.require_command(command);
        }
        if !fs::exists("/usr/lib/postfix/postfix-lmdb.so").unwrap_or(false) {
            env.skip("no lmdb tables: apt install postfix-lmdb postfix-pcre");
        }
        readable(env, "readable", "");
        let [smtp, sink, mapd] = [free_port(), free_port(), free_port()];
        let variables = vec![
            ("REFIT_DIR", env.subdir("instance")),
            ("REFIT_TMPFS", env.subdir("tmpfs")),
            (
                "REFIT_RECIPE",
                folder("postfix-tables").display().to_string(),
            ),
            ("REFIT_OPERATIONS", "3".to_owned()),
            ("REFIT_PORT_SMTP", smtp.to_string()),
            ("REFIT_PORT_SINK", sink.to_string()),
            ("REFIT_PORT_MAPD", mapd.to_string()),
        ];
        let instance = Instance {
            env,
            variables,
            smtp,
            running: None,
            sink: None,
        };
        instance.script("setup.sh", &[]);
        instance.script("use.sh", &[kind]);
        instance
    }

    fn command(&self, script: &str) -> Command {
        let mut command = self.env.command("sh");
        command.arg(folder("postfix-tables").join(script));
        command.envs(self.variables.iter().cloned());
        command
            .current_dir(self.variable("REFIT_DIR"))
            .stdin(Stdio::null());
        command
    }

    fn script(&self, script: &str, words: &[&str]) {
        let output = self
            .command(script)
            .args(words)
            .output()
            .expect("sh is there");
        expect_code(&output, 0);
    }

    fn variable(&self, name: &str) -> &str {
        let found = self.variables.iter().find(|(known, _)| *known == name);
        &found.expect("it is one of the recipe's").1
    }

    fn path(&self, name: &str) -> String {
        self.env.path(&format!("instance/{name}"))
    }

    /// With a sink that takes all mail, as the recipe's load has it.
    fn start(&mut self) {
        let mut sink = self.env.command("smtp-sink");
        sink.args([
            "-u",
            "nobody",
            "-d",
            "%M.",
            &format!("127.0.0.1:{}", self.variable("REFIT_PORT_SINK")),
            "100",
        ]);
        self.sink = Some(
            sink.current_dir(self.sink_dir())
                .spawn()
                .expect("it is installed"),
        );
        self.running = Some(self.command("start.sh").spawn().expect("sh is there"));
        wait_until("Postfix", || {
            TcpStream::connect(("127.0.0.1", self.smtp)).is_ok()
        });
    }

    fn sink_dir(&self) -> String {
        self.env.path("tmpfs/sink")
    }

    /// Sends a mail to this user: what smtpd says to RCPT TO, and to the mail if it wants that.
    fn mail(&self, user: &str) -> (String, Option<String>) {
        let stream = TcpStream::connect(("127.0.0.1", self.smtp)).expect("it listens");
        let mut answers = BufReader::new(stream.try_clone().expect("it is open")).lines();
        let mut say = |words: &str| {
            (&stream).write_all(words.as_bytes()).expect("smtpd reads");
            answers.next().expect("smtpd answers").expect("it is text")
        };
        // The greeting comes unasked.
        for words in ["", "HELO refit.test\r\n", "MAIL FROM:<a@refit.test>\r\n"] {
            let answer = say(words);
            assert!(answer.starts_with('2'), "{answer}");
        }
        let recipient = say(&format!("RCPT TO:<{user}@load.test>\r\n"));
        if !recipient.starts_with("250") {
            return (recipient, None);
        }
        let data = say("DATA\r\n");
        assert!(data.starts_with("354"), "{data}");
        (recipient, Some(say("Subject: refit\r\n\r\nhello\r\n.\r\n")))
    }

    fn queued(&self, queue: &str) -> usize {
        files_below(&self.path(&format!("queue/{queue}"))).len()
    }

    /// The next lookup starts the script anew, as it is then.
    fn end_script(&self) {
        let Ok(server) = fs::read_to_string(self.path("mapd.pid")) else {
            return;
        };
        for worker in children(server.trim().parse().expect("a pid")) {
            // It may have ended by itself meanwhile.
            self.env.run(&["kill", "-KILL", &worker.to_string()]);
            wait_until("the script's process to end", || {
                status_line(worker, "State").is_none_or(|state| state.contains('Z'))
            });
        }
    }

    fn delivered(&self) -> usize {
        files_below(&self.sink_dir()).len()
    }

    /// Nothing of it may be left: daemons, the server and the script's process all know its directory or its port.
    fn stop(&mut self) {
        self.script("stop.sh", &[]);
        let mut running = self.running.take().expect("it was started");
        running.wait().expect("it is ours");
        self.expect_gone();
    }

    fn expect_gone(&self) {
        let server = format!("mapd\0{}", self.variable("REFIT_PORT_MAPD"));
        for word in [self.variable("REFIT_DIR"), &server] {
            wait_until("the instance's processes to end", || {
                processes_with(word).is_empty()
            });
        }
    }
}

impl Drop for Instance<'_> {
    fn drop(&mut self) {
        if self.running.is_some() {
            let _ = self.command("stop.sh").output();
        }
        if let Some(sink) = &mut self.sink {
            let _ = sink.kill();
            let _ = sink.wait();
        }
    }
}

/// Processes with this in their command line.
fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    lines.filter(|line| line.contains(word)).collect()
}

fn mail_waits_for_a_script_and_is_not_lost(env: &TestEnv) -> Outcome {
    let mut instance = Instance::new(env, "script");
    // The script decides whether a mail is taken; and, under another key, where one goes that was taken, but for box1's.
    let rule = env.file(
        "instance/other-boxes",
        "/^box[3-9]@box\\.test$/ transport\n",
    );
    let config = instance.path("conf/main.cf");
    let mut text = fs::read_to_string(&config).expect("setup.sh wrote it");
    text += &format!(
        "transport_maps = pipemap:{{pcre:{rule}, socketmap:inet:127.0.0.1:{}:users}}\n\
         queue_run_delay = 1s\nminimal_backoff_time = 1s\n",
        instance.variable("REFIT_PORT_MAPD")
    );
    fs::write(&config, text).expect("it is ours");
    let use_script = |instance: &Instance, user: &str, transport: &str| {
        let script = format!(
            "def lookup(key)\n  return {transport} if key == 'transport'\n  user, domain = key.split('@')\n  \
             return nil if domain != 'load.test' || user == '2'\n  {user}\nend\n"
        );
        fs::write(instance.path("users.rb"), script).expect("it is ours");
        instance.end_script();
    };
    let found = "\"box#{user}@box.test\"";
    use_script(&instance, found, "nil");
    instance.start();

    let (recipient, taken) = instance.mail("1");
    assert!(is_taken(&taken), "{recipient} {taken:?}");
    let (recipient, _) = instance.mail("2");
    assert!(recipient.starts_with("550"), "{recipient}");
    wait_until("the first mail", || instance.delivered() == 1);

    // Taken, and then the table cannot say how it goes on: it waits in the queue, and goes when the table can.
    for (user, failing) in [
        ("3", "loop {}"),
        ("4", "raise('no')"),
        (
            "5",
            "begin; all = []; loop { all << 'x' * 1000 + all.size.to_s }; end",
        ),
    ] {
        let before = instance.delivered();
        use_script(&instance, found, failing);
        let (recipient, taken) = instance.mail(user);
        assert!(is_taken(&taken), "{failing}: {recipient} {taken:?}");
        wait_until("the mail to be deferred", || {
            instance.queued("deferred") == 1
        });
        assert_eq!(instance.delivered(), before);
        use_script(&instance, found, "nil");
        // Postfix keeps the last answer for half a minute, even one that failed; another mail replaces it.
        let (recipient, taken) = instance.mail("1");
        assert!(is_taken(&taken), "{failing}: {recipient} {taken:?}");
        wait_until("both mails to go", || instance.delivered() == before + 2);
        wait_until("the queue to be empty", || {
            instance.queued("deferred") + instance.queued("active") == 0
        });
    }

    // Not taken while nobody can say whether there is such a user: the sender keeps it, and tries again.
    use_script(&instance, "loop {}", "nil");
    let (recipient, taken) = instance.mail("6");
    assert!(
        recipient.starts_with("451") && taken.is_none(),
        "{recipient}"
    );

    instance.stop();

    // A script that cannot even be read: nothing starts, and nothing stays.
    fs::remove_file(instance.path("ready")).expect("start.sh made it");
    fs::write(instance.path("users.rb"), "def lookup(").expect("it is ours");
    let output = instance.command("start.sh").output().expect("sh is there");
    expect_code(&output, 1);
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        messages.contains("users.rb: the script raised"),
        "{messages}"
    );
    instance.expect_gone();
    Outcome::Pass
}

fn is_taken(taken: &Option<String>) -> bool {
    taken
        .as_ref()
        .is_some_and(|answer| answer.starts_with("250"))
}

fn headers_of_another_version_are_refused(env: &TestEnv) -> Outcome {
    for command in ["postconf", "dpkg-query", "apt-get", "dpkg-source"] {
        env.require_command(command);
    }
    let script = folder("postfix-tables")
        .join("headers.sh")
        .display()
        .to_string();
    let headers = |variables: &[(&str, &str)]| -> Output {
        let mut command = env.command("sh");
        command.arg(&script).envs(variables.iter().copied());
        command.output().expect("sh is there")
    };
    let refused = |variables: &[(&str, &str)], expected: &[&str]| {
        let output = headers(variables);
        expect_code(&output, 1);
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            expected.iter().all(|word| messages.contains(word)),
            "{messages}"
        );
        assert!(output.stdout.is_empty(), "{}", described(&output));
    };
    let kept = env.subdir("headers");
    for dir in ["headers/src", "headers/src/util", "headers/src/global"] {
        env.subdir(dir);
    }
    refused(
        &[("REFIT_HEADERS", &kept)],
        &["holds no Postfix source", &kept],
    );
    env.file("headers/src/util/dict.h", "");
    let version = |version: &str| {
        let line = format!("#define MAIL_VERSION_NUMBER\t\"{version}\"\n");
        env.file("headers/src/global/mail_version.h", &line);
    };
    version("2.0.1");
    let runs = env.run(&["postconf", "-d", "-h", "mail_version"]);
    let runs = String::from_utf8(runs.stdout).expect("a version is text");
    refused(
        &[("REFIT_HEADERS", &kept)],
        &["are of Postfix 2.0.1, but", runs.trim()],
    );
    version(runs.trim());
    let output = headers(&[("REFIT_HEADERS", &kept)]);
    expect_code(&output, 0);
    assert_eq!(output.stdout, format!("{kept}\n").as_bytes());
    refused(
        &[("REFIT_HEADERS", "/nonexistent")],
        &["there is no /nonexistent"],
    );

    // Apt that knows of no such version.
    let bin = env.subdir("bin");
    for (name, text) in [
        (
            "apt-cache",
            "#!/bin/sh\necho 'postfix | 9.9 | http://localhost stable/main amd64 Packages'\n",
        ),
        ("dpkg-query", "#!/bin/sh\necho 0.0-refit-test\n"),
    ] {
        let path = env.file(&format!("bin/{name}"), text);
        expect_code(&env.run(&["chmod", "755", &path]), 0);
    }
    let path = format!("{bin}:{}", std::env::var("PATH").expect("there is one"));
    refused(
        &[("PATH", &path)],
        &["apt does not know where postfix 0.0-refit-test comes from"],
    );
    Outcome::Pass
}
