//! The session page as `sync/session.h` defines it: sizes, versions, and the
//! names of what is counted.

/// First eight bytes of a policy and of an image file.
pub const MAGIC: u64 = 0x3130_7469_6665_7221;
/// Version of the layout.
pub const VERSION: u32 = 6;
/// In the last argument register of a sync call that refit's own code makes
/// (`REFIT_COOKIE`).
pub const COOKIE: u64 = 0x74_6966_6572;
/// errno with which a filter that the preload installed answers the question
/// whether it is there (`REFIT_FILTER_IS_THERE`).
pub const FILTER_IS_THERE: u32 = 130;
/// Counters in a slot.
pub const CALL_SLOTS: usize = 15;
/// Rules in a policy.
pub const RULES: usize = 64;
/// Instructions of a filter in a policy.
pub const FILTER: usize = 256;
/// Bytes of text in a policy.
pub const TEXT: usize = 8192;
/// Named programs that an image could not reach.
pub const UNREACHED: usize = 24;
/// Processes that an image tells apart; slot 0 is the sum of the dead.
pub const SLOTS: usize = 12;
/// Directories that an image tells apart.
pub const DIRECTORIES: usize = 24;
/// Quantiles of an emulated disk's latency.
pub const LATENCIES: usize = 1024;
/// Devices with a queue of their own on the emulated disk.
pub const QUEUES: usize = 15;
/// Traced calls that the event ring holds at once.
pub const EVENTS: usize = 8192;
/// Users that an image can note (`REFIT_USERS`).
pub const USERS: usize = 16;

macro_rules! counted_calls {
    ($($Call:ident = $text:literal,)+) => {
        /// What is counted, in the order of the counters: `REFIT_CALLS` in session.h, which a test compares.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum CountedCall {
            $(#[doc = $text] $Call,)+
        }

        /// Their names in reports.
        pub const CALLS: [&str; [$($text),+].len()] = [$($text),+];
    };
}

counted_calls! {
    Fsync = "fsync",
    Fdatasync = "fdatasync",
    Sync = "sync",
    Syncfs = "syncfs",
    SyncFileRange = "sync_file_range",
    Msync = "msync",
    OpenSync = "open(O_SYNC)",
    Pwritev2 = "pwritev2(RWF_SYNC)",
    AioFsync = "aio_fsync",
    LioListio = "lio_listio(sync)",
    OpenDirect = "open(O_DIRECT)",
    SetflDirect = "fcntl(O_DIRECT)",
    IoUringSetup = "io_uring_setup",
    IoSubmit = "io_submit(fsync)",
    IoUringSync = "io_uring(fsync)",
}

impl CountedCall {
    /// Whether it is of a call that flushes, and does nothing else: these are traced.
    #[must_use]
    pub fn is_flush(self) -> bool {
        self <= CountedCall::Msync
    }
}

/// Why a program was not reached, in the order of `enum refit_reason`.
pub const REASONS: [&str; 11] = [
    "reached",
    "static",
    "setuid",
    "setgid",
    "file capabilities",
    "32-bit or other architecture",
    "other libc",
    "sanitizer runtime must come first",
    "library not visible in its root",
    "environment cleared",
    "own seccomp filter",
];

/// Functions that another object of the program may define after the preload, in the order of `REFIT_OTHERS`; and
/// whether calls that refit does not answer reach that definition.
pub const OTHERS: [(&str, bool); 14] = [
    ("fsync", true),
    ("fdatasync", true),
    ("sync", true),
    ("syncfs", true),
    ("sync_file_range", true),
    ("msync", true),
    ("openat2", false),
    ("io_submit", false),
    ("syscall", false),
    ("execv", false),
    ("execl", false),
    ("execlp", false),
    ("execle", false),
    ("execveat", false),
];

/// Who answered a traced call, in the order of `enum refit_answer`.
pub const ANSWERS: [&str; 3] = ["real", "suppressed", "injected"];
