//! Follows the processes of a run, and answers when it has ended.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use refit_meter::Frame;
use refit_session::file_events::{FileFacts, FileId, FileRing, Operation};
use sha2::{Digest, Sha256};

use crate::finding::{DurabilityReport, Finding};
use crate::ignored::Ignored;
use crate::model::{Group, Judged, Model};
use crate::stack_table::StackTable;

/// An event that was begun is waited for so long: its process may have been killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads the events of a run.
pub struct Reader {
    ring: FileRing,
    stacks: StackTable,
    model: Model,
    waiting: Option<(u64, Instant)>,
}

impl Reader {
    /// A reader of the ring of a run that has not begun.
    #[must_use]
    pub fn new(ring: FileRing, ignored: Ignored) -> Reader {
        Reader {
            ring,
            stacks: StackTable::new(),
            model: Model::new(ignored),
            waiting: None,
        }
    }

    /// Takes what came since the last time. Returns whether there was something.
    pub fn tick(&mut self) -> bool {
        let has_some = self.take(false);
        match (self.ring.awaited(), self.waiting) {
            (None, _) => self.waiting = None,
            (Some(number), Some((before, since))) if number == before => {
                if since.elapsed() > PATIENCE {
                    self.ring.pass_over();
                    self.waiting = None;
                }
            }
            (Some(number), _) => self.waiting = Some((number, Instant::now())),
        }
        has_some
    }

    fn take(&mut self, is_last: bool) -> bool {
        let events = self.ring.take(is_last);
        for event in &events {
            let place = match event.operation {
                Operation::Image => {
                    self.stacks.image(event);
                    None
                }
                _ => self.stacks.of(event),
            };
            self.model.take(event, place);
        }
        !events.is_empty()
    }

    /// The run has ended. That is taken for an acknowledgement: see [`DurabilityReport::leave_out_exit`].
    #[must_use]
    pub fn finish(mut self) -> DurabilityReport {
        while self.take(true) {}
        let Reader {
            ring,
            mut stacks,
            model,
            ..
        } = self;
        let judgement = model.finish(facts_of);
        let mut findings: Vec<Finding> = Vec::new();
        let mut by_fingerprint: BTreeMap<String, usize> = BTreeMap::new();
        for group in judgement.groups() {
            let finding = finding(group, &mut stacks);
            // Two images of one executable have the same places.
            match by_fingerprint.get(&finding.fingerprint) {
                Some(at) => {
                    let known = &mut findings[*at];
                    known.count += finding.count;
                    known.paths += finding.paths;
                }
                None => {
                    by_fingerprint.insert(finding.fingerprint.clone(), findings.len());
                    findings.push(finding);
                }
            }
        }
        DurabilityReport {
            findings,
            events: judgement.counts.events,
            lost: ring.lost(),
            programs: ring.images(),
            syncs: judgement.counts.syncs,
            idle_syncs: judgement.counts.idle_syncs,
            unnamed_syncs: judgement.unnamed_syncs,
            removed_syncs: judgement.removed_syncs.clone(),
            unknown: judgement.unknown.iter().cloned().collect(),
            volatile: judgement.volatile.len() as u64,
            ignored: judgement.ignored.len() as u64,
        }
    }
}

fn finding(group: &Group, stacks: &mut StackTable) -> Finding {
    let first = &group.first;
    let at = stacks.frames(first.place);
    let executable = stacks.executable(first.image).to_owned();
    let fingerprint = fingerprint(first, &executable, &at);
    let written_at: Vec<Frame> = stacks.frames(first.written);
    Finding {
        rule: first.rule,
        level: first.level,
        circumstance: first.circumstance.clone(),
        acknowledged: first.acknowledged,
        path: first.path.clone(),
        file_system: group.file_system.clone(),
        executable,
        count: group.count,
        paths: group.paths.len() as u64,
        shown_on: first
            .circumstance
            .shown_on()
            .map(|shown| shown.iter().map(|name| (*name).to_owned()).collect()),
        written_at: match written_at == at {
            true => Vec::new(),
            false => written_at,
        },
        at,
        fingerprint,
        is_known: false,
    }
}

/// Functions by which two places are told apart, the innermost first.
const MOST_COMPARED: usize = 5;

/// 16 hexadecimal digits that stay the same when lines move.
fn fingerprint(judged: &Judged, executable: &str, at: &[Frame]) -> String {
    let mut text = format!(
        "{}\n{}\n{:?}\n{executable}\n",
        judged.rule.name(),
        judged.circumstance_name(),
        judged.acknowledged
    );
    // Of an interpreter the innermost function is compared, and those of the program that it runs.
    let is_script = at.iter().any(|frame| frame.is_script);
    let compared = at.iter().rev().enumerate();
    let compared = compared.filter(|(n, frame)| *n == 0 || frame.is_script == is_script);
    for (_, frame) in compared.take(MOST_COMPARED) {
        text += &format!("{}\n{:?}\n", frame.function, frame.file);
    }
    if at.is_empty() {
        text += parent_of(&judged.path);
    }
    let digest = Sha256::digest(text.as_bytes());
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// What a path leads to.
fn facts_of(path: &str) -> Option<FileFacts> {
    let about = fs::symlink_metadata(path).ok()?;
    let (seconds, nanoseconds) = (about.mtime(), about.mtime_nsec());
    Some(FileFacts {
        id: FileId {
            device: about.dev(),
            inode: about.ino(),
        },
        size: about.size(),
        changed_ns: seconds
            .unsigned_abs()
            .wrapping_mul(1_000_000_000)
            .wrapping_add(nanoseconds.unsigned_abs()),
        links: u32::try_from(about.nlink()).unwrap_or(u32::MAX),
        mode: about.mode(),
    })
}
