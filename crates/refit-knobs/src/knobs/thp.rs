//! `thp`: transparent huge pages for the program and all it starts.

use std::fmt;

use super::choice::{Choice, choose};
use crate::error::SettingError;
use crate::explain::{Class, Prose};
use crate::ground::Ground;
use crate::knob::{Behaviour, Knob};
use crate::launch::{Launch, Thp};
use crate::scope::Scope;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "thp",
    form: "thp=never|madvise|always",
    about: "transparent huge pages for this program only",
    example: "thp=never",
    scoped: false,
    has_members: false,
    once: true,
    permanent: "thp=never",
    grounds: &[Ground::Unit, Ground::Pod],
    values: |_| MODES.iter().map(|mode| mode.name.to_owned()).collect(),
    aliases: &[
        "hugepages",
        "hugepage",
        "huge_pages",
        "transparent_hugepage",
        "transparent_hugepages",
    ],
    opposites: &[],
};

pub(crate) fn parse(word: &Word) -> Result<HugePages, SettingError> {
    let mode = choose(word, MODES)?;
    Ok(HugePages { mode })
}

const MODES: &[Choice<Thp>] = &[
    Choice {
        name: "never",
        aliases: &["off", "no", "false", "0", "none", "disable", "disabled"],
        value: Thp::Never,
    },
    Choice {
        name: "madvise",
        aliases: &["advise", "advised", "except_advised"],
        value: Thp::Madvise,
    },
    Choice {
        name: "always",
        aliases: &["on", "yes", "true", "1", "all", "enable", "enabled"],
        value: Thp::Always,
    },
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HugePages {
    pub mode: Thp,
}

impl fmt::Display for HugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.mode {
            Thp::Never => "never",
            Thp::Madvise => "madvise",
            Thp::Always => "always",
        })
    }
}

impl Behaviour for HugePages {
    fn knob(&self) -> &'static Knob {
        &KNOB
    }

    fn class(&self) -> Class {
        Class::Safe
    }

    fn prose(&self, _: Option<&Scope>) -> Prose {
        let (swaps, note) = match self.mode {
            Thp::Never => (
                "the kernel backs none of the program's memory with huge pages, whatever the system's mode",
                "works on every kernel since Linux 3.15",
            ),
            Thp::Madvise => (
                "the kernel uses huge pages only where the program asks for them with madvise(MADV_HUGEPAGE)",
                "prctl can only take huge pages away: this holds where the system's mode is `always` and the kernel's \
                 PR_SET_THP_DISABLE knows the EXCEPT_ADVISED flag, or where the mode is `madvise` anyway; elsewhere \
                 refit refuses and gives the reason",
            ),
            Thp::Always => (
                "the kernel uses huge pages wherever it can",
                "no prctl grants huge pages to one process: unless the system's mode is `always` refit refuses \
                 and gives the reason; for the heap alone, `malloc=glibc:hugetlb=1` or `malloc=jemalloc:thp:always` may do",
            ),
        };
        Prose {
            swaps: swaps.to_owned(),
            risk: "no data at risk; memory use and speed change, that is the point",
            backend: "prctl(PR_SET_THP_DISABLE) before the program starts; it holds across fork and exec",
            covers: &[
                "every process that the program starts, static, setuid and 32-bit ones included",
            ],
            not_covered: &["pages from the hugetlb pool: they are not transparent"],
            notes: vec![note.to_owned()],
        }
    }

    fn apply(&self, _: Option<&Scope>, launch: &mut Launch) {
        launch.thp = Some(self.mode);
    }
}
