//! The session page: mirrors `sync/session.h`, offset by offset.
//!
//! The structs here are never laid over foreign memory. They give the offsets
//! with which [`Policy::to_bytes`] writes and [`Image::parse`] reads.

use std::mem::{offset_of, size_of};

/// First eight bytes of a policy and of an image file.
pub const MAGIC: u64 = 0x3130_7469_6665_7221;
/// Version of the layout.
pub const VERSION: u32 = 2;
/// In the last argument register of a sync call that refit's own code makes
/// (`REFIT_COOKIE`).
pub const COOKIE: u64 = 0x74_6966_6572;
/// Counters in a slot; the last ones are unused.
pub const CALL_SLOTS: usize = 16;
/// Rules in a policy.
pub const RULES: usize = 64;
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
/// Devices with a queue of their own on the board.
pub const QUEUES: usize = 15;
/// Traced calls that the board holds at once.
pub const EVENTS: usize = 8192;
/// Users that an image can note (`REFIT_USERS`).
pub const USERS: usize = 16;

/// What is counted, in the order of the counters.
pub const CALLS: [&str; 15] = [
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "sync_file_range",
    "msync",
    "open(O_SYNC)",
    "pwritev2(RWF_SYNC)",
    "aio_fsync",
    "lio_listio(sync)",
    "open(O_DIRECT)",
    "fcntl(O_DIRECT)",
    "io_uring_setup",
    "io_submit(fsync)",
    "io_uring(fsync)",
];

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

/// Who answered a traced call, in the order of `enum refit_answer`.
pub const ANSWERS: [&str; 3] = ["real", "suppressed", "injected"];

/// Make an image file and count (`REFIT_POLICY_COUNT`).
pub const POLICY_COUNT: u32 = 1;
/// Put scrubbed variables back at exec (`REFIT_POLICY_FOLLOW`).
pub const POLICY_FOLLOW: u32 = 2;
/// A seccomp filter lies beneath that asks refit (`REFIT_POLICY_NOTIFIED`).
pub const POLICY_NOTIFIED: u32 = 4;
/// Write each call to the board (`REFIT_POLICY_TRACE`).
pub const POLICY_TRACE: u32 = 8;
/// io_uring_setup gives ENOSYS (`REFIT_POLICY_DENY_RINGS`).
pub const POLICY_DENY_RINGS: u32 = 16;

/// Where the flags lie in the `policy` file.
pub const POLICY_FLAGS: usize = offset_of!(CPolicy, flags);

/// `sync=off` held for this executable.
pub const IMAGE_SYNC_OFF: u32 = 1;
/// `odirect=off` held for this executable.
pub const IMAGE_ODIRECT_OFF: u32 = 2;
/// The program opened a library with `RTLD_DEEPBIND`.
pub const IMAGE_DEEPBIND: u32 = 4;
/// The program installed a seccomp filter of its own.
pub const IMAGE_OWN_SECCOMP: u32 = 8;
/// More processes lived at once than there are slots.
pub const IMAGE_SHARED_SLOT: u32 = 16;
/// The board was not to be had.
pub const IMAGE_NO_BOARD: u32 = 32;
/// The program set up an io_uring without liburing: what it submits is unseen.
pub const IMAGE_OWN_RING: u32 = 64;

/// The knob that a rule is about (`enum refit_knob`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Knob {
    /// The fsync family and O_SYNC.
    Sync = 0,
    /// O_DIRECT.
    Odirect = 1,
    /// The emulated disk.
    Disk = 2,
}

#[repr(C)]
struct CRule {
    knob: u32,
    on: u32,
    path: u32,
    pad: u32,
    exe: [u8; 64],
}

#[repr(C)]
struct CDisk {
    kind: u32,
    error: u32,
    when: u32,
    board: i32,
    n: u64,
    seed: u64,
    latency_ns: [u64; LATENCIES],
}

#[repr(C)]
struct CQueue {
    device: u64,
    busy_ns: u64,
    from_ns: u64,
}

