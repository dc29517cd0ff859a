//! Free ports on 127.0.0.1, claimed against other refits.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// Below the ports that the kernel hands out by itself
/// (net.ipv4.ip_local_port_range begins at 32768).
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// A port that no other refit takes as long as this exists.
#[derive(Debug)]
pub struct Port {
    /// Its number.
    pub number: u16,
    /// An abstract socket of that name: refits of all users see it, and the
    /// kernel removes it whatever kills refit (unix(7)).
    _claim: UnixListener,
}

impl Port {
    /// Finds a port on which no process listens, and claims it.
    pub fn free() -> io::Result<Port> {
        let mut random = [0_u8; 2];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let count = RANGE.end - RANGE.start;
        let first = u16::from_ne_bytes(random) % count;
        (0..count)
            .map(|n| RANGE.start + (first + n) % count)
            .find_map(|number| {
                let name = SocketAddr::from_abstract_name(format!("refit-port-{number}")).ok()?;
                let claim = UnixListener::bind_addr(&name).ok()?;
                // Not held: the server binds them itself.
                TcpListener::bind((Ipv4Addr::UNSPECIFIED, number)).ok()?;
                UdpSocket::bind((Ipv4Addr::UNSPECIFIED, number)).ok()?;
                Some(Port {
                    number,
                    _claim: claim,
                })
            })
            .ok_or_else(|| io::Error::other("no port between 20000 and 32000 is free"))
    }
}

/// Whether a process listens on a TCP port, without a connection to it (proc(5),
/// /proc/net/tcp: state 0A is LISTEN).
pub fn is_listening(port: u16) -> bool {
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
        let text = fs::read_to_string(table).unwrap_or_default();
        text.lines().skip(1).any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let local = fields.next().and_then(|local| local.rsplit_once(':'));
            let is_port = local.is_some_and(|(_, hex)| u16::from_str_radix(hex, 16) == Ok(port));
            is_port && fields.nth(1) == Some("0A")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_port_is_free_and_no_one_elses() {
        let ports: Vec<Port> = (0..20).map(|_| Port::free().unwrap()).collect();
        let mut numbers: Vec<u16> = ports.iter().map(|port| port.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 20);
        let port = numbers[0];
        assert!(!is_listening(port));
        let server = TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert!(is_listening(port));
        drop(server);
    }
}
