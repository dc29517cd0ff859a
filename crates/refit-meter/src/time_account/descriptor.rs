//! What a descriptor of another process refers to.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::net::AddressFamily;
use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{SocketAddrAny, getpeername, getsockname};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::tree::at;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// A file or directory, or a device that is neither a terminal nor a pipe.
    File,
    /// An Internet socket, and its peer.
    Connected(String),
    /// One without a peer.
    Internet,
    Listening,
    /// A pipe, a local socket, a terminal.
    Local,
    /// eventfd(2).
    Event,
    /// timerfd_create(2).
    Timer,
    /// signalfd(2), inotify(7).
    Signals,
    Unknown,
}

/// What the descriptor of this number is. A socket is held for microseconds (pidfd_getfd(2)).
pub fn kind_of(proc: &Path, pid: u32, number: u64) -> Descriptor {
    let Ok(link) = fs::read_link(at(proc, pid).join("fd").join(number.to_string())) else {
        return Descriptor::Unknown;
    };
    let link = link.to_string_lossy();
    let anonymous = [
        ("anon_inode:[eventfd]", Descriptor::Event),
        ("anon_inode:[timerfd]", Descriptor::Timer),
        ("anon_inode:[signalfd]", Descriptor::Signals),
        ("anon_inode:inotify", Descriptor::Signals),
        ("anon_inode:[pidfd]", Descriptor::Signals),
    ];
    if let Some((_, kind)) = anonymous.into_iter().find(|(name, _)| *name == link) {
        return kind;
    }
    match &*link {
        socket if socket.starts_with("socket:") => {
            socket_of(pid, number).unwrap_or(Descriptor::Unknown)
        }
        local
            if local.starts_with("pipe:")
                || local.starts_with("/dev/pts/")
                || local == "/dev/tty" =>
        {
            Descriptor::Local
        }
        file if file.starts_with('/') => match is_fifo(proc, pid, number) {
            true => Descriptor::Local,
            false => Descriptor::File,
        },
        _ => Descriptor::Unknown,
    }
}

fn is_fifo(proc: &Path, pid: u32, number: u64) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let path = at(proc, pid).join("fd").join(number.to_string());
    fs::metadata(path).is_ok_and(|of| of.file_type().is_fifo())
}

fn socket_of(pid: u32, number: u64) -> Option<Descriptor> {
    let process = pidfd_open(
        Pid::from_raw(i32::try_from(pid).ok()?)?,
        PidfdFlags::empty(),
    )
    .ok()?;
    let socket = pidfd_getfd(
        &process,
        i32::try_from(number).ok()?,
        PidfdGetfdFlags::empty(),
    )
    .ok()?;
    let own = getsockname(&socket).ok()?;
    if socket_acceptconn(&socket).unwrap_or(false) {
        return Some(Descriptor::Listening);
    }
    if ![AddressFamily::INET, AddressFamily::INET6].contains(&own.address_family()) {
        return Some(Descriptor::Local);
    }
    Some(
        getpeername(&socket)
            .ok()
            .flatten()
            .and_then(|peer| shown(&peer))
            .map_or(Descriptor::Internet, Descriptor::Connected),
    )
}

fn shown(address: &SocketAddrAny) -> Option<String> {
    let address = std::net::SocketAddr::try_from(address.clone()).ok()?;
    let ip = address.ip().to_canonical();
    Some(std::net::SocketAddr::new(ip, address.port()).to_string())
}

/// The numbers of the descriptors that an epoll(7) waits for (proc_pid_fdinfo(5)).
pub fn epoll_members(proc: &Path, pid: u32, epoll: u64) -> Option<Vec<u64>> {
    let text = fs::read_to_string(at(proc, pid).join("fdinfo").join(epoll.to_string())).ok()?;
    let members = text.lines().filter_map(|line| {
        let rest = line.strip_prefix("tfd:")?;
        rest.split_ascii_whitespace().next()?.parse().ok()
    });
    Some(members.collect())
}

/// The memory of a process.
pub struct Memory(Option<File>);

impl Memory {
    pub fn of(proc: &Path, pid: u32) -> Memory {
        Memory(File::open(at(proc, pid).join("mem")).ok())
    }

    pub fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.0.as_ref()?.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }
}
