//! Records as the kernel writes them, and what is made of them.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use super::tracepoint::tests::{ext4, sync_file};
use super::*;

const FORK: u32 = 7;
const EXIT: u32 = 4;
const COMM: u32 = 3;
const MMAP2: u32 = 10;
const SAMPLE: u32 = 9;

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_ne_bytes()).collect()
}

fn padded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 8 * 8 + 8, 0);
    bytes
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).unwrap();
    let mut bytes = words(&[kind]);
    bytes.extend(misc.to_ne_bytes());
    bytes.extend(size.to_ne_bytes());
    bytes.extend(body);
    bytes
}

/// Records in order of time, as one ring holds them.
#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    time: u64,
}

impl Written {
    fn side(&mut self, kind: u32, misc: u16, mut body: Vec<u8>) -> &mut Written {
        self.time += 1;
        body.extend(words(&[0, 0]));
        body.extend(self.time.to_ne_bytes());
        self.bytes.extend(record(kind, misc, &body));
        self
    }

    fn fork(&mut self, parent: u32, process: u32, thread: u32) -> &mut Written {
        self.side(FORK, 0, words(&[process, parent, thread, parent, 0, 0]))
    }

    fn exit(&mut self, process: u32, thread: u32) -> &mut Written {
        self.side(EXIT, 0, words(&[process, 1, thread, 1, 0, 0]))
    }

    fn name(&mut self, process: u32, thread: u32, name: &str) -> &mut Written {
        self.side(COMM, 0, [words(&[process, thread]), padded(name)].concat())
    }

    fn exec(&mut self, process: u32, path: &str) -> &mut Written {
        let name = [words(&[process, process]), padded("name")].concat();
        self.side(COMM, 1 << 13, name);
        self.map(process, path).map(process, "/lib/ld.so")
    }

    fn map(&mut self, process: u32, path: &str) -> &mut Written {
        let mut body = words(&[process, process]);
        body.extend([0; 56]);
        body.extend(padded(path));
        self.side(MMAP2, 0, body)
    }

    fn sync(&mut self, process: u32, thread: u32) -> &mut Written {
        self.time += 1;
        let raw = sync_file(1 << 20, u64::from(u32::MAX));
        let mut body = words(&[process, thread]);
        body.extend(self.time.to_ne_bytes());
        body.extend(words(&[u32::try_from(raw.len()).unwrap()]));
        body.extend(raw);
        self.bytes.extend(record(SAMPLE, 0, &body));
        self
    }

    fn of(&self, leader: u32) -> Witnessed {
        let tracepoints = ext4();
        let mut account = Account::new(1);
        for (_, record) in record::parse(&self.bytes, &tracepoints) {
            account.take(record);
        }
        account.of(leader, &tracepoints)
    }
}

fn callers(seen: &Witnessed) -> Vec<(Option<&str>, bool, u64)> {
    let all = seen.callers.iter();
    all.map(|one| (one.executable.as_deref(), one.io_uring_worker, one.calls))
        .collect()
}

#[test]
fn the_whole_tree_counts_and_nobody_else() {
    let mut ring = Written::default();
    ring.sync(50, 50); // before refit's time
    ring.fork(1, 10, 10).exec(10, "/bin/sh");
    ring.fork(10, 11, 11).sync(11, 11).exec(11, "/bin/sync");
    ring.sync(11, 11).sync(11, 11);
    ring.fork(10, 12, 12).exit(10, 10).fork(12, 13, 13); // a daemon's child
    ring.sync(13, 13);
    ring.fork(50, 60, 60).sync(60, 60); // a stranger
    ring.fork(1, 20, 20).sync(20, 20); // another of refit's own
    let seen = ring.of(10);
    assert_eq!(
        callers(&seen),
        [(Some("/bin/sh"), false, 2), (Some("/bin/sync"), false, 2)]
    );
    assert_eq!(seen.calls, 4);
    assert_eq!(seen.directories[0].calls, 4);
    assert_eq!(seen.directories[0].device, [1, 0]);
    assert_eq!(callers(&ring.of(20)), [(None, false, 1)]);
    assert_eq!(ring.of(50).calls, 0);
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let mut ring = Written::default();
    ring.fork(1, 10, 10).fork(10, 11, 11).exit(11, 11);
    ring.sync(11, 11);
    ring.fork(50, 11, 11).sync(11, 11);
    assert_eq!(ring.of(10).calls, 0);
    // Its end was not recorded: the parent of the new one decides.
    let mut ring = Written::default();
    ring.fork(1, 10, 10)
        .fork(10, 11, 11)
        .fork(50, 11, 11)
        .sync(11, 11);
    assert_eq!(ring.of(10).calls, 0);
}

