//! What a program is told: the `policy` file.

use std::mem::{offset_of, size_of};

use crate::layout::{CDisk, CPolicy, CRule, put};
use crate::page::{FILTER, LATENCIES, MAGIC, RULES, TEXT, VERSION};

/// Make an image file and count (`REFIT_POLICY_COUNT`).
pub const POLICY_COUNT: u32 = 1;
/// Put scrubbed variables back at exec (`REFIT_POLICY_FOLLOW`).
pub const POLICY_FOLLOW: u32 = 2;
/// A seccomp filter lies beneath that asks refit (`REFIT_POLICY_NOTIFIED`).
pub const POLICY_NOTIFIED: u32 = 4;
/// Write each call to the event ring (`REFIT_POLICY_TRACE`).
pub const POLICY_TRACE: u32 = 8;
/// io_uring_setup gives ENOSYS (`REFIT_POLICY_DENY_IO_URING`).
pub const POLICY_DENY_RINGS: u32 = 16;
/// The kernel answers with 0 what passes the filter (`REFIT_POLICY_ANSWERED`).
pub const POLICY_ANSWERED: u32 = 32;
/// refit answers and counts what passes the filter (`REFIT_POLICY_GUARDED`).
pub const POLICY_GUARDED: u32 = 64;

/// Where the flags are in the `policy` file.
pub const POLICY_FLAGS: usize = offset_of!(CPolicy, flags);
/// Where the number of seccomp filters is in the `policy` file.
pub const POLICY_SECCOMP_FILTERS: usize = offset_of!(CPolicy, seccomp_filters);

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

/// Size of the policy's emulated disk in bytes (`struct refit_disk`).
pub const DISK_SIZE: usize = size_of::<CDisk>();

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
    /// With `error`, as often as `when` defines.
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
    /// Seccomp filters of the program at its start, refit's own among them.
    pub seccomp_filters: u32,
    /// Instructions of the filter that the preload puts beneath what it cannot
    /// reach, each as the eight bytes of a `struct sock_filter`; empty: none.
    pub filter: Vec<u64>,
    /// Device and inode of "/".
    pub root: (u64, u64),
    /// The emulated disk.
    pub disk: Option<Disk>,
    /// Seed of its draws.
    pub seed: u64,
    /// System V id of the event ring.
    pub event_ring: Option<i32>,
}

/// A policy does not fit into its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl Policy {
    /// The bytes of the `policy` file.
    ///
    /// # Errors
    /// [`TooLong`] when there are more than [`RULES`] rules or [`FILTER`] instructions, an executable's
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
        if text.len() > TEXT || self.rules.len() > RULES || self.filter.len() > FILTER {
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
            (
                offset_of!(CPolicy, seccomp_filters),
                self.seccomp_filters as usize,
            ),
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
        let length = self.filter.len() as u64;
        put(
            &mut page,
            offset_of!(CPolicy, filter_length),
            &length.to_ne_bytes(),
        );
        for (i, instruction) in self.filter.iter().enumerate() {
            let at = offset_of!(CPolicy, filter) + i * size_of::<u64>();
            put(&mut page, at, &instruction.to_ne_bytes());
        }
        put(&mut page, offset_of!(CPolicy, disk), &self.disk_bytes()[..]);
        put(&mut page, offset_of!(CPolicy, text), &text);
        Ok(page)
    }

    /// The emulated disk as the page holds it.
    #[must_use]
    pub fn disk_bytes(&self) -> Box<[u8; DISK_SIZE]> {
        let mut bytes = Box::new([0; DISK_SIZE]);
        let disk = &mut bytes[..];
        let event_ring = self.event_ring.unwrap_or(-1);
        put(
            disk,
            offset_of!(CDisk, event_ring),
            &event_ring.to_ne_bytes(),
        );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_does_not_fit_is_refused() {
        let mut policy = Policy::default();
        assert!(policy.to_bytes().is_ok());
        policy.library = "x".repeat(TEXT);
        assert_eq!(policy.to_bytes(), Err(TooLong));
    }
}
