//! What a service used over the measured window.

use std::collections::BTreeMap;
use std::path::Path;

use refit_run::tree::{PROC, Part, Tree};
use refit_run::{Calls, Pressure, TreeUsage, Watch, tree_usage};

use crate::experiment::ServiceRecord;

/// What a service has used so far.
pub struct Moment {
    cpu: Option<[u64; 2]>,
    usage: TreeUsage,
    pressure: Option<Pressure>,
    calls: BTreeMap<String, BTreeMap<String, Calls>>,
}

impl Moment {
    /// Now.
    pub fn now(tree: &Tree, watch: &Watch) -> Moment {
        Moment {
            cpu: tree.cpu_ns(Part::Service),
            usage: tree_usage(Path::new(PROC), &tree.members(Part::Service)),
            pressure: Pressure::now(),
            calls: watch.calls(),
        }
    }

    /// What came since `before`.
    pub fn since(&self, before: &Moment) -> ServiceRecord {
        let usage = self.usage.since(&before.usage);
        let (cpu, source) = match (before.cpu, self.cpu) {
            (Some(before), Some(now)) => {
                let used = [0, 1].map(|i: usize| now[i].saturating_sub(before[i]));
                (used, "cgroup v2")
            }
            _ => ([usage.user_ns, usage.system_ns], "processes"),
        };
        ServiceRecord {
            user_ns: cpu[0],
            system_ns: cpu[1],
            cpu_source: source.to_owned(),
            written_bytes: usage.written_bytes,
            pressure: before
                .pressure
                .zip(self.pressure)
                .map(|(before, now)| now.since(before)),
            calls: calls_since(&self.calls, &before.calls),
            ..ServiceRecord::default()
        }
    }
}

fn calls_since(
    now: &BTreeMap<String, BTreeMap<String, Calls>>,
    before: &BTreeMap<String, BTreeMap<String, Calls>>,
) -> BTreeMap<String, BTreeMap<String, Calls>> {
    let mut all = now.clone();
    for (executable, calls) in &mut all {
        for (name, calls) in calls.iter_mut() {
            if let Some(old) = before.get(executable).and_then(|calls| calls.get(name)) {
                calls.seen = calls.seen.saturating_sub(old.seen);
                calls.suppressed = calls.suppressed.saturating_sub(old.suppressed);
                calls.real = calls.real.saturating_sub(old.real);
                calls.waited_ns = calls.waited_ns.saturating_sub(old.waited_ns);
            }
        }
        calls.retain(|_, calls| calls.seen > 0);
    }
    all.retain(|_, calls| !calls.is_empty());
    all
}
