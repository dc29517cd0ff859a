//! Small recipes, written by tests into their own directory, and refit working on them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

use crate::compared::{effect, messages, printed, variant};
use crate::remains::{base, nothing_left, starts};
use crate::schema::expect_valid;
use crate::test_env::{TestEnv, described, expect_code, refit_path};

/// A folder with a recipe.toml. Keys stand there as `service.start`, in no table.
#[derive(Clone)]
pub struct RecipeFolder<'a> {
    env: &'a TestEnv,
    name: String,
    keys: BTreeMap<String, String>,
}

impl<'a> RecipeFolder<'a> {
    /// Counts to a number; no server.
    pub fn command(env: &'a TestEnv, name: &str) -> Self {
        let folder = RecipeFolder {
            env,
            name: name.to_owned(),
            keys: BTreeMap::new(),
        };
        folder
            .text("name", name)
            .text("question.en", "Does it work?")
            .text("load.command", "seq $REFIT_OPERATIONS >numbers")
            .set("load.operations", "10")
            .text("load.unit", "number")
            .text("check.command", "wc -l <numbers")
            .variants(&["env.A=1"])
    }

    /// tests/programs/line_service.c: three lines before the window, ten in it. What each start tells goes to
    /// `starts.NAME` in the test's directory.
    pub fn service(env: &'a TestEnv, name: &str) -> Self {
        let program = env.program("line_service");
        let note = format!(
            "echo $$ $REFIT_DIR $REFIT_TMPFS >>{}",
            env.path(&starts(name))
        );
        RecipeFolder::command(env, name)
            .set("service.ports", "['line']")
            .text(
                "service.start",
                &format!("{note}; exec {program} serve $REFIT_PORT_LINE lines"),
            )
            .set("service.ready", "{ tcp = 'line' }")
            .text("load.warmup", &format!("{program} load $REFIT_PORT_LINE 3"))
            .text(
                "load.command",
                &format!("{program} load $REFIT_PORT_LINE $REFIT_OPERATIONS"),
            )
            .text("check.command", "wc -l <lines")
    }

