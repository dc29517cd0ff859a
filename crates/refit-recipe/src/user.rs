//! Users that servers run as, and commands as such a user.

use std::fs;

/// A user and its first group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// Its id.
    pub uid: u32,
    /// Its first group's.
    pub gid: u32,
}

/// Finds a user in /etc/passwd.
pub fn find_user(name: &str) -> Option<User> {
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

/// The words that run a shell command, as another user where one is given.
pub(crate) fn as_user(user: Option<User>, command: &str) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(User { uid, gid }) = user {
        words.extend([
            "setpriv".to_owned(),
            format!("--reuid={uid}"),
            format!("--regid={gid}"),
            "--init-groups".to_owned(),
            "--".to_owned(),
        ]);
    }
    words.extend(["sh", "-c", command].map(str::to_owned));
    words
}
