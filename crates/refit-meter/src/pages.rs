//! Single pages of a process: which it has for itself alone, and what of its huge pages nothing ever touched
//! (/proc/PID/pagemap; the kernel's admin-guide/mm/pagemap.rst and transhuge.rst).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::mapping_classes::{Fields, MappingClass, classified};
use crate::mappings::Mapping;
use crate::process_facts::page;
use crate::tree::at;

/// Bits of an entry of pagemap.
pub(crate) const PRESENT: u64 = 1 << 63;
const FILE: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;
/// Of one huge page on x86-64, and on arm64 with pages of 4 KiB; with larger ones the kernel makes larger ones, and
/// nothing is found here.
const HUGE: u64 = 2 << 20;
/// Entries that are read at once.
const CHUNK: usize = 8192;
/// A mapping with more address space is not looked at page by page.
pub(crate) const MOST_BYTES: u64 = 64 << 30;
/// Huge pages whose content is looked at, of each mapping.
const SAMPLED: usize = 8;

/// Private mappings with memory, and their pages.
fn each_page(
    proc: &Path,
    pid: u32,
    mut look: impl FnMut(MappingClass, &Mapping, &Fields, &[u64], u64),
) -> io::Result<()> {
    let pagemap = File::open(at(proc, pid).join("pagemap"))?;
    let mut bytes = vec![0_u8; CHUNK * 8];
    let mut entries = Vec::with_capacity(CHUNK);
    for (class, mapping, fields) in classified(proc, pid)? {
        if mapping.permissions[3] != b'p' || fields.rss == 0 || mapping.bytes() > MOST_BYTES {
            continue;
        }
        let mut address = mapping.start;
        while address < mapping.end {
            let pages = ((mapping.end - address) / page()).min(CHUNK as u64) as usize;
            let read = pagemap.read_at(&mut bytes[..pages * 8], address / page() * 8)?;
            // It was unmapped meanwhile.
            if read < 8 {
                break;
            }
            entries.clear();
            let words = bytes[..read - read % 8].chunks_exact(8);
            entries.extend(
                words.map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes"))),
            );
            look(class, &mapping, &fields, &entries, address);
            address += entries.len() as u64 * page();
        }
    }
    Ok(())
}

/// Each anonymous page of private mappings that is in memory: its address, and whether this process alone maps it.
pub(crate) fn each_own_page(
    proc: &Path,
    pid: u32,
    mut look: impl FnMut(u64, bool),
) -> io::Result<()> {
    each_page(proc, pid, |_, _, _, entries, start| {
        for (address, entry) in (start..).step_by(page() as usize).zip(entries) {
            if entry & PRESENT != 0 && entry & FILE == 0 {
                look(address, entry & EXCLUSIVE != 0);
            }
        }
    })
}

/// The pages that a process shared with its parent or children at one moment: what fork(2) left shared, until one of
/// them writes.
#[derive(Clone, Debug, Default)]
pub struct SharedPages {
    /// Addresses of pages, ascending.
    pages: Vec<u64>,
}

/// What of shared pages a process has for itself by now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopiedBytes {
    /// In `[heap]`.
    pub heap: u64,
    /// Elsewhere.
    pub other: u64,
}

impl SharedPages {
    /// Looks at a process, best right after the fork.
    ///
    /// # Errors
    /// No such process, or no right to read it (ptrace(2), PTRACE_MODE_READ).
    pub fn of(proc: &Path, pid: u32) -> io::Result<SharedPages> {
        let mut pages = Vec::new();
        each_page(proc, pid, |_, _, _, entries, start| {
            let is_shared = |entry: u64| entry & PRESENT != 0 && entry & (FILE | EXCLUSIVE) == 0;
            let shared = (start..).step_by(page() as usize).zip(entries);
            pages.extend(
                shared
                    .filter(|(_, entry)| is_shared(**entry))
                    .map(|(at, _)| at),
            );
        })?;
        Ok(SharedPages { pages })
    }

