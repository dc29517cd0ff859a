//! recipe.toml as it is written.
//!
//! The comments of the fields are the descriptions in docs/recipe.schema.json. What ends in
//! "(code)" is checked by refit only: a schema cannot express it.

mod conf;
mod load;
mod open;
#[cfg(feature = "schema")]
mod schema;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use conf::{Conf, ConfEntry};
pub use load::LoadKnob;
pub use open::OpenEntry;
#[cfg(feature = "schema")]
pub use schema::schema;

use crate::metrics::{Direction, LoadUnit};
use crate::quantities::{Size, Time};
use crate::records::SeriesRecord;

/// recipe.toml in a recipe's folder. docs/recipes.md describes how it is run. What ends in (code)
/// is checked by refit only.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(title = "refit recipe"))]
pub struct RecipeFile {
    /// the name of the folder
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^[a-z0-9-]+$")))]
    pub name: String,
    /// a recipe that refit carries: its files stand beside those of the folder, which come first where both have one
    pub scripts: Option<String>,
    /// what the recipe is to answer
    pub question: Text,
    /// what was measured, and on which machine
    pub answer: Option<Text>,
    /// what the recipe needs to be installed: names of this distribution's packages, or purposes (`refit help packages`)
    #[serde(default)]
    pub packages: Vec<String>,
    /// the metric that the verdict is about; default rate; a metric of load.metrics, or one of
    /// refit's own that the runs have (code)
    pub main: Option<String>,
    /// how long a comparison may take when --budget is not given
    pub budget: Option<Time>,
    /// the service of a machine that the recipe stands for, as systemctl knows it: what
    /// `refit plan --from RESULT` changes
    #[serde(rename = "applies-to")]
    pub applies_to: Option<String>,
    /// a shell command that ends with 0 where the real service does its work: `refit plan --from RESULT`
    /// takes it as --health
    pub health: Option<String>,
    /// where the question comes from
    pub note: Option<Note>,
    /// what has to be installed
    #[serde(default)]
    pub needs: Needs,
    /// a private instance of a server
    #[serde(default)]
    pub service: Service,
    /// what is done to the service, or the program itself
    pub load: Load,
    /// metrics to be read side by side: a table in every report, and with `at` a curve in the
    /// picture
    #[serde(default)]
    pub series: Vec<SeriesRecord>,
    /// what the result has to be
    pub check: Check,
    /// exact answers, without statistics
    pub table: Option<Table>,
    /// what the program acknowledges, and how to find it again after a power cut: for
    /// `refit crash NAME`
    pub promise: Option<Promise>,
    /// knobs of the configuration, by name: conf.NAME=VALUE
    #[serde(default)]
    pub conf: BTreeMap<String, Conf>,
    /// what `refit compare NAME` tries; settings that this refit does not know are unavailable,
    /// which is not an error
    #[serde(default, rename = "variant")]
    pub variants: Vec<VariantEntry>,
}

/// a text in two languages
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// English
    pub en: String,
    /// Japanese
    pub ja: Option<String>,
}

/// what an operator once wrote
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// its subject and its date
    pub title: String,
    /// what was seen then
    pub then: String,
}

/// what has to be installed
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// the recipe cannot run as another user than root
    #[serde(default)]
    pub root: bool,
    /// the recipe mounts, in a mount namespace of its own (unshare --mount)
    #[serde(default)]
    pub mounts: bool,
    /// the service or its load talks to other machines: where root runs it, it has no network of its own
    #[serde(default)]
    pub network: bool,
    /// programs on the PATH, to which /usr/sbin and /sbin are added
    #[serde(default)]
    pub commands: Vec<String>,
    /// absolute paths; globs work
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(inner(regex(pattern = r"^/"))))]
    pub files: Vec<String>,
}

