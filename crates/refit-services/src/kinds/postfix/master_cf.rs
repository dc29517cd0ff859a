//! The services of master.cf (master(5)).

use std::ops::Range;

use super::logical_lines::logical_lines;

/// A service of master.cf, by the range of each of its eight first words.
pub struct Entry {
    /// The number of its line.
    pub line: usize,
    words: Vec<Range<usize>>,
}

/// Of the columns of a line.
const COLUMNS: usize = 8;

impl Entry {
    fn word<'a>(&self, file: &'a [u8], column: usize) -> &'a str {
        std::str::from_utf8(&file[self.words[column].clone()]).unwrap_or_default()
    }

    /// The program that it runs, below daemon_directory.
    pub fn command<'a>(&self, file: &'a [u8]) -> &'a str {
        self.word(file, COLUMNS - 1)
    }

    /// The socket by which it is reached, below queue_directory; `None` for one on the network.
    pub fn socket(&self, file: &[u8]) -> Option<String> {
        let dir = match self.word(file, 2) {
            "n" => "public",
            _ => "private",
        };
        let name = self.word(file, 0);
        (self.word(file, 1) == "unix").then(|| format!("{dir}/{name}"))
    }
}

/// All services.
pub fn entries(file: &[u8]) -> Vec<Entry> {
    let mut found = Vec::new();
    for line in logical_lines(file) {
        let mut words = Vec::new();
        for part in &line.parts {
            let mut start = part.start;
            for word in file[part.clone()].split(u8::is_ascii_whitespace) {
                if !word.is_empty() {
                    words.push(start..start + word.len());
                }
                start += word.len() + 1;
            }
        }
        words.truncate(COLUMNS);
        if words.len() == COLUMNS {
            found.push(Entry {
                line: line.number,
                words,
            });
        }
    }
    found
}

/// The file with another program for these services. All other bytes stay.
pub fn with_command(file: &[u8], entries: &[Entry], command: &str) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for entry in entries.iter().rev() {
        bytes.splice(entry.words[COLUMNS - 1].clone(), command.bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = b"# cleanup unix n - y - 0 cleanup\n\
        smtp      inet  n       -       y       -       -       smtpd\n\
        cleanup   unix  n       -       y       -       0       cleanup\n\
        relay     unix  -       -       y       -       -  \tsmtp\n\
        \t-o syslog_name=postfix/$service_name\n\
        broken unix\n\
        second unix - - y\n  - 0\n# between\n    cleanup -v\n";

    #[test]
    fn a_service_is_read_over_its_lines() {
        let all = entries(FILE);
        let read = |entry: &Entry| {
            (
                entry.line,
                entry.command(FILE).to_owned(),
                entry.socket(FILE),
            )
        };
        let read: Vec<_> = all.iter().map(read).collect();
        let meant = [
            (2, "smtpd", None),
            (3, "cleanup", Some("public/cleanup")),
            (4, "smtp", Some("private/relay")),
            (7, "cleanup", Some("private/second")),
        ];
        let meant = meant
            .map(|(line, command, socket)| (line, command.to_owned(), socket.map(str::to_owned)));
        assert_eq!(read, meant);
    }

    #[test]
    fn only_the_command_is_another() {
        let mut all = entries(FILE);
        all.retain(|entry| entry.command(FILE) == "cleanup");
        let text = String::from_utf8(with_command(FILE, &all, "../x")).expect("text");
        let as_before = String::from_utf8_lossy(FILE)
            .replace("0       cleanup\n", "0       ../x\n")
            .replace("    cleanup -v", "    ../x -v");
        assert_eq!(text, as_before);
    }
}
