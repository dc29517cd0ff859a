//! `sync`: whether the calls that make data durable really do.

use super::switch::{self, Kind, Switch, Texts};
use crate::error::SettingError;
use crate::explain::OWN_SECCOMP;
use crate::ground::Ground;
use crate::knob::Knob;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "sync",
    form: "sync[@exe:NAME|@/PATH]=on|off",
    about: "whether fsync and its relatives reach the disk",
    example: "sync=off",
    scoped: true,
    has_members: false,
    once: false,
    permanent: "sync=off",
    grounds: &[Ground::Unit, Ground::Daemon, Ground::Container, Ground::Pod],
    values: switch::words,
    aliases: &["fsync", "fdatasync", "syncfs", "msync"],
    opposites: &["eatmydata", "nosync"],
};

pub(crate) static KIND: Kind = Kind {
    knob: &KNOB,
    on: ON,
    off: OFF,
    of_paths: OF_PATHS,
    rules: |launch| &mut launch.sync,
};

pub(crate) fn parse(word: &Word) -> Result<Switch, SettingError> {
    switch::parse(word, &KIND)
}

const ON: Texts = Texts {
    swaps: "nothing: every sync call is the real one. refit counts each, and times those that return when the \
            data is on the disk",
    risk: "none",
    backend: "a preloaded library that passes each call on to the kernel",
    covers: &[BY_DESCRIPTOR, MSYNC, OPENS, WRITES, BY_NUMBER, SUBMITTED],
    not_covered: &[
        "aio_fsync and lio_listio: real, counted, not timed",
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
              msync with MS_ASYNC for mappings) lets a bad descriptor or range still fail with the kernel's error. Beneath \
              it, as root or with --no-new-privs, a seccomp filter for what no preload reaches: without a scope and \
              without `disk=` it answers 0 by itself, otherwise it asks refit about each call",
    covers: &[
        BY_DESCRIPTOR,
        MSYNC,
        OPENS,
        WRITES,
        BY_NUMBER,
        SUBMITTED,
        "with the filter also statically linked, 32-bit, setuid and setgid programs, most Go programs among them, and \
         system calls made by a program's own instructions: there fsync and its relatives, msync, and, where a \
         guardian listens (scopes, `disk=`, `--backend seccomp`, or a first program that no preload reaches), O_SYNC \
         where refit can do the open exactly as the program would; not pwritev2, io_submit and io_uring",
    ],
    not_covered: &[
        "aio_fsync and lio_listio: the real ones run, so that their completion stays true (counted)",
        OWN_RINGS,
        NEWER,
        OWN_SECCOMP,
        "without the filter: system calls made by an instruction of the program's own; also with it in a dynamic program \
         that another one starts, unless by `--backend seccomp` (named)",
        "without the filter: statically linked, 32-bit, setuid and setgid programs, most Go programs among them (named)",
        "without the filter: programs built for another C library than glibc or musl (named)",
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
    "through io_uring, O_SYNC opens and syncs of registered files are real: their path is not known in time",
];

const BY_DESCRIPTOR: &str = "fsync, fdatasync, sync, syncfs, sync_file_range";
const MSYNC: &str = "msync with MS_SYNC";
const OPENS: &str = "O_SYNC and O_DSYNC in open, open64, openat, openat64, openat2, their fortified `_2` entries, mkostemp and mkostemps";
const WRITES: &str = "RWF_SYNC and RWF_DSYNC in pwritev2";
const BY_NUMBER: &str = "the same calls by number through the C library's syscall()";

const SUBMITTED: &str = "syncs, synchronous writes (WRITE, WRITEV, WRITE_FIXED) and opens (OPENAT) in an io_uring that liburing's io_uring_submit, _and_wait, _and_wait_timeout and _and_get_events hand over, or that one thread of the program submits by number through the C library's syscall(); FSYNC and FDSYNC in io_submit";
const NEWER: &str = "in an io_uring: OPENAT2 and WRITEV_FIXED (Linux 6.15), and what newer functions of liburing hand over, as io_uring_submit_and_wait_min_timeout (2.8): real, and not counted but by the witness";
const OWN_RINGS: &str = "an io_uring that the kernel reads by itself (SQPOLL), that several threads submit to without liburing, or that is submitted to by an instruction of the program's own (fio): counted, what goes through it is not seen";