/// a private instance of a server
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(extend("dependentRequired" = {
    "start": ["ready"],
    "ready": ["start"],
    "keep": ["start"],
    "stop": ["start"],
    "ready-timeout": ["start"],
    "stop-timeout": ["start"],
})))]
pub struct Service {
    /// names of free ports on 127.0.0.1: $REFIT_PORT_NAME
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(inner(regex(pattern = r"^[a-z0-9_]+$"))))]
    pub ports: Vec<String>,
    /// the user that every command runs as when refit runs as root. Where a mount namespace can be made, an account of
    /// that name to which nothing on the machine belongs
    pub user: Option<String>,
    /// other accounts that its daemons change to: as `user`
    #[serde(default)]
    pub accounts: Vec<String>,
    /// its daemons run as other users too, and have to enter the instance's directories, which are closed to all but
    /// `user` otherwise
    #[serde(default)]
    pub others_enter: bool,
    /// one instance and one start of it for all runs; each value of conf has to be a command then
    /// (code)
    pub keep: Option<bool>,
    /// a command that makes the instance; nothing is swapped beneath it
    pub setup: Option<String>,
    /// the command that is swapped beneath; without it the load is the program
    pub start: Option<String>,
    /// when the service is ready
    pub ready: Option<ReadyEntry>,
    /// a command that ends the service; default: SIGTERM to the process that was started
    pub stop: Option<String>,
    /// how long to wait for `ready`; default 60s
    pub ready_timeout: Option<Time>,
    /// how long to wait for the service's end; default 60s
    pub stop_timeout: Option<Time>,
}

/// when the service is ready: exactly one of tcp, unix, log and command
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(extend(
    "oneOf" = [
        { "required": ["tcp"] },
        { "required": ["unix"] },
        { "required": ["log"] },
        { "required": ["command"] },
    ],
    "dependentRequired" = { "file": ["log"] },
)))]
pub struct ReadyEntry {
    /// a process listens on this port, one of service.ports (code)
    pub tcp: Option<String>,
    /// a process listens on this socket
    pub unix: Option<String>,
    /// a line of the service's output, or of `file`, matches this regular expression (code)
    pub log: Option<String>,
    /// a file in the instance's directory
    pub file: Option<String>,
    /// a command that succeeds
    pub command: Option<String>,
}

/// what is done to the service, or the program itself
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(extend(
    "if" = { "required": ["brief"] },
    "then" = { "properties": { "operations": { "type": "integer" } } },
)))]
pub struct Load {
    /// a command before the measured window
    pub warmup: Option<String>,
    /// the command that is the measured window
    pub command: String,
    /// a command after the measured window: it waits until the service has done everything
    pub drain: Option<String>,
    /// how many operations: a number, or where the output of command prints it
    pub operations: Operations,
    /// where the number of operations done so far is found while the load runs: `refit compare --heap` sets memory
    /// against it
    pub progress: Option<ProgressEntry>,
    /// the number of operations in `refit recipes check`
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub brief: Option<u64>,
    /// one operation, in the singular
    pub unit: String,
    /// what can be set about it, by name: load.NAME=VALUE
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = { "pattern": "^[a-z][a-z0-9_]*$" })))]
    pub knobs: BTreeMap<String, LoadKnob>,
    /// requests of refit's own in place of command, each at its time: load.rate=NUMBER/s. The load has to be one on a
    /// service (code)
    pub open: Option<OpenEntry>,
    /// for each of warmup, command and drain; default 60s
    pub timeout: Option<Time>,
    /// metrics in the output of command, by name; a name is none of refit's own
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(extend("propertyNames" = { "not": { "enum": crate::metrics::all_built_in() } })))]
    pub metrics: BTreeMap<String, MetricEntry>,
}

