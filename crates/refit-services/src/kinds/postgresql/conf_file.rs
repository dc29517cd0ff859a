//! Files in the syntax of postgresql.conf: `name = value`, also the `environment` of a cluster.
//! <https://www.postgresql.org/docs/15/config-setting.html>

use crate::{Error, System};

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing, or a comment.
    Nothing,
    /// `name = value`
    Sets(String, String),
    /// Something else.
    Unclear,
}

/// Reads a line.
pub fn meaning(line: &str) -> Meaning {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Meaning::Nothing;
    }
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_.-$".contains(c);
    let end = line.find(|c| !is_of_name(c)).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    let read = match rest.strip_prefix('\'') {
        Some(rest) => quoted_value(rest),
        None => rest
            .find(|c: char| c.is_whitespace() || c == '#')
            .or(Some(rest.len()))
            .map(|end| (rest[..end].to_owned(), &rest[end..])),
    };
    let after = |rest: &str| rest.trim().is_empty() || rest.trim().starts_with('#');
    match read {
        Some((value, rest)) if !name.is_empty() && after(rest) => {
            Meaning::Sets(name.to_owned(), value)
        }
        _ => Meaning::Unclear,
    }
}

/// What stands between quotes, and what follows; `rest` begins after the first quote.
fn quoted_value(rest: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut left = rest.char_indices().peekable();
    while let Some((at, c)) = left.next() {
        match c {
            '\\' => value.push(left.next()?.1),
            '\'' if left.peek().is_some_and(|(_, next)| *next == '\'') => {
                left.next();
                value.push('\'');
            }
            '\'' => return Some((value, &rest[at + 1..])),
            c => value.push(c),
        }
    }
    None
}

/// A value as such a file has it, whatever it holds but a line break.
pub fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('\'', "''");
    format!("'{escaped}'")
}

/// A line that sets something.
#[derive(Clone, Debug)]
pub struct Line {
    /// The file, and the number of the line in it.
    pub place: String,
    /// In lower case.
    pub name: String,
    /// Without quotes.
    pub value: String,
}

/// All lines that the server reads, in its order: of one name the last one counts.
#[derive(Default)]
pub struct Sources {
    /// The lines.
    pub lines: Vec<Line>,
    /// How many of them come before those of the file that was asked about; `None` where it is
    /// not read.
    pub before_ours: Option<usize>,
}

/// As deep as the server itself follows includes.
const DEPTH: usize = 10;

impl Sources {
    /// Reads a file and all that it includes. `ours` is a file of a directory that it may
    /// include, and need not be there.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn read(&mut self, system: &System, file: &str, ours: &str) -> Result<(), Error> {
        self.read_at(system, file, ours, DEPTH)
    }

    fn read_at(
        &mut self,
        system: &System,
        file: &str,
        ours: &str,
        depth: usize,
    ) -> Result<(), Error> {
        let Some(bytes) = system.read(file)?.filter(|_| depth > 0) else {
            return Ok(());
        };
        let dir = file.rsplit_once('/').map_or("", |(dir, _)| dir);
        for (index, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
            let Meaning::Sets(name, value) = meaning(line) else {
                continue;
            };
            let name = name.to_lowercase();
            let place = if value.starts_with('/') {
                value.clone()
            } else {
                format!("{dir}/{value}")
            };
            match &*name {
                "include" | "include_if_exists" => {
                    self.read_at(system, &place, ours, depth - 1)?;
                }
                "include_dir" => self.read_directory(system, &place, ours, depth - 1)?,
                _ => self.lines.push(Line {
                    place: format!("{file}:{}", index + 1),
                    name,
                    value,
                }),
            }
        }
        Ok(())
    }

    fn read_directory(
        &mut self,
        system: &System,
        dir: &str,
        ours: &str,
        depth: usize,
    ) -> Result<(), Error> {
        let dir = dir.trim_end_matches('/');
        let mut names = system.names(dir)?;
        let own = ours.rsplit_once('/').filter(|(of, _)| *of == dir);
        names.extend(own.map(|(_, name)| name.to_owned()));
        names.retain(|name| name.ends_with(".conf") && !name.starts_with('.'));
        // By bytes, as the server sorts them.
        names.sort();
        names.dedup();
        for name in names {
            let file = format!("{dir}/{name}");
            if file == ours {
                self.before_ours = Some(self.lines.len());
            }
            self.read_at(system, &file, ours, depth)?;
        }
        Ok(())
    }

    /// What the server would take of this name.
    pub fn last(&self, name: &str) -> Option<&Line> {
        self.lines.iter().rfind(|line| line.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_the_server_reads_it() {
        let sets = |name: &str, value: &str| Meaning::Sets(name.to_owned(), value.to_owned());
        for (line, meant) in [
            ("", Meaning::Nothing),
            ("  # a = b", Meaning::Nothing),
            ("fsync = off # why", sets("fsync", "off")),
            ("fsync off", sets("fsync", "off")),
            ("work_mem=4MB", sets("work_mem", "4MB")),
            ("a = 'it''s'\t# b", sets("a", "it's")),
            (r"a = 'b\'c\\'", sets("a", r"b'c\")),
            ("include_dir 'conf.d'", sets("include_dir", "conf.d")),
            ("a = 'b", Meaning::Unclear),
            ("a = b c", Meaning::Unclear),
            ("= b", Meaning::Unclear),
        ] {
            assert_eq!(meaning(line), meant, "{line}");
        }
    }

    #[test]
    fn a_quoted_value_is_read_as_it_was() {
        for value in ["", "a", "it's", r"\", r"\'", "''", "a # b", "a b=c"] {
            let line = format!("n = {}", quoted(value));
            assert_eq!(
                meaning(&line),
                Meaning::Sets("n".to_owned(), value.to_owned())
            );
        }
    }

    #[test]
    fn the_files_of_a_directory_are_read_in_their_order() {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(root.path().join("etc/conf.d")).expect("made");
        for (name, text) in [
            ("main.conf", "a = 1\ninclude_dir = 'conf.d'\nb = 1\n"),
            ("conf.d/10.conf", "c = 1\n"),
            ("conf.d/95.conf", "a = 2\n"),
            ("conf.d/.9.conf", "a = 3\n"),
            ("conf.d/99", "a = 4\n"),
        ] {
            std::fs::write(root.path().join("etc").join(name), text).expect("written");
        }
        let system = System::new(Some(root.path())).expect("a tree");
        let mut sources = Sources::default();
        sources
            .read(&system, "/etc/main.conf", "/etc/conf.d/90.conf")
            .expect("read");
        let names: Vec<_> = sources.lines.iter().map(|line| &*line.name).collect();
        assert_eq!(names, ["a", "c", "a", "b"]);
        assert_eq!(sources.before_ours, Some(2));
        assert_eq!(
            sources.last("a").expect("set").place,
            "/etc/conf.d/95.conf:1"
        );
        let mut sources = Sources::default();
        sources
            .read(&system, "/etc/main.conf", "/etc/other.d/90.conf")
            .expect("read");
        assert_eq!(sources.before_ours, None);
    }
}
