//! The keys of the live view. crossterm's reader is not used: it reads the end of a terminal that is gone for
//! ever, without a pause, and leaves what is beyond the 1024th byte typed at once unread until the next key.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use refit_report::watch::Input;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// `q` or Ctrl-C: ends the view.
    Quit,
    /// What the screen takes.
    Of(Input),
}

/// Where keys are read: standard input, or else the controlling terminal.
pub fn keyboard() -> io::Result<OwnedFd> {
    match io::stdin().is_terminal() {
        true => io::stdin().as_fd().try_clone_to_owned(),
        false => Ok(File::open("/dev/tty")?.into()),
    }
}

/// The keys that are pressed within this time, or at least some of them; `None` when the terminal is gone.
pub fn pressed(keyboard: &OwnedFd, longest: Duration) -> Option<Vec<Key>> {
    let mut waited = [PollFd::new(keyboard, PollFlags::IN)];
    // An interruption ends it too; the caller looks for one.
    let _ = poll(&mut waited, Timespec::try_from(longest).ok().as_ref());
    let state = waited[0].revents();
    if state.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return None;
    }
    if !state.contains(PollFlags::IN) {
        return Some(Vec::new());
    }
    let mut bytes = [0; 1024];
    match read(keyboard, &mut bytes) {
        Ok(0) => None,
        Ok(count) => Some(keys(&bytes[..count])),
        Err(Errno::INTR | Errno::AGAIN) => Some(Vec::new()),
        Err(_) => None,
    }
}

/// The keys that a terminal sends as these bytes.
fn keys(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let [first, rest @ ..] = bytes {
        let (key, after) = match (first, rest) {
            (0x1b, [b'[' | b'O', rest @ ..]) => sequence(rest),
            (0x1b, rest) => (Key::Of(Input::Back), rest),
            (b'q' | 0x03, rest) => (Key::Quit, rest),
            (b'k', rest) => (Key::Of(Input::Up), rest),
            (b'j', rest) => (Key::Of(Input::Down), rest),
            (b'\r' | b'\n', rest) => (Key::Of(Input::Enter), rest),
            (0x08 | 0x7f, rest) => (Key::Of(Input::Back), rest),
            (other, rest) => (Key::Of(Input::Key(char::from(*other))), rest),
        };
        keys.push(key);
        bytes = after;
    }
    keys
}

/// The key of a sequence, without what begins it: parameters, and one byte that names it (ECMA-48); and what follows.
fn sequence(bytes: &[u8]) -> (Key, &[u8]) {
    let is_parameter = |byte: &u8| (0x20..0x40).contains(byte);
    let parameters = bytes.iter().take_while(|byte| is_parameter(byte)).count();
    let (name, rest) = match &bytes[parameters..] {
        [name, rest @ ..] => (*name, rest),
        [] => (0, &[][..]),
    };
    let input = match name {
        b'A' => Input::Up,
        b'B' => Input::Down,
        b'C' => Input::Enter,
        b'D' => Input::Back,
        _ => Input::Key('\0'),
    };
    (Key::Of(input), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_what_terminals_send() {
        use Input::{Back, Down, Enter, Up};
        for (bytes, inputs) in [
            (&b"kj\r\x1b\x7f"[..], &[Up, Down, Enter, Back, Back][..]),
            (b"\x1b[A\x1b[B\x1b[C\x1b[D", &[Up, Down, Enter, Back]),
            (b"\x1bOA\x1b[1;5B", &[Up, Down]),
            (
                b"p\x1b[5~m",
                &[Input::Key('p'), Input::Key('\0'), Input::Key('m')],
            ),
            (b"\x1b[", &[Input::Key('\0')]),
            (b"\x1b[12", &[Input::Key('\0')]),
            (b"", &[]),
        ] {
            let meant: Vec<Key> = inputs.iter().map(|input| Key::Of(*input)).collect();
            assert_eq!(keys(bytes), meant, "{bytes:?}");
        }
        assert_eq!(keys(b"q\x03"), [Key::Quit, Key::Quit]);
    }

    #[test]
    fn no_bytes_are_too_many_or_too_odd() {
        for byte in 0..=u8::MAX {
            for head in [&b""[..], b"\x1b", b"\x1b[", b"\x1bO", b"\x1b[1;"] {
                assert!(!keys(&[head, &[byte]].concat()).is_empty());
            }
        }
    }
}
