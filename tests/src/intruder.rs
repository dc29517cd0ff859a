//! Another user of the machine, who tries every socket and directory of an instance while it runs.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use crate::sys::become_user;

/// Whose account no recipe uses.
const USER: u32 = 64_998;

/// What such a user found below a directory.
#[derive(Default)]
pub struct Found {
    /// Sockets and directories.
    pub tried: BTreeSet<String>,
    /// Those that let the user in.
    pub entered: BTreeSet<String>,
}

/// Does something, as root, and lets the user try meanwhile whatever appears below `base`, which everybody may enter; it
/// lies in a test's own directory.
pub fn beside<T>(base: &Path, work: impl FnOnce() -> T) -> (T, Found) {
    for dir in base.ancestors().take(2) {
        fs::set_permissions(dir, Permissions::from_mode(0o755)).expect("ours");
    }
    let control = base.join("control");
    let listener = UnixListener::bind(&control).expect("ours");
    fs::set_permissions(&control, Permissions::from_mode(0o777)).expect("ours");
    let ended = AtomicBool::new(false);
    let (done, mut found) = scope(|scope| {
        let intruder = scope.spawn(|| {
            become_user(USER).expect("root may become another user");
            let mut found = Found::default();
            while !ended.load(Ordering::Relaxed) {
                look(base, &mut found);
                sleep(Duration::from_millis(10));
            }
            found
        });
        let done = work();
        ended.store(true, Ordering::Relaxed);
        (done, intruder.join().expect("it only looks"))
    });
    drop(listener);
    fs::remove_file(&control).expect("ours");
    let control = control.display().to_string();
    assert!(
        found.entered.remove(&control),
        "the user could try nothing: {:?}",
        found.tried
    );
    found.tried.remove(&control);
    (done, found)
}

fn look(base: &Path, found: &mut Found) {
    let listed = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let base = base.to_str().expect("text");
    // Its 8th column is the path, where it has one: proc(5).
    let paths = listed
        .lines()
        .filter_map(|line| line.split_whitespace().nth(7));
    for path in paths.filter(|path| path.starts_with(base)) {
        if found.tried.insert(path.to_owned()) && connects(path) {
            found.entered.insert(path.to_owned());
        }
    }
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let path = entry.path();
        let shown = path.display().to_string();
        if path.is_dir() && found.tried.insert(shown.clone()) && fs::read_dir(path).is_ok() {
            found.entered.insert(shown);
        }
    }
}

fn connects(path: &str) -> bool {
    match UnixStream::connect(path) {
        Ok(_) => true,
        Err(error) if error.raw_os_error() == Some(libc::EPROTOTYPE) => {
            UnixDatagram::unbound().is_ok_and(|socket| socket.connect(path).is_ok())
        }
        // Nobody listens yet, or any more; but the way to it is open.
        Err(error) => error.kind() == ErrorKind::ConnectionRefused,
    }
}
