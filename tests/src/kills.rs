//! refit's processes killed at random moments beneath real databases and dpkg: every row that was acknowledged is there,
//! and no other.
//!
//! `REFIT_GUARDIAN_KILLS` is the number of kills beneath all of them together (`make test-guardian`: 10,000). A guardian
//! has two processes, of which one at a time is killed: without both nobody can answer.

mod comparison;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::guardian::{PARENT, kills_wanted, named, stat_field};
use crate::guardian_processes::{is_alive, short_lived, standby};
use crate::locations::source_dir;
use crate::random::Random;
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, refit_path, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[
    test!(sqlite_and_files_lose_no_row).limit_seconds(3600),
    test!(dpkg_loses_no_file).limit_seconds(3600),
    test!(postgresql_loses_no_row).limit_seconds(3600),
    test!(mariadb_loses_no_row).limit_seconds(3600),
];

/// Few, so that there are many rounds; and many, since a round takes long to begin and to end.
const MOST_IN_A_ROUND: u64 = 60;

/// A program, as shell scripts in tests/src/kills, by function: `prepare`; `serve`, which becomes the server, `ready`
/// and `stop`; `load ROUND`, which prints the name of each row when it was acknowledged, and ends when there is a file
/// `enough`; `found`, which prints the names of all that are there.
struct Program {
    script: &'static str,
    /// What it needs.
    commands: &'static [&'static str],
    is_server: bool,
    /// The recipe whose lab is killed.
    recipe: &'static str,
}

impl Program {
    const fn alone(
        script: &'static str,
        recipe: &'static str,
        commands: &'static [&'static str],
    ) -> Program {
        Program {
            script,
            recipe,
            commands,
            is_server: false,
        }
    }

    const fn server(
        script: &'static str,
        recipe: &'static str,
        commands: &'static [&'static str],
    ) -> Program {
        Program {
            is_server: true,
            ..Program::alone(script, recipe, commands)
        }
    }
}

fn sqlite_and_files_lose_no_row(env: &TestEnv) -> Outcome {
    let commands = &["sqlite3", "python3", "dd"];
    killed(env, &Program::alone("sqlite.sh", "sqlite-insert", commands))
}

fn dpkg_loses_no_file(env: &TestEnv) -> Outcome {
    let commands = &["dpkg", "dpkg-deb"];
    killed(env, &Program::alone("dpkg.sh", "dpkg-unpack", commands))
}

fn postgresql_loses_no_row(env: &TestEnv) -> Outcome {
    let commands = &["psql", "setpriv"];
    killed(
        env,
        &Program::server("postgresql.sh", "postgres-pgbench", commands),
    )
}

fn mariadb_loses_no_row(env: &TestEnv) -> Outcome {
    let commands = &["mariadbd", "mariadb", "mariadb-install-db", "setpriv"];
    killed(
        env,
        &Program::server("mariadb.sh", "mariadb-commits", commands),
    )
}

struct Killer<'a> {
    env: &'a TestEnv,
    program: &'a Program,
    /// A copy, so that no other test's processes are taken for this one's.
    refit: PathBuf,
    random: Random,
    /// The guardian's process that answered at the last look.
    active: Option<u32>,
    /// How often each kind of process was killed.
    killed: BTreeMap<&'static str, u64>,
}

fn killed(env: &TestEnv, program: &Program) -> Outcome {
    env.require_root();
    for command in program.commands {
        env.require_command(command);
    }
    let refit = PathBuf::from(env.path("refit"));
    fs::copy(refit_path(), &refit).expect("the directory is ours");
    let mut killer = Killer {
        env,
        program,
        refit,
        random: Random::of_now(),
        active: None,
        killed: BTreeMap::new(),
    };
    let wanted = kills_wanted() / 4;
    let labs = wanted / 50;
    killer.run_to_its_end("prepare");
    let mut round = 0;
    while killer.sum() < wanted - labs {
        round += 1;
        killer.round(round, (wanted / 4).clamp(1, MOST_IN_A_ROUND));
    }
    let (acknowledged, found) = (killer.rows("acknowledged"), killer.found());
    env.subdir("lab");
    for _ in 0..labs {
        killer.kill_lab();
    }
    let kinds: Vec<String> = killer
        .killed
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    println!(
        "counted: {}: killed {}; {} rows acknowledged, {} found",
        program.script.trim_end_matches(".sh"),
        kinds.join(", "),
        acknowledged.len(),
        found.len()
    );
    assert!(!acknowledged.is_empty());
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|row| !found.contains(*row))
        .collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    assert_eq!(acknowledged.len(), found.len());
    // It takes long.
    if labs > 0 {
        killer.expect_no_lab();
    }
    Outcome::Pass
}

