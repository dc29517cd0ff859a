//! Whether a program gets a seccomp filter when it starts, or the preload puts one
//! beneath what it cannot reach, when that is exec'ed: a filter costs every system
//! call of a process, and is beneath all that the process starts.

use refit_knobs::Launch;
use refit_session::{EventRing, POLICY_ANSWERED, POLICY_GUARDED, POLICY_NOTIFIED, Policy};

use crate::filter::{Filter, Syncs};
use crate::options::Options;
use crate::seccomp::{Begun, Plan, Refusal, Right, at_exec, right, wanted};
use crate::target::Target;

/// Where a filter goes.
pub(crate) enum PlannedFilter {
    /// Nothing needs one.
    Nothing,
    /// Beneath the first program, with a guardian.
    AtStart(Filter),
    /// Beneath what the preload cannot reach, when that is exec'ed.
    AtExec(Filter, Vec<u64>),
    /// No permission for that.
    Refused,
}

impl PlannedFilter {
    /// For these settings, and the file that the command runs, where there is one.
    pub fn of(launch: &Launch, options: &Options, target: Option<&Target>) -> PlannedFilter {
        let filter = wanted(launch, &options.reach).or(options.ground);
        let Some(filter) = filter.filter(|_| !options.bare) else {
            return PlannedFilter::Nothing;
        };
        // A comparison's other variants have one beneath everything.
        let elsewhere = options
            .ground
            .is_some_and(|ground| ground.syncs == Syncs::Ask);
        let later =
            at_exec(&filter).filter(|_| !elsewhere && target.is_none_or(Target::is_seen_whole));
        match later {
            None => PlannedFilter::AtStart(filter),
            Some(_) if right() == Right::None && !options.reach.no_new_privs => {
                PlannedFilter::Refused
            }
            Some(instructions) => PlannedFilter::AtExec(filter, instructions),
        }
    }

    /// Starts the guardian where there is to be one, and tells the policy.
    pub fn begin(
        &self,
        options: &Options,
        policy: &mut Policy,
        ring: Option<&EventRing>,
    ) -> Option<Begun> {
        match self {
            PlannedFilter::AtStart(filter) => {
                policy.seccomp_filters += 1;
                let begun = Begun::begin(*filter, options.reach.no_new_privs, policy, ring);
                policy.flags |= POLICY_NOTIFIED | answers(filter.syncs);
                Some(begun)
            }
            PlannedFilter::AtExec(filter, instructions) => {
                policy.flags |= answers(filter.syncs);
                policy.filter.clone_from(instructions);
                None
            }
            PlannedFilter::Nothing | PlannedFilter::Refused => None,
        }
    }

    /// What became of it without a guardian.
    pub fn without_guardian(&self) -> Plan {
        match self {
            // The ground of a comparison does nothing.
            PlannedFilter::AtExec(filter, _) if filter.syncs == Syncs::Leave => Plan::Nothing,
            PlannedFilter::AtExec(..) => Plan::AtExec,
            PlannedFilter::Refused => Plan::Refused(Refusal::NoPermission),
            PlannedFilter::Nothing | PlannedFilter::AtStart(_) => Plan::Nothing,
        }
    }

    /// Whether the program gets no_new_privs although it gets no filter: it may
    /// install one later.
    pub fn sets_no_new_privs(&self, options: &Options) -> bool {
        matches!(self, PlannedFilter::AtExec(..))
            && options.reach.no_new_privs
            && right() == Right::None
    }
}

/// Who answers a sync call that passes the filter, as the policy has it.
fn answers(syncs: Syncs) -> u32 {
    match syncs {
        Syncs::Succeed => POLICY_ANSWERED,
        Syncs::Ask => POLICY_GUARDED,
        Syncs::Leave => 0,
    }
}
