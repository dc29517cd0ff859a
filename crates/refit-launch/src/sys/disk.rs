//! `disk.c` on the shared memory of the event ring, for calls that the preload does
//! not reach.

use refit_session::DISK_SIZE;

use refit_session::EventRing;

unsafe extern "C" {
    fn refit_disk_fault(disk: *const u8, flushes: *mut libc::c_void) -> u32;
    fn refit_disk_until(
        disk: *const u8,
        flushes: *mut libc::c_void,
        device: u64,
        began_ns: u64,
        now_ns: u64,
    ) -> u64;
}

/// A `struct refit_disk` in memory of refit's own.
#[derive(Debug)]
pub struct EmulatedDisk(Box<[u64]>);

impl EmulatedDisk {
    /// From the bytes that the policy holds (`Policy::disk_bytes`).
    pub fn new(bytes: &[u8; DISK_SIZE]) -> EmulatedDisk {
        let words = bytes.chunks_exact(8);
        EmulatedDisk(
            words
                .map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes")))
                .collect(),
        )
    }

    /// The errno with which the flush that begins now fails, or 0.
    pub fn fault(&self, ring: &EventRing) -> u32 {
        // SAFETY: the words have the struct's size and alignment; what the
        // processes remember together is at the beginning of the ring's memory, and is
        // only accessed atomically.
        unsafe { refit_disk_fault(self.0.as_ptr().cast(), ring.start()) }
    }

    /// When a flush of this device is done that begins now, both in nanoseconds of
    /// CLOCK_MONOTONIC.
    pub fn until(&self, ring: &EventRing, device: u64, now_ns: u64) -> u64 {
        self.until_after(ring, device, now_ns, now_ns)
    }

    /// The same of a flush that began before.
    fn until_after(&self, ring: &EventRing, device: u64, began_ns: u64, now_ns: u64) -> u64 {
        let (disk, flushes) = (self.0.as_ptr().cast(), ring.start());
        // SAFETY: as in `fault`.
        unsafe { refit_disk_until(disk, flushes, device, began_ns, now_ns) }
    }
}

#[cfg(test)]
mod tests {
    use refit_session::{Disk, LATENCIES, Policy, When};

    use super::*;

    fn emulated(disk: Disk, seed: u64) -> EmulatedDisk {
        let policy = Policy {
            disk: Some(disk),
            seed,
            ..Policy::default()
        };
        EmulatedDisk::new(&policy.disk_bytes())
    }

    fn faults(when: When, seed: u64, n: usize) -> Vec<usize> {
        let ring = EventRing::create().unwrap();
        let disk = emulated(Disk::Fail { error: 5, when }, seed);
        (1..=n).filter(|_| disk.fault(&ring) == 5).collect()
    }

    #[test]
    fn faults_come_as_the_setting_demands() {
        assert_eq!(faults(When::Always, 0, 3), [1, 2, 3]);
        assert_eq!(faults(When::Every(3), 0, 10), [3, 6, 9]);
        assert_eq!(faults(When::After(7), 0, 10), [8, 9, 10]);
        assert_eq!(faults(When::Chance(0), 7, 1000), [0; 0]);
        let some = faults(When::Chance(100_000), 7, 10_000);
        assert!((850..1150).contains(&some.len()), "{}", some.len());
        assert_eq!(some, faults(When::Chance(100_000), 7, 10_000));
        assert_ne!(some, faults(When::Chance(100_000), 8, 10_000));
    }

    #[test]
    fn flushes_of_one_device_wait_on_each_other_and_share_the_next() {
        let ring = EventRing::create().unwrap();
        let disk = emulated(Disk::Latency(Box::new([1000; LATENCIES])), 1);
        assert_eq!(disk.until(&ring, 8, 5_000), 6_000);
        assert_eq!(disk.until(&ring, 8, 5_100), 7_000);
        assert_eq!(disk.until(&ring, 8, 5_900), 7_000, "shares it");
        assert_eq!(disk.until(&ring, 8, 6_000), 7_000, "as it begins");
        assert_eq!(disk.until(&ring, 8, 6_001), 8_000, "too late for it");
        let sum = (0..64).map(|_| disk.until(&ring, 8, 6_002)).max();
        assert_eq!(sum, Some(8_000));
        assert_eq!(disk.until(&ring, 9, 5_100), 6_100, "another device");
        assert_eq!(disk.until(&ring, 8, 9_000), 10_000, "idle meanwhile");
    }

    #[test]
    fn the_draws_follow_the_distribution_and_the_seed() {
        let table: [u64; LATENCIES] = std::array::from_fn(|i| i as u64);
        let draw = |seed| {
            let ring = EventRing::create().unwrap();
            let disk = emulated(Disk::Latency(Box::new(table)), seed);
            let times = (1..20_000_u64).map(|i| disk.until(&ring, 1, i << 20) - (i << 20));
            times.collect::<Vec<u64>>()
        };
        let times = draw(3);
        let mut sorted = times.clone();
        sorted.sort_unstable();
        for percent in [1, 10, 50, 90, 99] {
            let at = sorted[sorted.len() * percent / 100] as f64;
            let wanted = (LATENCIES * percent / 100) as f64;
            assert!((at - wanted).abs() < 12.0, "{percent}: {at} {wanted}");
        }
        assert_eq!(times, draw(3));
        assert_ne!(times, draw(4));
    }

    #[test]
    fn writers_in_a_loop_take_turns_in_two_groups() {
        let ring = EventRing::create().unwrap();
        let disk = emulated(Disk::Latency(Box::new([1000; LATENCIES])), 1);
        let mut done = [0_u64; 64];
        let mut calls = 0;
        loop {
            let next = (0..done.len()).min_by_key(|i| done[*i]).unwrap();
            if done[next] >= 100_000 {
                break;
            }
            // Nobody comes at the very same moment.
            done[next] = disk.until(&ring, 8, done[next] + 1 + next as u64);
            calls += 1;
        }
        // As 64 writers on ext4 do on a disk with real flushes: half of them in each.
        assert!((3100..3300).contains(&calls), "{calls}");
    }

    #[test]
    fn a_program_cannot_keep_the_disk_busy() {
        let ring = EventRing::create().unwrap();
        let disk = emulated(Disk::Latency(Box::new([1000; LATENCIES])), 1);
        let busy_until = |ns| {
            // SAFETY: the first queue's three words, after the number of flushes.
            unsafe {
                let words = ring.start().cast::<u64>();
                words.add(1).write_volatile(8);
                words.add(2).write_volatile(ns);
                words.add(3).write_volatile(ns - 1000);
            }
        };
        for far in [u64::MAX - 5, 600_000_000_000, 5_000 + 9_000] {
            busy_until(far);
            assert_eq!(disk.until(&ring, 8, 5_000), 6_000, "{far}");
        }
        busy_until(5_000 + 4_000);
        assert_eq!(disk.until(&ring, 8, 5_000), 9_000);
        // Others flushed while a long real call ran, from 5,000 to 100,000.
        busy_until(101_000);
        assert_eq!(disk.until_after(&ring, 8, 5_000, 100_000), 101_000);
    }
}
