//! How much of the machine other processes used during a comparison. The load
//! average would count what the compared program itself does.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Instant;

use refit_meter::tree_usage;
use rustix::time::{ClockId, clock_gettime};

use crate::run::Survivor;

/// /proc/stat counts in USER_HZ, which is 100 on every Linux (proc(5)).
const TICK_NS: u64 = 10_000_000;

/// Processor time at one moment, in nanoseconds.
#[derive(Clone, Copy)]
pub struct MachineLoad {
    at: Instant,
    machine_ns: u64,
    own_ns: u64,
}

impl MachineLoad {
    /// Now. `children_ns` is the time of what refit started, where a cgroup
    /// counted it; otherwise the kernel's account of refit, of the children that it
    /// waited for, and of what these left running is used.
    pub fn now(children_ns: Option<u64>, left_running: &[Survivor]) -> MachineLoad {
        let proc = Path::new("/proc");
        MachineLoad {
            at: Instant::now(),
            machine_ns: machine_ns(&fs::read_to_string("/proc/stat").unwrap_or_default()),
            own_ns: match children_ns {
                Some(children) => own_ns().saturating_add(children),
                None => {
                    let left = left_running.iter().filter(|one| still_runs(proc, one));
                    let left = left.map(|one| one.pid);
                    let pids: BTreeSet<u32> = left.chain([std::process::id()]).collect();
                    let pids: Vec<u32> = pids.into_iter().collect();
                    let usage = tree_usage(proc, &pids);
                    usage.user_ns.saturating_add(usage.system_ns)
                }
            },
        }
    }

    /// The share of all processors that other processes used since `before`.
    pub fn others_since(self, before: MachineLoad) -> f64 {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let machine = self.machine_ns.saturating_sub(before.machine_ns);
        let own = self.own_ns.saturating_sub(before.own_ns);
        let all = self.at.duration_since(before.at).as_nanos() as f64 * cores as f64;
        if all > 0.0 {
            machine.saturating_sub(own) as f64 / all
        } else {
            0.0
        }
    }
}

/// Whether the process of that number is still the one: in a pid namespace of its own it knew itself by another.
fn still_runs(proc: &Path, survivor: &Survivor) -> bool {
    let executable = fs::read_link(proc.join(survivor.pid.to_string()).join("exe"));
    executable.is_ok_and(|path| path == Path::new(&survivor.executable))
}

/// refit's own, without its children.
fn own_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let [seconds, nanoseconds] = [time.tv_sec, time.tv_nsec].map(i64::unsigned_abs);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

/// All but idle and waiting for I/O (proc(5): user nice system idle iowait irq
/// softirq steal). Steal, which the hypervisor gave to other machines, counts as used
/// by others.
fn machine_ns(stat: &str) -> u64 {
    let fields = stat.lines().next().unwrap_or_default().split_whitespace();
    let ticks = fields
        .skip(1)
        .map(|field| field.parse::<u64>().unwrap_or(0));
    let busy = ticks
        .take(8)
        .enumerate()
        .filter(|(i, _)| ![3, 4].contains(i));
    busy.map(|(_, n)| n)
        .fold(0, u64::saturating_add)
        .saturating_mul(TICK_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_iowait_are_not_busy() {
        assert_eq!(
            machine_ns("cpu  1 2 4 1000 2000 8 16 32 64 64\ncpu0 …"),
            63 * TICK_NS
        );
    }

    #[test]
    fn what_was_left_running_does_not_count_as_others() {
        let mut busy = std::process::Command::new("/bin/sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("a shell is there");
        let executable = |of: u32| fs::read_link(format!("/proc/{of}/exe")).expect("it runs");
        let left = |executable: String| Survivor {
            pid: busy.id(),
            executable,
        };
        let known = left(executable(busy.id()).display().to_string());
        let stranger = left("/bin/another".to_owned());
        let used = |survivor: &Survivor| {
            let with = MachineLoad::now(None, std::slice::from_ref(survivor));
            with.own_ns
                .saturating_sub(MachineLoad::now(None, &[]).own_ns)
        };
        let deadline = Instant::now() + std::time::Duration::from_secs(60);
        while used(&known) < 5 * TICK_NS && Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert!(used(&known) >= 5 * TICK_NS, "it was counted");
        assert!(used(&stranger) < 5 * TICK_NS, "another has its number");
        busy.kill().expect("it is ours");
        busy.wait().expect("it is ours");
    }

    #[test]
    fn what_this_process_uses_does_not_count_as_others() {
        let before = MachineLoad::now(Some(0), &[]);
        // However little of a processor there is.
        while own_ns() < before.own_ns + 50_000_000 {
            std::hint::black_box(0);
        }
        let after = MachineLoad::now(Some(0), &[]);
        let machine = after.machine_ns - before.machine_ns;
        // The kernel's account goes by ticks.
        assert!(machine + 2 * TICK_NS >= 50_000_000, "{machine}");
        let others = after.others_since(before);
        let span = after.at.duration_since(before.at).as_nanos() as f64;
        assert!(
            others * span <= (machine as f64 - 30_000_000.0).max(0.0),
            "{others}"
        );
    }
}
