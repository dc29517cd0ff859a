//! A person at a terminal: types, reads, waits for what is printed.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::deadline::Deadline;
use crate::sys::pty;

/// How long `wait_for` waits before it fails the test.
const TIMEOUT: Duration = Duration::from_secs(20);

pub const CTRL_C: &str = "\x03";
pub const CTRL_D: &str = "\x04";
pub const CTRL_Z: &str = "\x1a";

/// Ctrl-U and Enter: the shell forgets what stands on its line and prompts
/// again. Ctrl-C would do so too, but zsh loses one that comes while a
/// function of its line editor still runs.
pub const CLEAR_THE_LINE: &str = "\x15\r";

pub struct Terminal {
    child: Child,
    person: File,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
    /// What `wait_for` has gone past.
    read: usize,
}

impl Terminal {
    /// Starts a command in the foreground of a terminal of its own.
    pub fn start(command: Command) -> Self {
        let (child, person) = pty::spawn(command).expect("a terminal can be had");
        let shown = Arc::new(Mutex::new(Vec::new()));
        let (mut from, to) = (
            person.try_clone().expect("descriptors are left"),
            shown.clone(),
        );
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            // EIO: the last program has closed its side.
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                to.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend_from_slice(&bytes[..count]);
            }
        });
        Self {
            child,
            person,
            shown,
            reader,
            read: 0,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn type_in(&mut self, keys: &str) {
        self.person
            .write_all(keys.as_bytes())
            .expect("a terminal takes what is typed");
    }

    /// Waits until this text is shown, after what was waited for before.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        self.wait_within(text, TIMEOUT);
    }

    /// As [`Terminal::wait_for`], after work that takes so long at most.
    #[track_caller]
    pub fn wait_within(&mut self, text: &str, limit: Duration) {
        let mut deadline = Deadline::after(limit);
        loop {
            let shown = self.shown();
            if let Some(at) = shown[self.read..].find(text) {
                self.read += at + text.len();
                return;
            }
            assert!(
                !deadline.is_over(),
                "waited {deadline} for {text:?} on the terminal, which shows:\n{shown}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn shown(&self) -> String {
        text_of(&self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for the end of the command and of all that still had the terminal; how it ended, and all that the
    /// terminal showed.
    pub fn finish(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("it is our child");
        self.reader.join().expect("the reader only reads");
        let shown = self.shown.lock();
        let shown = shown.unwrap_or_else(PoisonError::into_inner);
        (status, text_of(&shown))
    }
}

/// All of it at once: a read can end within a character.
fn text_of(shown: &[u8]) -> String {
    String::from_utf8_lossy(shown).replace('\r', "")
}
