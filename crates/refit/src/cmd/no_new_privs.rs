//! What `--no-new-privs` costs, said before it is done.

use refit_launch::privileged;
use refit_launch::seccomp::{Reach, Right, right};

/// At most this many names.
const MOST: usize = 6;

/// The sentence; `None` where no_new_privs will not be set.
pub fn cost(reach: &Reach) -> Option<String> {
    if !reach.no_new_privs || right() != Right::None {
        return None;
    }
    let all = privileged::in_path(&std::env::var_os("PATH").unwrap_or_default());
    let named = all[..all.len().min(MOST)].join(", ");
    Some(match all.len() {
        0 => "no_new_privs is set; no program in PATH has a privilege to lose".to_owned(),
        1 => format!("no_new_privs is set: {named} loses its privilege"),
        n if n > MOST => {
            format!("no_new_privs is set: {n} programs in PATH lose their privilege: {named} …")
        }
        _ => format!("no_new_privs is set: these programs lose their privilege: {named}"),
    })
}
