//! What the mappings of one process are for, and how much of each is memory.

use std::io;
use std::path::Path;

use refit_meter::{MAPPING_CLASSES, MappingClass, mapped_memory};

fn words(class: MappingClass) -> &'static str {
    match class {
        MappingClass::Heap => "heap",
        MappingClass::Stack => "stacks",
        MappingClass::Anonymous => "anonymous mappings",
        MappingClass::File => "files",
        MappingClass::FileCopy => "private copies of files",
        MappingClass::Shared => "shared memory",
    }
}

/// Name, PSS and RSS in bytes of each kind that has any, the largest first. Reads
/// /proc/PID/smaps, which takes several times as long as a sample of it.
///
/// # Errors
/// No such process, or no right to read it.
pub fn mapping_sizes(proc: &Path, pid: u32) -> io::Result<Vec<(String, u64, u64)>> {
    let memory = mapped_memory(proc, pid)?;
    let of = |class: &MappingClass| {
        let bytes = memory.of(*class);
        let count = bytes.mappings;
        (
            format!("{} ({count})", words(*class)),
            bytes.pss_bytes,
            bytes.rss_bytes,
        )
    };
    let mut all: Vec<(String, u64, u64)> = MAPPING_CLASSES
        .iter()
        .map(of)
        .filter(|one| one.2 > 0)
        .collect();
    all.sort_by_key(|(_, pss, _)| std::cmp::Reverse(*pss));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_real_process_the_largest_comes_first() {
        let all = mapping_sizes(Path::new("/proc"), std::process::id()).unwrap();
        assert!(
            all.iter().any(|(name, ..)| name.starts_with("files (")),
            "{all:?}"
        );
        assert!(all.is_sorted_by_key(|(_, pss, _)| std::cmp::Reverse(*pss)));
        assert!(all.iter().all(|(_, pss, rss)| pss <= rss));
        assert!(mapping_sizes(Path::new("/nowhere"), 1).is_err());
    }
}
