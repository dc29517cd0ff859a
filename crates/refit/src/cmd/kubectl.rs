//! kubectl, as a process.

use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;
use thiserror::Error;

/// How long the server may take for an answer, so that a cluster that is gone is reported.
const TIMEOUT: &str = "--request-timeout=60s";

/// More than any list of pods, and than any log that a node keeps.
const MOST_BYTES: u64 = 512 << 20;

/// Bytes of its messages that are read.
const MESSAGE: u64 = 4 << 10;

/// A kubectl, and where it asks.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    place: Vec<String>,
}

/// Why it gave no answer.
#[derive(Debug, Error)]
pub enum KubectlError {
    /// It could not be started.
    #[error("cannot run {program}; install kubectl, or name it: --kubectl /PATH/kubectl")]
    Start {
        /// As it was named.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Something between it and refit failed.
    #[error("cannot run {program}")]
    Io {
        /// As it was named.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// More than any answer.
    #[error("{program} {verb} printed more than {MOST_BYTES} bytes")]
    TooLarge {
        /// As it was named.
        program: String,
        /// Its first word.
        verb: String,
    },
    /// It ended with another code than 0.
    #[error("{typed} failed: {line}")]
    Failed {
        /// The command, as a user types it.
        typed: String,
        /// The last line of its messages.
        line: String,
        /// All its messages.
        message: String,
    },
    /// What it printed is not what was asked for.
    #[error("what {program} printed is not {what}")]
    Form {
        /// As it was named.
        program: String,
        /// What was expected.
        what: &'static str,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl KubectlError {
    /// Whether its messages have this word.
    pub fn has(&self, word: &str) -> bool {
        matches!(self, KubectlError::Failed { message, .. } if message.contains(word))
    }
}

impl Kubectl {
    /// A kubectl with these options, each as typed.
    pub fn new(program: &Path, context: Option<&str>, namespace: Option<&str>) -> Kubectl {
        let option =
            |name: &str, value: Option<&str>| value.map(|value| format!("--{name}={value}"));
        let place = [option("context", context), option("namespace", namespace)];
        Kubectl {
            program: program.to_owned(),
            place: place.into_iter().flatten().collect(),
        }
    }

    /// How its command begins where a user types it.
    pub fn typed(&self) -> String {
        let program = self.shown();
        [&[program], self.place.as_slice()].concat().join(" ")
    }

    /// How its command begins, for what is in no namespace.
    pub fn of_cluster(&self) -> impl Iterator<Item = &OsStr> {
        let place = self.place.iter().map(OsStr::new);
        let is_of_cluster = |word: &&OsStr| !word.as_encoded_bytes().starts_with(b"--namespace=");
        std::iter::once(self.program.as_os_str()).chain(place.filter(is_of_cluster))
    }

    fn shown(&self) -> String {
        self.program.display().to_string()
    }

    /// An object, or a list of them, as JSON text.
    pub fn json(&self, words: &[&str]) -> Result<String, KubectlError> {
        let out = self.run(&[words, &["--output=json"]].concat())?;
        String::from_utf8(out).map_err(|source| KubectlError::Form {
            program: self.shown(),
            what: "UTF-8",
            source: source.into(),
        })
    }

    /// What it printed, read as JSON.
    pub fn value(&self, words: &[&str]) -> Result<Value, KubectlError> {
        serde_json::from_str(&self.json(words)?).map_err(|source| KubectlError::Form {
            program: self.shown(),
            what: "JSON",
            source: source.into(),
        })
    }

    /// What it printed.
    pub fn run(&self, words: &[&str]) -> Result<Vec<u8>, KubectlError> {
        self.given(words, None)
    }

    /// What it printed, with these objects as its standard input.
    pub fn given(&self, words: &[&str], input: Option<&Value>) -> Result<Vec<u8>, KubectlError> {
        let mut messages = self.messages()?;
        let mut child = self.start(words, TIMEOUT, input.is_some(), &messages)?;
        let writer = input.zip(child.stdin.take()).map(|(input, mut stdin)| {
            let text = input.to_string();
            // Who ends early has told why.
            thread::spawn(move || drop(stdin.write_all(text.as_bytes())))
        });
        let mut out = Vec::new();
        let read = match child.stdout.take() {
            Some(stdout) => stdout.take(MOST_BYTES + 1).read_to_end(&mut out),
            None => Ok(0),
        };
        let is_too_large = out.len() as u64 > MOST_BYTES;
        if is_too_large {
            // It may have ended by itself.
            let _ = child.kill();
        }
        let status = child.wait().map_err(|source| self.io(source))?;
        if let Some(writer) = writer {
            // It cannot panic.
            let _ = writer.join();
        }
        read.map_err(|source| self.io(source))?;
        if is_too_large {
            return Err(KubectlError::TooLarge {
                program: self.shown(),
                verb: words[0].to_owned(),
            });
        }
        if status.success() {
            return Ok(out);
        }
        Err(self.failed(words, &mut messages))
    }

    /// Each state of the objects until `answer` has one; `None` where there is none in this many seconds.
    pub fn watch<T>(
        &self,
        words: &[&str],
        seconds: u64,
        mut answer: impl FnMut(&Value) -> Option<T>,
    ) -> Result<Option<T>, KubectlError> {
        let mut messages = self.messages()?;
        let timeout = format!("--request-timeout={seconds}s");
        let all = [words, &["--watch", "--output=json"]].concat();
        let mut child = self.start(&all, &timeout, false, &messages)?;
        let stdout = child.stdout.take();
        let mut found = None;
        for state in stdout
            .into_iter()
            .flat_map(|stdout| serde_json::Deserializer::from_reader(stdout).into_iter::<Value>())
        {
            // What ends in the middle was ended by its timeout.
            let Ok(state) = state else { break };
            found = answer(&state);
            if found.is_some() {
                break;
            }
        }
        // It would go on watching.
        let _ = child.kill();
        let status = child.wait().map_err(|source| self.io(source))?;
        // A code of its own, before anything was found: it could not watch. The end of its time has one too.
        let is_failed = found.is_none() && status.code().is_some_and(|code| code != 0);
        let error = is_failed.then(|| self.failed(words, &mut messages));
        match error {
            Some(error) if !is_timeout(&error) => Err(error),
            _ => Ok(found),
        }
    }

    fn start(
        &self,
        words: &[&str],
        timeout: &str,
        has_input: bool,
        messages: &std::fs::File,
    ) -> Result<Child, KubectlError> {
        let stderr = messages.try_clone().map_err(|source| self.io(source))?;
        let mut command = Command::new(&self.program);
        // What follows `--` is for a container.
        command.args(&self.place).arg(timeout).args(words);
        command.stdin(match has_input {
            true => Stdio::piped(),
            false => Stdio::null(),
        });
        command.stdout(Stdio::piped()).stderr(stderr);
        command.spawn().map_err(|source| KubectlError::Start {
            program: self.shown(),
            source,
        })
    }

    fn messages(&self) -> Result<std::fs::File, KubectlError> {
        tempfile::tempfile().map_err(|source| self.io(source))
    }

    fn io(&self, source: io::Error) -> KubectlError {
        KubectlError::Io {
            program: self.shown(),
            source,
        }
    }

    fn failed(&self, words: &[&str], messages: &mut std::fs::File) -> KubectlError {
        let mut message = Vec::new();
        let read = messages
            .seek(SeekFrom::Start(0))
            .and_then(|_| messages.take(MESSAGE).read_to_end(&mut message));
        if let Err(source) = read {
            return self.io(source);
        }
        let message = String::from_utf8_lossy(&message).into_owned();
        let mut lines = message.lines().map(str::trim);
        // Before it a client repeats each request that failed.
        let line = lines.rfind(|line| !line.is_empty());
        KubectlError::Failed {
            typed: format!("{} {}", self.typed(), words.join(" ")),
            line: line.unwrap_or("it printed no reason").to_owned(),
            message,
        }
    }
}

fn is_timeout(error: &KubectlError) -> bool {
    ["Client.Timeout", "deadline exceeded", "request canceled"]
        .iter()
        .any(|word| error.has(word))
}