#[repr(C)]
struct CFlushes {
    number: u64,
    queues: [CQueue; QUEUES],
}

#[repr(C)]
struct CEvent {
    turn: u64,
    at_ns: u64,
    took_ns: u64,
    pid: u32,
    call: u32,
    answer: u32,
    result: i32,
    executable: [u8; 40],
    path: [u8; 176],
}

#[repr(C)]
struct CBoard {
    flushes: CFlushes,
    events: u64,
    ring: [CEvent; EVENTS],
}

#[repr(C)]
struct CPolicy {
    magic: u64,
    version: u32,
    flags: u32,
    rule_count: u32,
    library: u32,
    preloads: u32,
    session: u32,
    env: u32,
    pad: u32,
    root_dev: u64,
    root_ino: u64,
    disk: CDisk,
    rules: [CRule; RULES],
    text: [u8; TEXT],
}

#[repr(C)]
struct CCounter {
    seen: u64,
    suppressed: u64,
    real: u64,
    waited_ns: u64,
    injected: u64,
}

#[repr(C)]
struct CSlot {
    pid: u32,
    pad32: u32,
    pad: [u64; 7],
    calls: [CCounter; CALL_SLOTS],
}

#[repr(C)]
struct CUnreached {
    state: u32,
    reason: u32,
    count: u64,
    name: [u8; 112],
}

#[repr(C)]
struct CDirectory {
    state: u32,
    pad: u32,
    count: u64,
    waited_ns: u64,
    path: [u8; 168],
}

#[repr(C)]
struct CImage {
    magic: u64,
    version: u32,
    pid: u32,
    flags: u32,
    unreached_lost: u32,
    forked: u64,
    departed: u64,
    execs: u64,
    path_unknown: u64,
    not_delayed: u64,
    matched: u64,
    executable: [u8; 256],
    malloc_object: [u8; 256],
    users: [u32; USERS],
    unreached: [CUnreached; UNREACHED],
    directories: [CDirectory; DIRECTORIES],
    slots: [CSlot; SLOTS],
}

/// Size of the board in bytes.
pub const BOARD_SIZE: usize = size_of::<CBoard>();
/// Where the board numbers its events.
pub const BOARD_EVENTS: usize = offset_of!(CBoard, events);
/// Where its ring of events begins.
pub const BOARD_RING: usize = offset_of!(CBoard, ring);
/// Size of one event in bytes.
pub const EVENT_SIZE: usize = size_of::<CEvent>();

/// One traced call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// 1 + its number in the whole trace; 0: not yet written.
    pub turn: u64,
    /// CLOCK_MONOTONIC at its end, nanoseconds.
    pub at_ns: u64,
    /// Nanoseconds from call to return.
    pub took_ns: u64,
    /// As the process saw it.
    pub pid: u32,
    /// One of [`CALLS`].
    pub call: &'static str,
    /// `real`, `suppressed` or `injected`.
    pub answer: &'static str,
    /// 0, or -errno; `None`: the kernel's, which nobody saw.
    pub result: Option<i32>,
    /// Basename of the executable.
    pub executable: String,
    /// The (end of the) file's path; empty when unknown or none.
    pub path: String,
}

/// In place of a result that nobody saw.
const UNSEEN: i32 = i32::MIN;

