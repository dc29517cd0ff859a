//! Files that a person names to be read. What lies under a name may be anybody's and of any length, or a pipe that
//! never ends: no more of it is kept in memory than such a file can have.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// A stored result: a watch keeps two thousand samples, each of hundreds of services.
pub const MOST_OF_RESULT: u64 = 256 << 20;
/// An object of Kubernetes, which etcd holds to 1.5 MiB, and a profile of a container.
pub const MOST_OF_OBJECT: u64 = 16 << 20;

/// The text of a file, or of a pipe.
///
/// # Errors
/// It cannot be read, is not UTF-8, or has more than `most` bytes.
pub fn read(path: &Path, most: u64) -> Result<String> {
    let failed = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(failed)?;
    // A file that is too long is not read to find that out.
    let known = file.metadata().map_or(0, |meta| meta.len());
    text(file, known, most).with_context(failed)
}

/// The text of standard input.
///
/// # Errors
/// As of [`read`].
pub fn read_stdin(most: u64) -> Result<String> {
    text(stdin().lock(), 0, most).context("cannot read stdin")
}

fn text(from: impl Read, known: u64, most: u64) -> Result<String> {
    let mut bytes = Vec::new();
    if known <= most {
        from.take(most + 1).read_to_end(&mut bytes)?;
    }
    if known.max(bytes.len() as u64) > most {
        bail!("it is longer than {} MiB, the limit here", most >> 20);
    }
    String::from_utf8(bytes).context("it is not UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_the_limit() {
        let is_long = |read: Result<String>| {
            read.is_err_and(|error| format!("{error:#}").contains("longer than 1 MiB"))
        };
        let most = 1 << 20;
        let zeros = |count: u64| std::io::repeat(0).take(count);
        assert_eq!(text(zeros(most), 0, most).unwrap().len(), 1 << 20);
        assert!(is_long(text(zeros(most + 1), 0, most)));
        assert!(is_long(text(std::io::repeat(0xff), 0, most)));
        assert!(is_long(read(Path::new("/dev/zero"), most)));
        let sparse = tempfile::NamedTempFile::new().unwrap();
        sparse.as_file().set_len(1 << 40).unwrap();
        assert!(is_long(read(sparse.path(), most)));
    }
}
