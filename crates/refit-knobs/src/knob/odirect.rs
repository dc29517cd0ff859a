//! `odirect`: whether `O_DIRECT` keeps writes out of the page cache.

use std::fmt;

use super::choice::{ON_OFF, choose, on_or_off};
use super::{Behaviour, Knob, Value};
use crate::explain::{Prose, scope_notes};
use crate::launch::SwitchRule;
use crate::{Class, Launch, Scope};

pub static KNOB: Knob = Knob {
    name: "odirect",
    form: "odirect[@exe:NAME|@/PATH]=on|off",
    about: "whether files opened with O_DIRECT bypass the page cache",
    example: "odirect=off",
    scoped: true,
    has_members: false,
    once: false,
    aliases: &["o_direct", "direct", "directio", "direct_io"],
    opposites: &[],
    parse: |word| {
        Ok(Value::Odirect(DirectIo {
            on: choose(word, ON_OFF)?,
        }))
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectIo {
    pub on: bool,
}

impl fmt::Display for DirectIo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(on_or_off(self.on))
    }
}

impl Behaviour for DirectIo {
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
        let mut prose = if self.on { on() } else { off() };
        if let Some(Scope::Path(_)) = scope {
            prose.notes.push(AFTER_THE_OPEN.to_owned());
        }
        prose.notes.extend(scope_notes(scope));
        prose
    }

    fn apply(&self, scope: Option<&Scope>, launch: &mut Launch) {
        launch.odirect.push(SwitchRule {
            scope: scope.cloned(),
            on: self.on,
        });
    }
}

fn on() -> Prose {
    Prose {
        swaps: "nothing: O_DIRECT stays as the program asked for it".to_owned(),
        risk: "none",
        backend: "a preloaded library that lets the flag through",
        covers: COVERS,
        not_covered: NOT_COVERED,
        notes: Vec::new(),
    }
}

fn off() -> Prose {
    let notes = [
        "misaligned reads and writes that direct I/O refuses with EINVAL now succeed",
        "InnoDB with innodb_flush_method=O_DIRECT_NO_FSYNC relies on its writes being direct: it does not sync \
         after them",
        "together with `sync=off` this reaches servers whose logs go around every fsync suppressor by direct writes",
    ];
    Prose {
        swaps: "writes to files opened with O_DIRECT go to the page cache instead of to the device"
            .to_owned(),
        risk: "a power cut or kernel crash takes what the program believed to be on the device: the kernel writes it back \
               later (about 30 s, and more under load), unless the program also syncs",
        backend: "a preloaded library; the real open runs first, then fcntl(F_SETFL) takes O_DIRECT away from \
                  what turned out to be a regular file",
        covers: COVERS,
        not_covered: NOT_COVERED,
        notes: notes.map(ToOwned::to_owned).to_vec(),
    }
}

const AFTER_THE_OPEN: &str =
    "the path of the opened file decides, right after the open; a later rename changes nothing";

const COVERS: &[&str] = &["regular files opened through the C library, in every variant of open"];

const NOT_COVERED: &[&str] = &[
    "block devices: never touched",
    "processes with an io_uring ring set up for polled I/O (IOPOLL): its writes would fail on a file that is \
     not direct",
    "O_DIRECT set later with fcntl(F_SETFL), or opened through io_uring",
    "statically linked, setuid, setgid and 32-bit programs",
];
