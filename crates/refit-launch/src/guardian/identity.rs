//! The identity of a thread towards the file system, and how to assume it.

use std::fs;
use std::io;

use rustix::fs::Mode;
use rustix::process::{Gid, Uid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_keep_capabilities,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// The properties of a thread that decide what it may open, and who owns a new
/// file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Real, effective, saved.
    uids: [u32; 3],
    gids: [u32; 3],
    groups: Vec<u32>,
    /// CAP_DAC_OVERRIDE and the like.
    effective: u64,
    umask: u32,
}

impl Identity {
    /// From /proc/TID/status (proc_pid_status(5)). `None`: unreadable, or one
    /// that only setfsuid(2) makes.
    pub fn of(tid: u32) -> Option<Identity> {
        Identity::parse(&fs::read_to_string(format!("/proc/{tid}/status")).ok()?)
    }

    fn parse(status: &str) -> Option<Identity> {
        let line = |name: &str| {
            let found = status.lines().find_map(|line| line.strip_prefix(name));
            found.map(str::trim)
        };
        let numbers = |name: &str| -> Option<Vec<u32>> {
            let words = line(name)?.split_whitespace();
            words.map(|word| word.parse().ok()).collect()
        };
        let ids = |name: &str| match numbers(name)?[..] {
            [real, effective, saved, file] if file == effective => Some([real, effective, saved]),
            _ => None,
        };
        Some(Identity {
            uids: ids("Uid:")?,
            gids: ids("Gid:")?,
            groups: numbers("Groups:")?,
            effective: u64::from_str_radix(line("CapEff:")?, 16).ok()?,
            umask: u32::from_str_radix(line("Umask:")?, 8).ok()?,
        })
    }

    /// Of this process. Call it before another root hides /proc.
    pub fn own() -> Option<Identity> {
        Identity::of(std::process::id())
    }

    /// Makes the calling process, which has one thread and is `own`, this one.
    /// After an error its identity is undefined.
    pub fn assume(&self, own: &Identity) -> io::Result<()> {
        rustix::process::umask(Mode::from_raw_mode(self.umask));
        if (Identity {
            umask: self.umask,
            ..own.clone()
        }) == *self
        {
            return Ok(());
        }
        let groups: Vec<Gid> = self.groups.iter().map(|id| Gid::from_raw(*id)).collect();
        if own.groups != self.groups {
            set_thread_groups(&groups)?;
        }
        let [real, effective, saved] = self.gids.map(Gid::from_raw);
        set_thread_res_gid(real, effective, saved)?;
        // Otherwise all capabilities would be lost with the user id 0 (capabilities(7)).
        set_keep_capabilities(true)?;
        let [real, effective, saved] = self.uids.map(Uid::from_raw);
        set_thread_res_uid(real, effective, saved)?;
        let sets = capabilities(None)?;
        set_capabilities(
            None,
            CapabilitySets {
                effective: CapabilitySet::from_bits_retain(self.effective),
                ..sets
            },
        )?;
        Ok(())
    }
}

/// Whether something else decides about the thread's opens than about refit's:
/// another user namespace, or another label of a security module.
pub fn is_apart(tid: u32) -> bool {
    let namespace = |whose: &str| fs::read_link(format!("/proc/{whose}/ns/user")).ok();
    let label = |whose: &str| fs::read(format!("/proc/{whose}/attr/current")).ok();
    let (own, theirs) = ("self", tid.to_string());
    namespace(own).is_none() || namespace(own) != namespace(&theirs) || label(own) != label(&theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nUmask:\t0027\nUid:\t0\t5\t6\t5\nGid:\t1\t2\t3\t2\n\
                          Groups:\t7 8 \nCapEff:\t00000000000000c0\n";

    #[test]
    fn a_status_is_read() {
        let expected = Identity {
            uids: [0, 5, 6],
            gids: [1, 2, 3],
            groups: vec![7, 8],
            effective: 0xc0,
            umask: 0o27,
        };
        assert_eq!(Identity::parse(STATUS).unwrap(), expected);
    }

    #[test]
    fn a_status_that_is_not_understood_gives_no_identity() {
        for (from, to) in [
            ("\t5\t6\t5", "\t5\t6\t9"),
            ("Umask", "Mask"),
            ("0027", "9"),
            ("Groups:\t7", "Groups:\tx"),
        ] {
            assert_eq!(Identity::parse(&STATUS.replace(from, to)), None, "{from}");
        }
    }

    #[test]
    fn a_process_can_assume_its_own_identity() {
        let own = Identity::own().unwrap();
        own.assume(&own).unwrap();
        assert!(!is_apart(std::process::id()));
    }
}
