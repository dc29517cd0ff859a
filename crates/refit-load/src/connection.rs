//! One connection to the server, with at most one request on its way.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::protocol::{Answer, Protocol};
use crate::target::Target;

/// The longest answer.
const LONGEST_ANSWER: usize = 64 << 20;

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn to(target: &Target) -> io::Result<Stream> {
        Ok(match target {
            Target::Tcp(port) => {
                let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, *port))?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Stream::Tcp(stream)
            }
            Target::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Stream::Unix(stream)
            }
        })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }
}

/// A request on its way.
#[derive(Clone, Copy)]
pub struct OnItsWay {
    /// When it was due, in nanoseconds of the clock.
    pub due: u64,
    /// Bytes that the kernel has taken.
    written: usize,
}

/// A connection.
pub struct Connection {
    stream: Stream,
    /// What of an answer has come.
    buffer: Vec<u8>,
    /// The request that waits for its answer.
    pub request: Option<OnItsWay>,
    /// When it last became free, in nanoseconds of the clock.
    pub free_since: u64,
}

/// What the server made of a connection.
pub enum Event {
    /// Nothing that is whole.
    Nothing,
    /// The answer to its request. `stays`: the connection does.
    Answered { stays: bool, error: Option<String> },
    /// It was closed while nothing was on its way.
    Closed,
    /// The answer will not come, or is none.
    Broken(String),
}

impl Connection {
    /// A new one. It waits until the server has taken it.
    pub fn open(target: &Target) -> io::Result<Connection> {
        Ok(Connection {
            stream: Stream::to(target)?,
            buffer: Vec::new(),
            request: None,
            free_since: 0,
        })
    }

    /// Begins a request; whether all of it was taken by the kernel.
    pub fn send(&mut self, due: u64, bytes: &[u8]) -> Result<bool, String> {
        self.request = Some(OnItsWay { due, written: 0 });
        self.go_on(bytes)
    }

    /// Goes on with a request that the kernel did not take as a whole; whether it has now.
    pub fn go_on(&mut self, bytes: &[u8]) -> Result<bool, String> {
        let Some(request) = &mut self.request else {
            return Ok(true);
        };
        while request.written < bytes.len() {
            match self.stream.write(&bytes[request.written..]) {
                Ok(written) => request.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(true)
    }

    /// Reads what has come. `scratch` takes an answer that comes as a whole.
    pub fn read(&mut self, protocol: Protocol, scratch: &mut [u8]) -> Event {
        loop {
            match self.stream.read(scratch) {
                Ok(0) if self.request.is_some() => {
                    return Event::Broken(
                        "the server closed the connection before its answer".to_owned(),
                    );
                }
                Ok(0) => return Event::Closed,
                Ok(read) if self.buffer.is_empty() && read < scratch.len() => {
                    return self.answered(protocol, &scratch[..read]);
                }
                Ok(read) => {
                    self.buffer.extend_from_slice(&scratch[..read]);
                    if self.buffer.len() > LONGEST_ANSWER {
                        return Event::Broken("the answer is longer than 64 MiB".to_owned());
                    }
                    if read < scratch.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if self.request.is_some() => return Event::Broken(error.to_string()),
                Err(_) => return Event::Closed,
            }
        }
        let buffer = std::mem::take(&mut self.buffer);
        self.answered(protocol, &buffer)
    }

    /// What these bytes are, which are all that has come of an answer.
    fn answered(&mut self, protocol: Protocol, bytes: &[u8]) -> Event {
        if bytes.is_empty() {
            return Event::Nothing;
        }
        if self.request.is_none() {
            return Event::Broken("the server sent what nobody had asked for".to_owned());
        }
        match protocol.answer(bytes) {
            Answer::Part => {
                self.buffer.extend_from_slice(bytes);
                Event::Nothing
            }
            Answer::Whole { length, .. } if length < bytes.len() => {
                Event::Broken("the server sent more than one answer".to_owned())
            }
            Answer::Whole { stays, error, .. } => Event::Answered { stays, error },
            Answer::Invalid(text) => Event::Broken(format!("not an answer: `{text}`")),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}
