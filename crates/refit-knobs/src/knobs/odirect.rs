//! `odirect`: whether `O_DIRECT` keeps writes out of the page cache.

use super::switch::{self, Kind, Switch, Texts};
use crate::error::SettingError;
use crate::explain::OWN_SECCOMP;
use crate::knob::Knob;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "odirect",
    form: "odirect[@exe:NAME|@/PATH]=on|off",
    about: "whether files opened with O_DIRECT bypass the page cache",
    example: "odirect=off",
    scoped: true,
    has_members: false,
    once: false,
    permanent: "",
    grounds: &[],
    values: switch::words,
    aliases: &["o_direct", "direct", "directio", "direct_io"],
    opposites: &[],
};

pub(crate) static KIND: Kind = Kind {
    knob: &KNOB,
    on: ON,
    off: OFF,
    of_paths: &[
        "the path that the file has right after the open, or after the fcntl that sets O_DIRECT, decides; a later rename \
         changes nothing",
    ],
    rules: |launch| &mut launch.odirect,
};

pub(crate) fn parse(word: &Word) -> Result<Switch, SettingError> {
    switch::parse(word, &KIND)
}

const ON: Texts = Texts {
    swaps: "nothing: O_DIRECT stays as the program asked for it",
    risk: "none",
    backend: "a preloaded library that lets the flag through",
    covers: COVERS,
    not_covered: NOT_COVERED,
    notes: &[
        "use it to exempt one program from a wider `odirect=off`: `odirect=off odirect@exe:NAME=on`",
    ],
};

const OFF: Texts = Texts {
    swaps: "writes to files opened with O_DIRECT go to the page cache instead of to the device",
    risk: "a power cut or kernel crash takes what the program believed to be on the device: the kernel writes it back \
           later (about 30 s, and more under load), unless the program also syncs",
    backend: "a preloaded library; the real open or fcntl runs first, then fcntl(F_SETFL) takes O_DIRECT away from \
              what turned out to be a regular file",
    covers: COVERS,
    not_covered: NOT_COVERED,
    notes: &[
        "misaligned reads and writes that direct I/O refuses with EINVAL now succeed",
        "InnoDB with innodb_flush_method=O_DIRECT_NO_FSYNC relies on its writes being direct: it does not sync \
         after them",
        "together with `sync=off` this reaches servers whose logs bypass every fsync suppressor by direct writes",
    ],
};

const COVERS: &[&str] = &[
    "regular files opened through the C library, in every variant of open, and by number through its syscall()",
    "O_DIRECT that is set later with the C library's fcntl(F_SETFL)",
];

const NOT_COVERED: &[&str] = &[
    "block devices and whatever else is not a regular file: never touched",
    "processes with an io_uring ring set up for polled I/O (IOPOLL): its writes would fail on a file that is \
     not direct",
    "files opened through io_uring; O_DIRECT set by syscall(SYS_fcntl), or by an instruction of the program's own",
    OWN_SECCOMP,
    "statically linked, setuid, setgid and 32-bit programs, and those built for another C library than glibc or \
     musl (named)",
];