impl Event {
    /// As the ring holds it, but for its turn, which is written last.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; EVENT_SIZE] {
        let mut bytes = [0; EVENT_SIZE];
        put(
            &mut bytes,
            offset_of!(CEvent, at_ns),
            &self.at_ns.to_ne_bytes(),
        );
        put(
            &mut bytes,
            offset_of!(CEvent, took_ns),
            &self.took_ns.to_ne_bytes(),
        );
        put(&mut bytes, offset_of!(CEvent, pid), &self.pid.to_ne_bytes());
        let index = |names: &[&str], name| names.iter().position(|known| *known == name);
        for (at, index) in [
            (offset_of!(CEvent, call), index(&CALLS, self.call)),
            (offset_of!(CEvent, answer), index(&ANSWERS, self.answer)),
        ] {
            // What is in neither table cannot be read again either.
            let number = index.map_or(u32::MAX, |index| index as u32);
            put(&mut bytes, at, &number.to_ne_bytes());
        }
        let result = self.result.unwrap_or(UNSEEN);
        put(
            &mut bytes,
            offset_of!(CEvent, result),
            &result.to_ne_bytes(),
        );
        for (at, size, text) in [
            (offset_of!(CEvent, executable), 40, &self.executable),
            (offset_of!(CEvent, path), 176, &self.path),
        ] {
            // The end of it says more, and a NUL stays behind it.
            let text = text.as_bytes();
            put(&mut bytes, at, &text[text.len().saturating_sub(size - 1)..]);
        }
        bytes
    }

    /// Reads one event of the ring; `None` when it cannot be one.
    ///
    /// # Panics
    /// With fewer than [`EVENT_SIZE`] bytes.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Event> {
        let call = get_u32(bytes, offset_of!(CEvent, call)) as usize;
        let answer = get_u32(bytes, offset_of!(CEvent, answer)) as usize;
        let result = get_u32(bytes, offset_of!(CEvent, result)).to_ne_bytes();
        Some(Event {
            turn: get_u64(bytes, offset_of!(CEvent, turn)),
            at_ns: get_u64(bytes, offset_of!(CEvent, at_ns)),
            took_ns: get_u64(bytes, offset_of!(CEvent, took_ns)),
            pid: get_u32(bytes, offset_of!(CEvent, pid)),
            call: CALLS.get(call)?,
            answer: ANSWERS.get(answer)?,
            result: Some(i32::from_ne_bytes(result)).filter(|result| *result != UNSEEN),
            executable: get_text(bytes, offset_of!(CEvent, executable), 40),
            path: get_text(bytes, offset_of!(CEvent, path), 176),
        })
    }
}

/// Size of an image file in bytes.
pub const IMAGE_SIZE: usize = size_of::<CImage>();

/// One rule of a policy; the last that matches an executable wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What the rule switches.
    pub knob: Knob,
    /// Basename of /proc/self/exe, at most 63 bytes; `None`: every executable.
    pub exe: Option<String>,
    /// Pattern of a path; `None`: every path.
    pub path: Option<String>,
    /// `false`: off; of the disk: emulated.
    pub on: bool,
}

/// How the emulated disk fails or delays a flush.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disk {
    /// The [`LATENCIES`] quantiles of a flush's duration in nanoseconds.
    Latency(Box<[u64; LATENCIES]>),
    /// `error` where `when` says.
    Fail {
        /// errno.
        error: u32,
        /// Which flushes.
        when: When,
    },
}

/// Which flushes fail (`enum refit_when` and its `n`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All.
    Always,
    /// The Nth, the 2Nth …
    Every(u64),
    /// All but the first N.
    After(u64),
    /// Each with this chance in millionths.
    Chance(u64),
}

/// What the program is told.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// `POLICY_*` bits.
    pub flags: u32,
    /// In command order.
    pub rules: Vec<Rule>,
    /// Path of the placed library.
    pub library: String,
    /// refit's further `LD_PRELOAD` entries, joined by `:`.
    pub preloads: String,
    /// Path of the session directory.
    pub session: String,
    /// `NAME=VALUE` strings that an exec puts back.
    pub env: Vec<String>,
    /// Device and inode of "/".
    pub root: (u64, u64),
    /// The emulated disk.
    pub disk: Option<Disk>,
    /// Seed of its draws.
    pub seed: u64,
    /// SysV id of the board.
    pub board: Option<i32>,
}

