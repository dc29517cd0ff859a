//! Files in which two blocks were written in half: the control of a check's eyes.
//!
//! A disk that honours its flushes never leaves durable blocks like these. A check that finds everything all the same
//! looks at names or sizes only, and tells nothing of what is in the files. The last block alone does not show that: the
//! newest transaction may have been under way, and a database then takes its page back from the journal.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file system's block, and a page.
const BLOCK: u64 = 4096;
/// So far from the end of a file the last block with data is looked for: preallocated files end in zeros.
const MOST: u64 = 64 << 20;

/// Tears in each regular file below a directory the last block with data, and the one in the middle before it: their
/// second half reads as zeros, as if only the first had been written. Returns how many files were torn.
///
/// # Errors
/// A file cannot be read or written.
pub fn tear_files(below: &Path) -> io::Result<usize> {
    let mut torn = 0;
    for entry in fs::read_dir(below)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            torn += tear_files(&entry.path())?;
        } else if kind.is_file() {
            let file = File::options().read(true).write(true).open(entry.path())?;
            torn += usize::from(tear_file(&file)?);
        }
    }
    Ok(torn)
}

/// Whether there was anything to tear.
fn tear_file(file: &File) -> io::Result<bool> {
    let size = file.metadata()?.len();
    let mut start = size.saturating_sub(1) / BLOCK * BLOCK;
    while !tear_block(file, start)? {
        if start == 0 || size - start > MOST {
            return Ok(false);
        }
        start -= BLOCK;
    }
    let middle = start / 2 / BLOCK * BLOCK;
    if middle < start {
        tear_block(file, middle)?;
    }
    Ok(true)
}

/// Whether there was anything but zeros in the block at this offset.
fn tear_block(file: &File, start: u64) -> io::Result<bool> {
    let mut block = Vec::new();
    let mut reader = file;
    reader.seek(SeekFrom::Start(start))?;
    reader.take(BLOCK).read_to_end(&mut block)?;
    let Some(last) = block.iter().rposition(|byte| *byte != 0) else {
        return Ok(false);
    };
    let half = last.div_ceil(2);
    block[half..=last].fill(0);
    file.write_all_at(&block[half..=last], start + half as u64)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_with_data_and_the_middle_are_torn_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("a");
        fs::create_dir(&below).unwrap();
        let log = below.join("log");
        let mut bytes: Vec<u8> = b"0123456789".repeat(1000);
        fs::write(&log, &bytes).unwrap();
        // Preallocated, as a write-ahead log.
        let long = directory.path().join("long");
        fs::write(&long, b"abcd").unwrap();
        File::options()
            .write(true)
            .open(&long)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        fs::write(directory.path().join("empty"), b"").unwrap();
        fs::write(directory.path().join("zeros"), vec![0; 10_000]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("link")).unwrap();
        assert_eq!(tear_files(directory.path()).unwrap(), 2);
        // The last of three blocks has 1808 bytes.
        bytes[8192 + 904..].fill(0);
        bytes[4096 + 2048..8192].fill(0);
        assert!(fs::read(&log).unwrap() == bytes);
        assert_eq!(&fs::read(&long).unwrap()[..5], b"ab\0\0\0");
    }
}
