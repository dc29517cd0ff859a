//! Resident memory of a process whose heap is counted, by what it is for: parts that add up to what the kernel calls
//! resident, and what is left over.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use refit_session::heap::Region;

use crate::arena::heap_of_arena;
use crate::mapping_classes::{Fields, MappingClass, classified};
use crate::mappings::Mapping;
use crate::page_use::PageUses;
use crate::pages::{MOST_BYTES, PRESENT};
use crate::process_facts::page;
use crate::process_memory::{MemoryReading, process_memory};
use crate::tree::at;

/// What resident memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPart {
    /// Bytes that were requested from malloc, of live blocks.
    Live,
    /// Bytes of live blocks beyond what was requested.
    Rounding,
    /// glibc's headers before live blocks.
    Headers,
    /// Free bytes on pages with a part of a live block.
    Fragments,
    /// Pages of the allocator's without any live block.
    Retained,
    /// Pages that the program gave back, and that the kernel takes when it needs memory.
    GivenBack,
    /// Stacks.
    Stacks,
    /// Private memory elsewhere.
    Mappings,
    /// Pages of mapped files.
    Files,
    /// Private copies of such pages.
    FileCopies,
    /// Shared memory.
    Shared,
    /// What counting takes.
    Counting,
}

/// All parts, as they are shown: the name, what it is, and how it is known.
pub const MEMORY_PARTS: [(MemoryPart, &str, &str, &str); 12] = [
    (
        MemoryPart::Live,
        "live",
        "requested from malloc and not freed",
        "counted; pagemap",
    ),
    (
        MemoryPart::Rounding,
        "rounding",
        "of live blocks, beyond what was requested",
        "malloc_usable_size; pagemap",
    ),
    (
        MemoryPart::Headers,
        "headers",
        "glibc's, before live blocks",
        "8 bytes a block, 16 where it is mapped",
    ),
    (
        MemoryPart::Fragments,
        "fragments",
        "free, on pages with a live block",
        "pagemap, less the above",
    ),
    (
        MemoryPart::Retained,
        "retained",
        "pages of the allocator's without a live block",
        "pagemap",
    ),
    (
        MemoryPart::GivenBack,
        "given back",
        "by MADV_FREE: not in use, and the kernel's to take",
        "smaps: LazyFree",
    ),
    (
        MemoryPart::Stacks,
        "stacks",
        "stacks of threads",
        "smaps: right above a guard",
    ),
    (
        MemoryPart::Mappings,
        "mappings",
        "private memory that is not malloc's",
        "smaps, less the above",
    ),
    (MemoryPart::Files, "files", "pages of mapped files", "smaps"),
    (
        MemoryPart::FileCopies,
        "file copies",
        "private copies of such pages",
        "smaps: Anonymous",
    ),
    (MemoryPart::Shared, "shared", "shared memory", "smaps"),
    (
        MemoryPart::Counting,
        "counting",
        "refit's own",
        "its own regions, in smaps",
    ),
];

/// Memory of one part, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PartBytes {
    /// Resident.
    pub rss: u64,
    /// Of a page that n processes map, 1/n.
    pub pss: f64,
}

/// Where a process keeps what it counts.
#[derive(Clone, Copy, Debug)]
pub struct CountedProcess<'a> {
    /// Process id.
    pub pid: u32,
    /// Device (`major << 32 | minor`) and inode of the file with its counters, which it maps.
    pub file: (u64, u64),
    /// The table of its live blocks.
    pub shadow: u64,
    /// Memory of the counting library's own.
    pub regions: &'a [Region],
    /// glibc serves its malloc.
    pub is_glibc: bool,
}

/// Resident memory of one process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryParts {
    /// By the kernel's own sum, which is read before the parts and after them. Where it changed, the process went on
    /// meanwhile: then what is nearest to the sum of the parts, between both.
    pub rss_bytes: u64,
    /// How much the kernel's sum changed.
    pub rss_moved_bytes: u64,
    /// The same, where a page that n processes map counts 1/n.
    pub pss_bytes: u64,
    /// Bytes requested of live blocks, wherever they are.
    pub requested_bytes: u64,
    /// In transparent huge pages.
    pub huge_bytes: u64,
    /// Blocks of malloc lie in memory that a fork would share and not copy.
    pub has_shared_blocks: bool,
    parts: [PartBytes; MEMORY_PARTS.len()],
}