/// A policy does not fit into its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl Policy {
    /// The bytes of the `policy` file.
    ///
    /// # Errors
    /// [`TooLong`] when there are more than [`RULES`] rules, an executable's
    /// name has more than 63 bytes, or the strings exceed [`TEXT`] bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>, TooLong> {
        let mut page = vec![0; size_of::<CPolicy>()];
        let mut text = vec![0_u8]; // offset 0: the empty string
        let mut put_text = |strings: &[&str]| {
            let at = text.len();
            for string in strings {
                text.extend_from_slice(string.as_bytes());
                text.push(0);
            }
            at
        };
        let library = put_text(&[&self.library]);
        let preloads = put_text(&[&self.preloads]);
        let session = put_text(&[&self.session]);
        let mut env: Vec<&str> = self.env.iter().map(String::as_str).collect();
        env.push("");
        let env = put_text(&env);
        let paths: Vec<usize> = self
            .rules
            .iter()
            .map(|rule| rule.path.as_deref().map_or(0, |path| put_text(&[path])))
            .collect();
        if text.len() > TEXT || self.rules.len() > RULES {
            return Err(TooLong);
        }
        put(&mut page, offset_of!(CPolicy, magic), &MAGIC.to_ne_bytes());
        for (at, value) in [
            (offset_of!(CPolicy, version), VERSION as usize),
            (offset_of!(CPolicy, flags), self.flags as usize),
            (offset_of!(CPolicy, rule_count), self.rules.len()),
            (offset_of!(CPolicy, library), library),
            (offset_of!(CPolicy, preloads), preloads),
            (offset_of!(CPolicy, session), session),
            (offset_of!(CPolicy, env), env),
        ] {
            let value = u32::try_from(value).map_err(|_| TooLong)?;
            put(&mut page, at, &value.to_ne_bytes());
        }
        for (i, rule) in self.rules.iter().enumerate() {
            let at = offset_of!(CPolicy, rules) + i * size_of::<CRule>();
            let exe = rule.exe.as_deref().unwrap_or_default();
            if exe.len() > 63 {
                return Err(TooLong);
            }
            put(
                &mut page,
                at + offset_of!(CRule, knob),
                &(rule.knob as u32).to_ne_bytes(),
            );
            put(
                &mut page,
                at + offset_of!(CRule, on),
                &u32::from(rule.on).to_ne_bytes(),
            );
            put(&mut page, at + offset_of!(CRule, exe), exe.as_bytes());
            let path = u32::try_from(paths[i]).map_err(|_| TooLong)?;
            put(&mut page, at + offset_of!(CRule, path), &path.to_ne_bytes());
        }
        let (device, inode) = self.root;
        put(
            &mut page,
            offset_of!(CPolicy, root_dev),
            &device.to_ne_bytes(),
        );
        put(
            &mut page,
            offset_of!(CPolicy, root_ino),
            &inode.to_ne_bytes(),
        );
        put(&mut page, offset_of!(CPolicy, disk), &self.disk_bytes()[..]);
        put(&mut page, offset_of!(CPolicy, text), &text);
        Ok(page)
    }
}

/// Size of the policy's emulated disk in bytes (`struct refit_disk`).
pub const DISK_SIZE: usize = size_of::<CDisk>();