impl Killer<'_> {
    fn sum(&self) -> u64 {
        self.killed.values().sum()
    }

    /// A function of the script.
    fn shell(&self, words: &str) -> Vec<String> {
        let script = source_dir()
            .join("tests/src/kills")
            .join(self.program.script);
        let line = format!(
            ". {}; cd {}; {words}",
            script.display(),
            self.env.dir().display()
        );
        ["sh", "-ec", &line].map(str::to_owned).to_vec()
    }

    fn command(&self, words: &str) -> Command {
        let words = self.shell(words);
        let mut command = self.env.command(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command
    }

    fn run_to_its_end(&self, words: &str) -> String {
        let output = self.command(words).output().expect("sh starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{words}: {} {errors}",
            output.status
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The program once beneath refit, whose processes are killed meanwhile, at least so often.
    fn round(&mut self, round: u64, wanted: u64) {
        let enough = self.env.path("enough");
        let _ = fs::remove_file(&enough);
        let load = format!("load {round}");
        let beneath = if self.program.is_server {
            "serve"
        } else {
            &load
        };
        let mut refit = Command::new(&self.refit);
        refit.current_dir(self.env.dir()).stdin(Stdio::null());
        // The emulated disk holds each call for a while; without it opens with O_SYNC are the opener's.
        let setting = ["disk=300us", "sync=off"][usize::try_from(round % 2).expect("0 or 1")];
        refit.args(["run", "--backend", "seccomp", setting, "--"]);
        refit.args(self.shell(beneath));
        let acknowledged = || {
            let mut options = File::options();
            let file = options.create(true).append(true);
            file.open(self.env.path("acknowledged"))
                .expect("the directory is ours")
        };
        let messages = File::create(self.env.path("messages")).expect("the directory is ours");
        refit.stderr(messages);
        let mut works: Child;
        let mut run: Child;
        if self.program.is_server {
            run = refit.stdout(Stdio::null()).spawn().expect("refit starts");
            self.run_to_its_end("ready");
            let mut client = self.command(&load);
            works = client.stdout(acknowledged()).spawn().expect("sh starts");
        } else {
            // Its end is told by a pipe that all its processes hold: refit may be dead by then.
            let mut reader = Command::new("cat");
            works = reader
                .stdin(Stdio::piped())
                .stdout(acknowledged())
                .spawn()
                .expect("cat starts");
            let pipe = works.stdin.take().expect("it is piped");
            run = refit.stdout(pipe).spawn().expect("refit starts");
        }
        drop(refit);
        let refit_dies_after = self.random.below(wanted);
        let mut kills = 0;
        let status = loop {
            if let Some(status) = works.try_wait().expect("it is our child") {
                break status;
            }
            if !self.kill_one() {
                continue;
            }
            if kills == refit_dies_after {
                self.kill_refit(&mut run);
            }
            kills += 1;
            if kills == wanted {
                File::create(&enough).expect("the directory is ours");
            }
        };
        let messages = || fs::read_to_string(self.env.path("messages")).unwrap_or_default();
        assert!(status.success(), "round {round}: {status}: {}", messages());
        assert!(kills >= wanted, "round {round} ended early: {}", messages());
        if self.program.is_server {
            self.run_to_its_end("stop");
        }
        run.wait().expect("it is our child");
        wait_until("the guardian to end", || {
            named(&self.refit, "refit-guardian").is_empty()
        });
    }

    fn count(&mut self, kind: &'static str) {
        *self.killed.entry(kind).or_default() += 1;
    }

    fn kill_refit(&mut self, run: &mut Child) {
        if run.try_wait().expect("it is our child").is_none() {
            run.kill().expect("it is our child");
            self.count("refit");
        }
    }

    /// Kills one process of the guardian, if it is complete.
    fn kill_one(&mut self) -> bool {
        // Waits for nothing: it chooses the moment of the kill.
        sleep(Duration::from_micros(self.random.below(2000)));
        let Some(active) = self.active() else {
            return false;
        };
        let kind = ["active", "standby", "opener", "reader"]
            [usize::try_from(self.random.below(4)).expect("it is small")];
        let standby = standby(active);
        let victim = match kind {
            "opener" => short_lived(active, "refit-opener"),
            "reader" => short_lived(active, "refit-reader"),
            "active" => standby.map(|_| active),
            _ => standby,
        };
        let Some(victim) = victim else {
            return false;
        };
        sys::kill_hard(victim.cast_signed());
        // Or both of the guardian's would be killed before the one is replaced.
        let ended = sys::ended_within(victim, Duration::from_secs(20));
        assert!(ended.unwrap_or(true), "{kind} {victim} was not killed");
        if kind == "active" {
            self.active = standby;
        }
        self.count(kind);
        true
    }

    /// The guardian's process that answers: the one that was killed is replaced by its child. Looking at all processes
    /// each time would take longer than all else.
    fn active(&mut self) -> Option<u32> {
        if !self
            .active
            .is_some_and(|pid| is_alive(pid, "refit-guardian"))
        {
            let all = named(&self.refit, "refit-guardian");
            let is_parent =
                |pid: &u32| stat_field(*pid, PARENT).is_some_and(|parent| !all.contains(&parent));
            self.active = all.iter().copied().find(is_parent);
        }
        self.active
    }

    fn rows(&self, file: &str) -> Vec<String> {
        let text = fs::read_to_string(self.env.path(file)).expect("it was written");
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        rows.sort_unstable();
        rows
    }

    fn found(&self) -> std::collections::BTreeSet<String> {
        let text = self.run_to_its_end("found");
        text.lines().map(str::to_owned).collect()
    }
}
