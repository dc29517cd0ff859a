//! How the program's acknowledgements are heard.

use std::fmt;
use std::str::FromStr;

use regex_lite::Regex;

use crate::clock::now;
use crate::promise::Promise;
use crate::smtp::Smtp;

/// Where acknowledgements come from.
#[derive(Clone, Debug)]
pub enum Ack {
    /// Each line that the program, or the load, writes to this descriptor is an id.
    Fd(i32),
    /// In each line of the output of the program, or of the load: the first
    /// group is the id; without one the lines that match are counted.
    Regex(Regex),
    /// refit itself sends mails.
    Smtp(Smtp),
    /// Each sync call of the program that has succeeded is one: the first is 1.
    Sync,
}

/// The recipient of mails, where none is named.
const RECIPIENT: &str = "refit@localhost";

impl FromStr for Ack {
    type Err = String;

    fn from_str(text: &str) -> Result<Ack, String> {
        if text == "sync" {
            return Ok(Ack::Sync);
        }
        if let Some(number) = text.strip_prefix("fd:") {
            let number: i32 = number
                .parse()
                .map_err(|_| format!("{number:?} is no descriptor; write fd:1"))?;
            return if (1..=255).contains(&number) {
                Ok(Ack::Fd(number))
            } else {
                Err(format!(
                    "{number} is no descriptor to write to; from 1 to 255"
                ))
            };
        }
        if let Some(rest) = text.strip_prefix("smtp:") {
            let (address, recipient) = rest.split_once('/').unwrap_or((rest, RECIPIENT));
            let (address, recipient) = (address.to_owned(), recipient.to_owned());
            let port = address
                .rsplit_once(':')
                .and_then(|(_, port)| port.parse::<u16>().ok());
            if port.is_none() {
                return Err(format!(
                    "{address:?} lacks a port; write smtp:127.0.0.1:2525"
                ));
            }
            return Ok(Ack::Smtp(Smtp { address, recipient }));
        }
        Err(format!(
            "{text:?} is no source of acknowledgements; there are fd:N, smtp:HOST:PORT[/RECIPIENT] and sync, and --ack-regex"
        ))
    }
}

impl Ack {
    /// What a regular expression finds in the output.
    ///
    /// # Errors
    /// It is none.
    pub fn regex(text: &str) -> Result<Ack, String> {
        let regex = Regex::new(text).map_err(|error| format!("{text:?}: {error}"))?;
        Ok(Ack::Regex(regex))
    }
}

impl fmt::Display for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ack::Fd(number) => write!(f, "fd:{number}"),
            Ack::Regex(regex) => write!(f, "regex {}", regex.as_str()),
            Ack::Smtp(smtp) => write!(f, "smtp:{}/{}", smtp.address, smtp.recipient),
            Ack::Sync => f.write_str("sync"),
        }
    }
}

/// Turns output into promises.
#[derive(Debug, Default)]
pub struct Listener {
    regex: Option<Regex>,
    line: Vec<u8>,
    /// What was heard so far.
    pub promises: Vec<Promise>,
}

/// A line that goes on for longer is none.
const LONGEST: usize = 4096;

impl Listener {
    /// Each line is an id, or what the regex finds in it.
    #[must_use]
    pub fn new(regex: Option<Regex>) -> Listener {
        Listener {
            regex,
            ..Listener::default()
        }
    }

    /// Output that has just been received.
    pub fn hear(&mut self, bytes: &[u8]) {
        let at = now();
        for byte in bytes {
            if *byte != b'\n' {
                if self.line.len() < LONGEST {
                    self.line.push(*byte);
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if let Some(id) = self.id(&String::from_utf8_lossy(&line)) {
                self.promises.push(Promise { id, at });
            }
        }
    }

    fn id(&self, line: &str) -> Option<String> {
        let Some(regex) = &self.regex else {
            let id = line.trim();
            return (!id.is_empty()).then(|| id.to_owned());
        };
        let found = regex.captures(line)?;
        Some(match found.get(1) {
            Some(id) => id.as_str().to_owned(),
            None => (self.promises.len() + 1).to_string(),
        })
    }
}
