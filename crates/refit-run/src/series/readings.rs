//! Which process's memory is read next: what has changed most for the least time.

use std::path::Path;
use std::time::{Duration, Instant};

use refit_meter::{MemoryReading, process_memory};

use super::budget::{Budget, processor_time};
use super::known::{Known, Processes};

/// A first reading is expected to take so long for each MiB that is resident (4.5 s were
/// reported for 200 GB), and so long at least.
const PER_MIB: Duration = Duration::from_micros(22);
const AT_LEAST: Duration = Duration::from_micros(50);
/// What did not change is read again after so many intervals: sharing and swap may have
/// changed.
const UNCHANGED: u32 = 10;
/// A reading that took longer is repeated after a thousand times as long.
const LONG: Duration = Duration::from_millis(50);
const LONG_PAUSE: u32 = 1000;

fn expected(known: &Known) -> Duration {
    if known.memory.is_some() || !known.cost.is_zero() {
        return known.cost;
    }
    let mib = u32::try_from(known.process.rss_bytes >> 20).unwrap_or(u32::MAX);
    PER_MIB.saturating_mul(mib).max(AT_LEAST)
}

/// How much a reading is worth: what changed, and for how long; `None` where it is not due.
fn worth(known: &Known, interval: Duration, now: Instant) -> Option<f64> {
    let Some((_, read)) = known.memory else {
        return Some(f64::INFINITY);
    };
    let age = now.saturating_duration_since(read);
    let changed = known.process.rss_bytes.abs_diff(known.rss_when_read);
    let pause = if known.cost > LONG {
        known.cost.saturating_mul(LONG_PAUSE)
    } else {
        interval / 2
    };
    let is_due = age >= pause && (changed > 0 || age >= interval.saturating_mul(UNCHANGED));
    is_due.then(|| {
        (changed + 4096) as f64 * age.as_secs_f64() / expected(known).as_secs_f64().max(1e-6)
    })
}

/// Reads as much as the budget allows.
pub fn read(processes: &mut Processes, proc: &Path, budget: &Budget, interval: Duration) {
    let now = Instant::now();
    let mut due: Vec<(f64, u64, u32)> = processes
        .living()
        .filter(|known| known.group.flatten().is_some() && !known.unreadable && !known.is_kernel())
        .filter_map(|known| {
            Some((
                worth(known, interval, now)?,
                known.process.rss_bytes,
                known.process.pid,
            ))
        })
        .collect();
    due.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    for (.., pid) in due {
        let Some(known) = processes.0.get_mut(&pid) else {
            continue;
        };
        // A smaller one may still fit.
        if budget.allows(expected(known)) {
            read_one(known, proc);
        }
    }
}

/// What may not be read costs nothing again. What has ended meanwhile keeps its last reading
/// until it is gone.
fn read_one(known: &mut Known, proc: &Path) {
    let before = processor_time();
    match process_memory(proc, known.process.pid) {
        MemoryReading::Read(memory) => {
            known.memory = Some((memory, Instant::now()));
            known.rss_when_read = known.process.rss_bytes;
        }
        MemoryReading::Unreadable => known.unreadable = true,
        MemoryReading::None => {}
    }
    known.cost = processor_time().saturating_sub(before);
}

#[cfg(test)]
mod tests {
    use super::*;
    use refit_meter::{Memory, Process};

    fn known(rss_mib: u64, read: Option<(Instant, u64)>, cost: Duration) -> Known {
        let process = Process {
            pid: 7,
            started: 1,
            parent: 1,
            name: String::new(),
            ended: false,
            threads: 1,
            rss_bytes: rss_mib << 20,
            vsz_bytes: 0,
        };
        let mut processes = Processes::default();
        processes.update(vec![process]);
        let mut known = processes.0.remove(&7).unwrap();
        known.memory = read.map(|(at, _)| (Memory::default(), at));
        known.rss_when_read = read.map_or(0, |(_, mib)| mib << 20);
        known.cost = cost;
        known
    }

    #[test]
    fn what_changed_is_read_first_and_what_did_not_change_rarely() {
        let second = Duration::from_secs(1);
        let begun = Instant::now();
        let now = begun + 5 * second;
        let cheap = Duration::from_micros(100);
        let worth = |rss, read, cost| worth(&known(rss, read, cost), second, now);
        assert_eq!(worth(10, None, Duration::ZERO), Some(f64::INFINITY));
        let small = worth(11, Some((begun, 10)), cheap).unwrap();
        let large = worth(50, Some((begun, 10)), cheap).unwrap();
        let dear = worth(50, Some((begun, 10)), 100 * cheap).unwrap();
        assert!(large > small && large > dear);
        // Read a moment ago, or nothing changed.
        assert_eq!(worth(50, Some((now, 10)), cheap), None);
        assert_eq!(worth(10, Some((begun, 10)), cheap), None);
        let later = begun + 10 * second;
        let unchanged = known(10, Some((begun, 10)), cheap);
        assert!(super::worth(&unchanged, second, later).is_some());
    }

    #[test]
    fn a_long_reading_is_followed_by_a_much_longer_pause() {
        let second = Duration::from_secs(1);
        let begun = Instant::now();
        let huge = known(9000, Some((begun, 10)), Duration::from_millis(60));
        assert_eq!(worth(&huge, second, begun + 59 * second), None);
        assert!(worth(&huge, second, begun + 60 * second).is_some());
    }

    #[test]
    fn a_first_reading_is_expected_to_take_as_long_as_the_memory_is_large() {
        let first = |mib| expected(&known(mib, None, Duration::ZERO));
        assert_eq!(first(0), AT_LEAST);
        assert!(first(200 * 1024) > Duration::from_secs(4));
        let read = known(9000, Some((Instant::now(), 1)), Duration::from_millis(3));
        assert_eq!(expected(&read), Duration::from_millis(3));
    }
}
