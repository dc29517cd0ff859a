//! `sync`: whether the calls that make data durable really do.

use std::fmt;

use super::choice::{ON_OFF, choose, on_or_off};
use super::{Behaviour, Knob, Value};
use crate::explain::{EXE_SCOPE, Prose};
use crate::launch::SwitchRule;
use crate::{Class, ExeName, Launch, Scope};

pub static KNOB: Knob = Knob {
    name: "sync",
    form: "sync[@exe:NAME]=on|off",
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

    fn prose(&self) -> Prose {
        if self.on { ON.prose() } else { OFF.prose() }
    }

    fn apply(&self, scope: Option<&ExeName>, launch: &mut Launch) {
        launch.sync.push(SwitchRule {
            scope: scope.cloned().map(Scope::Exe),
            on: self.on,
        });
    }
}

struct Texts {
    swaps: &'static str,
    risk: &'static str,
    backend: &'static str,
    notes: &'static [&'static str],
}

impl Texts {
    fn prose(&self) -> Prose {
        let notes = self
            .notes
            .iter()
            .chain([&EXE_SCOPE])
            .map(|&note| note.to_owned())
            .collect();
        let Self {
            swaps,
            risk,
            backend,
            ..
        } = *self;
        Prose {
            swaps: swaps.to_owned(),
            risk,
            backend,
            covers: COVERS,
            not_covered: NOT_COVERED,
            notes,
        }
    }
}

const ON: Texts = Texts {
    swaps: "nothing: every sync call is the real one; refit counts and times it",
    risk: "none",
    backend: "a preloaded library that passes each call on to the kernel",
    notes: &["use it to exempt one program from a wider `sync=off`: `sync=off sync@exe:NAME=on`"],
};

const OFF: Texts = Texts {
    swaps: "calls that wait until data is on the disk return at once, without waiting and without writing; \
            files opened with O_SYNC or O_DSYNC become ordinary files",
    risk: "a power cut or kernel crash takes everything since the kernel last wrote back by itself (about 30 s, and \
           more under load), acknowledged or not, in any order, and can leave files torn; errors of writing back (EIO, ENOSPC, \
           EDQUOT at a sync) are not seen by the program. A crash of the program alone loses nothing",
    backend: "a preloaded library; a cheap probe instead of each call (sync_file_range(fd, 0, 0, 0) for descriptors, \
              msync with MS_ASYNC for mappings) lets a bad descriptor or range still fail as the kernel says",
    notes: &[
        "files on FUSE and network filesystems are covered as well: their servers are not asked to commit",
        "one difference to the kernel is known: syncing a descriptor from /proc, of a namespace (nsfs) or of a process \
         (pidfd) answers 0 where the kernel answers EINVAL",
        "fcntl(F_GETFL) does not show an O_SYNC or O_DSYNC that was taken away",
        "programs built for musl are reached as well",
    ],
};

const COVERS: &[&str] = &[
    "fsync, fdatasync, sync, syncfs, sync_file_range",
    "msync with MS_SYNC",
    "O_SYNC and O_DSYNC in open, open64, openat, openat64, openat2, their fortified `_2` entries, mkostemp and mkostemps",
    "RWF_SYNC and RWF_DSYNC in pwritev2",
    "the same calls by number through the C library's syscall()",
];

const NOT_COVERED: &[&str] = &[
    "aio_fsync: it really runs, so that its completion stays true (counted)",
    "lio_listio (counted)",
    "io_uring: rings are counted, what goes through them is not seen",
    "libaio's io_submit",
    "system calls made by an instruction of the program's own instead of through the C library",
    "statically linked programs, most Go programs among them (named)",
    "setuid and setgid programs (named)",
    "32-bit programs (named)",
    "programs built for another C library than glibc or musl (named)",
];
