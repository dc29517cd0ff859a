//! The ways in which refit can come beneath a program, as the conformance suite tries them.

use std::fs;

use serde_json::Value;

use crate::cells::{Answers, Program};
use crate::test_env::{TestEnv, expect_code};

/// One way, with settings.
pub struct Backend {
    /// As differences.toml has it.
    pub name: &'static str,
    /// `--backend` of `refit run`.
    option: &'static str,
    /// `DIRECTORY` is the one in which the program works.
    setting: &'static str,
    /// Needs the right to install a seccomp filter, and reaches every program.
    filters: bool,
}

pub const BACKENDS: &[Backend] = &[
    Backend {
        name: "preload off",
        option: "preload",
        setting: "sync=off",
        filters: false,
    },
    Backend {
        name: "preload on",
        option: "preload",
        setting: "sync=on",
        filters: false,
    },
    Backend {
        name: "preload exe off",
        option: "preload",
        setting: "sync@exe:cells=off",
        filters: false,
    },
    Backend {
        name: "preload path off",
        option: "preload",
        setting: "sync@DIRECTORY/=off",
        filters: false,
    },
    Backend {
        name: "auto off",
        option: "auto",
        setting: "sync=off",
        filters: true,
    },
    Backend {
        name: "auto exe off",
        option: "auto",
        setting: "sync@exe:cells=off",
        filters: true,
    },
    Backend {
        name: "auto path off",
        option: "auto",
        setting: "sync@DIRECTORY/=off",
        filters: true,
    },
    Backend {
        name: "auto disk",
        option: "auto",
        setting: "disk=200us",
        filters: true,
    },
    Backend {
        name: "seccomp off",
        option: "seccomp",
        setting: "sync=off",
        filters: true,
    },
    Backend {
        name: "seccomp on",
        option: "seccomp",
        setting: "sync=on",
        filters: true,
    },
];

/// One group's run under refit.
pub struct Run {
    pub answers: Answers,
    /// How many calls refit says it answered without the kernel.
    pub suppressed: u64,
    /// How many durable calls about a file reached a filesystem, by the witness; only root has one.
    pub durable: Option<u64>,
}

impl Backend {
    pub fn named(name: &str) -> &'static Self {
        let mut backends = BACKENDS.iter();
        backends
            .find(|backend| backend.name == name)
            .expect("the table names it")
    }

    /// The words for `refit run`.
    pub fn words(&self) -> String {
        format!("--backend {} {}", self.option, self.setting)
    }

    /// Whether the files decide, and not all of them are swapped.
    pub fn is_by_path(&self) -> bool {
        self.setting.contains('/')
    }

    /// Why it is not tried with this program here.
    pub fn why_not(&self, program: &Program) -> Option<&'static str> {
        (!self.filters && !program.preloadable).then_some("no preload reaches it")
    }

    /// Whether refit has to say of some calls that it answered them: a filter that answers by itself counts
    /// nothing.
    pub fn counts_suppressed(&self, program: &Program) -> bool {
        !self.is_on() && (program.preloadable || self.option == "seccomp")
    }

    /// Whether every call is real: refit only counts, or makes them wait.
    pub fn is_on(&self) -> bool {
        ["sync=on", "disk=200us"].contains(&self.setting)
    }

    /// What the program does on it. Fails the test where refit says anything.
    pub fn run(&self, env: &TestEnv, program: &Program, group: &str) -> Run {
        let place = self.name.replace(' ', "-");
        let words = program.words(env, group, &place);
        let json = env.path(&format!("{}-{group}-{place}.json", program.name));
        let mut args = vec!["run", "--quiet", "--json", &json, "--backend", self.option];
        let at_a_price = self.filters && !env.as_root();
        if at_a_price {
            args.push("--no-new-privs");
        }
        let setting = self.setting.replace("DIRECTORY", &words[2]);
        args.extend([setting.as_str(), "--"]);
        args.extend(words.iter().map(String::as_str));
        let output = env.refit(&args);
        expect_code(&output, 0);
        // The price is named even by a quiet refit.
        let messages = String::from_utf8_lossy(&output.stderr);
        let mut messages = messages
            .lines()
            .filter(|line| !at_a_price || !line.starts_with("refit: no_new"));
        assert_eq!(messages.next(), None, "{args:?}");
        let text = fs::read_to_string(&json).expect("refit wrote its report");
        let report: Value = serde_json::from_str(&text).expect("the report is JSON");
        let suppressed = suppressed(&report);
        if self.is_on() {
            assert_eq!(suppressed, 0, "{args:?}: {report:#}");
        }
        Run {
            answers: Answers::parse(&output.stdout),
            suppressed,
            durable: durable(&report["witness"]["seen"]),
        }
    }
}

/// How many calls refit says it answered without the kernel.
fn suppressed(report: &Value) -> u64 {
    let totals = report["totals"].as_object().expect("a report has totals");
    totals
        .values()
        .filter_map(|counts| counts["suppressed"].as_u64())
        .sum()
}

/// Without those of a whole filesystem: sync(2) makes one for each that the machine happens to have.
fn durable(seen: &Value) -> Option<u64> {
    let callers = seen["callers"].as_array()?;
    assert_eq!(seen["lost"], 0, "the witness lost some: {seen:#}");
    let events = callers
        .iter()
        .filter_map(|caller| caller["events"].as_object());
    let of_files = events
        .flatten()
        .filter(|(event, _)| !event.ends_with("_sync_fs"));
    Some(of_files.filter_map(|(_, count)| count.as_u64()).sum())
}
