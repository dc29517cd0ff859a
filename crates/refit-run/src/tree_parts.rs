//! What the memory of all processes consists of whose heap is counted, at one moment.

use std::path::Path;

use refit_knobs::AllocatorKind;
use refit_meter::{CountedProcess, MEMORY_PARTS, MemoryPart, MemoryParts, huge_exposure};
use refit_session::heap::{HeapImage, HeapProcess};

use crate::serves_malloc::is_allocator;

/// Proportional memory of a tree, in bytes. What processes share counts once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeParts {
    /// Processes whose heap is counted, and that could be read: they are what this is of.
    pub pids: Vec<u32>,
    /// Those of them that have huge pages.
    huge: Vec<u32>,
    /// All of it, by the kernel's sum.
    pub pss_bytes: u64,
    parts: [f64; MEMORY_PARTS.len()],
}

impl TreeParts {
    pub(crate) fn read(proc: &Path, images: &[HeapImage]) -> TreeParts {
        let mut tree = TreeParts::default();
        each_counted(proc, images, |_, process, parts| {
            tree.pids.push(process.pid);
            if parts.huge_bytes > 0 {
                tree.huge.push(process.pid);
            }
            tree.pss_bytes = tree.pss_bytes.saturating_add(parts.pss_bytes);
            for (sum, (part, ..)) in tree.parts.iter_mut().zip(MEMORY_PARTS) {
                *sum += parts.of(part).pss;
            }
        });
        tree
    }

    /// Of one part.
    #[must_use]
    pub fn of(&self, part: MemoryPart) -> f64 {
        self.parts[part as usize]
    }

    /// Parts of transparent huge pages that nothing ever touched, of all processes; those that cannot be read have none.
    #[must_use]
    pub fn untouched_bytes(&self, proc: &Path) -> u64 {
        let exposures = self
            .huge
            .iter()
            .filter_map(|pid| huge_exposure(proc, *pid).ok());
        exposures
            .map(|huge| huge.untouched_heap_bytes + huge.untouched_bytes.unwrap_or(0))
            .sum()
    }
}

/// Reads each process of these images that lives. Those that may not be read are left out.
pub(crate) fn each_counted(
    proc: &Path,
    images: &[HeapImage],
    mut look: impl FnMut(&HeapImage, &HeapProcess, &MemoryParts),
) {
    for image in images.iter().filter(|image| image.is_counted()) {
        // Without the table of live blocks nothing is told apart.
        let processes = image.processes.iter();
        for process in processes.filter(|process| process.without_table.is_none()) {
            let counted = CountedProcess {
                pid: process.pid,
                file: image.file,
                shadow: image.shadow,
                regions: &process.regions,
                is_glibc: is_allocator(&AllocatorKind::GLIBC, &image.malloc_object),
            };
            if let Ok(Some(parts)) = MemoryParts::read(proc, &counted) {
                look(image, process, &parts);
            }
        }
    }
}