impl Policy {
    /// The emulated disk as the page holds it.
    #[must_use]
    pub fn disk_bytes(&self) -> Box<[u8; DISK_SIZE]> {
        let mut bytes = Box::new([0; DISK_SIZE]);
        let disk = &mut bytes[..];
        let board = self.board.unwrap_or(-1);
        put(disk, offset_of!(CDisk, board), &board.to_ne_bytes());
        put(disk, offset_of!(CDisk, seed), &self.seed.to_ne_bytes());
        let mut number =
            |at: usize, value: u32| disk[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        match &self.disk {
            None => {}
            Some(Disk::Latency(latencies)) => {
                number(offset_of!(CDisk, kind), 1);
                for (i, latency) in latencies.iter().enumerate() {
                    let at = offset_of!(CDisk, latency_ns) + i * size_of::<u64>();
                    put(disk, at, &latency.to_ne_bytes());
                }
            }
            Some(Disk::Fail { error, when }) => {
                number(offset_of!(CDisk, kind), 2);
                number(offset_of!(CDisk, error), *error);
                let (when, n) = match *when {
                    When::Always => (0, 0),
                    When::Every(n) => (1, n),
                    When::After(n) => (2, n),
                    When::Chance(n) => (3, n),
                };
                number(offset_of!(CDisk, when), when);
                put(disk, offset_of!(CDisk, n), &n.to_ne_bytes());
            }
        }
        bytes
    }
}

fn put(page: &mut [u8], at: usize, bytes: &[u8]) {
    page[at..at + bytes.len()].copy_from_slice(bytes);
}

/// The counters of one kind of call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    /// Calls that asked for durability.
    pub seen: u64,
    /// Of these, answered without the kernel's work.
    pub suppressed: u64,
    /// Of these, passed on to the kernel. What is neither failed its probe.
    pub real: u64,
    /// Nanoseconds spent in the real ones.
    pub waited_ns: u64,
    /// Failed by the emulated disk.
    pub injected: u64,
}

/// One process of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// 0 for the sum of the dead.
    pub pid: u32,
    /// In the order of [`CALLS`].
    pub calls: [Counter; CALLS.len()],
}

/// A program that the image started and that the preload cannot reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// The (end of the) path of its executable.
    pub name: String,
    /// One of [`REASONS`].
    pub reason: &'static str,
    /// How often it was started.
    pub count: u64,
}

/// A directory in whose files calls waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    /// The (end of the) path.
    pub path: String,
    /// Calls that waited there.
    pub count: u64,
    /// For how long in sum.
    pub waited_ns: u64,
}

/// What one exec'ed image counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// As the image saw it in its own pid namespace.
    pub pid: u32,
    /// `IMAGE_*` bits.
    pub flags: u32,
    /// Starts of unreached programs that found no room for their name.
    pub unreached_lost: u64,
    /// Child processes that it forked.
    pub forked: u64,
    /// Of these, those that went on to exec something.
    pub departed: u64,
    /// Programs that it started and that should have reported.
    pub execs: u64,
    /// Calls that were real because nobody could tell the file.
    pub path_unknown: u64,
    /// Opens whose writes pass the emulated disk by.
    pub not_delayed: u64,
    /// Bit i: rule i decided a call.
    pub matched: u64,
    /// Path of the executable, empty when unknown.
    pub executable: String,
    /// The object that serves malloc, empty when unknown.
    pub malloc_object: String,
    /// Users, other than the file's owner, that it had become when it exec'ed.
    pub users: Vec<u32>,
    /// What it started and could not reach.
    pub unreached: Vec<Unreached>,
    /// Where its calls waited.
    pub directories: Vec<Directory>,
    /// Used slots; the first is the sum of the dead.
    pub slots: Vec<Slot>,
}