    /// How much was shared.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pages.len() as u64 * page()
    }

    /// What is mapped by this process alone now: one of the sharers has written to it, and there are two copies. A page
    /// also becomes exclusive when the last other sharer ends or unmaps it, without any copy: compare siblings.
    ///
    /// # Errors
    /// As above.
    pub fn copied(&self, proc: &Path, pid: u32) -> io::Result<CopiedBytes> {
        let mut copied = CopiedBytes::default();
        each_page(proc, pid, |class, _, _, entries, start| {
            let is_own =
                |entry: u64| entry & PRESENT != 0 && entry & FILE == 0 && entry & EXCLUSIVE != 0;
            let end = start + entries.len() as u64 * page();
            let first = self.pages.partition_point(|page| *page < start);
            let last = self.pages.partition_point(|page| *page < end);
            let own = self.pages[first..last]
                .iter()
                .filter(|at| is_own(entries[((**at - start) / page()) as usize]));
            let bytes = own.count() as u64 * page();
            match class {
                MappingClass::Heap => copied.heap += bytes,
                _ => copied.other += bytes,
            }
        })?;
        Ok(copied)
    }
}

/// What transparent huge pages cost a process, or would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HugeExposure {
    /// In huge pages now.
    pub huge_bytes: u64,
    /// Of that, in `[heap]`: pages of 4 KiB that hold nothing but zeros, so that probably nothing ever touched them.
    /// Estimated from some of the huge pages of each mapping.
    pub untouched_heap_bytes: u64,
    /// The same elsewhere. `None`, and 0 above, where its memory may not be read.
    pub untouched_bytes: Option<u64>,
    /// What huge pages wherever they fit (`always`, and khugepaged as the kernel sets it) would add at most.
    pub could_add_bytes: u64,
}

/// Windows of a mapping that are full: its class, what of it is in huge pages, and where each begins.
type FullWindows = (MappingClass, u64, Vec<u64>);

/// Looks at a process page by page. Nothing is brought into memory by it.
///
/// # Errors
/// No such process, or no right to read it (ptrace(2), PTRACE_MODE_READ).
pub fn huge_exposure(proc: &Path, pid: u32) -> io::Result<HugeExposure> {
    let (mut exposure, mut full) = windows(proc, pid)?;
    full.retain(|(_, huge, windows)| *huge > 0 && !windows.is_empty());
    exposure.untouched_bytes = Some(0);
    if full.is_empty() {
        return Ok(exposure);
    }
    let Ok(memory) = File::open(at(proc, pid).join("mem")) else {
        exposure.untouched_bytes = None;
        return Ok(exposure);
    };
    for (class, huge, windows) in full {
        let untouched = (zero_part(&memory, &windows) * huge as f64) as u64;
        match class {
            MappingClass::Heap => exposure.untouched_heap_bytes += untouched,
            _ => exposure.untouched_bytes = exposure.untouched_bytes.map(|sum| sum + untouched),
        }
    }
    Ok(exposure)
}

/// What huge pages wherever they fit would add to a process at most, in bytes. Its memory is not read.
///
/// # Errors
/// As above.
pub fn huge_pages_could_add(proc: &Path, pid: u32) -> io::Result<u64> {
    Ok(windows(proc, pid)?.0.could_add_bytes)
}

fn windows(proc: &Path, pid: u32) -> io::Result<(HugeExposure, Vec<FullWindows>)> {
    let in_huge = (HUGE / page()) as usize;
    let mut exposure = HugeExposure::default();
    let mut full: Vec<FullWindows> = Vec::new();
    let mut window: (u64, usize, usize) = (0, 0, 0);
    each_page(proc, pid, |class, mapping, fields, entries, start| {
        if mapping.is_file() || mapping.permissions[1] != b'w' {
            return;
        }
        if start == mapping.start {
            exposure.huge_bytes += fields.huge;
            full.push((class, fields.huge, Vec::new()));
            window = (0, 0, 0);
        }
        for (address, entry) in (start..).step_by(page() as usize).zip(entries) {
            if address.is_multiple_of(HUGE) {
                window = (address, 0, 0);
            }
            window.1 += 1;
            window.2 += usize::from(entry & PRESENT != 0);
            if window.0 == 0 || window.1 < in_huge {
                continue;
            }
            match window.2 {
                0 => {}
                present if present == in_huge => {
                    if let Some((_, _, windows)) = full.last_mut() {
                        windows.push(window.0);
                    }
                }
                present if !fields.never_huge => {
                    exposure.could_add_bytes += (in_huge - present) as u64 * page()
                }
                _ => {}
            }
        }
    })?;
    Ok((exposure, full))
}

