//! A load of mails, each acknowledged by the server's 250 after DATA.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::acknowledgement::Acknowledgement;
use crate::record::now;

/// The header with the mail's number.
pub const ID: &str = "X-Refit-Id: ";
/// The start of the body's last line, before the number.
pub const END: &str = "the last line of mail ";

/// As many as a small mail server serves at once.
pub const CLIENTS: usize = 4;
/// All lines of an answer together. A line has at most 512 bytes (RFC 5321 §4.5.3.1.5).
const LONGEST_ANSWER: u64 = 64 << 10;
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where mails go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smtp {
    /// HOST:PORT
    pub address: String,
    /// The recipient.
    pub recipient: String,
}

/// Sends mails over one connection until `stop`.
///
/// # Errors
/// The server closed the connection, or refused a mail; its answer is in the
/// error.
pub fn send(
    smtp: &Smtp,
    next: &AtomicU64,
    stop: &AtomicBool,
    acknowledgements: &Sender<Acknowledgement>,
) -> io::Result<()> {
    let mut session = Session::open(&smtp.address)?;
    session.expect("", "220")?;
    session.expect("EHLO localhost\r\n", "250")?;
    while !stop.load(Ordering::Relaxed) {
        let id = next.fetch_add(1, Ordering::Relaxed);
        session.expect("MAIL FROM:<refit@localhost>\r\n", "250")?;
        session.expect(&format!("RCPT TO:<{}>\r\n", smtp.recipient), "250")?;
        session.expect("DATA\r\n", "354")?;
        session.expect(&mail(id), "250")?;
        let one = Acknowledgement {
            id: id.to_string(),
            at: now(),
        };
        if acknowledgements.send(one).is_err() {
            break;
        }
    }
    // The mails are acknowledged; how the connection ends does not matter.
    let _ = session.expect("QUIT\r\n", "221");
    Ok(())
}

fn mail(id: u64) -> String {
    let body = "a line of the body, as long as lines in mails usually are\r\n".repeat(30);
    format!("Subject: refit\r\n{ID}{id}\r\n\r\n{body}{END}{id}\r\n.\r\n")
}

/// A connection.
pub struct Session<R, W> {
    to: W,
    from: BufReader<R>,
}

impl Session<TcpStream, TcpStream> {
    fn open(address: &str) -> io::Result<Session<TcpStream, TcpStream>> {
        let to = TcpStream::connect(address)?;
        to.set_nodelay(true)?;
        to.set_read_timeout(Some(TIMEOUT))?;
        Ok(Session::of(to.try_clone()?, to))
    }
}

impl<R: Read, W: Write> Session<R, W> {
    /// What the server says comes from `from`.
    pub fn of(from: R, to: W) -> Session<R, W> {
        let from = BufReader::new(from);
        Session { to, from }
    }

    /// Sends the words; the answer has to begin with the code.
    pub fn expect(&mut self, words: &str, code: &str) -> io::Result<()> {
        self.to.write_all(words.as_bytes())?;
        let mut answer = (&mut self.from).take(LONGEST_ANSWER);
        loop {
            let mut line = String::new();
            if answer.read_line(&mut line)? == 0 {
                return Err(match answer.limit() {
                    0 => io::Error::other("the answer has more than 64 KiB"),
                    _ => io::ErrorKind::UnexpectedEof.into(),
                });
            }
            // "250-…" is continued, "250 …" is the last line (RFC 5321 §4.2.1).
            if line.as_bytes().get(3) == Some(&b'-') {
                continue;
            }
            return if line.starts_with(code) {
                Ok(())
            } else {
                Err(io::Error::other(format!(
                    "{:?} was answered with {:?}",
                    words.lines().next().unwrap_or(""),
                    line.trim_end()
                )))
            };
        }
    }
}

/// Whether a server listens there.
#[must_use]
pub fn is_open(address: &str) -> bool {
    let addresses = address.to_socket_addrs().into_iter().flatten();
    let tried = |address| TcpStream::connect_timeout(&address, Duration::from_secs(1));
    addresses.into_iter().any(|address| tried(address).is_ok())
}
