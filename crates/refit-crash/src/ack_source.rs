//! Where the program's acknowledgements come from.

use std::fmt;
use std::str::FromStr;

use regex_lite::Regex;

use crate::acknowledgement::Acknowledgement;
use crate::record::now;
use crate::smtp::Smtp;

/// A source of acknowledgements.
#[derive(Clone, Debug)]
pub enum AckSource {
    /// Each line that the program, or the load, writes to this descriptor is an id.
    Fd(i32),
    /// Each line of the output of the program, or of the load, that matches. The
    /// first group is the id; without a group matching lines are numbered from 1.
    Regex(Regex),
    /// refit sends mails; each 250 after DATA is one.
    Smtp(Smtp),
    /// Each sync call of the program that succeeded; the first is 1.
    Sync,
}

/// A source as it was written: ports of an instance are known only when it is made.
#[derive(Clone, Debug)]
pub struct AckText {
    text: String,
    is_regex: bool,
}

impl AckText {
    /// As `--ack` takes it.
    ///
    /// # Errors
    /// What to write.
    pub fn source(text: &str) -> Result<AckText, String> {
        let ack = AckText {
            text: text.to_owned(),
            is_regex: false,
        };
        // Any number is a port.
        let parts = text.split("$REFIT_PORT_");
        let name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let mut any = String::new();
        for (index, part) in parts.enumerate() {
            any += match index {
                0 => part,
                _ => part.trim_start_matches(name),
            };
            any += "1";
        }
        any.pop();
        any.parse::<AckSource>()?;
        Ok(ack)
    }

    /// As `--ack-regex` takes it.
    ///
    /// # Errors
    /// The expression is invalid.
    pub fn regex(text: &str) -> Result<AckText, String> {
        AckSource::regex(text)?;
        Ok(AckText {
            text: text.to_owned(),
            is_regex: true,
        })
    }

    /// Whether refit sends mails.
    #[must_use]
    pub fn is_smtp(&self) -> bool {
        !self.is_regex && self.text.starts_with("smtp:")
    }

    /// The source; `expand` replaces the names of ports.
    ///
    /// # Errors
    /// What to write.
    pub fn resolve(&self, expand: impl Fn(&str) -> String) -> Result<AckSource, String> {
        if self.is_regex {
            AckSource::regex(&self.text)
        } else {
            expand(&self.text).parse()
        }
    }
}

impl fmt::Display for AckText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_regex {
            f.write_str("regex ")?;
        }
        f.write_str(&self.text)
    }
}

/// The recipient of mails, where none is given.
const RECIPIENT: &str = "refit@localhost";

impl FromStr for AckSource {
    type Err = String;

    fn from_str(text: &str) -> Result<AckSource, String> {
        if text == "sync" {
            return Ok(AckSource::Sync);
        }
        if let Some(number) = text.strip_prefix("fd:") {
            let number: i32 = number
                .parse()
                .map_err(|_| format!("invalid descriptor {number:?}; write fd:1"))?;
            return if (1..=255).contains(&number) {
                Ok(AckSource::Fd(number))
            } else {
                Err(format!(
                    "invalid descriptor {number}; choose one from 1 to 255"
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
                    "{address:?} has no port; write smtp:127.0.0.1:2525"
                ));
            }
            return Ok(AckSource::Smtp(Smtp { address, recipient }));
        }
        Err(format!(
            "unknown source of acknowledgements {text:?}; there are fd:N, smtp:HOST:PORT[/RECIPIENT] and sync, and --ack-regex"
        ))
    }
}

impl AckSource {
    /// What a regular expression finds in the output.
    ///
    /// # Errors
    /// The expression is invalid.
    pub fn regex(text: &str) -> Result<AckSource, String> {
        let regex = Regex::new(text).map_err(|error| format!("{text:?}: {error}"))?;
        Ok(AckSource::Regex(regex))
    }
}

impl fmt::Display for AckSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AckSource::Fd(number) => write!(f, "fd:{number}"),
            AckSource::Regex(regex) => write!(f, "regex {}", regex.as_str()),
            AckSource::Smtp(smtp) => write!(f, "smtp:{}/{}", smtp.address, smtp.recipient),
            AckSource::Sync => f.write_str("sync"),
        }
    }
}

/// Reads acknowledgements from output, line by line.
#[derive(Debug, Default)]
pub struct LineReader {
    regex: Option<Regex>,
    line: Vec<u8>,
    /// What was read so far.
    pub acknowledgements: Vec<Acknowledgement>,
}

/// Of a longer line the rest is ignored.
const LONGEST: usize = 4096;

impl LineReader {
    /// Each line is an id, or what the regex finds in it.
    #[must_use]
    pub fn new(regex: Option<Regex>) -> LineReader {
        LineReader {
            regex,
            ..LineReader::default()
        }
    }

    /// Takes output that has just been received.
    pub fn read(&mut self, bytes: &[u8]) {
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
                self.acknowledgements.push(Acknowledgement { id, at });
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
            None => (self.acknowledgements.len() + 1).to_string(),
        })
    }
}
