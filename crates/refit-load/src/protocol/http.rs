//! HTTP/1.1, as far as one request after the other needs it: RFC 9112.

use super::{Answer, told};

/// Lines of a head.
const HEADERS: usize = 64;
/// Bytes of a head.
const LONGEST_HEAD: usize = 64 << 10;

/// `GET /path`.
pub fn request(text: &str) -> Option<Vec<u8>> {
    let path = text.strip_prefix("GET ")?;
    let is_path = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
    is_path.then(|| format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").into_bytes())
}

/// An answer whose length is told, or that comes in chunks.
pub fn answer(bytes: &[u8]) -> Answer {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let start = match head.parse(bytes) {
        Ok(httparse::Status::Complete(start)) => start,
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST_HEAD => return Answer::Part,
        _ => return Answer::Invalid(told(bytes)),
    };
    let code = head.code.unwrap_or(0);
    let field = |name: &str| {
        let mut headers = head.headers.iter();
        let found = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    let is = |name: &str, value: &str| {
        field(name).is_some_and(|found| found.eq_ignore_ascii_case(value))
    };
    let length = if is("Transfer-Encoding", "chunked") {
        chunks(&bytes[start..])
    } else if code == 204 || code == 304 {
        Ok(Some(0))
    } else {
        match field("Content-Length").map(str::parse::<usize>) {
            Some(Ok(length)) => Ok(Some(length).filter(|length| *length <= bytes.len() - start)),
            _ => return Answer::Invalid(format!("HTTP {code} whose length is not told")),
        }
    };
    match length {
        Ok(Some(length)) => Answer::Whole {
            length: start + length,
            stays: head.version == Some(1) && !is("Connection", "close"),
            error: (!(200..400).contains(&code)).then(|| format!("HTTP {code}")),
        },
        Ok(None) => Answer::Part,
        Err(()) => Answer::Invalid(told(&bytes[start..])),
    }
}

/// The length of all chunks; `None`: there is more to come.
fn chunks(bytes: &[u8]) -> Result<Option<usize>, ()> {
    let mut at = 0;
    loop {
        match httparse::parse_chunk_size(&bytes[at..]) {
            Ok(httparse::Status::Complete((head, size))) => {
                let size = usize::try_from(size).map_err(|_| ())?;
                let end = [at, head, size, 2]
                    .iter()
                    .try_fold(0_usize, |sum, part| sum.checked_add(*part));
                let end = end.ok_or(())?;
                if end > bytes.len() {
                    return Ok(None);
                }
                // Trailers, which hardly anybody sends, are not read.
                if &bytes[end - 2..end] != b"\r\n" {
                    return Err(());
                }
                if size == 0 {
                    return Ok(Some(end));
                }
                at = end;
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_method_and_a_path() {
        assert_eq!(
            request("GET /load?a=1").unwrap(),
            b"GET /load?a=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        );
        for text in [
            "/load",
            "GET load",
            "POST /load",
            "GET /a b",
            "GET /a\r\nX: y",
            "",
        ] {
            assert_eq!(request(text), None, "{text}");
        }
    }

    #[test]
    fn an_answer_ends_where_its_length_says() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1";
        let end = whole.len() - 8;
        assert_eq!(answer(whole), Answer::success(end));
        for length in 0..end {
            assert_eq!(answer(&whole[..length]), Answer::Part, "{length}");
        }
        let whole = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        assert_eq!(answer(whole), Answer::success(whole.len()));
        for length in 0..whole.len() {
            assert_eq!(answer(&whole[..length]), Answer::Part, "{length}");
        }
        let whole = b"HTTP/1.1 204 No Content\r\n\r\n";
        assert_eq!(answer(whole), Answer::success(whole.len()));
    }

    #[test]
    fn an_error_and_the_end_of_a_connection_are_told() {
        let whole = b"HTTP/1.1 503 Busy\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n";
        let expected = Answer::Whole {
            length: whole.len(),
            stays: false,
            error: Some("HTTP 503".to_owned()),
        };
        assert_eq!(answer(whole), expected);
        let whole = b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n";
        assert!(matches!(answer(whole), Answer::Whole { stays: false, .. }));
        assert!(matches!(answer(b"+OK\r\n"), Answer::Invalid(_)));
        assert!(matches!(
            answer(b"HTTP/1.1 200 OK\r\n\r\n"),
            Answer::Invalid(_)
        ));
    }
}
