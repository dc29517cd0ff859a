//! What an emulated disk does, in prose.

use super::latency;
use crate::Scope;
use crate::explain::{Prose, scope_notes};
use crate::launch::{Disk, When};

pub(super) fn prose(disk: Option<&Disk>, scope: Option<&Scope>) -> Prose {
    let mut prose = match disk {
        None => real(),
        Some(Disk::Fail { errno, when }) => fail(errno.1, *when),
        Some(Disk::Latency(points)) => match points.as_slice() {
            [(_, ns)] => slow(&format!("{} for each flush", latency::print(*ns)), &[]),
            _ => slow(
                "a time drawn for each flush from the given percentiles",
                &[
                    "between two percentiles the latency is log-normal, and beyond the outermost the nearest piece goes \
                     on, up to 60s: give a percentile such as p99.9 where the tail matters",
                ],
            ),
        },
        Some(Disk::Profile(path)) => slow(
            &format!(
                "a time drawn for each flush from those sampled into {}",
                path.display()
            ),
            &[
                "`refit doctor --probe-disk DIR --json FILE` samples a disk into a profile",
                "each flush is drawn by itself: of a disk that stalls for several flushes in a row, the latencies are \
                 kept, their order is not",
            ],
        ),
    };
    prose.notes.extend(scope_notes(scope));
    prose
}

fn real() -> Prose {
    Prose {
        swaps: "nothing: sync calls take as long as the real disk takes".to_owned(),
        risk: "none",
        backend: "none needed",
        covers: &[],
        not_covered: &[],
        notes: Vec::new(),
    }
}

fn slow(takes: &str, more: &[&str]) -> Prose {
    let notes = [
        "the real call runs as well, and the longer of both counts: a disk that is faster than the real one, or hardly slower, \
         cannot be emulated",
        "latencies are drawn from 1,024 quantiles, so what comes less often than once in a thousand flushes does not come",
        "each device has one queue: as on a disk with a single queue, concurrent flushes wait for each other",
        "calls that `sync=off` suppresses do not wait: `disk=8ms sync@exe:NAME=off` shows what that one program costs",
    ];
    Prose {
        swaps: format!(
            "every real sync call waits as on another disk: {takes}, after those before it on the same device"
        ),
        risk: "no data at risk: each call still reaches the real disk before it returns; the program is slower, and whatever \
               goes by time (timeouts, watchdogs, retries) notices",
        backend: BACKEND,
        covers: COVERS,
        not_covered: &[
            "writes through descriptors opened with O_SYNC or O_DSYNC, and pwritev2 with RWF_SYNC or RWF_DSYNC: not \
             delayed (counted and named)",
            "writes through descriptors opened with O_DIRECT, all reads, and sync_file_range, which flushes no device: not \
             delayed",
            ASYNCHRONOUS,
            "write-back by the kernel itself, and the writes that a flush has to do first: as on the real disk",
            UNPRIVILEGED,
        ],
        notes: notes
            .iter()
            .chain(more)
            .map(|&note| note.to_owned())
            .collect(),
    }
}

fn fail(error: &str, when: When) -> Prose {
    let which = match when {
        When::Always => "every real sync call fails".to_owned(),
        When::Every(count) => format!("of the real sync calls, one in {count} fails"),
        When::After(count) => format!("all real sync calls after the first {count} fail"),
        When::Chance(millionths) => {
            let percent = super::decimal::print(millionths.into(), 4);
            format!("each real sync call fails with a chance of {percent} %")
        }
    };
    let notes = [
        "the kernel is not asked: the data stays in the page cache, and is written back later as if nothing had been \
         wrong; after a real EIO the kernel marks it clean, and it may be lost",
        "only what could have been synced fails so: a bad descriptor still gives EBADF",
        "calls are numbered over all processes together, in the order in which they come",
        "calls that `sync=off` suppresses are not asked, and do not count",
    ];
    Prose {
        swaps: format!("{which} with {error}; the others reach the disk"),
        risk: "the program is told that its data is not safe, and what it does then is the point: many stop, some lose data \
               or corrupt it by trying again. Until the kernel has written the data back by itself (about 30 s, and more \
               under load), a power cut really takes it",
        backend: BACKEND,
        covers: COVERS,
        not_covered: &[
            "writes through descriptors opened with O_SYNC, O_DSYNC or O_DIRECT, and pwritev2: they do not fail",
            "errors at write(2), close(2) or a read: a disk gives those, too",
            ASYNCHRONOUS,
            UNPRIVILEGED,
        ],
        notes: notes.map(ToOwned::to_owned).to_vec(),
    }
}

const BACKEND: &str = "a preloaded library, with a table that all processes share; beneath it, as root, seccomp user \
                       notification for programs that no preload reaches";

const COVERS: &[&str] = &[
    "fsync, fdatasync, sync, syncfs, and msync with MS_SYNC, through the C library or its syscall()",
    "as root also statically linked, 32-bit, setuid and setgid programs, most Go programs among them",
];

const ASYNCHRONOUS: &str = "aio_fsync, lio_listio, io_submit and io_uring: real, in their own time";

const UNPRIVILEGED: &str =
    "without root: statically linked, 32-bit, setuid and setgid programs (named)";