impl MemoryParts {
    /// Of one part.
    #[must_use]
    pub fn of(&self, part: MemoryPart) -> PartBytes {
        self.parts[part as usize]
    }

    /// What the kernel calls resident and no part has; negative where the parts are more.
    #[must_use]
    pub fn unexplained_bytes(&self) -> i64 {
        self.rss_bytes.cast_signed() - self.sum().cast_signed()
    }

    fn sum(&self) -> u64 {
        self.parts.iter().map(|part| part.rss).sum()
    }

    /// The kernel's sum, before and after the parts were read.
    fn set_rss(&mut self, before: u64, after: u64) {
        let (least, most) = (before.min(after), before.max(after));
        self.rss_bytes = self.sum().clamp(least, most);
        self.rss_moved_bytes = most - least;
    }

    /// Reads the memory of a process, which goes on meanwhile.
    /// Returns `None` when it has ended, or maps another image's counters: it has exec'ed.
    ///
    /// # Errors
    /// No right to read it (ptrace(2), PTRACE_MODE_ATTACH).
    pub fn read(proc: &Path, counted: &CountedProcess) -> io::Result<Option<MemoryParts>> {
        let memory = match process_memory(proc, counted.pid) {
            MemoryReading::Read(memory) => memory,
            MemoryReading::None => return Ok(None),
            MemoryReading::Unreadable => return Err(io::ErrorKind::PermissionDenied.into()),
        };
        let mapped = classified(proc, counted.pid)?;
        if !mapped
            .iter()
            .any(|(_, mapping, _)| mapping.file == counted.file)
        {
            return Ok(None);
        }
        let mut parts = MemoryParts {
            pss_bytes: memory.pss_bytes,
            huge_bytes: mapped.iter().map(|(.., fields)| fields.huge).sum(),
            ..MemoryParts::default()
        };
        let own = mapped
            .iter()
            .filter(|(_, mapping, _)| counted.owns(mapping));
        let own: u64 = own.map(|(_, _, fields)| fields.rss).sum();
        // Every leaf of the table has a page at least.
        let most = own / page();
        let uses = PageUses::read(proc, counted.pid, counted.shadow, most, counted.is_glibc)?;
        parts.requested_bytes = uses.requested_bytes;
        let mut shared = mapped
            .iter()
            .filter(|(_, mapping, _)| mapping.permissions[3] == b's');
        parts.has_shared_blocks =
            shared.any(|(_, mapping, _)| uses.has_blocks(mapping.start, mapping.end));
        let pagemap = File::open(at(proc, counted.pid).join("pagemap"))?;
        for (number, (class, mapping, fields)) in mapped.iter().enumerate() {
            match class {
                _ if fields.rss == 0 => {}
                _ if counted.owns(mapping) => parts.add(MemoryPart::Counting, fields.rss, fields),
                MappingClass::File | MappingClass::FileCopy => {
                    let copied = fields.anonymous.min(fields.rss);
                    parts.add(MemoryPart::FileCopies, copied, fields);
                    parts.add(MemoryPart::Files, fields.rss - copied, fields);
                }
                MappingClass::Shared => parts.add(MemoryPart::Shared, fields.rss, fields),
                _ => {
                    let other = match class {
                        MappingClass::Stack => MemoryPart::Stacks,
                        _ => MemoryPart::Mappings,
                    };
                    let above = mapped.get(number + 1).map(|(_, above, _)| above);
                    let malloc = counted.reach(*class, mapping, above, &uses);
                    parts.add_pages(&pagemap, mapping, fields, &uses, (malloc, other))?;
                }
            }
        }
        let MemoryReading::Read(after) = process_memory(proc, counted.pid) else {
            return Ok(None);
        };
        parts.set_rss(memory.rss_bytes, after.rss_bytes);
        Ok(Some(parts))
    }

    fn add(&mut self, part: MemoryPart, bytes: u64, of: &Fields) {
        let sum = &mut self.parts[part as usize];
        sum.rss = sum.rss.saturating_add(bytes);
        sum.pss += bytes as f64 * of.pss as f64 / of.rss.max(1) as f64;
    }