impl Image {
    /// Reads an image file. Nothing in it is trusted: the program, or another
    /// user with a file of his own, may have written anything.
    ///
    /// Returns `None` when it is not an image of this version, or its
    /// constructor has not finished.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Image> {
        if bytes.len() != IMAGE_SIZE
            || get_u64(bytes, offset_of!(CImage, magic)) != MAGIC
            || get_u32(bytes, offset_of!(CImage, version)) != VERSION
        {
            return None;
        }
        Some(Image {
            pid: get_u32(bytes, offset_of!(CImage, pid)),
            flags: get_u32(bytes, offset_of!(CImage, flags)),
            unreached_lost: get_u32(bytes, offset_of!(CImage, unreached_lost)).into(),
            forked: get_u64(bytes, offset_of!(CImage, forked)),
            departed: get_u64(bytes, offset_of!(CImage, departed)),
            execs: get_u64(bytes, offset_of!(CImage, execs)),
            path_unknown: get_u64(bytes, offset_of!(CImage, path_unknown)),
            not_delayed: get_u64(bytes, offset_of!(CImage, not_delayed)),
            matched: get_u64(bytes, offset_of!(CImage, matched)),
            executable: get_text(bytes, offset_of!(CImage, executable), 256),
            malloc_object: get_text(bytes, offset_of!(CImage, malloc_object), 256),
            users: (0..USERS)
                .map(|i| get_u32(bytes, offset_of!(CImage, users) + i * size_of::<u32>()))
                .filter(|user| *user != 0)
                .collect(),
            unreached: (0..UNREACHED)
                .filter_map(|i| {
                    parse_unreached(
                        bytes,
                        offset_of!(CImage, unreached) + i * size_of::<CUnreached>(),
                    )
                })
                .collect(),
            directories: (0..DIRECTORIES)
                .filter_map(|i| {
                    parse_directory(
                        bytes,
                        offset_of!(CImage, directories) + i * size_of::<CDirectory>(),
                    )
                })
                .collect(),
            slots: (0..SLOTS)
                .map(|i| parse_slot(bytes, offset_of!(CImage, slots) + i * size_of::<CSlot>()))
                .enumerate()
                .filter(|(i, slot)| *i == 0 || slot.pid != 0)
                .map(|(_, slot)| slot)
                .collect(),
        })
    }
}

fn parse_unreached(bytes: &[u8], at: usize) -> Option<Unreached> {
    let count = get_u64(bytes, at + offset_of!(CUnreached, count));
    let reason = get_u32(bytes, at + offset_of!(CUnreached, reason)) as usize;
    if get_u32(bytes, at + offset_of!(CUnreached, state)) != 2
        || count == 0
        || count > u64::from(u32::MAX)
    {
        return None;
    }
    Some(Unreached {
        name: get_text(bytes, at + offset_of!(CUnreached, name), 112),
        reason: REASONS.get(reason)?,
        count,
    })
}

fn parse_directory(bytes: &[u8], at: usize) -> Option<Directory> {
    if get_u32(bytes, at + offset_of!(CDirectory, state)) != 2 {
        return None;
    }
    Some(Directory {
        path: get_text(bytes, at + offset_of!(CDirectory, path), 168),
        count: get_u64(bytes, at + offset_of!(CDirectory, count)),
        waited_ns: get_u64(bytes, at + offset_of!(CDirectory, waited_ns)),
    })
}

fn parse_slot(bytes: &[u8], at: usize) -> Slot {
    let mut slot = Slot {
        pid: get_u32(bytes, at + offset_of!(CSlot, pid)),
        ..Slot::default()
    };
    for (i, counter) in slot.calls.iter_mut().enumerate() {
        let at = at + offset_of!(CSlot, calls) + i * size_of::<CCounter>();
        *counter = Counter {
            seen: get_u64(bytes, at + offset_of!(CCounter, seen)),
            suppressed: get_u64(bytes, at + offset_of!(CCounter, suppressed)),
            real: get_u64(bytes, at + offset_of!(CCounter, real)),
            waited_ns: get_u64(bytes, at + offset_of!(CCounter, waited_ns)),
            injected: get_u64(bytes, at + offset_of!(CCounter, injected)),
        };
    }
    slot
}

fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// A C string of at most `size` bytes. Control characters are replaced, so that
/// no program's name can steer the terminal of the person who reads it.
fn get_text(bytes: &[u8], at: usize, size: usize) -> String {
    let field = &bytes[at..at + size];
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(size);
    String::from_utf8_lossy(&field[..end])
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Every offset and size, as `name number` lines, from both sides.
    macro_rules! layout {
        ($($c:literal $rust:ty { $($field:ident)* })*) => {{
            let mut rust = String::new();
            let mut c = String::new();
            $(
                rust.push_str(&format!("{} {}\n", $c, size_of::<$rust>()));
                c.push_str(&format!("P(\"{0}\", sizeof(struct {0}))\n", $c));
                $(
                    rust.push_str(&format!("{}.{} {}\n", $c, stringify!($field), offset_of!($rust, $field)));
                    c.push_str(&format!("P(\"{0}.{1}\", offsetof(struct {0}, {1}))\n", $c, stringify!($field)));
                )*
            )*
            (rust, c)
        }};
    }

    #[test]
    fn both_sides_agree_on_every_offset() {
        let (mut rust, fields) = layout! {
            "refit_rule" CRule { knob on path exe }
            "refit_disk" CDisk { kind error when board n seed latency_ns }
            "refit_queue" CQueue { device busy_ns from_ns }
            "refit_event" CEvent { turn at_ns took_ns pid call answer result executable path }
            "refit_flushes" CFlushes { number queues }
            "refit_board" CBoard { flushes events ring }
            "refit_policy" CPolicy {
                magic version flags rule_count library preloads session env root_dev root_ino disk
                rules text
            }
            "refit_counter" CCounter { seen suppressed real waited_ns injected }
            "refit_slot" CSlot { pid calls }
            "refit_unreached" CUnreached { state reason count name }
            "refit_directory" CDirectory { state count waited_ns path }
            "refit_image" CImage {
                magic version pid flags unreached_lost forked departed execs path_unknown
                not_delayed matched executable malloc_object users unreached directories slots
            }
        };
        rust.push_str(&format!("magic {MAGIC}\ncookie {COOKIE}\n"));
        for name in CALLS.iter().chain(&REASONS) {
            rust.push_str(&format!("{name}\n"));
        }
        let source = format!(
            "#include <stddef.h>\n#include <stdio.h>\n#include \"session.h\"\n\
             #define P(name, n) printf(\"%s %zu\\n\", name, (size_t)(n));\n\
             #define X(name, text) puts(text);\n\
             int main(void) {{ {fields} P(\"magic\", REFIT_MAGIC) P(\"cookie\", REFIT_COOKIE) REFIT_CALLS(X) REFIT_REASONS(X) return 0; }}\n"
        );
        let dir = tempfile::tempdir().unwrap();
        let (c, exe) = (dir.path().join("layout.c"), dir.path().join("layout"));
        std::fs::write(&c, source).unwrap();
        let include = concat!(env!("CARGO_MANIFEST_DIR"), "/sync");
        let built = Command::new("cc")
            .args(["-I", include, "-o"])
            .arg(&exe)
            .arg(&c)
            .status()
            .unwrap();
        assert!(built.success());
        let said = Command::new(exe).output().unwrap();
        assert_eq!(String::from_utf8(said.stdout).unwrap(), rust);
    }

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let event = Event {
            turn: 0,
            at_ns: 5,
            took_ns: 6,
            pid: 7,
            call: CALLS[2],
            answer: ANSWERS[1],
            result: None,
            executable: "x".to_owned(),
            path: format!("/{}", "y".repeat(300)),
        };
        let read = Event::parse(&event.to_bytes()).unwrap();
        assert_eq!(read.path, "y".repeat(175));
        let expected = Event {
            path: read.path.clone(),
            ..event
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn an_image_of_random_bytes_never_panics() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..200 {
            let mut bytes: Vec<u8> = (0..IMAGE_SIZE)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    state as u8
                })
                .collect();
            put(&mut bytes, 0, &MAGIC.to_ne_bytes());
            put(
                &mut bytes,
                offset_of!(CImage, version),
                &VERSION.to_ne_bytes(),
            );
            let image = Image::parse(&bytes).unwrap();
            assert!(!image.executable.chars().any(char::is_control));
        }
        assert_eq!(Image::parse(&[]), None);
        assert_eq!(Image::parse(&vec![0; IMAGE_SIZE]), None);
    }

    #[test]
    fn a_policy_that_does_not_fit_is_refused() {
        let mut policy = Policy::default();
        assert!(policy.to_bytes().is_ok());
        policy.library = "x".repeat(TEXT);
        assert_eq!(policy.to_bytes(), Err(TooLong));
    }
}
