//! What is known of a program before it is started.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use rustix::fs::fgetxattr;

use crate::ask::{Ask, QUESTION};
use crate::{Error, FileError, System};

/// A program.
pub struct Program {
    mode: u32,
    has_capabilities: bool,
    is_elf: bool,
    /// What loads its libraries; `None` of a script or a static program.
    pub loader: Option<String>,
}

/// Whether this is the place of a loader of glibc (<https://sourceware.org/glibc/wiki/ABIList>) or of musl.
pub fn is_loader(path: &str) -> bool {
    let Some((dir, name)) = path.rsplit_once('/') else {
        return false;
    };
    let names = ["ld-linux", "ld64.so", "ld-musl-"];
    ["/lib", "/lib64"].contains(&dir) && names.iter().any(|start| name.starts_with(start))
}

/// The program headers of an ELF file are in its first page.
const HEAD: usize = 4096;
/// elf(5)
const PT_INTERP: u32 = 3;

impl Program {
    /// The program at a path; `None` where there is none.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn read(system: &System, path: &str) -> Result<Option<Program>, Error> {
        let Some(mut file) = system.open(path)? else {
            return Ok(None);
        };
        let failed = FileError::at(std::path::Path::new(path));
        let meta = file.metadata().map_err(&failed)?;
        if !meta.is_file() {
            return Ok(None);
        }
        let mut head = Vec::new();
        let mut first = Read::by_ref(&mut file).take(HEAD as u64);
        first.read_to_end(&mut head).map_err(&failed)?;
        Ok(Some(Program {
            mode: meta.mode(),
            has_capabilities: has_capabilities(&file),
            is_elf: head.starts_with(b"\x7fELF"),
            loader: loader(&head),
        }))
    }

    /// Whether somebody may execute it.
    pub fn is_executable(&self) -> bool {
        self.mode & 0o111 != 0
    }

    /// Refuses a program that a script in its place would not start as it is, or that loads no
    /// libraries where some are meant for it.
    ///
    /// # Errors
    /// The reason.
    pub fn refuse(&self, has_libraries: bool) -> Result<(), &'static str> {
        if !self.is_executable() {
            return Err("it cannot be executed");
        }
        if self.mode & 0o6000 != 0 || self.has_capabilities {
            return Err(
                "it is set-id or has capabilities: ld.so then takes no LD_PRELOAD from a variable",
            );
        }
        if has_libraries && self.is_elf && self.loader.is_none() {
            return Err("it is a static program: it loads no libraries");
        }
        Ok(())
    }
}

fn has_capabilities(file: &File) -> bool {
    let mut value = [0; 64];
    fgetxattr(file, "security.capability", &mut value).is_ok_and(|length| length > 0)
}

/// The interpreter of a 64-bit little-endian ELF file (elf(5)).
fn loader(head: &[u8]) -> Option<String> {
    let is_known = head.starts_with(b"\x7fELF\x02\x01");
    let number = |at: usize, length: usize| -> Option<usize> {
        let bytes = head.get(at..at.checked_add(length)?)?;
        let value = bytes
            .iter()
            .rev()
            .fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
        usize::try_from(value).ok()
    };
    let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let mut headers = (0..count).filter_map(|index| start.checked_add(index.checked_mul(size)?));
    let header = headers.find(|at| number(*at, 4) == Some(PT_INTERP as usize))?;
    let (offset, length) = (number(header + 8, 8)?, number(header + 32, 8)?);
    let name = head.get(offset..offset.checked_add(length)?)?;
    let name = std::str::from_utf8(name).ok()?.trim_end_matches('\0');
    is_known.then(|| name.to_owned())
}

/// Whether a loader would load these libraries with a program. It lists them, and starts nothing.
///
/// # Errors
/// What it prints otherwise.
pub fn would_load(loader: &str, program: &str, libraries: &str) -> Result<(), String> {
    let output = Command::new(loader)
        .args(["--list", program])
        .env_clear()
        .env("LD_PRELOAD", libraries)
        .stdin(Stdio::null())
        .answer(QUESTION)
        .map_err(|error| error.to_string())?;
    let listed = String::from_utf8_lossy(&output.stdout);
    let is_listed = |library: &str| listed.lines().any(|line| line.contains(library));
    if output.status.success() && libraries.split(':').all(is_listed) {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{libraries} is not among what it would load; {}",
        errors.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loader_is_found_in_a_program_and_nowhere_else() {
        let own = std::fs::read("/bin/sh").expect("a shell");
        let found = loader(&own[..HEAD]).expect("it is dynamic");
        assert!(
            found.starts_with("/lib") && found.contains("ld-"),
            "{found}"
        );
        assert_eq!(loader(b"#!/bin/sh\n"), None);
        for end in 0..256 {
            let mut damaged = own[..HEAD].to_vec();
            damaged[32..64].fill(u8::try_from(end).expect("small"));
            assert_eq!(loader(&damaged), None);
            assert_eq!(loader(&own[..end]), None);
        }
    }
}
