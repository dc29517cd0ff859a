//! `sync`: whether the calls that make data durable really do.

use std::fmt;

use super::choice::{ON_OFF, choose, on_or_off};
use super::{Behaviour, Knob, Value};
use crate::explain::{Prose, scope_notes};
use crate::launch::SwitchRule;
use crate::{Class, Launch, Scope};

pub static KNOB: Knob = Knob {
    name: "sync",
    form: "sync[@exe:NAME|@/PATH]=on|off",
    about: "whether fsync and its relatives reach the disk",
    example: "sync=off",
    scoped: true,
    has_members: false,
    once: false,
    aliases: &["fsync", "fdatasync", "syncfs", "msync"],
    opposites: &["eatmydata", "nosync"],
    parse: |word| {
        Ok(Value::Sync(SyncCalls {
            on: choose(word, ON_OFF)?,
        }))
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SyncCalls {
    pub on: bool,
}

impl fmt::Display for SyncCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(on_or_off(self.on))
    }
}

impl Behaviour for SyncCalls {
    fn knob(&self) -> &'static Knob {
        &KNOB
    }

    fn class(&self) -> Class {
        if self.on {
            Class::Safe
        } else {
            Class::LosesOnCrash
        }
    }

    fn prose(&self, scope: Option<&Scope>) -> Prose {
        let texts = if self.on { &ON } else { &OFF };
        texts.prose(scope)
    }

    fn apply(&self, scope: Option<&Scope>, launch: &mut Launch) {
        launch.sync.push(SwitchRule {
            scope: scope.cloned(),
            on: self.on,
        });
    }
}

struct Texts {
    swaps: &'static str,
    risk: &'static str,
    backend: &'static str,
    covers: &'static [&'static str],
    not_covered: &'static [&'static str],
    notes: &'static [&'static str],
}

impl Texts {
    fn prose(&self, scope: Option<&Scope>) -> Prose {
        let of_paths = match scope {
            Some(Scope::Path(_)) => OF_PATHS,
            _ => &[],
        };
        let notes = self.notes.iter().chain(of_paths);
        let notes = notes.map(|&note| note.to_owned());
        Prose {
            swaps: self.swaps.to_owned(),
            risk: self.risk,
            backend: self.backend,
            covers: self.covers,
            not_covered: self.not_covered,
            notes: notes.chain(scope_notes(scope)).collect(),
        }
    }
}

const ON: Texts = Texts {
    swaps: "nothing: every sync call is the real one; refit counts and times it",
    risk: "none",
    backend: "a preloaded library that passes each call on to the kernel",
    covers: &[BY_DESCRIPTOR, MSYNC, OPENS, WRITES, BY_NUMBER, SUBMITTED],
    not_covered: &[
        AIO_FSYNC,
        LIO_LISTIO,
        OWN_RINGS,
        "system calls made by an instruction of the program's own: real, not counted",
        "statically linked, 32-bit, setuid and setgid programs, most Go programs among them: real, not counted (named)",
        "programs built for another C library than glibc or musl: real, not counted (named)",
    ],
    notes: &["use it to exempt one program from a wider `sync=off`: `sync=off sync@exe:NAME=on`"],
};

const OFF: Texts = Texts {
    swaps: "calls that wait until data is on the disk return at once, without waiting and without writing; \
            files opened with O_SYNC or O_DSYNC become ordinary files",
    risk: "a power cut or kernel crash takes everything since the kernel last wrote back by itself (about 30 s, and \
           more under load), acknowledged or not, in any order, and can leave files torn; errors of writing back (EIO, ENOSPC, \
           EDQUOT at a sync) are not seen by the program. A crash of the program alone loses nothing",
    backend: "a preloaded library; a cheap probe instead of each call (sync_file_range(fd, 0, 0, 0) for descriptors, \
              msync with MS_ASYNC for mappings) lets a bad descriptor or range still fail as the kernel says. Beneath it, \
              as root, a seccomp filter for what no preload reaches: without a scope and without `disk=` it answers 0 by \
              itself, else it asks refit about each call",
    covers: &[
        BY_DESCRIPTOR,
        MSYNC,
        OPENS,
        WRITES,
        BY_NUMBER,
        SUBMITTED,
        "as root also statically linked, 32-bit, setuid and setgid programs, most Go programs among them, and system \
         calls made by a program's own instructions: there all but pwritev2, and O_SYNC where refit can do the open \
         exactly as the program would",
    ],
    not_covered: &[
        AIO_FSYNC,
        LIO_LISTIO,
        OWN_RINGS,
        "without root: system calls made by an instruction of the program's own",
        "without root: statically linked, 32-bit, setuid and setgid programs, most Go programs among them (named)",
        "without root: programs built for another C library than glibc or musl (named)",
    ],
    notes: &[
        "files on FUSE and network filesystems are covered as well: their servers are not asked to commit",
        "one difference to the kernel is known in the preload: syncing a descriptor from /proc, of a namespace (nsfs) or \
         of a process (pidfd) answers 0 where the kernel answers EINVAL",
        "where the filter answers by itself, every descriptor but a negative one gives 0, bad ones too, and such calls \
         are not counted",
        "fcntl(F_GETFL) does not show an O_SYNC or O_DSYNC that was taken away",
        "programs built for musl are reached as well",
    ],
};

/// Path scopes decide on the file of each call.
const OF_PATHS: &[&str] = &[
    "the path that the open file has at the moment of the sync decides (of an O_SYNC open: the path that was opened), so \
     a file that was renamed goes by its new name, and one that was removed by its last; syncing a directory is a call \
     on that directory's own path",
    "msync, syncfs and sync() are about more than one file: real, unless a seccomp filter lets refit look",
];

const BY_DESCRIPTOR: &str = "fsync, fdatasync, sync, syncfs, sync_file_range";
const MSYNC: &str = "msync with MS_SYNC";
const OPENS: &str = "O_SYNC and O_DSYNC in open, open64, openat, openat64, openat2, their fortified `_2` entries, mkostemp and mkostemps";
const WRITES: &str = "RWF_SYNC and RWF_DSYNC in pwritev2";
const BY_NUMBER: &str = "the same calls by number through the C library's syscall()";

const AIO_FSYNC: &str = "aio_fsync: it really runs, so that its completion stays true (counted)";
const LIO_LISTIO: &str = "lio_listio (counted)";
const SUBMITTED: &str = "syncs and synchronous writes and opens that liburing's io_uring_submit and its kin hand over; FSYNC and FDSYNC in io_submit";
const OWN_RINGS: &str =
    "an io_uring that a program fills without liburing: counted, what goes through it is not seen";