/// how many operations a load does
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(
    untagged,
    expecting = "operations: a number, or { regex = \"(\\\\d+) done\" }"
)]
pub enum Operations {
    /// a number, which is $REFIT_OPERATIONS
    Number(#[cfg_attr(feature = "schema", schemars(range(min = 1)))] u64),
    /// the output of the load prints it
    Read(OperationsRegex),
}

/// where the output prints the number of operations
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OperationsRegex {
    /// a regular expression, ^ and $ at each line; its first group is the number (code)
    pub regex: String,
}

/// where the number of operations done so far is found
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ProgressEntry {
    /// a regular expression, ^ and $ at each line; the first group of its last match is the number (code)
    pub regex: String,
    /// a file in the instance's directory; default: the output of the load
    pub file: Option<String>,
}

/// one metric of the load: regex or pointer
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(extend("oneOf" = [{ "required": ["regex"] }, { "required": ["pointer"] }])))]
pub struct MetricEntry {
    /// a regular expression, ^ and $ at each line; its first group is the value (code)
    pub regex: Option<String>,
    /// a JSON Pointer (RFC 6901) into an output that is JSON
    #[cfg_attr(feature = "schema", schemars(regex(pattern = r"^/")))]
    pub pointer: Option<String>,
    /// the unit of the value
    pub unit: LoadUnit,
    /// which values are the better ones
    #[serde(default)]
    pub better: Direction,
    /// what the metric is
    #[serde(default)]
    pub about: String,
}

/// what the result has to be
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// a command that exits with 0 and prints the same in every run of every variant
    pub command: String,
}

/// what the program acknowledges, and how to find it again after a power cut
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(extend("oneOf" = [{ "required": ["ack"] }, { "required": ["ack-regex"] }])))]
pub struct Promise {
    /// the program, in one sentence
    pub about: String,
    /// what counts as acknowledged, in one sentence
    pub acknowledged: String,
    /// what only the promise needs to be installed, as `packages` above
    #[serde(default)]
    pub packages: Vec<String>,
    /// what only the promise needs to be installed
    #[serde(default)]
    pub needs: Needs,
    /// a command in the instance after service.setup and the variant's conf, before the program
    /// starts
    pub prepare: Option<String>,
    /// the load, or without a service the program, where load.command does not acknowledge; it may
    /// go on forever
    pub load: Option<String>,
    /// the source of acknowledgements, as --ack of `refit crash`; $REFIT_PORT_NAME is replaced
    pub ack: Option<String>,
    /// lines of the output that match, as --ack-regex of `refit crash` (code)
    pub ack_regex: Option<String>,
    /// how to find what is there after a cut, as --check of `refit crash`; paths are below
    /// $REFIT_DIR
    pub check: String,
    /// the size of the recorded disk; default 1G
    pub size: Option<Size>,
    /// how long the run lasts, unless it ends earlier or --for is given
    pub length: Time,
    /// cuts of each variant where --cuts is not given; default 300
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub cuts: Option<usize>,
    /// settings for the baseline with which `make crash-night` repeats everything
    #[serde(default)]
    pub also: Vec<String>,
    /// while files are flushed now and then, something acknowledged this long before is lost in
    /// races only: `make crash-night` repeats the run until one was lost
    pub race: Option<Time>,
}

impl Promise {
    /// Its commands, with their keys. A check of refit's own is none.
    pub(crate) fn commands(&self) -> impl Iterator<Item = (String, &str)> {
        let all = [
            ("prepare", self.prepare.as_deref()),
            ("load", self.load.as_deref()),
            ("check", Some(&*self.check)),
        ];
        all.into_iter()
            .filter_map(|(key, command)| Some((format!("promise.{key}"), command?)))
    }
}

/// exact answers, without statistics
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// a command that prints lines QUESTION<TAB>ANSWER, the same in every run of a variant
    pub command: String,
    /// the answers are the whole result; there is no `main` then (code)
    #[serde(default)]
    pub only: bool,
    /// a file of the folder with the note's answers: lines VARIANT<TAB>QUESTION<TAB>ANSWER (code)
    pub then: Option<String>,
}

/// a variant worth trying
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VariantEntry {
    /// settings as on the command line
    pub settings: String,
    /// why the variant is worth trying
    pub why: String,
}
