//! What an emulated disk does, in prose.

use super::{decimal, latency};
use crate::explain::{OWN_SECCOMP, Prose, scope_notes};
use crate::launch::{Disk, When};
use crate::scope::Scope;

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
        "the real call runs as well, and the longer of both counts: a disk that is faster than the real one, or hardly \
         slower, cannot be emulated. Where the seccomp filter reaches a program, the real call runs after the wait, and \
         the two add up",
        "latencies are drawn from 1,024 quantiles, so what comes less often than once in a thousand flushes does not come",
        "flushes are shared, as by file systems and the block layer: of all calls that come while a flush of their device \
         runs, one flush is begun when that ends, and it serves them all",
        "sync, and msync in the preload, flush the device of `/`",
        "calls that `sync=off` suppresses do not wait: `disk=8ms sync@exe:NAME=off` shows what that one program costs",
    ];
    Prose {
        swaps: format!(
            "every real sync call waits as on another disk: {takes}; a call that comes while one runs on the same \
             device waits for the next"
        ),
        risk: "no data at risk: each call still reaches the real disk before it returns; the program is slower, and whatever \
               goes by time (timeouts, watchdogs, retries) notices",
        backend: BACKEND,
        covers: &[
            "fsync, fdatasync, sync, syncfs, and msync with MS_SYNC, through the C library or its syscall()",
            WITH_THE_FILTER,
        ],
        not_covered: &[
            "writes through descriptors opened with O_SYNC or O_DSYNC, and pwritev2 with RWF_SYNC or RWF_DSYNC: not \
             delayed (counted and named)",
            "writes through descriptors opened with O_DIRECT, all reads, and sync_file_range, which flushes no device: not \
             delayed",
            ASYNCHRONOUS,
            "write-back by the kernel itself, and the writes that a flush has to do first: as on the real disk",
            OWN_SECCOMP,
            WITHOUT_THE_FILTER,
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
            let percent = decimal::print(millionths.into(), 4);
            format!("each real sync call fails with a chance of {percent} %")
        }
    };
    let notes = [
        "the kernel is not asked: the data stays in the page cache, and is written back later as if nothing had been \
         wrong; after a real EIO the kernel marks it clean, and it may be lost",
        "only what could have been synced fails so: a bad descriptor still gives EBADF",
        "calls are numbered over all processes together, in the order in which they come",
        "calls that `sync=off` suppresses do not fail, and are not numbered",
    ];
    Prose {
        swaps: format!("{which} with {error}; the others reach the disk"),
        risk: "the program learns that its data is not safe: many stop then, and some lose data or corrupt it by trying \
               again. Until the kernel has written the data back by itself (about 30 s, and more \
               under load), a power cut really takes it",
        backend: BACKEND,
        covers: &[
            "fsync, fdatasync, syncfs, and msync with MS_SYNC, through the C library or its syscall()",
            WITH_THE_FILTER,
        ],
        not_covered: &[
            "sync(2), which cannot fail, and sync_file_range, which flushes no device: real, and not numbered",
            "writes through descriptors opened with O_SYNC, O_DSYNC or O_DIRECT, and pwritev2: they do not fail",
            "errors at write(2), close(2) or a read: a disk gives those, too",
            ASYNCHRONOUS,
            OWN_SECCOMP,
            WITHOUT_THE_FILTER,
        ],
        notes: notes.map(ToOwned::to_owned).to_vec(),
    }
}

const BACKEND: &str = "a preloaded library, with a table that all processes share; beneath it, as root or with \
                       --no-new-privs, seccomp user notification for programs that no preload reaches";

const WITH_THE_FILTER: &str = "with the filter also statically linked, 32-bit, setuid and setgid programs, most Go \
                               programs among them";

const ASYNCHRONOUS: &str = "aio_fsync, lio_listio, io_submit and io_uring: real, in their own time";

const WITHOUT_THE_FILTER: &str =
    "without the filter: statically linked, 32-bit, setuid and setgid programs (named)";
