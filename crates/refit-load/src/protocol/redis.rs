//! Redis's protocol: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

use super::{Answer, told};

/// Arrays within arrays that an answer may have.
const DEEPEST: usize = 8;

/// A command of words without blanks in them.
pub fn request(text: &str) -> Option<Vec<u8>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() {
        return None;
    }
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    Some(bytes.into_bytes())
}

/// Where it ends; an error is one that begins the answer.
pub fn answer(bytes: &[u8]) -> Answer {
    match end(bytes, 0) {
        Ok(Some(length)) => Answer::Whole {
            length,
            stays: true,
            error: (bytes[0] == b'-').then(|| told(&bytes[1..])),
        },
        Ok(None) => Answer::Part,
        Err(()) => Answer::Invalid(told(bytes)),
    }
}

/// The length of the value that these bytes begin with; `None`: there is more to come.
fn end(bytes: &[u8], depth: usize) -> Result<Option<usize>, ()> {
    let Some((kind, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    if !b"+-:$*".contains(kind) {
        return Err(());
    }
    let Some(line) = rest.windows(2).position(|two| two == b"\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&rest[..line]).map_err(|_| ());
    let head = line + 3;
    match kind {
        b'$' => match text?.parse::<i64>().map_err(|_| ())? {
            -1 => Ok(Some(head)),
            length => {
                let length = usize::try_from(length).map_err(|_| ())?;
                let whole = head.checked_add(length).and_then(|at| at.checked_add(2));
                let whole = whole.ok_or(())?;
                Ok(Some(whole).filter(|whole| *whole <= bytes.len()))
            }
        },
        b'*' => {
            let count = text?.parse::<i64>().map_err(|_| ())?;
            if depth == DEEPEST {
                return Err(());
            }
            let mut at = head;
            for _ in 0..count.max(0) {
                match end(&bytes[at..], depth + 1)? {
                    Some(length) => at += length,
                    None => return Ok(None),
                }
            }
            Ok(Some(at))
        }
        _ => Ok(Some(head)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_words() {
        let bytes = request("INCR  counter").unwrap();
        assert_eq!(bytes, b"*2\r\n$4\r\nINCR\r\n$7\r\ncounter\r\n");
        assert_eq!(request(" "), None);
    }

    #[test]
    fn an_answer_ends_where_the_protocol_says() {
        for (bytes, length) in [
            ("+OK\r\n", 5),
            (":42\r\n+OK\r\n", 5),
            ("$3\r\na\r\n\r\n", 9),
            ("$-1\r\n", 5),
            ("*-1\r\n", 5),
            ("*2\r\n$1\r\na\r\n*1\r\n:1\r\nrest", 19),
        ] {
            assert_eq!(answer(bytes.as_bytes()), Answer::success(length), "{bytes}");
        }
        for bytes in ["", "+OK\r", "$3\r\nab", "*2\r\n:1\r\n"] {
            assert_eq!(answer(bytes.as_bytes()), Answer::Part, "{bytes}");
        }
        for bytes in ["HTTP/1.1 400\r\n", "$-7\r\n", "$x\r\n", "*x\r\n"] {
            assert!(
                matches!(answer(bytes.as_bytes()), Answer::Invalid(_)),
                "{bytes}"
            );
        }
    }

    #[test]
    fn an_error_is_told() {
        let Answer::Whole { error, length, .. } = answer(b"-OOM command not allowed\r\n") else {
            panic!("it is whole");
        };
        assert_eq!(error.as_deref(), Some("OOM command not allowed"));
        assert_eq!(length, 26);
    }
}
