//! What transparent huge pages would add to the largest processes, read once at the end of a watch.

use std::path::Path;
use std::time::Duration;

use refit_meter::huge_pages_could_add;

use super::budget::Budget;
use super::known::Member;
use super::record::HugePages;

/// Processes that are looked into: the largest of as many groups.
const MOST: usize = 5;
/// A look is expected to take so long for each MiB of address space, at most 64 GiB of which is looked at, and so long
/// for each MiB that is resident; and so long at least.
const PER_MIB_OF_ADDRESSES: Duration = Duration::from_nanos(2_500);
const MOST_ADDRESSES: u64 = 64 << 30;
const PER_MIB: Duration = Duration::from_micros(25);
const AT_LEAST: Duration = Duration::from_micros(200);

/// Looks at the first of these by resident memory, with the group of each. What a budget does not allow is left out, and
/// reported; what may not be read, or has ended, is not there.
pub fn read(proc: &Path, mut of: Vec<(usize, Member)>, budget: Option<&Budget>) -> Vec<HugePages> {
    of.retain(|(_, one)| one.rss_bytes > 0);
    of.sort_by_key(|(_, one)| std::cmp::Reverse(one.rss_bytes));
    of.truncate(MOST);
    let look = |(group, one): (usize, Member)| {
        let is_allowed = budget.is_none_or(|budget| budget.allows(expected(&one)));
        let could_add_bytes = match is_allowed {
            true => Some(huge_pages_could_add(proc, one.pid).ok()?),
            false => None,
        };
        Some(HugePages {
            group,
            pid: one.pid,
            could_add_bytes,
        })
    };
    of.into_iter().filter_map(look).collect()
}

fn expected(one: &Member) -> Duration {
    let mib = |bytes: u64| u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
    let addresses = PER_MIB_OF_ADDRESSES.saturating_mul(mib(one.vsz_bytes.min(MOST_ADDRESSES)));
    let resident = PER_MIB.saturating_mul(mib(one.rss_bytes));
    addresses.saturating_add(resident).max(AT_LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn member(pid: u32, rss_bytes: u64) -> Member {
        Member {
            pid,
            name: String::new(),
            threads: 1,
            rss_bytes,
            vsz_bytes: rss_bytes,
            memory: None,
        }
    }

    /// One window of 2 MiB, in which so many pages are there.
    fn process(proc: &Path, pid: u32, pages: usize) {
        let directory = proc.join(pid.to_string());
        fs::create_dir_all(&directory).unwrap();
        let smaps = "200000-400000 rw-p 00000000 00:00 0\nRss: 4 kB\n";
        fs::write(directory.join("smaps"), smaps).unwrap();
        let entries = (0..1024).map(|page| match (512..512 + pages).contains(&page) {
            true => 1_u64 << 63,
            false => 0,
        });
        let entries: Vec<u8> = entries.flat_map(u64::to_ne_bytes).collect();
        fs::write(directory.join("pagemap"), entries).unwrap();
    }

    #[test]
    fn the_largest_are_looked_into_as_the_budget_allows() {
        let proc = tempfile::tempdir().unwrap();
        let mut all = Vec::new();
        for pid in 1..=7 {
            process(proc.path(), pid, 8 * pid as usize);
            all.push((10 + pid as usize, member(pid, u64::from(pid) << 20)));
        }
        // No memory, no such process.
        all.push((3, member(7, 0)));
        all.push((4, member(99, 6 << 20)));
        let told = |budget: Option<&Budget>| -> Vec<(usize, u32, Option<u64>)> {
            let found = read(proc.path(), all.clone(), budget);
            let told = found.iter();
            told.map(|one| (one.group, one.pid, one.could_add_bytes))
                .collect()
        };
        let added = |pid: u64| Some((512 - 8 * pid) * 4096);
        let whole = [
            (17, 7, added(7)),
            (16, 6, added(6)),
            (15, 5, added(5)),
            (14, 4, added(4)),
        ];
        assert_eq!(told(None), whole);
        // Beside other tests the whole process's processor time is counted: a budget of 100 processors has enough.
        let ample = Budget::begin(100.0);
        assert_eq!(told(Some(&ample)), whole);
        let spent = Budget::begin(0.0);
        while spent.allows(Duration::ZERO) {
            std::hint::black_box(0);
        }
        let none = told(Some(&spent));
        assert!(none.iter().all(|(.., added)| added.is_none()) && none.len() == 5);
    }

    #[test]
    fn a_look_is_expected_to_take_as_long_as_there_is_to_look_at() {
        let mut one = member(1, 100 << 20);
        let small = expected(&one);
        one.vsz_bytes = 32 << 30;
        let sparse = expected(&one);
        one.vsz_bytes = 16 << 40;
        let reserved = expected(&one);
        assert!(small < sparse && sparse < reserved && reserved < Duration::from_millis(200));
        assert_eq!(expected(&member(1, 4096)), AT_LEAST);
    }
}
