//! What a witness needs, and a limit refused.

use std::io;

use rustix::process::{Resource, getrlimit};

/// The limit that an error is due to, for people; `None`: another cause.
pub fn shortage(error: &io::Error) -> Option<String> {
    match error.raw_os_error() {
        Some(libc::EMFILE) => {
            let limit = getrlimit(Resource::Nofile).current;
            let limit = limit.map_or_else(String::new, |limit| format!(" of {limit}"));
            Some(format!(
                "it needs more open files than the limit{limit} allows (ulimit -n)"
            ))
        }
        Some(libc::ENFILE) => Some("this machine's limit of open files is reached".to_owned()),
        Some(libc::ENOMEM) => {
            Some("it needs more memory than there is, or a limit allows (ulimit -v)".to_owned())
        }
        _ => None,
    }
}
