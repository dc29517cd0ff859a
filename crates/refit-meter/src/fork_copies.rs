//! Pages that processes forked from one another shared at first, and of which each has a copy by now (fork(2), copy on
//! write), at one moment and without having looked at the fork.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::pages::each_own_page;
use crate::process_facts::auxiliary;
use crate::process_facts::page;
use crate::stat::Stat;
use crate::tree::{at, has_ended};

/// AT_RANDOM of getauxval(3): where the kernel put 16 random bytes at exec. Forked processes have the same ones.
const AT_RANDOM: u64 = 25;
/// Looking at all pages of a tree may take so long.
const LONGEST: Duration = Duration::from_secs(10);

/// Anonymous pages that are there, by ascending address, and whether no other process maps them.
type Pages = Vec<(u64, bool)>;

/// One process of a tree.
struct Forked {
    pid: u32,
    parent: u32,
    image: [u8; 16],
}

/// Bytes of memory that exist more than once because one of `pids` wrote to a page that it shared with its parent, one
/// of them too, after fork(2). A page counts where a child has it for itself alone and its parent has one at the same
/// address; and where the parent has it for itself alone while a child still shares its own with others.
///
/// It is an estimate: pages that parent and child both touched for the first time after the fork count too (where one of
/// them only read, as well), and a page that a child shares with children of its own counts once for all of them. 0 where none forked without exec.
///
/// # Errors
/// No right to read a process (ptrace(2), PTRACE_MODE_ATTACH), or it would take longer than 10 s.
pub fn fork_copies(proc: &Path, pids: &[u32]) -> io::Result<u64> {
    let until = Instant::now() + LONGEST;
    let mut all = Vec::new();
    for pid in pids {
        match Forked::read(proc, *pid) {
            Ok(one) => all.extend(one),
            Err(_) if has_ended(proc, *pid) => {}
            Err(error) => return Err(error),
        }
    }
    let mut copies = 0;
    for parent in &all {
        let is_child = |one: &&Forked| one.parent == parent.pid && one.image == parent.image;
        let children: Vec<u32> = all.iter().filter(is_child).map(|one| one.pid).collect();
        if !children.is_empty() {
            copies += copies_of(proc, parent.pid, &children, until)?;
        }
    }
    Ok(copies * page())
}

impl Forked {
    /// `None` of what has no memory, or was started before Linux 2.6.29.
    fn read(proc: &Path, pid: u32) -> io::Result<Option<Forked>> {
        let directory = at(proc, pid);
        let Some(stat) = Stat::read(&directory) else {
            return Ok(None);
        };
        let auxv = fs::read(directory.join("auxv"))?;
        let Some(random) = auxiliary(&auxv, AT_RANDOM) else {
            return Ok(None);
        };
        let mut image = [0; 16];
        File::open(directory.join("mem"))?.read_exact_at(&mut image, random)?;
        Ok(Some(Forked {
            pid,
            parent: stat.parent,
            image,
        }))
    }
}

/// Pages of a process; none where it has ended meanwhile.
fn pages_of(proc: &Path, pid: u32, until: Instant) -> io::Result<Pages> {
    if Instant::now() > until {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut pages = Pages::new();
    match each_own_page(proc, pid, |address, is_exclusive| {
        pages.push((address, is_exclusive));
    }) {
        Err(_) if has_ended(proc, pid) => Ok(Pages::new()),
        read => read.map(|()| pages),
    }
}

fn copies_of(proc: &Path, parent: u32, children: &[u32], until: Instant) -> io::Result<u64> {
    let pages = pages_of(proc, parent, until)?;
    let mut own = 0;
    let mut still_shared = BTreeSet::new();
    for child in children {
        for (address, is_exclusive) in pages_of(proc, *child, until)? {
            let Ok(at) = pages.binary_search_by_key(&address, |(address, _)| *address) else {
                continue;
            };
            match pages[at].1 {
                _ if is_exclusive => own += 1,
                true => drop(still_shared.insert(address)),
                false => {}
            }
        }
    }
    Ok(own + still_shared.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::FakeProc;

    const THERE: u64 = 1 << 63;
    const OWN: u64 = THERE | 1 << 56;
    const OF_FILE: u64 = OWN | 1 << 61;

    fn process(proc: &FakeProc, pid: u32, parent: u32, image: u8, pages: &[u64]) {
        proc.process(pid, "a", 'S', parent);
        proc.write(
            &format!("{pid}/smaps"),
            format!(
                "{:x}-{:x} rw-p 00000000 00:00 0 [heap]\nRss: 4 kB\n",
                page(),
                page() * (1 + pages.len() as u64)
            ),
        );
        let entries = [0].iter().chain(pages);
        let entries: Vec<u8> = entries.flat_map(|entry| entry.to_ne_bytes()).collect();
        proc.write(&format!("{pid}/pagemap"), entries);
        let auxv: Vec<u8> = [AT_RANDOM, 8]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        proc.write(&format!("{pid}/auxv"), auxv);
        proc.write(&format!("{pid}/mem"), [image; 24]);
    }

    #[test]
    fn a_page_counts_once_for_each_copy_beyond_the_first() {
        let proc = FakeProc::new();
        // The same on both sides, written by one child, by the other, by the parent, by all, of a file, of the child alone.
        process(&proc, 3, 1, 7, &[THERE, THERE, THERE, OWN, OWN, OF_FILE, 0]);
        process(
            &proc,
            4,
            3,
            7,
            &[THERE, OWN, THERE, THERE, OWN, OF_FILE, OWN],
        );
        process(
            &proc,
            5,
            3,
            7,
            &[THERE, THERE, OWN, THERE, OWN, OF_FILE, OWN],
        );
        let copies = |pids: &[u32]| fork_copies(proc.path(), pids).unwrap() / page();
        assert_eq!(copies(&[3, 4, 5]), 1 + 1 + 1 + 2);
        // Without their parent nothing is known of what they shared.
        assert_eq!(copies(&[4, 5]), 0);
        // After exec nothing is shared; who has ended has nothing.
        process(
            &proc,
            5,
            3,
            8,
            &[THERE, THERE, OWN, THERE, OWN, OF_FILE, OWN],
        );
        assert_eq!(copies(&[3, 4, 5, 99]), 1 + 1 + 1);
        // Who may not be read is not nothing.
        fs::remove_file(proc.path().join("4/pagemap")).unwrap();
        assert!(fork_copies(proc.path(), &[3, 4, 5]).is_err());
    }
}
