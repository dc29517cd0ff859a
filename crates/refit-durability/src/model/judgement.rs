//! What was found, put together by place.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::file_systems::FileSystems;
use crate::finding::{AcknowledgedBy, Circumstance, Level, RemovedSyncs};
use crate::ignored::Ignored;
use crate::rule::Rule;
use crate::stack_table::StackId;

/// Paths of one place beyond this number are not told apart.
const MOST_PATHS: usize = 10_000;
/// Mapped files beyond this number are not named.
const MOST_UNKNOWN: usize = 100;

/// A rule that was broken once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The rule that was broken.
    pub rule: Rule,
    /// How much that weighs.
    pub level: Level,
    /// What was seen.
    pub circumstance: Circumstance,
    /// By what it was acknowledged, where the rule is about that.
    pub acknowledged: Option<AcknowledgedBy>,
    /// Path of the file or name.
    pub path: String,
    /// Device that the file lies on.
    pub device: u64,
    /// Exec'ed image that did it.
    pub image: u64,
    /// Where the call was made.
    pub place: Option<StackId>,
    /// Where the data was written.
    pub written: Option<StackId>,
}

impl Judged {
    /// The kind of circumstance, without what it holds.
    pub fn circumstance_name(&self) -> &'static str {
        match self.circumstance {
            Circumstance::RenamedFrom(_) => "renamed_from",
            Circumstance::Name(_) => "name",
            Circumstance::NameOfSynced(_) => "name_of_synced",
            Circumstance::OtherDirectorySynced(_) => "other_directory_synced",
            Circumstance::Written => "written",
            Circumstance::Truncated(_) => "truncated",
            Circumstance::ReplacedBy(_) => "replaced_by",
            Circumstance::SyncedLater(_) => "synced_later",
            Circumstance::Failed(_) => "failed",
            Circumstance::Retried(_) => "retried",
            Circumstance::NotCoveredBy(_) => "not_covered_by",
        }
    }
}

/// The same from one place.
#[derive(Clone, Debug)]
pub struct Group {
    /// The first one.
    pub first: Judged,
    /// Type of its file system.
    pub file_system: Option<String>,
    /// How often.
    pub count: u64,
    /// Of these paths.
    pub paths: HashSet<String>,
}

/// How much was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events.
    pub events: u64,
    /// Syncs.
    pub syncs: u64,
    /// Those that had nothing to write.
    pub idle_syncs: u64,
}

type Key = (
    Rule,
    &'static str,
    Option<AcknowledgedBy>,
    u64,
    Option<StackId>,
);

/// All that was found.
pub struct Judgement {
    /// How much was looked at.
    pub counts: Counts,
    groups: HashMap<Key, Group>,
    /// Files that were mapped, and not synced since.
    pub unknown: BTreeSet<String>,
    /// Files that no reboot outlives.
    pub volatile: HashSet<String>,
    /// Files that are left out.
    pub ignored: HashSet<String>,
    /// Syncs of files that had no name and got none.
    pub unnamed_syncs: u64,
    /// Syncs of files that the run made and removed again.
    pub removed_syncs: Vec<RemovedSyncs>,
    left_out: Ignored,
    file_systems: FileSystems,
}

impl Judgement {
    pub(super) fn new(left_out: Ignored, file_systems: FileSystems) -> Judgement {
        Judgement {
            counts: Counts::default(),
            groups: HashMap::new(),
            unknown: BTreeSet::new(),
            volatile: HashSet::new(),
            ignored: HashSet::new(),
            unnamed_syncs: 0,
            removed_syncs: Vec::new(),
            left_out,
            file_systems,
        }
    }

    /// Whether something is told of this file.
    pub(super) fn matters(&mut self, device: u64, path: &str) -> bool {
        let left_out = if self.left_out.covers(path) {
            &mut self.ignored
        } else if self.file_systems.is_volatile(device, path) {
            &mut self.volatile
        } else {
            return true;
        };
        if left_out.len() < MOST_PATHS {
            left_out.insert(path.to_owned());
        }
        false
    }

    pub(super) fn add(&mut self, judged: Judged) {
        if !self.matters(judged.device, &judged.path) {
            return;
        }
        let key = (
            judged.rule,
            judged.circumstance_name(),
            judged.acknowledged,
            judged.image,
            judged.place,
        );
        let file_system = self.file_systems.of(judged.device, &judged.path);
        let file_system = file_system.map(str::to_owned);
        let group = self.groups.entry(key).or_insert_with(|| Group {
            first: judged.clone(),
            file_system,
            count: 0,
            paths: HashSet::new(),
        });
        group.count += 1;
        group.first.level = group.first.level.min(judged.level);
        if group.paths.len() < MOST_PATHS {
            group.paths.insert(judged.path);
        }
    }

    pub(super) fn unknown(&mut self, device: u64, path: &str) {
        if self.unknown.len() < MOST_UNKNOWN && self.matters(device, path) {
            self.unknown.insert(path.to_owned());
        }
    }

    /// By level, rule and path.
    pub fn groups(&self) -> Vec<&Group> {
        let mut groups: Vec<&Group> = self.groups.values().collect();
        groups.sort_by(|a, b| {
            let key = |one: &Group| (one.first.level, one.first.rule, one.first.place);
            key(a)
                .cmp(&key(b))
                .then_with(|| a.first.path.cmp(&b.first.path))
        });
        groups
    }
}
