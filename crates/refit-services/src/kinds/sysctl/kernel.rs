//! The values that the kernel has now: /proc/sys.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use rustix::fs::{Access, access};

/// A key that zeroes another one when it is set, and is itself set to 0 by that one: mm/page-writeback.c
/// and mm/util.c of the kernel.
const PAIRS: [(&str, &str); 3] = [
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.overcommit_kbytes", "vm.overcommit_ratio"),
];

const ONE_WAY: &str = "the kernel does not let it be set back";
const ACTION: &str = "writing it does something, and sets no value that could be put back";
const OTHERS: &str =
    "setting it changes other keys too, which are not restored when it is set back";

/// What cannot be taken back by writing the value before. A name that ends in a dot means all keys
/// below it. Seen on Linux 6.18: after ip_forward 0, 1, 0, `conf.all.accept_redirects` is 1, also
/// where it was 0.
const REFUSED: [(&str, &str); 19] = [
    ("fs.verity.require_signatures", ONE_WAY),
    ("kernel.kexec_load_disabled", ONE_WAY),
    ("kernel.kexec_load_limit_panic", ONE_WAY),
    ("kernel.kexec_load_limit_reboot", ONE_WAY),
    ("kernel.modules_disabled", ONE_WAY),
    ("kernel.msg_next_id", ACTION),
    ("kernel.ns_last_pid", ACTION),
    ("kernel.sem_next_id", ACTION),
    ("kernel.shm_next_id", ACTION),
    ("kernel.tainted", ONE_WAY),
    ("kernel.unprivileged_bpf_disabled", ONE_WAY),
    ("kernel.watchdog", OTHERS),
    ("kernel.yama.ptrace_scope", ONE_WAY),
    ("net.ipv4.conf.all.forwarding", OTHERS),
    ("net.ipv4.conf.default.", OTHERS),
    ("net.ipv4.ip_forward", OTHERS),
    ("net.ipv6.conf.all.", OTHERS),
    ("vm.drop_caches", ACTION),
    ("vm.stat_refresh", ACTION),
];

/// Why a key is refused.
pub fn refused(key: &str) -> Option<&'static str> {
    let is_meant = |name: &str| key == name || (name.ends_with('.') && key.starts_with(name));
    let found = REFUSED.iter().find(|(name, _)| is_meant(name));
    found.map(|(_, reason)| *reason)
}

/// The key that becomes 0 when this one is set.
pub fn zeroed_by(key: &str) -> Option<&'static str> {
    PAIRS.iter().find_map(|(one, other)| match key {
        key if key == *one => Some(*other),
        key if key == *other => Some(*one),
        _ => None,
    })
}

/// Values that are the same but for the space between their fields.
pub fn is_same(one: &str, other: &str) -> bool {
    one.split_whitespace().eq(other.split_whitespace())
}

/// Where the keys lie.
pub struct Kernel {
    root: PathBuf,
}

impl Kernel {
    /// The running one's.
    pub fn here() -> Kernel {
        Kernel {
            root: PathBuf::from("/proc/sys"),
        }
    }

    /// As sysctl(8) writes keys: a slash is a dot of a name, `eth0/100` the interface eth0.100.
    fn file(&self, key: &str) -> PathBuf {
        let swap = |c| match c {
            '.' => '/',
            '/' => '.',
            c => c,
        };
        self.root.join(key.chars().map(swap).collect::<String>())
    }

    /// A key that is there, and differs by a dot that is part of a name.
    fn meant(&self, key: &str) -> Option<String> {
        let mut dots = key.match_indices('.');
        dots.find_map(|(at, _)| {
            let other = format!("{}/{}", &key[..at], &key[at + 1..]);
            self.file(&other).is_file().then_some(other)
        })
    }

    /// The value of a key; `None` where the kernel has no such key, as after its module was unloaded.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn value(&self, key: &str) -> Result<Option<String>, String> {
        let path = self.file(key);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim_end_matches('\n').to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    /// The value of a key that can be set, and set back.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn value_to_change(&self, key: &str) -> Result<String, String> {
        let path = self.file(key);
        if !path.is_file() {
            let next = match self.meant(key) {
                Some(other) => format!("a dot in a name is written as a slash: conf.{other}=…"),
                None => "list them: sysctl --all".to_owned(),
            };
            return Err(format!("there is no {}\n  {next}", path.display()));
        }
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        access(&path, Access::WRITE_OK).map_err(|errno| failed(errno.into()))?;
        // Root reads any file, but not one that has no read handler.
        let value = self.value(key)?.unwrap_or_default();
        if value.contains('\n') {
            return Err("its value has several lines".to_owned());
        }
        Ok(value)
    }

    /// Sets a key. Where the kernel makes something else of it, the value before is put back.
    ///
    /// # Errors
    /// What the kernel reports, or has instead.
    pub fn set(&self, key: &str, value: &str) -> Result<(), String> {
        let path = self.file(key);
        let before = self.value(key)?.unwrap_or_default();
        if is_same(&before, value) {
            return Ok(());
        }
        let written = fs::write(&path, format!("{value}\n"));
        let now = self.value(key)?.unwrap_or_default();
        let reason = match written {
            Ok(()) if is_same(&now, value) => return Ok(()),
            Ok(()) => {
                format!("the kernel made `{now}` of `{value}`\n  type the value as it prints it")
            }
            Err(error) => format!("{}: {error}", path.display()),
        };
        if now != before {
            fs::write(&path, format!("{before}\n"))
                .map_err(|error| format!("{reason}; nor could `{before}` be put back: {error}"))?;
        }
        Err(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_to_be_there_and_to_be_read() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join("vm")).expect("made");
        std::fs::write(root.path().join("vm/one"), "1\t2\n").expect("written");
        std::fs::write(root.path().join("vm/two"), "1\n2\n").expect("written");
        let kernel = Kernel {
            root: root.path().to_owned(),
        };
        assert_eq!(kernel.value_to_change("vm.one").as_deref(), Ok("1\t2"));
        assert!(kernel.value_to_change("vm").is_err());
        assert!(kernel.value_to_change("vm.none").is_err());
        assert!(kernel.value_to_change("vm.two").is_err());
        kernel.set("vm.one", "3 4").expect("it is a file");
        assert_eq!(kernel.value("vm.one"), Ok(Some("3 4".to_owned())));
        assert_eq!(kernel.value("vm.none"), Ok(None));
    }

    #[test]
    fn a_dot_of_a_name_is_a_slash() {
        let root = tempfile::tempdir().expect("a directory");
        for name in ["eth0.100", "eth0100"] {
            let dir = root.path().join("net/conf").join(name);
            std::fs::create_dir_all(&dir).expect("made");
            std::fs::write(dir.join("rp_filter"), name).expect("written");
        }
        let kernel = Kernel {
            root: root.path().to_owned(),
        };
        let key = "net.conf.eth0/100.rp_filter";
        assert_eq!(kernel.value_to_change(key).as_deref(), Ok("eth0.100"));
        let reason = kernel.value_to_change("net.conf.eth0.100.rp_filter");
        let reason = reason.expect_err("two names");
        assert!(
            reason.ends_with(&format!("as a slash: conf.{key}=…")),
            "{reason}"
        );
    }
}
