//! Files in which a block was written in half: the control of a check's eyes.
//!
//! A disk that honours its flushes never leaves a durable block like this. A check that finds everything all the same
//! looks at names or sizes only, and tells nothing of what is in the files.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A file system's block, and a page.
const BLOCK: u64 = 4096;
/// So far from the end of a file the last block with data is looked for: preallocated files end in zeros.
const MOST: u64 = 64 << 20;

/// Tears the last block with data in each regular file below a directory: its second half reads as zeros, as if only the
/// first had been written. Returns how many files were torn.
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
            torn += usize::from(tear(&file)?);
        }
    }
    Ok(torn)
}

/// Whether there was anything to tear.
fn tear(file: &File) -> io::Result<bool> {
    let size = file.metadata()?.len();
    let mut block = [0; BLOCK as usize];
    let mut start = size.saturating_sub(1) / BLOCK * BLOCK;
    loop {
        let length = usize::try_from(BLOCK.min(size - start)).expect("at most a block");
        file.read_exact_at(&mut block[..length], start)?;
        if let Some(last) = block[..length].iter().rposition(|byte| *byte != 0) {
            let half = last.div_ceil(2);
            block[half..=last].fill(0);
            file.write_all_at(&block[half..=last], start + half as u64)?;
            return Ok(true);
        }
        if start == 0 || size - start > MOST {
            return Ok(false);
        }
        start -= BLOCK;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_block_with_data_is_torn_and_nothing_else() {
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
        assert!(fs::read(&log).unwrap() == bytes);
        assert_eq!(&fs::read(&long).unwrap()[..5], b"ab\0\0\0");
    }
}