/// The part of these huge pages whose pages are all zeros, from some of them.
fn zero_part(memory: &File, windows: &[u64]) -> f64 {
    let mut content = vec![0_u8; HUGE as usize];
    let empty = vec![0_u8; page() as usize];
    let (mut zeros, mut all) = (0_u64, 0_u64);
    for window in windows.iter().step_by(windows.len().div_ceil(SAMPLED)) {
        if memory.read_exact_at(&mut content, *window).is_err() {
            continue;
        }
        for page in content.chunks(page() as usize) {
            zeros += u64::from(page == empty);
            all += 1;
        }
    }
    if all == 0 {
        0.0
    } else {
        zeros as f64 / all as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::FakeProc;

    /// A private mapping of these pages at 2 MiB, and its pagemap.
    fn fake(pages: &[u64], fields: &str) -> FakeProc {
        let proc = FakeProc::new();
        proc.write("3/smaps", smaps(pages.len(), fields));
        proc.write("3/pagemap", pagemap(pages));
        proc
    }

    fn smaps(pages: usize, fields: &str) -> String {
        let end = HUGE + pages as u64 * page();
        format!("{HUGE:x}-{end:x} rw-p 00000000 00:00 0 [heap]\nRss: 4 kB\n{fields}")
    }

    fn pagemap(pages: &[u64]) -> Vec<u8> {
        let before = vec![0; (HUGE / page()) as usize];
        let entries = before.iter().chain(pages);
        entries.flat_map(|entry| entry.to_ne_bytes()).collect()
    }

    #[test]
    fn what_was_shared_and_is_not_any_more_was_copied() {
        let then = [
            PRESENT,
            PRESENT | EXCLUSIVE,
            0,
            PRESENT | FILE,
            PRESENT,
            PRESENT,
        ];
        let now = [
            PRESENT | EXCLUSIVE,
            PRESENT | EXCLUSIVE,
            PRESENT | EXCLUSIVE,
            PRESENT | EXCLUSIVE,
            PRESENT,
            0,
        ];
        let proc = fake(&then, "");
        let shared = SharedPages::of(proc.path(), 3).unwrap();
        assert_eq!(shared.bytes(), 3 * page());
        assert_eq!(
            shared.copied(proc.path(), 3).unwrap(),
            CopiedBytes::default()
        );
        proc.write("3/pagemap", pagemap(&now));
        let copied = CopiedBytes {
            heap: page(),
            other: 0,
        };
        assert_eq!(shared.copied(proc.path(), 3).unwrap(), copied);
        // It was unmapped while it was read.
        proc.write("3/pagemap", "");
        assert_eq!(
            shared.copied(proc.path(), 3).unwrap(),
            CopiedBytes::default()
        );
        assert!(shared.copied(proc.path(), 4).is_err());
    }

    #[test]
    fn windows_that_are_full_in_part_could_become_huge() {
        let in_huge = (HUGE / page()) as usize;
        let mut pages = vec![0; 3 * in_huge + 7];
        pages[0] = PRESENT;
        pages[1] = PRESENT;
        pages[in_huge..2 * in_huge].fill(PRESENT);
        // Not a whole window.
        pages[3 * in_huge] = PRESENT;
        let could = |fields: &str| huge_exposure(fake(&pages, fields).path(), 3).unwrap();
        let exposure = could("");
        assert_eq!(exposure.could_add_bytes, (in_huge as u64 - 2) * page());
        assert_eq!(
            (exposure.huge_bytes, exposure.untouched_bytes),
            (0, Some(0))
        );
        assert_eq!(could("VmFlags: rd wr nh \n").could_add_bytes, 0);
        let alone = huge_pages_could_add(fake(&pages, "").path(), 3).unwrap();
        assert_eq!(alone, exposure.could_add_bytes);
        // One huge page, of which a quarter holds something; and one whose content may not be read.
        assert_eq!(could("AnonHugePages: 2048 kB\n").untouched_bytes, None);
        let proc = fake(&pages, "AnonHugePages: 2048 kB\n");
        let mut memory = vec![0; 3 * HUGE as usize];
        memory[2 * HUGE as usize..2 * HUGE as usize + HUGE as usize / 4].fill(1);
        proc.write("3/mem", memory);
        let exposure = huge_exposure(proc.path(), 3).unwrap();
        assert_eq!(
            (exposure.huge_bytes, exposure.untouched_heap_bytes),
            (HUGE, HUGE / 4 * 3)
        );
    }
}