    /// A key with a value as TOML writes it.
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.keys.insert(key.to_owned(), value.to_owned());
        self
    }

    /// A key with a text.
    pub fn text(self, key: &str, value: &str) -> Self {
        self.set(key, &format!("'''{value}'''"))
    }

    pub fn variants(self, settings: &[&str]) -> Self {
        let entries = settings.iter();
        let entries: Vec<String> = entries
            .map(|settings| format!("{{ settings = '{settings}', why = 'to see' }}"))
            .collect();
        self.set("variant", &format!("[{}]", entries.join(", ")))
    }

    /// Something before the words that start the server.
    pub fn starting_with(self, script: &str) -> Self {
        let start = self.keys["service.start"].trim_matches('\'').to_owned();
        self.text("service.start", &format!("{script}; {start}"))
    }

    /// As recipe.toml.
    pub fn toml(&self) -> String {
        self.keys
            .iter()
            .fold(String::new(), |mut text, (key, value)| {
                let _ = writeln!(text, "{key} = {value}");
                text
            })
    }

    /// Writes the folder, or changes it; as it is named on a command line.
    pub fn write(&self) -> String {
        let dir = self.env.path(&self.name);
        fs::create_dir_all(&dir).expect("the test's directory is ours");
        fs::write(format!("{dir}/recipe.toml"), self.toml()).expect("likewise");
        format!("./{}", self.name)
    }

    /// With a variant whose instances hold a file `broken`, and one that works.
    pub fn with_broken(self) -> Self {
        self.set(
            "conf.broken.yes",
            "{ class = 'safe', command = 'touch broken', inverse = 'rm broken' }",
        )
        .variants(&["conf.broken=yes", "sync=off"])
    }

    /// In a comparison the broken variant is out for this reason, and the other has its verdict.
    #[track_caller]
    pub fn expect_broken_is_out(&self, reason: &str) {
        let (output, result) = self.compare(&["--rounds", "14"]);
        expect_code(&output, 0);
        let out = variant(&result, "conf.broken=yes").1["disqualified"]["failed"].as_str();
        let out = without_numbers(out.expect("it is out"));
        assert!(out.contains(reason), "{reason} is not in: {out}");
        let shown = printed(&output);
        assert!(shown.contains("disqualified: conf.broken=yes: "), "{shown}");
        assert!(
            variant(&result, "sync=off").1["disqualified"].is_null(),
            "{shown}"
        );
        assert_eq!(
            effect(&result, "sync=off", "syncs")["verdict"],
            "less",
            "{shown}"
        );
    }

    /// The same as a check says it, with one run of each.
    #[track_caller]
    pub fn expect_broken_fails(&self, reason: &str) {
        let output = self.check();
        expect_code(&output, 1);
        let text = without_numbers(&printed(&output));
        let starts = ["ok ", "FAILED ", "ok "];
        let begin_so = text
            .lines()
            .zip(starts)
            .all(|(line, start)| line.starts_with(start));
        let named = text.contains(&format!(": conf.broken=yes: {reason}"));
        assert!(
            named && begin_so && text.lines().count() == 3,
            "{}",
            described(&output)
        );
        self.nothing_left();
    }

    /// Of comparisons and checks that have ended: no process, no directory, no cgroup.
    #[track_caller]
    pub fn nothing_left(&self) {
        nothing_left(self.env, &self.name);
    }

    /// `refit recipes check` of it.
    pub fn check(&self) -> Output {
        let (folder, base) = (self.write(), base(self.env));
        let args = ["recipes", "check", &folder, "--yes", "--dir", &base];
        finish(&mut refit(self.env, &args))
    }

    /// `refit compare` of it to its end, with its result; what it left behind is looked for.
    #[track_caller]
    pub fn compare(&self, options: &[&str]) -> (Output, Value) {
        let output = finish(&mut self.comparison(options));
        nothing_left(self.env, &self.name);
        let result = fs::read_to_string(self.env.path("result.json"))
            .unwrap_or_else(|error| panic!("no result, {error}: {}", described(&output)));
        let result = serde_json::from_str(&result).expect("it is JSON");
        expect_valid(&result);
        (output, result)
    }

    /// `refit compare` of it, to be started by the test.
    pub fn comparison(&self, options: &[&str]) -> Command {
        let (folder, base) = (self.write(), base(self.env));
        let args = ["compare", "--yes", "--json", "result.json", "--dir", &base];
        refit(self.env, &[&args, options, &[&folder]].concat())
    }

    /// `refit compare`, which has to fail before there is a result, and leaves nothing; what it printed on stderr.
    #[track_caller]
    pub fn refused(&self, options: &[&str]) -> String {
        let output = finish(&mut self.comparison(options));
        expect_code(&output, 2);
        assert!(output.stdout.is_empty(), "{}", described(&output));
        nothing_left(self.env, &self.name);
        messages(&output)
    }
}

/// Refit, which remembers in the test's directory what was agreed to: as root among mounts of its own, where
/// these can be had.
pub fn refit(env: &TestEnv, args: &[&str]) -> Command {
    let state = env.path("state");
    let _ = fs::create_dir(&state);
    let can_mount = env.as_root() && env.run(&["unshare", "-m", "true"]).status.success();
    let mut command = if can_mount {
        let script = "mkdir -p /var/lib/refit && mount --bind \"$0\" /var/lib/refit && exec \"$@\"";
        let mut unshare = env.command("unshare");
        unshare.args(["-m", "--", "sh", "-c", script, &state, &refit_path()]);
        unshare
    } else {
        env.command(&refit_path())
    };
    command.args(args).env("XDG_STATE_HOME", &state);
    command
}

pub fn finish(command: &mut Command) -> Output {
    command.output().expect("refit starts")
}

/// Ports as PORT, process numbers as PID.
fn without_numbers(text: &str) -> String {
    let words = text.split(' ').collect::<Vec<_>>();
    let named = words.iter().enumerate().map(|(at, word)| {
        let before = at.checked_sub(1).map_or("", |at| words[at]);
        let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
        match before {
            "(pid" => format!("PID{rest}"),
            "on" if rest.len() < word.len() => format!("PORT{rest}"),
            _ => (*word).to_owned(),
        }
    });
    named.collect::<Vec<_>>().join(" ")
}
