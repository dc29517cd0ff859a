//! Profiles of disks, patterns of paths, executables: what somebody else wrote and refit reads before a start.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use refit_fuzz::Target as Fuzzed;
use rustix::fd::AsRawFd;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::arch::ELF_MACHINE;
use crate::disk::profile;
use crate::disk::quantiles::{MAX_NS, of_samples};
use crate::own_syscalls::has_own_syscalls;
use crate::sys::pattern;
use crate::target::{Kind, Target};

#[test]
fn profiles() {
    let seed = r#"{"schema":1,"kind":"disk-profile","refit":"0.1.0","device":{"name":"vda"},"samples_ns":[812000,1,950000]}"#;
    Fuzzed::new(env!("CARGO_MANIFEST_DIR"), "profiles")
        .seeds([seed])
        .words([
            "samples_ns",
            "60000000000",
            "60000000001",
            "null",
            "\\u0000",
            "[",
            "]",
        ])
        .run(|input| match profile::parse(input) {
            Ok(samples) => {
                let table = of_samples(samples);
                assert!(table.is_sorted() && table.iter().all(|ns| (1..=MAX_NS).contains(ns)));
            }
            Err(problem) => assert!(!problem.to_string().contains('\n'), "{problem}"),
        });
}

/// What `pattern.c` promises, as plainly as it can be written.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    // A pattern of a directory means it and all below it.
    if let Some(directory) = pattern.strip_suffix(b"/") {
        let reached = reached(directory, path);
        let mut ends =
            (0..=path.len()).filter(|end| path.get(*end).is_none_or(|byte| *byte == b'/'));
        return ends.any(|end| reached[end]);
    }
    reached(pattern, path)[path.len()]
}

/// Of each length of the path, whether the pattern matches that much of it.
fn reached(pattern: &[u8], path: &[u8]) -> Vec<bool> {
    // Row by row: what the pattern so far can reach.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    let mut rest = pattern;
    while let Some((first, after)) = rest.split_first() {
        let mut next = vec![false; path.len() + 1];
        if *first == b'*' {
            let across = after.first() == Some(&b'*');
            rest = if across { &after[1..] } else { after };
            for at in 0..=path.len() {
                let goes_on = at > 0 && next[at - 1] && (across || path[at - 1] != b'/');
                next[at] = reached[at] || goes_on;
            }
        } else {
            for at in 0..path.len() {
                let fits = *first == path[at] || (*first == b'?' && path[at] != b'/');
                next[at + 1] = reached[at] && fits;
            }
            rest = after;
        }
        reached = next;
    }
    reached
}

/// A pattern, a line end, a path.
#[test]
fn patterns() {
    let seeds = [
        "/a/**/x*y\n/a/b/xz/xzzy",
        "/a/\n/a/b/c",
        "/*/incoming/\n/spool/incoming/1",
        "/a?c\n/abc",
    ];
    Fuzzed::new(env!("CARGO_MANIFEST_DIR"), "patterns")
        .seeds(seeds)
        .words(["*", "**", "?", "/", "***", "a"])
        .longest(200)
        .run(|input| {
            let text = String::from_utf8_lossy(input).replace('\0', "");
            let (pattern, path) = text.split_once('\n').unwrap_or((&text, "/a"));
            assert_eq!(
                pattern::matches(pattern, Path::new(path)),
                matches(pattern.as_bytes(), path.as_bytes()),
                "{pattern:?} {path:?}"
            );
        });
}

/// An executable of a few headers: an interpreter, a dynamic section with a name, a note.
fn small_elf() -> Vec<u8> {
    let mut interpreter = Target::look(Path::new("/bin/true"))
        .interpreter
        .into_bytes();
    interpreter.push(0);
    let machine = ELF_MACHINE.to_le_bytes();
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(64, 0);
    let header: [(usize, &[u8]); 5] = [
        (16, &[3, 0, machine[0], machine[1], 1]), // e_type, e_machine, e_version
        (32, &[64]),                              // e_phoff
        (52, &[64]),                              // e_ehsize
        (54, &[56]),                              // e_phentsize
        (56, &[4]),                               // e_phnum
    ];
    for (place, bytes) in header {
        file[place..place + bytes.len()].copy_from_slice(bytes);
    }
    let data = 64 + 4 * 56;
    // PT_INTERP, PT_LOAD, PT_DYNAMIC, PT_NOTE: place and length in the data below.
    let ended = interpreter.len() as u64;
    for (kind, at, length) in [(3, 0, ended), (1, 0, 256), (2, 64, 48), (4, 112, 24)] {
        let mut words = [0_u64; 7];
        words[0] = kind | (5 << 32);
        words[1] = data + at;
        (words[2], words[3]) = (at, at);
        (words[4], words[5], words[6]) = (length, length, 4);
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    let mut rest = interpreter;
    rest.resize(64, 0);
    // DT_STRTAB 160, DT_NEEDED 0, DT_NULL.
    rest.extend(
        [5_u64, 160, 1, 0, 0, 0]
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    rest.resize(112, 0);
    rest.extend([4_u32, 4, 4].iter().flat_map(|word| word.to_le_bytes()));
    rest.extend(b"Go\0\0abcd");
    rest.resize(160, 0);
    rest.extend(b"libasan.so.8\0");
    rest.resize(256, 0);
    file.extend(rest);
    file
}

mod seeds {
    use super::*;

    #[test]
    fn the_small_executable_has_all_that_is_looked_for() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&small_elf()).unwrap();
        let target = Target::look(file.path());
        let native = Target::look(Path::new("/bin/true"));
        assert_eq!(target.kind, native.kind);
        assert_eq!(target.interpreter, native.interpreter);
        assert!(target.own_calls, "the note of Go");
        assert!(
            target
                .reason
                .is_some_and(|why| why.starts_with("sanitizer")),
            "{:?}",
            target.reason
        );
    }
}

