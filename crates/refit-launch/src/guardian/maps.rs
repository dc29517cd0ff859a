//! What lies in a range of a thread's memory (proc_pid_maps(5)).

use std::fs;
use std::path::PathBuf;

use rustix::param::page_size;

/// A shared mapping of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedFile {
    /// As refit sees it.
    pub path: PathBuf,
    /// st_dev.
    pub device: u64,
}

/// The files whose pages an msync of this range writes. `None`: the kernel would
/// refuse it (ENOMEM: a part of it is not mapped; EINVAL: a part is of an io_uring or another object without a path, which
/// has nothing to sync), or it is unknown.
pub fn shared_files(tid: u32, from: u64, length: u64) -> Option<Vec<SharedFile>> {
    let maps = fs::read_to_string(format!("/proc/{tid}/maps")).ok()?;
    parse(&maps, from, length)
}

fn parse(maps: &str, from: u64, length: u64) -> Option<Vec<SharedFile>> {
    let page = page_size() as u64;
    let end = from.checked_add(length.checked_next_multiple_of(page)?)?;
    if !from.is_multiple_of(page) || end == from {
        return None;
    }
    let mut files = Vec::new();
    let mut covered = from;
    for line in maps.lines() {
        let mut fields = line.splitn(6, ' ');
        let (first, last) = fields.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (first, last) = (number(first)?, number(last)?);
        if last <= covered {
            continue;
        }
        if first > covered {
            return None;
        }
        let is_shared = fields.next()?.ends_with('s');
        let device = fields.nth(1)?.split_once(':')?;
        let _inode = fields.next()?;
        let path = fields.next().unwrap_or_default().trim_start();
        if is_shared && !path.starts_with('/') {
            return None;
        }
        if is_shared {
            files.push(SharedFile {
                path: path.strip_suffix(" (deleted)").unwrap_or(path).into(),
                device: libc::makedev(
                    u32::from_str_radix(device.0, 16).ok()?,
                    u32::from_str_radix(device.1, 16).ok()?,
                ),
            });
        }
        covered = last;
        if covered >= end {
            return Some(files);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
1000-3000 rw-s 00000000 08:01 12                         /a b
3000-4000 rw-p 00000000 00:00 0 
4000-5000 rw-s 00001000 00:2a 13                         /c (deleted)
7000-8000 rw-p 00000000 00:00 0                          [stack]
8000-9000 rw-s 00000000 00:0f 14                         anon_inode:[io_uring]
";

    #[test]
    fn every_mapping_that_a_range_touches_counts() {
        let files = |from, length| {
            let files = parse(MAPS, from, length)?;
            let paths = files
                .iter()
                .map(|file| file.path.to_str().unwrap().to_owned());
            Some(paths.collect::<Vec<_>>())
        };
        assert_eq!(files(0x1000, 0x1000).unwrap(), ["/a b"]);
        assert_eq!(files(0x2000, 1).unwrap(), ["/a b"]);
        assert_eq!(files(0x1000, 0x3001).unwrap(), ["/a b", "/c"]);
        assert!(files(0x3000, 0x1000).unwrap().is_empty());
        for (from, length) in [
            (0x1000, 0x5000), // a hole after it
            (0x0000, 0x2000), // and before
            (0x6000, 1),
            (0x1001, 1), // not on a page
            (0x1000, 0), // nothing
            (0x1000, u64::MAX),
            (0x7000, 0x1001), // a ring
            (0x8000, 1),
            (0x8000, 0x1001), // and nothing
        ] {
            assert_eq!(files(from, length), None, "{from:x} {length:x}");
        }
        assert_eq!(
            parse(MAPS, 0x4000, 1).unwrap()[0].device,
            libc::makedev(0, 42)
        );
        assert_eq!(parse("garbage\n", 0x1000, 1), None);
    }
}
