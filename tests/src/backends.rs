//! The ways in which refit can come beneath a program, as the conformance suite tries them.

use std::fs;

use serde_json::Value;

use crate::cells::{Answers, Program};
use crate::lab::{Lab, described, expect_code};

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

    /// Why it is not tried with this program here.
    pub fn why_not(&self, lab: &Lab, program: &Program) -> Option<&'static str> {
        if !self.filters && !program.preloadable {
            return Some("no preload reaches it");
        }
        if self.filters && !has_option(lab) {
            return Some("refit run has no such option");
        }
        (self.filters && !lab.as_root()).then_some("needs root")
    }

    /// Whether refit has to say of some calls that it answered them: a filter that answers by itself counts
    /// nothing.
    pub fn counts_suppressed(&self, program: &Program) -> bool {
        self.setting != "sync=on" && (program.preloadable || self.option == "seccomp")
    }

    /// What the program answers on it, and how many calls refit says it answered without the kernel. Fails the
    /// test where refit says anything else.
    pub fn answers(&self, lab: &Lab, program: &Program, group: &str) -> (Answers, u64) {
        let place = self.name.replace(' ', "-");
        let words = program.words(lab, group, &place);
        let json = lab.path(&format!("{}-{group}-{place}.json", program.name));
        let mut args = vec!["run", "--quiet", "--json", &json];
        if has_option(lab) {
            args.extend(["--backend", self.option]);
        }
        let setting = self.setting.replace("DIRECTORY", &words[2]);
        args.extend([setting.as_str(), "--"]);
        args.extend(words.iter().map(String::as_str));
        let output = lab.refit(&args);
        expect_code(&output, 0);
        assert!(output.stderr.is_empty(), "{args:?}: {}", described(&output));
        let text = fs::read_to_string(&json).expect("refit wrote its report");
        let report: Value = serde_json::from_str(&text).expect("the report is JSON");
        let suppressed = suppressed(&report);
        if self.setting == "sync=on" {
            assert_eq!(suppressed, 0, "{args:?}: {report:#}");
        }
        (Answers::parse(&output.stdout), suppressed)
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

/// Whether this refit can be told which backend to use.
fn has_option(lab: &Lab) -> bool {
    let help = lab.refit(&["run", "--help"]);
    String::from_utf8_lossy(&help.stdout).contains("--backend")
}