    /// The pages of one mapping. Those without a live block are the allocator's in a part of it, and `other` elsewhere.
    fn add_pages(
        &mut self,
        pagemap: &File,
        mapping: &Mapping,
        fields: &Fields,
        uses: &PageUses,
        (malloc, other): (Option<(u64, u64)>, MemoryPart),
    ) -> io::Result<()> {
        if mapping.bytes() > MOST_BYTES {
            return Ok(());
        }
        let mut entries = vec![0_u8; 1 << 16];
        let mut sums = [0; MEMORY_PARTS.len()];
        let mut address = mapping.start;
        while address < mapping.end {
            let wanted = ((mapping.end - address) / page() * 8).min(entries.len() as u64);
            let read = pagemap.read_at(&mut entries[..wanted as usize], address / page() * 8)?;
            // The process ended: what is unmapped reads as zeros (fs/proc/task_mmu.c, pagemap_read).
            if read < 8 {
                return Err(io::ErrorKind::NotFound.into());
            }
            for entry in entries[..read - read % 8].chunks_exact(8) {
                let entry = u64::from_ne_bytes(entry.try_into().expect("eight bytes"));
                if entry & PRESENT != 0 {
                    let there = uses.of(address);
                    let left = page() - u64::from(there.used());
                    let rest = match malloc {
                        _ if there.used() > 0 => MemoryPart::Fragments,
                        Some((start, end)) if (start..end).contains(&address) => {
                            MemoryPart::Retained
                        }
                        _ => other,
                    };
                    sums[MemoryPart::Live as usize] += u64::from(there.requested);
                    sums[MemoryPart::Rounding as usize] += u64::from(there.rounding);
                    sums[MemoryPart::Headers as usize] += u64::from(there.headers);
                    sums[rest as usize] += left;
                }
                address += page();
            }
        }
        // Which pages these are is not told: none of them has a live block.
        let mut given_back = fields.lazy_free;
        for part in [MemoryPart::Retained, other] {
            let taken = sums[part as usize].min(given_back);
            given_back -= taken;
            sums[part as usize] -= taken;
            sums[MemoryPart::GivenBack as usize] += taken;
        }
        for (part, ..) in MEMORY_PARTS {
            self.add(part, sums[part as usize], fields);
        }
        Ok(())
    }
}

impl CountedProcess<'_> {
    /// The mapping is for counting only.
    fn owns(&self, mapping: &Mapping) -> bool {
        let holds = |region: &Region| {
            let end = region.at.saturating_add(region.size);
            region.at < mapping.end && mapping.start < end
        };
        mapping.file == self.file || (!mapping.is_file() && self.regions.iter().any(holds))
    }

    /// The part of a mapping whose pages are the allocator's. `above`: the mapping at the next higher addresses.
    fn reach(
        &self,
        class: MappingClass,
        mapping: &Mapping,
        above: Option<&Mapping>,
        uses: &PageUses,
    ) -> Option<(u64, u64)> {
        match class {
            MappingClass::Heap => Some((mapping.start, mapping.end)),
            MappingClass::Stack => None,
            // Elsewhere glibc gives each block a mapping of its own.
            _ if self.is_glibc => heap_of_arena(mapping, above)
                .filter(|(start, end)| uses.reach(*start, *end).is_some()),
            _ => uses.reach(mapping.start, mapping.end),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_while_it_is_read_is_not_unexplained() {
        let unexplained = |sum, before, after| {
            let mut parts = MemoryParts::default();
            parts.parts[MemoryPart::Live as usize].rss = sum;
            parts.set_rss(before, after);
            (parts.unexplained_bytes(), parts.rss_moved_bytes)
        };
        assert_eq!(unexplained(120, 100, 150), (0, 50));
        assert_eq!(unexplained(90, 100, 150), (10, 50));
        assert_eq!(unexplained(160, 150, 100), (-10, 50));
        assert_eq!(unexplained(160, 100, 100), (-60, 0));
    }

    #[test]
    fn a_process_that_ends_while_it_is_read_has_no_parts() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let proc = Path::new("/proc");
        let mapped = classified(proc, child.id()).unwrap();
        let pagemap = File::open(at(proc, child.id()).join("pagemap")).unwrap();
        let (_, mapping, fields) = mapped.iter().find(|(_, _, fields)| fields.rss > 0).unwrap();
        let read = || {
            let mut parts = MemoryParts::default();
            let class = (None, MemoryPart::Mappings);
            parts.add_pages(&pagemap, mapping, fields, &PageUses::default(), class)
        };
        assert!(read().is_ok());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(read().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
