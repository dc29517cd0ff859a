//! The mails of the source `smtp:`, in Maildirs and in Postfix's queue.

use std::fs::{self, DirEntry};
use std::os::unix::fs::{DirEntryExt, PermissionsExt};
use std::path::Path;

use crate::acknowledgement::Found;
use crate::smtp::{END, ID};

/// Postfix's queues: a file there is a mail when its owner may execute it
/// (postfix src/global/mail_queue.h: MAIL_QUEUE_STAT_READY).
const QUEUES: [&str; 5] = ["maildrop", "incoming", "active", "deferred", "hold"];

/// All mails below the directory.
pub fn find(directory: &Path) -> Found {
    let mut found = Found::default();
    walk(directory, false, &mut found);
    // Delivered, and not yet removed from the queue: one whole copy is enough.
    found.damaged.retain(|id| !found.ids.contains(id));
    found
}

fn walk(directory: &Path, is_queue: bool, found: &mut Found) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    let mut entries: Vec<DirEntry> = entries.flatten().collect();
    // About as they lie on the disk, which is read ahead; ext4 lists a directory in the order of its hashes.
    entries.sort_unstable_by_key(DirEntryExt::ino);
    for entry in entries {
        let path = entry.path();
        let Ok(about) = entry.metadata() else {
            continue;
        };
        let name = entry.file_name();
        if about.is_dir() {
            let is_queue = is_queue || QUEUES.iter().any(|queue| name == *queue);
            // A Maildir's tmp holds what is being written.
            if name != "tmp" {
                walk(&path, is_queue, found);
            }
        } else if about.is_file() && (!is_queue || about.permissions().mode() & 0o100 != 0) {
            read(&path, found);
        }
    }
}

fn read(path: &Path, found: &mut Found) {
    let Ok(bytes) = fs::read(path) else {
        return;
    };
    let text = String::from_utf8_lossy(&bytes);
    let Some(id) = number_after(&text, ID) else {
        return;
    };
    if number_after(&text, END).is_some_and(|end| end == id) {
        found.ids.insert(id.to_owned());
    } else {
        found.damaged.insert(id.to_owned());
    }
}

fn number_after<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let rest = &text[text.find(words)? + words.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit())?;
    Some(&rest[..end]).filter(|number| !number.is_empty())
}
