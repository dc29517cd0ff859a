//! `--listen`: the metrics over HTTP, for a scraper.
//!
//! It is served between the ticks of the watch and waits for nobody: each client is given what it takes at the moment,
//! and a few seconds in all. A request is at most 8 KiB, which is read to its end and answered once.
//!
//! Who asks by a name other than localhost is refused: a page in a browser on this machine can have the name of its own
//! server lead here, and would read the answer as its own (DNS rebinding).
//!
//! No crate does this: hyper brings a runtime, tiny_http threads, and both serve beside the watch and not between its
//! ticks. httparse would replace the thirty lines that read a head.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use refit_report::metrics::Format;

/// A longer request is refused.
const MOST_BYTES: usize = 8 << 10;
/// For the request and its answer together.
const LONGEST: Duration = Duration::from_secs(5);
/// With more clients at a time the oldest makes room.
const MOST_CLIENTS: usize = 32;
/// What follows an answered request is read, so that its connection is not reset before the answer is: so much in a tick.
const DISCARDED: usize = 64 << 10;

/// A port, and who asks there.
pub struct MetricsServer {
    listener: TcpListener,
    clients: Vec<Client>,
}

struct Client {
    stream: TcpStream,
    since: Instant,
    request: Vec<u8>,
    /// What is still to be written; `None`: the request is not there yet.
    answer: Option<Vec<u8>>,
    is_answered: bool,
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Metrics {
        format: Format,
        body: bool,
    },
    Refused(&'static str),
    /// By a name that may be anybody's.
    OtherName,
}

impl MetricsServer {
    /// Listens.
    ///
    /// # Errors
    /// The address is taken, not this machine's, or not allowed.
    pub fn bind(address: SocketAddr) -> Result<MetricsServer> {
        let listener = match TcpListener::bind(address) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => bail!(
                "cannot listen on {address}: the port is taken\n  name another, or 0 for a free one: --listen {}",
                SocketAddr::new(address.ip(), 0)
            ),
            bound => bound.with_context(|| format!("cannot listen on {address}"))?,
        };
        listener
            .set_nonblocking(true)
            .with_context(|| format!("cannot listen on {address}"))?;
        Ok(MetricsServer {
            listener,
            clients: Vec::new(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The kernel's.
    pub fn address(&self) -> Result<SocketAddr> {
        self.listener.local_addr().context("cannot listen")
    }

    /// Goes on with everybody, as far as that is possible now.
    pub fn tick(&mut self, mut text: impl FnMut(Format) -> String) {
        // Those that cannot be accepted now, for want of a descriptor for example, are later.
        for _ in 0..MOST_CLIENTS {
            let Ok((stream, _)) = self.listener.accept() else {
                break;
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            if self.clients.len() == MOST_CLIENTS {
                self.clients.remove(0);
            }
            self.clients.push(Client {
                stream,
                since: Instant::now(),
                request: Vec::new(),
                answer: None,
                is_answered: false,
            });
        }
        self.clients.retain_mut(|client| {
            client.since.elapsed() < LONGEST && client.go_on(&mut text).is_some()
        });
    }
}

impl Client {
    /// `None`: it is done, or gone.
    fn go_on(&mut self, text: &mut impl FnMut(Format) -> String) -> Option<()> {
        if self.answer.is_none() {
            self.read()?;
            self.answer = asked(&self.request).map(|asked| answer(&asked, text));
        }
        if let Some(rest) = &mut self.answer {
            while !rest.is_empty() {
                match later(self.stream.write(rest))? {
                    Some(count) => drop(rest.drain(..count)),
                    None => return Some(()),
                }
            }
            if !self.is_answered {
                self.stream.shutdown(Shutdown::Write).ok()?;
                self.is_answered = true;
            }
            self.discard()?;
        }
        Some(())
    }

    /// Until the request is complete, or too long.
    fn read(&mut self) -> Option<()> {
        let mut buffer = [0; 2048];
        while asked(&self.request).is_none() {
            match later(self.stream.read(&mut buffer))? {
                Some(0) => return None,
                Some(count) => self.request.extend_from_slice(&buffer[..count]),
                None => break,
            }
        }
        Some(())
    }

    fn discard(&mut self) -> Option<()> {
        let mut buffer = [0; 4096];
        let mut discarded = 0;
        while discarded < DISCARDED {
            match later(self.stream.read(&mut buffer))? {
                Some(0) => return None,
                Some(count) => discarded += count,
                None => break,
            }
        }
        Some(())
    }
}

/// `None`: the connection is broken. `Some(None)`: not now.
fn later(result: std::io::Result<usize>) -> Option<Option<usize>> {
    match result {
        Ok(count) => Some(Some(count)),
        Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {
            Some(None)
        }
        Err(_) => None,
    }
}

/// What a request asks for; `None` where more of it has to come.
fn asked(request: &[u8]) -> Option<Asked> {
    let is_complete = [&b"\r\n\r\n"[..], b"\n\n"]
        .iter()
        .any(|end| request.windows(end.len()).any(|bytes| bytes == *end));
    if !is_complete {
        let is_long = request.len() > MOST_BYTES;
        return is_long.then_some(Asked::Refused("431 Request Header Fields Too Large"));
    }
    let request = String::from_utf8_lossy(request);
    let mut lines = request.lines();
    let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else {
        return Some(Asked::Refused("400 Bad Request"));
    };
    if !version.starts_with("HTTP/1.") {
        return Some(Asked::Refused("400 Bad Request"));
    }
    if !["GET", "HEAD"].contains(&method) {
        return Some(Asked::Refused("405 Method Not Allowed"));
    }
    if target.split('?').next() != Some("/metrics") {
        return Some(Asked::Refused("404 Not Found"));
    }
    let headers: Vec<(&str, &str)> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim(), value.trim()))
        .collect();
    let any = |name: &str, is_so: fn(&str) -> bool| {
        let mut headers = headers.iter();
        headers.any(|(one, value)| one.eq_ignore_ascii_case(name) && is_so(value))
    };
    if any("host", |host| !is_address(host)) {
        return Some(Asked::OtherName);
    }
    let format = match any("accept", |value| {
        value.contains("application/openmetrics-text")
    }) {
        true => Format::OpenMetrics,
        false => Format::Prometheus,
    };
    let body = method == "GET";
    Some(Asked::Metrics { format, body })
}

/// Whether a `Host` is an IP address or localhost, which no page can be served under from elsewhere.
fn is_address(host: &str) -> bool {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    let name = match port.bytes().all(|byte| byte.is_ascii_digit()) {
        true => name,
        // The end of an IPv6 address without a port.
        false => host,
    };
    let in_brackets = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    match in_brackets {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<Ipv4Addr>().is_ok() || name.eq_ignore_ascii_case("localhost"),
    }
}

fn answer(asked: &Asked, text: &mut impl FnMut(Format) -> String) -> Vec<u8> {
    let (status, kind, text, body) = match asked {
        Asked::Metrics { format, body } => {
            let kind = match format {
                Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
                Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            };
            ("200 OK", kind, text(*format), *body)
        }
        Asked::Refused(status) => {
            let text = format!("{status}: GET /metrics is what is answered here\n");
            (*status, "text/plain; charset=utf-8", text, true)
        }
        Asked::OtherName => {
            let status = "421 Misdirected Request";
            let text = format!(
                "{status}: ask by an IP address or localhost; no other name is answered, since a web page could have it\n"
            );
            (status, "text/plain; charset=utf-8", text, true)
        }
    };
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n",
        text.len()
    );
    if body {
        answer += &text;
    }
    answer.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(headers: &str) -> Option<Asked> {
        asked(format!("GET /metrics HTTP/1.1\r\n{headers}\r\n").as_bytes())
    }

    #[test]
    fn a_request_is_answered_when_it_is_complete() {
        let metrics = |format, body| Some(Asked::Metrics { format, body });
        let host = "Host: 127.0.0.1:9850\r\n";
        assert_eq!(get(host), metrics(Format::Prometheus, true));
        let accept = "aCCept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n";
        assert_eq!(get(accept), metrics(Format::OpenMetrics, true));
        let head = b"HEAD /metrics?x=1 HTTP/1.0\n\n";
        assert_eq!(asked(head), metrics(Format::Prometheus, false));
        assert_eq!(asked(b"GET /metrics HTTP/1.1\r\nHost: a\r\n"), None);
        assert_eq!(asked(b""), None);
    }

    #[test]
    fn only_an_address_and_localhost_are_answered() {
        let is_answered = |headers: &str| get(headers) != Some(Asked::OtherName);
        for host in [
            "127.0.0.1",
            "127.0.0.1:9850",
            "192.0.2.7:80",
            "[::1]",
            "[2001:db8::1]:9850",
            "localhost",
            "LocalHost:9850",
        ] {
            assert!(is_answered(&format!("Host: {host}\r\n")), "{host}");
        }
        for host in [
            "",
            ":9850",
            "rebound.example",
            "rebound.example:9850",
            "127.0.0.1.rebound.example",
            "localhost.rebound.example:9850",
            "127.0.0.1:9850:rebound.example",
            "127.0.0.1@rebound.example",
            "[::1].rebound.example",
            "[rebound.example]:9850",
            "127.0.0.1, rebound.example",
        ] {
            assert!(!is_answered(&format!("Host: {host}\r\n")), "{host}");
        }
        // However it is written, and beside one that is answered.
        assert!(!is_answered("hOsT :rebound.example\r\n"));
        assert!(!is_answered("Host: localhost\r\nHost: rebound.example\r\n"));
        // HTTP/1.0 has none, and each browser gives one.
        assert!(is_answered("\r\nHost: in.the.body\r\n"));
    }

    #[test]
    fn anything_else_is_refused() {
        for (request, status) in [
            (&b"POST /metrics HTTP/1.1\r\n\r\n"[..], "405"),
            (b"GET / HTTP/1.1\r\n\r\n", "404"),
            (b"GET /metrics/x HTTP/1.1\r\n\r\n", "404"),
            (b"GET /metrics HTTP/2\r\n\r\n", "400"),
            (b"GET  /metrics HTTP/1.1\r\n\r\n", "400"),
            (b"\x16\x03\x01\n\n", "400"),
            (&[b'x'; MOST_BYTES + 1], "431"),
        ] {
            match asked(request) {
                Some(Asked::Refused(with)) if with.starts_with(status) => {}
                other => panic!("{other:?} in place of {status}"),
            }
        }
    }

    #[test]
    fn an_answer_has_the_length_of_its_text() {
        let asked = |body| Asked::Metrics {
            format: Format::Prometheus,
            body,
        };
        let text = |body| {
            let answer = answer(&asked(body), &mut |_| "a 1\n# EOF\n".to_owned());
            String::from_utf8(answer).unwrap()
        };
        let (head, body) = text(true).split_once("\r\n\r\n").map(own).unwrap();
        assert_eq!(body, "a 1\n# EOF\n");
        assert!(head.contains("\r\nContent-Length: 10\r\n"), "{head}");
        assert_eq!(text(false), head + "\r\n\r\n");
    }

    fn own((head, body): (&str, &str)) -> (String, String) {
        (head.to_owned(), body.to_owned())
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;

    #[test]
    fn requests_for_metrics() {
        refit_fuzz::Target::new(env!("CARGO_MANIFEST_DIR"), "requests_for_metrics")
            .seeds([
                "GET /metrics HTTP/1.1\r\nHost: [::1]:9850\r\nAccept: application/openmetrics-text\r\n\r\n",
                "HEAD /metrics?x=1 HTTP/1.0\n\n",
                "POST / HTTP/1.1\r\n\r\n",
            ])
            .words([
                "\r\n",
                "\n",
                "\r\n\r\n",
                "/metrics",
                "HTTP/1.",
                "Accept: ",
                "Host: localhost",
                "GET ",
                "\u{16}\u{3}\u{1}",
            ])
            .longest(1024)
            .run(|input| {
                // As it arrives: what a whole beginning asks for, nothing after it changes.
                let first = (0..=input.len()).find_map(|end| asked(&input[..end]));
                match (first, asked(input)) {
                    (None, found) => assert_eq!(found, None),
                    (Some(_), None) => panic!("an answer is taken back"),
                    (Some(first), Some(_)) => is_whole(&first),
                }
            });
    }

    /// The answer has the length that it tells, and is one.
    fn is_whole(asked: &Asked) {
        let answer = answer(asked, &mut |_| "a 1\n# EOF\n".to_owned());
        let text = String::from_utf8(answer).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 "), "{head}");
        let is_head = matches!(asked, Asked::Metrics { body: false, .. });
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.unwrap().parse().unwrap();
        assert!(is_head && body.is_empty() || length == body.len(), "{text}");
    }
}