#[test]
fn threads_outlive_the_first_and_workers_are_told_apart() {
    let mut ring = Written::default();
    ring.fork(1, 10, 10).exec(10, "/bin/fio").fork(10, 10, 15);
    ring.exit(10, 10).sync(10, 15);
    ring.fork(10, 10, 16).name(10, 16, "iou-wrk-15");
    ring.sync(10, 16).sync(10, 16);
    ring.name(50, 51, "iou-wrk-1").sync(50, 51);
    assert_eq!(
        callers(&ring.of(10)),
        [(Some("/bin/fio"), false, 1), (Some("/bin/fio"), true, 2)]
            .iter()
            .rev()
            .copied()
            .collect::<Vec<_>>()
    );
}

#[test]
fn damaged_records_end_the_reading_and_nothing_else() {
    let mut ring = Written::default();
    ring.fork(1, 10, 10)
        .exec(10, "/a")
        .sync(10, 10)
        .exit(10, 10);
    let tracepoints = ext4();
    let mut seed = 7_u32;
    for cut in 0..ring.bytes.len() {
        let mut damaged = ring.bytes[..cut].to_vec();
        let _ = record::parse(&damaged, &tracepoints).count();
        for _ in 0..8 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if let Some(byte) = damaged.get_mut(seed as usize % cut.max(1)) {
                *byte = (seed >> 24) as u8;
            }
            let _ = record::parse(&damaged, &tracepoints).count();
        }
    }
}

/// Syncs a file twice; its name is written to it.
fn child() -> std::process::Child {
    Command::new("sh")
        .args([
            "-c",
            "echo; read -r line; printf x >\"$line\"; sync \"$line\"; sync \"$line\"",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn the_kernel_is_asked_for_real() {
    let mut witness = match Witness::begin() {
        Ok(witness) => witness,
        // An ordinary user, or a container.
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = dir.path().join("file");
    let [mut one, mut other] = [child(), child()];
    for child in [&mut one, &mut other] {
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let mut stdin = child.stdin.take().unwrap();
        writeln!(stdin, "{}", path.display()).unwrap();
        witness.tick();
        assert!(child.wait().unwrap().success());
    }
    File::open(&path).unwrap().sync_all().unwrap();
    let seen = witness.finish(one.id());
    if !is_watched(&path, &seen) {
        eprintln!("skipped: /var/tmp is on no such filesystem");
        return;
    }
    assert_eq!((seen.calls, seen.lost), (2, 0), "{seen:#?}");
    let name = seen.callers[0].executable.as_deref().unwrap();
    assert!(name.ends_with("/sync"), "{name}");
    if seen.filesystems == ["ext4"] {
        assert_eq!(seen.directories[0].path.as_deref(), dir.path().to_str());
    }
    assert_eq!(witness.finish(other.id()).calls, 2);
}

/// Whether the file lies on a filesystem that is watched.
fn is_watched(path: &std::path::Path, seen: &Witnessed) -> bool {
    let kind = Command::new("stat")
        .args(["-f", "-c", "%T"])
        .arg(path)
        .output()
        .unwrap();
    let kind = String::from_utf8(kind.stdout).unwrap();
    // stat(1) prints ext2/ext3 for all three.
    let kind = kind.trim().replace("ext2/ext3", "ext4");
    seen.filesystems.contains(&kind)
}
