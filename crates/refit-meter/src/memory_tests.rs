use super::*;
use crate::stat::FakeProc;
use std::io::Read;
use std::process::{Command, Stdio};

const KIB: u64 = 1024;

#[test]
fn a_tree_is_summed_with_its_parent_told_apart() {
    let proc = FakeProc::new();
    for (pid, pss) in [(3, 100), (4, 20), (5, 3)] {
        proc.process(pid, "a", 'S', 1);
        proc.smaps(pid, 2 * pss, pss, 1);
    }
    let mut sample = memory_sample(proc.path(), &[4, 3, 5, 99], 3);
    sample.cost_us = 0;
    let expected = MemorySample {
        processes: 3,
        parent_pss_bytes: 100 * KIB,
        children_pss_bytes: 23 * KIB,
        rss_bytes: 246 * KIB,
        vsz_bytes: 3 * 4096,
        swap_pss_bytes: 3 * KIB,
        ..MemorySample::default()
    };
    assert_eq!(sample, expected);
    assert_eq!(sample.pss_bytes(), 123 * KIB);
}

#[test]
fn the_ended_have_no_memory_and_the_unreadable_are_counted() {
    let proc = FakeProc::new();
    proc.process(3, "ended", 'Z', 1);
    // Its smaps must not be asked for: a zombie has none.
    proc.smaps(3, 5, 5, 5);
    proc.process(4, "no smaps", 'S', 1);
    for (pid, text) in [
        (5, "".as_bytes()),
        (6, b"Rss: 1 kB\nPss: 2 kB\n"),
        (7, b"Rss: 1 kB\nPss: 2 MB\nSwapPss: 0 kB\n"),
        (8, b"\xff\xfe"),
        (9, b"Rss: 1 kB\nPss: -2 kB\nSwapPss: 0 kB\n"),
        (10, b"Rss: 1 kB\nPss_Anon: 2 kB\nSwapPss: 0 kB\n"),
    ] {
        proc.process(pid, "a", 'S', 1);
        proc.write(&format!("{pid}/smaps_rollup"), text);
    }
    let pids: Vec<u32> = (3..=10).collect();
    let sample = memory_sample(proc.path(), &pids, 4);
    assert_eq!((sample.processes, sample.unreadable), (0, 7));
    assert_eq!(
        (sample.pss_bytes(), sample.rss_bytes, sample.vsz_bytes),
        (0, 0, 0)
    );
}

#[test]
fn a_process_whose_first_thread_ended_still_has_its_memory() {
    let proc = FakeProc::new();
    proc.process(3, "a", 'Z', 1);
    proc.write("3/task/3/stat", "");
    proc.write(
        "3/task/8/stat",
        "8 (a) S 1 0 0 0 -1 0 1 2 3 4 5 6 7 8 20 0 2 0 99 8192 7 0",
    );
    proc.write(
        "3/task/8/smaps_rollup",
        "Rss: 4 kB\nPss: 2 kB\nSwapPss: 0 kB\n",
    );
    let sample = memory_sample(proc.path(), &[3], 3);
    assert_eq!(
        (sample.processes, sample.pss_bytes(), sample.vsz_bytes),
        (1, 2 * KIB, 8192)
    );
}

#[test]
fn numbers_beyond_every_limit_do_not_overflow() {
    let proc = FakeProc::new();
    for pid in [3, 4, 5] {
        proc.process(pid, "a", 'S', 1);
        proc.smaps(pid, u64::MAX, u64::MAX, u64::MAX);
    }
    let sample = memory_sample(proc.path(), &[3, 4, 5], 3);
    assert_eq!((sample.pss_bytes(), sample.rss_bytes), (u64::MAX, u64::MAX));
}

#[test]
fn available_memory_is_a_line_of_meminfo() {
    let proc = FakeProc::new();
    assert_eq!(memory_available(proc.path()), None);
    proc.write(
        "meminfo",
        "MemTotal: 9 kB\nMemAvailable:    7 kB\nBuffers: 1 kB\n",
    );
    assert_eq!(memory_available(proc.path()), Some(7 * KIB));
    proc.write(
        "meminfo",
        "MemTotal: 9 kB\nMemAvailableX: 7 kB\nMemAvailable: x kB\n",
    );
    assert_eq!(memory_available(proc.path()), None);
    assert!(memory_available(Path::new("/proc")).unwrap() > 1 << 20);
}

#[test]
fn of_real_processes_what_they_share_counts_once() {
    let proc = Path::new("/proc");
    let mut cats: Vec<_> = (0..4)
        .map(|_| {
            Command::new("cat")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for cat in &mut cats {
        // After its start.
        std::io::Write::write_all(cat.stdin.as_mut().unwrap(), b"x").unwrap();
        cat.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    }
    let pids: Vec<u32> = cats.iter().map(std::process::Child::id).collect();
    let sample = memory_sample(proc, &pids, pids[0]);
    assert_eq!((sample.processes, sample.unreadable), (4, 0));
    assert!(sample.parent_pss_bytes > 0 && sample.children_pss_bytes > sample.parent_pss_bytes);
    // Four times the C library, but one library.
    assert!(sample.rss_bytes > 2 * sample.pss_bytes(), "{sample:?}");
    assert!(sample.vsz_bytes > sample.rss_bytes && sample.cost_us > 0);
    cats[3].kill().unwrap();
    while !Stat::read(&at(proc, pids[3])).unwrap().ended() {
        std::thread::yield_now();
    }
    let sample = memory_sample(proc, &pids, pids[0]);
    assert_eq!((sample.processes, sample.unreadable), (3, 0));
    for cat in &mut cats {
        drop(cat.stdin.take());
        cat.wait().unwrap();
    }
}
