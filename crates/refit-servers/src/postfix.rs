//! Postfix's main.cf, master.cf and tables (postconf(5), master(5)). Of one parameter the last line counts.

use std::ops::Range;

/// A line with those that continue it, which begin with white space; comments and empty lines may stand between.
pub struct LogicalLine {
    /// Number of the first physical line, from 1.
    pub number: usize,
    /// The physical lines, each without its newline, as ranges of the file's bytes.
    pub parts: Vec<Range<usize>>,
}

impl LogicalLine {
    /// Its text, of which the parts are joined by a space.
    #[must_use]
    pub fn text(&self, file: &[u8]) -> String {
        let parts = self.parts.iter().map(|part| {
            let text = String::from_utf8_lossy(&file[part.clone()]);
            text.trim().to_owned()
        });
        parts.collect::<Vec<_>>().join(" ")
    }
}

fn is_comment(line: &[u8]) -> bool {
    let text = line.trim_ascii_start();
    text.is_empty() || text.starts_with(b"#")
}

/// All logical lines of a file. Postfix ignores those before the first one that begin with white space.
#[must_use]
pub fn logical_lines(file: &[u8]) -> Vec<LogicalLine> {
    let mut found: Vec<LogicalLine> = Vec::new();
    let mut start = 0;
    for (index, line) in file.split(|byte| *byte == b'\n').enumerate() {
        let part = start..start + line.len();
        start = part.end + 1;
        let continues = line.first().is_some_and(u8::is_ascii_whitespace);
        match found.last_mut() {
            _ if is_comment(line) => {}
            Some(last) if continues => last.parts.push(part),
            None if continues => {}
            _ => found.push(LogicalLine {
                number: index + 1,
                parts: vec![part],
            }),
        }
    }
    found
}

/// The file with each logical line on its first physical one: the others are empty, and comments stay.
#[must_use]
pub fn joined(file: &str) -> String {
    let comment = |line| {
        if is_comment(str::as_bytes(line)) {
            line
        } else {
            ""
        }
    };
    let mut lines: Vec<String> = file.lines().map(|line| comment(line).to_owned()).collect();
    for line in logical_lines(file.as_bytes()) {
        lines[line.number - 1] = line.text(file.as_bytes());
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// The parameter and the value of a logical line of main.cf; `None`: Postfix does not start with this line.
#[must_use]
pub fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
    is_name.then_some((name, value))
}

/// How many columns a service of master.cf has; the last one is the program.
pub const COLUMNS: usize = 8;

/// A service of master.cf.
pub struct Entry {
    /// The number of its first line, from 1.
    pub line: usize,
    /// The columns, and then options and arguments.
    pub words: Vec<String>,
    /// Where the program stands in the file, in bytes.
    pub command_at: Range<usize>,
}

impl Entry {
    /// The program that it runs, below daemon_directory.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.words[COLUMNS - 1]
    }

    /// The socket by which it is reached, below queue_directory; `None` for one on the network.
    #[must_use]
    pub fn socket(&self) -> Option<String> {
        let public = self.words[2] == "n";
        let directory = if public { "public" } else { "private" };
        (self.words[1] == "unix").then(|| format!("{directory}/{}", self.words[0]))
    }
}

/// All services of master.cf.
#[must_use]
pub fn entries(file: &[u8]) -> Vec<Entry> {
    let mut found = Vec::new();
    for line in logical_lines(file) {
        let mut places = Vec::new();
        for part in line.parts {
            let mut start = part.start;
            for word in file[part].split(u8::is_ascii_whitespace) {
                places.extend((!word.is_empty()).then_some(start..start + word.len()));
                start += word.len() + 1;
            }
        }
        let word =
            |place: &Range<usize>| String::from_utf8_lossy(&file[place.clone()]).into_owned();
        found.extend(places.get(COLUMNS - 1).map(|command_at| Entry {
            line: line.number,
            words: places.iter().map(word).collect(),
            command_at: command_at.clone(),
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `postconf -c DIR -n` of Postfix 3.7 prints the same values, and refuses what is none.
    #[test]
    fn a_parameter_is_read_over_its_lines() {
        for (file, meant) in [
            (
                "a =\n  b\n# why\n\n\tc\n  #\n",
                &[(1, Some(("a", "b c")))][..],
            ),
            (" x = y\n z\na=b=c # d\r\n", &[(3, Some(("a", "b=c # d")))]),
            (
                "#\na = b \\\n c\nd=\n",
                &[(2, Some(("a", "b \\ c"))), (4, Some(("d", "")))],
            ),
            ("a\n", &[(1, None)]),
            ("= b\n", &[(1, None)]),
            ("a b = c\n", &[(1, None)]),
        ] {
            let lines = logical_lines(file.as_bytes());
            let texts = lines
                .iter()
                .map(|line| (line.number, line.text(file.as_bytes())));
            let texts: Vec<_> = texts.collect();
            let read: Vec<_> = texts
                .iter()
                .map(|(number, text)| (*number, assignment(text)))
                .collect();
            assert_eq!(read, meant, "{file:?}");
        }
        assert_eq!(
            joined(" x\na =\n b\n # c\n\td\ne"),
            "\na = b d\n\n # c\n\ne\n"
        );
    }

    #[test]
    fn a_service_is_read_over_its_lines() {
        let file = b"# cleanup unix n - y - 0 cleanup\n\
            smtp      inet  n       -       y       -       -       smtpd\n\
            relay     unix  -       -       y       -       -  \tsmtp\n\
            \t-o syslog_name=postfix/$service_name\n\
            broken unix\n\
            second unix n - y\n  - 0\n# between\n    cleanup -v\n";
        let read = |entry: &Entry| {
            let options = entry.words[COLUMNS..].join(" ");
            (
                entry.line,
                entry.command().to_owned(),
                entry.socket(),
                options,
            )
        };
        let entries = entries(file);
        let read: Vec<_> = entries.iter().map(read).collect();
        let meant = [
            (2, "smtpd", None, ""),
            (
                3,
                "smtp",
                Some("private/relay"),
                "-o syslog_name=postfix/$service_name",
            ),
            (6, "cleanup", Some("public/second"), "-v"),
        ];
        let meant = meant.map(|(line, command, socket, options)| {
            let socket = socket.map(str::to_owned);
            (line, command.to_owned(), socket, options.to_owned())
        });
        assert_eq!(read, meant);
    }
}
