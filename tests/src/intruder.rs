//! Another user of the machine, who tries every socket, port and directory of an instance while it runs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use crate::sys::become_user;

/// Whose account no recipe uses.
const USER: u32 = 64_998;

/// What such a user found below a directory.
#[derive(Default)]
pub struct Found {
    /// Sockets, ports and directories.
    pub tried: BTreeSet<String>,
    /// Those that let the user in.
    pub entered: BTreeSet<String>,
}

/// What root sees of the instances: the ways that the user will try.
#[derive(Default)]
struct Ways {
    sockets: BTreeSet<String>,
    ports: BTreeSet<u16>,
    /// Rounds in which the user tried all of them.
    rounds: u64,
}

/// A command of a recipe that ends when the user has tried all ways after it began.
pub fn wait_until_tried(base: &str) -> String {
    format!("touch {base}/asked; until test -e {base}/tried; do sleep 0.01; done")
}

/// Does something, as root, and lets the user try meanwhile whatever appears below `base`, which everybody may enter; it
/// lies in a test's own directory.
pub fn beside<T>(base: &Path, work: impl FnOnce() -> T) -> (T, Found) {
    for dir in base.ancestors().take(2) {
        fs::set_permissions(dir, Permissions::from_mode(0o755)).expect("ours");
    }
    for name in ["asked", "tried"] {
        // Of the work before.
        let _ = fs::remove_file(base.join(name));
    }
    let control = base.join("control");
    let listener = UnixListener::bind(&control).expect("ours");
    fs::set_permissions(&control, Permissions::from_mode(0o777)).expect("ours");
    let ended = AtomicBool::new(false);
    let ways = Mutex::new(Ways {
        sockets: BTreeSet::from([control.display().to_string()]),
        ports: BTreeSet::new(),
        rounds: 0,
    });
    let mut others = processes();
    let (done, mut found) = scope(|scope| {
        scope.spawn(|| {
            let mut asked_at = None;
            while !ended.load(Ordering::Relaxed) {
                find_ways(base, &mut others, &ways);
                let rounds = ways.lock().expect("no thread panicked").rounds;
                if base.join("asked").exists() && rounds > *asked_at.get_or_insert(rounds) + 1 {
                    fs::write(base.join("tried"), "").expect("ours");
                }
                sleep(Duration::from_millis(20));
            }
        });
        let intruder = scope.spawn(|| {
            become_user(USER).expect("root may become another user");
            let mut found = Found::default();
            while !ended.load(Ordering::Relaxed) {
                look(base, &ways, &mut found);
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

/// Their numbers, as /proc has them.
fn processes() -> BTreeSet<OsString> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name());
    names
        .filter(|name| name.as_encoded_bytes()[0].is_ascii_digit())
        .collect()
}

/// The sockets below `base` in each process's network, and the ports that its environment names. The others were there
/// before, and are not looked at.
fn find_ways(base: &Path, others: &mut BTreeSet<OsString>, ways: &Mutex<Ways>) {
    let base = base.to_str().expect("text");
    let instance = format!("REFIT_DIR={base}/");
    let now = processes();
    // Another process may get the number of one that has ended.
    others.retain(|process| now.contains(process));
    let mut networks = BTreeSet::new();
    for process in now.difference(others) {
        let process = Path::new("/proc").join(process);
        let file = |name| fs::read(process.join(name)).unwrap_or_default();
        let environment = String::from_utf8_lossy(&file("environ")).into_owned();
        if !environment
            .split('\0')
            .any(|entry| entry.starts_with(&instance))
        {
            continue;
        }
        // All processes of a network have the same list.
        let network = fs::read_link(process.join("ns/net")).unwrap_or_default();
        let listed = match networks.insert(network) {
            true => String::from_utf8_lossy(&file("net/unix")).into_owned(),
            false => String::new(),
        };
        // Its 8th column is the path, where it has one: proc(5).
        let paths = listed
            .lines()
            .filter(|line| line.contains(base))
            .filter_map(|line| line.split_whitespace().nth(7));
        let ports = environment.split('\0').filter_map(|entry| {
            let (_, number) = entry.strip_prefix("REFIT_PORT_")?.split_once('=')?;
            number.parse().ok()
        });
        let mut ways = ways.lock().expect("no thread panicked");
        ways.sockets.extend(
            paths
                .filter(|path| path.starts_with(base))
                .map(str::to_owned),
        );
        ways.ports.extend::<Vec<u16>>(ports.collect());
    }
}

fn look(base: &Path, ways: &Mutex<Ways>, found: &mut Found) {
    let (sockets, ports) = {
        let ways = ways.lock().expect("no thread panicked");
        (ways.sockets.clone(), ways.ports.clone())
    };
    for path in sockets {
        if found.tried.insert(path.clone()) && connects(&path) {
            found.entered.insert(path);
        }
    }
    for port in ports {
        let name = format!("port {port}");
        if found.entered.contains(&name) {
            continue;
        }
        found.tried.insert(name.clone());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        // Until it is entered: a server may not listen yet.
        if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
            found.entered.insert(name);
        }
    }
    ways.lock().expect("no thread panicked").rounds += 1;
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
