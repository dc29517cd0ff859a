//! Names by which refit knows what is its own: processes, and directories that a
//! later refit may remove.

use std::ffi::CStr;
use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// The name of the guardian's processes, which answer for a seccomp filter.
pub const GUARDIAN: &CStr = c"refit-guardian";
/// The name of the processes that open files for them.
pub const OPENER: &CStr = c"refit-opener";
/// The name of those that read what calls point to.
pub const READER: &CStr = c"refit-reader";

/// A prefix and random digits. With nothing but the prefix a user's own
/// `refit-notes` would be taken for a remainder of refit's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnName {
    /// What it begins with.
    pub prefix: &'static str,
    /// How many random bytes follow, as lower-case hexadecimal digits.
    pub bytes: usize,
}

impl OwnName {
    /// A new one.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub fn make(self) -> io::Result<String> {
        let mut random = vec![0_u8; self.bytes];
        getrandom(&mut random[..], GetRandomFlags::empty())?;
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{}{digits}", self.prefix))
    }

    /// Whether refit made this name.
    #[must_use]
    pub fn is_own(self, name: &str) -> bool {
        name.strip_prefix(self.prefix).is_some_and(|digits| {
            digits.len() == 2 * self.bytes
                && digits
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_is_own() {
        let name = OwnName {
            prefix: "refit-",
            bytes: 6,
        };
        let made = name.make().expect("there is randomness");
        assert!(name.is_own(&made), "{made}");
        assert_ne!(made, name.make().expect("there is randomness"));
        let near = [
            "refit-",
            "refit-notes",
            "refit-lab-0123456789ab",
            "refit-0123456789aB",
            "refit-0123456789a",
            "refit-0123456789abc",
            "0123456789ab",
        ];
        for other in near {
            assert!(!name.is_own(other), "{other}");
        }
    }
}
