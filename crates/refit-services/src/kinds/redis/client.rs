//! Asks a redis server: its protocol is lines and counted strings.
//! <https://redis.io/docs/latest/develop/reference/protocol-spec/>

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A connection.
pub struct Client {
    stream: BufReader<Box<dyn Stream>>,
}

/// Longer than any answer that refit asks for takes; saving to disk is done by a child.
const TIMEOUT: Duration = Duration::from_secs(10);
/// No answer that refit asks for is longer.
const MOST: usize = 1 << 20;

impl Client {
    /// By a socket of the file system.
    ///
    /// # Errors
    /// As the system reports.
    pub fn unix(path: &Path) -> io::Result<Client> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Client {
            stream: BufReader::new(Box::new(stream)),
        })
    }

    /// By a port of this machine.
    ///
    /// # Errors
    /// As the system reports.
    pub fn tcp(address: &str, port: u16) -> io::Result<Client> {
        let stream = TcpStream::connect((address, port))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Client {
            stream: BufReader::new(Box::new(stream)),
        })
    }

    /// What the server answers: one text, or the texts of a list.
    ///
    /// # Errors
    /// Its error, in its own words.
    pub fn ask(&mut self, words: &[&str]) -> Result<Vec<String>, String> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        let stream = self.stream.get_mut();
        let sent = stream.write_all(request.as_bytes());
        sent.map_err(|error| error.to_string())?;
        let mut texts = Vec::new();
        self.read(&mut texts)?;
        Ok(texts)
    }

    fn read(&mut self, texts: &mut Vec<String>) -> Result<(), String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line);
        read.map_err(|error| error.to_string())?;
        let line = line.trim_end();
        let (kind, rest) = line.split_at_checked(1).unwrap_or_default();
        let count = || {
            let count = rest.parse::<i64>().ok().map(|count| count.max(0));
            let count = count.and_then(|count| usize::try_from(count).ok());
            count.filter(|count| *count < MOST)
        };
        match (kind, count()) {
            ("+" | ":", _) => texts.push(rest.to_owned()),
            ("-", _) => return Err(rest.to_owned()),
            ("$", Some(length)) => {
                let mut bytes = vec![0; length + 2];
                let read = self.stream.read_exact(&mut bytes);
                read.map_err(|error| error.to_string())?;
                bytes.truncate(length);
                texts.push(String::from_utf8_lossy(&bytes).into_owned());
            }
            ("*", Some(count)) => {
                for _ in 0..count {
                    self.read(texts)?;
                }
            }
            _ => return Err(format!("an answer that is not redis's: `{line}`")),
        }
        Ok(())
    }

    /// The value of a setting; `None` where the server knows none of this name.
    ///
    /// # Errors
    /// The server's.
    pub fn get(&mut self, name: &str) -> Result<Option<String>, String> {
        Ok(self.ask(&["CONFIG", "GET", name])?.into_iter().nth(1))
    }

    /// A line `name:value` of INFO.
    ///
    /// # Errors
    /// The server's.
    pub fn info(&mut self, section: &str, name: &str) -> Result<Option<String>, String> {
        let text = self.ask(&["INFO", section])?.concat();
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(key, _)| *key == name);
        Ok(found.map(|(_, value)| value.to_owned()))
    }
}
