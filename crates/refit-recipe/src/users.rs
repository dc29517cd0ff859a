//! Users of this machine, as /etc/passwd has them.

use std::fs;

/// A user and its first group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// Its id.
    pub uid: u32,
    /// Its first group's.
    pub gid: u32,
}

/// By name.
pub fn find(name: &str) -> Option<User> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let id = |at: usize| fields.get(at)?.parse().ok();
        (fields[0] == name).then_some(User {
            uid: id(2)?,
            gid: id(3)?,
        })
    })
}