#[test]
fn executables() {
    Fuzzed::new(env!("CARGO_MANIFEST_DIR"), "executables")
        .seeds([
            small_elf(),
            b"#!/bin/sh -e\n".to_vec(),
            b"#! \n".to_vec(),
            b"#!/proc/self/exe".to_vec(),
        ])
        .words(["#!", "/bin/sh", "ld-musl-", "\u{f}\u{5}"])
        .longest(4096)
        .run(|input| {
            let mut file = File::from(memfd_create("fuzz", MemfdFlags::CLOEXEC).unwrap());
            file.write_all(input).unwrap();
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let target = Target::look(Path::new(&path));
            if !input.starts_with(b"\x7fELF") && !input.starts_with(b"#!") {
                assert_eq!(target.kind, Kind::Unknown);
            }
            assert!(!target.is_seen_whole() || target.reason.is_none());
            // Neither is longer than its room, and both end.
            assert!(target.interpreter.len() < 128 * 3 && target.path.as_os_str().len() < 256);
            let _ = has_own_syscalls(Path::new(&path));
        });
}

/// The C sources once more, built with sanitizers: they see what does not crash.
struct Harness {
    child: std::process::Child,
    _directory: tempfile::TempDir,
}

impl Harness {
    fn start() -> Harness {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let preload = package.join("../refit-preload");
        let own = package.join("../../tests/fuzz/sanitized");
        let architecture = format!("arch/{}", std::env::consts::ARCH);
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("harness");
        let mut compiler = Command::new("gcc");
        compiler
            .args(["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Werror"])
            .args([
                "-fsanitize=address,undefined",
                "-fno-sanitize-recover=all",
                "-include",
                "calls.h",
            ])
            .args(["sync", &architecture].map(|part| format!("-I{}", preload.join(part).display())))
            .arg(format!("-I{}", own.display()))
            .arg(own.join("harness.c"))
            .args(["target.c", "pattern.c"].map(|name| preload.join("sync").join(name)))
            .arg("-o")
            .arg(&program);
        assert!(compiler.status().unwrap().success(), "{compiler:?}");
        let child = Command::new(&program)
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Harness {
            child,
            _directory: directory,
        }
    }

    /// Whether the pattern matched; what the sanitizer wrote where it ended.
    fn look(&mut self, input: &[u8]) -> Result<bool, String> {
        let length = u32::try_from(input.len()).unwrap();
        let to = self.child.stdin.as_mut().unwrap();
        let sent = to
            .write_all(&length.to_le_bytes())
            .and_then(|()| to.write_all(input));
        let mut answer = [0];
        let from = self.child.stdout.as_mut().unwrap();
        let answered = sent
            .and_then(|()| to.flush())
            .and_then(|()| from.read_exact(&mut answer));
        answered.map(|()| answer[0] != 0).map_err(|_| {
            let mut text = String::new();
            let _ = self.child.stderr.take().unwrap().read_to_string(&mut text);
            text
        })
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn sanitized() {
    let harness = Mutex::new(Harness::start());
    let patterns = ["/a/**/x*y\n/a/b/xz/xzzy", "/a/\n/a/b/c"];
    Fuzzed::new(env!("CARGO_MANIFEST_DIR"), "sanitized")
        .seeds([small_elf(), b"#!/bin/sh -e\n".to_vec()])
        .seeds(patterns)
        .words(["#!", "/bin/sh", "**", "*/", "\n"])
        .longest(4096)
        .run(|input| {
            let mut harness = harness.lock().unwrap_or_else(PoisonError::into_inner);
            match harness.look(input) {
                Ok(matched) => {
                    let end = input
                        .iter()
                        .position(|byte| *byte == 0)
                        .unwrap_or(input.len());
                    let (pattern, path) = match input[..end].iter().position(|byte| *byte == b'\n')
                    {
                        Some(at) => (&input[..at], &input[at + 1..end]),
                        None => (&input[..end], &[][..]),
                    };
                    assert_eq!(matched, matches(pattern, path));
                }
                Err(text) => {
                    *harness = Harness::start();
                    drop(harness);
                    panic!("{text}");
                }
            }
        });
}
