//! What is worth trying, by what one run showed: no setting is tried only because it is on a list.

use std::path::Path;

use refit_knobs::{Class, Setting, Variant};
use refit_recipe::{Available, Recipe, allocators, available};
use refit_run::metric::Unit;
use refit_run::{class_of, grouped};

use super::evidence::Evidence;
use super::record::ProposalRecord;
use super::risk::Risk;
use crate::request::Request;

/// A swap that could gain less than this share is not tried.
const WORTH: f64 = 0.05;

/// What is tuned: time waits and allocates, memory is the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// A duration, a rate, a count.
    Time,
    /// Bytes.
    Memory,
}

impl Aim {
    /// Of a metric in this unit.
    pub fn of(unit: Unit) -> Aim {
        match unit {
            Unit::Bytes => Aim::Memory,
            _ => Aim::Time,
        }
    }
}

/// What a kind of setting has for it, or why it has nothing.
type Reason = Result<String, String>;

/// The variants that this evidence makes worth trying, and those that it does not; the accepted ones first in the
/// order of what they could gain: waits before the heap.
pub fn proposals(
    request: &Request,
    evidence: &Evidence,
    aim: Aim,
    accepted: Risk,
) -> Vec<ProposalRecord> {
    let recipe = request.subject.recipe();
    let reasons = Reasons::of(evidence, aim);
    let mut all: Vec<ProposalRecord> = Vec::new();
    let mut add = |variant: &Variant, why: Option<String>| {
        let name = variant.to_string();
        if all.iter().any(|one| one.variant == name) {
            return;
        }
        let risk = risk(variant, recipe);
        let (why, left_out) = match reasons.of_variant(variant, recipe) {
            Ok(reason) => (why.unwrap_or(reason), None),
            Err(reason) => (why.unwrap_or_default(), Some(reason)),
        };
        let not_accepted = || (!risk.is_within(accepted)).then(|| format!("not accepted: {risk}"));
        all.push(ProposalRecord {
            variant: name,
            risk,
            why,
            left_out: left_out.or_else(not_accepted),
        });
    };
    let directory = request.allocator_dir.as_deref();
    let declared = recipe.map(|recipe| (recipe, available(recipe, &request.with, directory)));
    if let Some((recipe, Available { variants, .. })) = &declared {
        for variant in variants {
            add(variant, why(recipe, variant));
        }
    }
    let known = ["sync=off", "odirect=off"];
    for variant in known
        .into_iter()
        .filter_map(|word| Variant::parse(word).ok())
    {
        // A server that is kept for all runs has no other beneath it.
        if !recipe.is_some_and(Recipe::keeps_service) {
            add(&variant, None);
        }
    }
    if !recipe.is_some_and(Recipe::keeps_service) {
        for variant in allocators_for(request, evidence, aim, directory) {
            add(&variant, None);
        }
    }
    let unavailable = declared.into_iter().flat_map(|(_, all)| all.unavailable);
    all.extend(unavailable.map(|one| ProposalRecord {
        variant: one.settings,
        risk: Risk::NONE,
        why: String::new(),
        left_out: Some(format!(
            "it cannot be tried here: {}",
            first_line(&one.reason)
        )),
    }));
    all
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// The allocators of this machine; their options, which decide how much freed memory they keep, where memory is the aim.
fn allocators_for(
    request: &Request,
    evidence: &Evidence,
    aim: Aim,
    directory: Option<&Path>,
) -> Vec<Variant> {
    let one_thread = evidence.threads.is_none_or(|threads| threads < 2);
    let all = allocators(&request.with, directory).variants.into_iter();
    all.filter(|variant| {
        let name = variant.to_string();
        let has_options = name.contains(':');
        // One thread has one arena.
        let is_idle = name.contains("arena_max") && one_thread;
        match aim {
            Aim::Time => !has_options,
            Aim::Memory => !is_idle,
        }
    })
    .collect()
}

/// What a variant of this risks.
pub fn risk(variant: &Variant, recipe: Option<&Recipe>) -> Risk {
    let class = |setting: &Setting| {
        recipe.map_or_else(|| class_of(setting), |recipe| recipe.class_of(setting))
    };
    Risk::of(variant.settings().0.iter().map(class))
}

fn why(recipe: &Recipe, variant: &Variant) -> Option<String> {
    let name = variant.to_string();
    recipe
        .why()
        .get(&name)
        .cloned()
        .filter(|why| !why.is_empty())
}

struct Reasons {
    waits: Reason,
    direct: Reason,
    heap: Reason,
    aim: Aim,
}

impl Reasons {
    fn of(evidence: &Evidence, aim: Aim) -> Reasons {
        Reasons {
            waits: waits(evidence),
            direct: match evidence.direct_opens {
                0 => Err("no file was opened with O_DIRECT".to_owned()),
                1 => Ok("a file was opened with O_DIRECT".to_owned()),
                opens => Ok(format!("{opens} files were opened with O_DIRECT")),
            },
            heap: heap(evidence, aim),
            aim,
        }
    }

    /// A variant has to have a reason for each of its settings: the first that is missing counts.
    fn of_variant(&self, variant: &Variant, recipe: Option<&Recipe>) -> Reason {
        let settings = variant.settings().0.iter();
        let reasons = settings.map(|setting| self.of_setting(setting, recipe));
        let reasons: Vec<String> = reasons.collect::<Result<_, _>>()?;
        Ok(reasons
            .into_iter()
            .filter(|reason| !reason.is_empty())
            .collect::<Vec<_>>()
            .join("; "))
    }

    fn of_setting(&self, setting: &Setting, recipe: Option<&Recipe>) -> Reason {
        match (setting.knob().name, self.aim) {
            ("sync" | "odirect", Aim::Memory) => Err("it takes no memory away".to_owned()),
            ("sync", Aim::Time) => self.waits.clone(),
            ("odirect", Aim::Time) => self.direct.clone(),
            ("malloc" | "thp", _) => self.heap.clone(),
            ("disk", _) => Err("an emulated disk gains nothing".to_owned()),
            ("conf", Aim::Time) => {
                let class = recipe.map_or(Class::Safe, |recipe| recipe.class_of(setting));
                // All that such a setting can gain is waiting.
                if class.risks_data() {
                    self.waits.clone()
                } else {
                    Ok(String::new())
                }
            }
            _ => Ok(String::new()),
        }
    }
}

fn waits(evidence: &Evidence) -> Reason {
    let Some((share, syncs)) = evidence.wait_share.zip(evidence.syncs) else {
        return match evidence.witnessed {
            Some(0) => Err("no durable call reached a filesystem".to_owned()),
            _ => Ok("how long its sync calls wait is not known".to_owned()),
        };
    };
    let told = format!(
        "{} sync calls waited {} of the time",
        grouped(syncs),
        percent(share)
    );
    if share >= WORTH { Ok(told) } else { Err(told) }
}

fn heap(evidence: &Evidence, aim: Aim) -> Reason {
    let (share, told) = match aim {
        Aim::Memory => {
            let threads = evidence.threads.unwrap_or(1);
            let share = evidence.heap_share;
            (
                share,
                share.map(|share| {
                    format!(
                        "the heap is {} of the memory; {} threads",
                        percent(share),
                        grouped(threads)
                    )
                }),
            )
        }
        Aim::Time => {
            let share = evidence.blocks_share;
            let told = share.zip(evidence.blocks).map(|(share, blocks)| {
                format!(
                    "malloc gave out {} blocks, about {} of the processor time",
                    grouped(blocks),
                    percent(share)
                )
            });
            (share, told)
        }
    };
    match (share, told) {
        (Some(share), Some(told)) if share >= WORTH => Ok(told),
        (_, Some(told)) => Err(told),
        _ => Err("its heap could not be counted".to_owned()),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence() -> Evidence {
        Evidence {
            syncs: Some(12),
            wait_share: Some(0.8),
            blocks: Some(1000),
            blocks_share: Some(0.01),
            heap_share: Some(0.5),
            threads: Some(1),
            ..Evidence::default()
        }
    }

    fn found(evidence: &Evidence, aim: Aim, word: &str) -> Reason {
        Reasons::of(evidence, aim).of_variant(&Variant::parse(word).unwrap(), None)
    }

    #[test]
    fn a_setting_is_tried_for_what_a_run_showed() {
        let shown = evidence();
        let idle = Evidence {
            wait_share: Some(0.049),
            direct_opens: 2,
            blocks_share: Some(0.05),
            heap_share: Some(0.01),
            ..evidence()
        };
        let unknown = Evidence {
            syncs: None,
            wait_share: None,
            blocks_share: None,
            ..evidence()
        };
        for (evidence, aim, word, expected) in [
            (&shown, Aim::Time, "sync=off", true),
            (&idle, Aim::Time, "sync=off", false),
            (&unknown, Aim::Time, "sync=off", true),
            (&shown, Aim::Memory, "sync=off", false),
            (&shown, Aim::Time, "odirect=off", false),
            (&idle, Aim::Time, "odirect=off", true),
            (&shown, Aim::Time, "malloc=jemalloc", false),
            (&idle, Aim::Time, "malloc=jemalloc", true),
            (&unknown, Aim::Time, "malloc=jemalloc", false),
            (&shown, Aim::Memory, "malloc=jemalloc", true),
            (&idle, Aim::Memory, "malloc=jemalloc", false),
            (&shown, Aim::Time, "sync=off+malloc=jemalloc", false),
            (&shown, Aim::Time, "env.A=1", true),
            (&shown, Aim::Time, "disk=4ms", false),
        ] {
            let reason = found(evidence, aim, word);
            assert_eq!(reason.is_ok(), expected, "{word} {aim:?} {reason:?}");
        }
        assert_eq!(
            found(&shown, Aim::Time, "sync=off").unwrap(),
            "12 sync calls waited 80 % of the time"
        );
    }
}
