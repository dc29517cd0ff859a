//! What is sent, and where its answer ends.

mod http;
mod redis;

use thiserror::Error;

/// How a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, one request after the other on a connection that stays open.
    Http,
    /// Redis's protocol (RESP2).
    Redis,
    /// A line is asked, a line is answered.
    Lines,
}

/// A request cannot be sent by this protocol.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{request}` is not {what}")]
pub struct RequestError {
    request: String,
    what: &'static str,
}

/// What of an answer has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A part of it.
    Part,
    /// All of it.
    Whole {
        /// Its bytes.
        length: usize,
        /// The server keeps the connection.
        stays: bool,
        /// Why it is no success.
        error: Option<String>,
    },
    /// It is not an answer of this protocol.
    Invalid(String),
}

impl Protocol {
    /// Every one, by the name that is typed.
    pub const ALL: [(&'static str, Protocol); 3] = [
        ("http", Protocol::Http),
        ("redis", Protocol::Redis),
        ("lines", Protocol::Lines),
    ];

    /// By its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Protocol> {
        let mut all = Protocol::ALL.into_iter();
        all.find(|(known, _)| *known == name).map(|(_, one)| one)
    }

    /// The bytes of a request: `GET /path`, `INCR counter`, or any line.
    ///
    /// # Errors
    /// [`RequestError`], with what a request looks like.
    pub fn request(self, text: &str) -> Result<Vec<u8>, RequestError> {
        let bytes = match self {
            Protocol::Http => http::request(text).ok_or("a request: write it as GET /path"),
            Protocol::Redis => redis::request(text).ok_or("a command: write it as INCR counter"),
            Protocol::Lines => (!text.is_empty() && !text.contains('\n'))
                .then(|| format!("{text}\n").into_bytes())
                .ok_or("a line"),
        };
        bytes.map_err(|what| RequestError {
            request: text.to_owned(),
            what,
        })
    }

    /// Reads the answer at the beginning of these bytes.
    pub(crate) fn answer(self, bytes: &[u8]) -> Answer {
        match self {
            Protocol::Http => http::answer(bytes),
            Protocol::Redis => redis::answer(bytes),
            Protocol::Lines => match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => Answer::success(at + 1),
                None => Answer::Part,
            },
        }
    }
}

impl Answer {
    fn success(length: usize) -> Answer {
        Answer::Whole {
            length,
            stays: true,
            error: None,
        }
    }
}

/// The longest text of a server that a message repeats.
const TOLD: usize = 80;

/// The beginning of what a server sent, for a message.
fn told(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(TOLD)]);
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use refit_fuzz::Target;

    use super::*;

    #[test]
    fn a_line_is_answered_by_a_line() {
        assert_eq!(Protocol::Lines.answer(b"pon"), Answer::Part);
        assert_eq!(Protocol::Lines.answer(b"pong\nx"), Answer::success(5));
        assert_eq!(Protocol::Lines.request("ping").unwrap(), b"ping\n");
        assert!(Protocol::Lines.request("a\nb").is_err());
    }

    #[test]
    fn answers() {
        Target::new(env!("CARGO_MANIFEST_DIR"), "answers")
            .seeds([
                &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"[..],
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
                b"*2\r\n$3\r\nabc\r\n:7\r\n",
                b"-ERR no\r\n",
            ])
            .words([
                "\r\n",
                "18446744073709551615",
                "-1",
                "*1\r\n",
                "0\r\n\r\n",
                "chunked",
            ])
            .run(|input| {
                for (_, protocol) in Protocol::ALL {
                    match protocol.answer(input) {
                        Answer::Whole { length, .. } => {
                            assert!(length > 0 && length <= input.len());
                            // What follows an answer does not change it.
                            let more = [input, b"x"].concat();
                            assert_eq!(protocol.answer(&more), protocol.answer(input));
                        }
                        Answer::Part | Answer::Invalid(_) => {}
                    }
                }
            });
    }
}
