//! Processor time that watching may take.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::record::Cost;

/// So much may be spent before it is earned, so that the first sample can be complete.
const ADVANCE: Duration = Duration::from_millis(30);
/// The part of the share that may be asked for. The rest is for what is done without
/// asking: to start, to take the kernel's records, to write what was seen.
const ASKED: f64 = 0.85;

/// A share of one core, of the time since it began. What refit does in the kernel, on
/// behalf of what it reads, is its own processor time.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    share: f64,
    began: Instant,
    cpu: Duration,
}

/// Processor time of this process.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

impl Budget {
    pub fn begin(share: f64) -> Budget {
        Budget {
            share,
            began: Instant::now(),
            cpu: processor_time(),
        }
    }

    pub fn cost(&self) -> Cost {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Cost {
            cpu_us: micros(processor_time().saturating_sub(self.cpu)),
            wall_us: micros(self.began.elapsed()),
        }
    }

    /// Whether so much more may be spent now.
    pub fn allows(&self, more: Duration) -> bool {
        let Cost { cpu_us, wall_us } = self.cost();
        may_spend(self.share, cpu_us, wall_us, more)
    }

    /// The time after which something that took `cost` each time may be done again.
    pub fn pause_after(&self, cost: Duration) -> Duration {
        cost.div_f64(self.share.max(1e-6))
    }
}

fn may_spend(share: f64, cpu_us: u64, wall_us: u64, more: Duration) -> bool {
    let earned = ASKED * share * wall_us as f64;
    let earned = earned.max(ADVANCE.as_micros() as f64);
    cpu_us as f64 + more.as_micros() as f64 <= earned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spent_in_advance_is_earned_back() {
        let ms = Duration::from_millis;
        let may = |cpu: u64, wall: u64, more| may_spend(0.01, cpu * 1000, wall * 1000, ms(more));
        assert!(may(0, 0, 30) && !may(0, 0, 31));
        // 15 % of what 10 s earn are left for what is not asked for.
        assert!(!may(85, 9_999, 0) && may(85, 10_001, 0));
        assert!(may(30, 4_001, 4) && !may(30, 4_001, 5));
    }

    #[test]
    fn work_is_counted() {
        // Of the whole process: other tests run meanwhile.
        let budget = Budget::begin(0.01);
        while budget.cost().cpu_us < 50_000 {
            std::hint::black_box(0);
        }
        assert!(budget.cost().wall_us > 0);
        assert_eq!(
            budget.pause_after(Duration::from_millis(20)),
            Duration::from_secs(2)
        );
    }
}
