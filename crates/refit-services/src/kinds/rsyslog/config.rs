//! rsyslog's configuration with all that it includes: which rules write to files, and whether they sync.
//!
//! Counted by strace on rsyslog 8.2302, 5 lines: 10 syncs with `$ActionFileEnableSync on`, 0 with a
//! dash before the file name, 0 in an `action()` without `sync="on"`.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Error, System};

/// What a line does, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A pattern of files, or a file.
    Include(String),
    /// `$ActionFileEnableSync`: for the rules of the traditional format after it.
    Sync(bool),
    /// A rule of the traditional format that writes to a file.
    Rule {
        /// Where the file name begins, or the dash before it, in bytes from the line's begin.
        at: usize,
        /// No syncs.
        dash: bool,
        /// The file name, or `?` and a template's name.
        file: String,
    },
    /// An action of the other format that writes to a file: whether it syncs.
    Action(bool),
    /// `main_queue(…)`, `$MainMsgQueue…`.
    MainQueue,
}

/// A part, and where it stands.
pub struct Placed {
    /// What it is.
    pub part: Part,
    /// The file.
    pub file: String,
    /// The number of its line.
    pub line: usize,
    /// Where the line begins in the file, in bytes.
    begin: usize,
    /// Whether a directive of refit's own file reaches it.
    pub is_reached: bool,
}

impl Placed {
    /// For people.
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }
}

/// All parts in their order.
#[derive(Default)]
pub struct Config {
    /// The parts.
    pub parts: Vec<Placed>,
    /// Whether refit's own file is included.
    pub has_ours: bool,
    /// The content of each file.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// As deep as includes are followed.
const DEPTH: usize = 10;

impl Config {
    /// Reads a file, and what it includes. `ours` is refit's own file, which need not be there.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Link`], [`Error::NotRead`].
    pub fn read(system: &System, main: &str, ours: &str) -> Result<Config, Error> {
        let mut config = Config::default();
        config.add(system, main, ours, DEPTH)?;
        Ok(config)
    }

    fn add(&mut self, system: &System, file: &str, ours: &str, depth: usize) -> Result<(), Error> {
        self.has_ours |= file == ours;
        let Some(bytes) = system.read(file)?.filter(|_| depth > 0) else {
            return Ok(());
        };
        let not_read = |line: usize| Error::NotRead {
            place: format!("{file}:{line}"),
        };
        let mut begin = 0;
        let mut in_comment = false;
        let text = str::from_utf8(&bytes).map_err(|_| not_read(1))?;
        for (index, text) in text.split_inclusive('\n').enumerate() {
            in_comment |= text.trim_start().starts_with("/*");
            let part = if in_comment { Ok(None) } else { part(text) };
            in_comment &= !text.contains("*/");
            match part.map_err(|()| not_read(index + 1))? {
                Some(Part::Include(pattern)) => {
                    let files = included(system, &pattern, ours)?;
                    for file in files.ok_or_else(|| not_read(index + 1))? {
                        self.add(system, &file, ours, depth - 1)?;
                    }
                }
                Some(part) => self.parts.push(Placed {
                    part,
                    file: file.to_owned(),
                    line: index + 1,
                    begin,
                    is_reached: self.has_ours,
                }),
                None => {}
            }
            begin += text.len();
        }
        self.files.insert(file.to_owned(), bytes);
        Ok(())
    }

    /// Each rule, whether it syncs, and the last `$ActionFileEnableSync` before it.
    pub fn rules(&self) -> impl Iterator<Item = (&Placed, bool, Option<&Placed>)> {
        let mut by: Option<&Placed> = None;
        self.parts.iter().filter_map(move |placed| {
            if let Part::Sync(_) = placed.part {
                by = Some(placed);
            }
            let Part::Rule { dash, .. } = placed.part else {
                return None;
            };
            let syncs = !dash && by.is_some_and(|by| by.part == Part::Sync(true));
            Some((placed, syncs, by))
        })
    }

    /// How many rules sync, of how many.
    pub fn synced(&self) -> (usize, usize) {
        let synced = self.rules().filter(|(_, syncs, _)| *syncs);
        (synced.count(), self.rules().count())
    }

    /// The place of the first such part.
    pub fn first(&self, part: &Part) -> Option<String> {
        let mut all = self.parts.iter().filter(|placed| placed.part == *part);
        all.next().map(Placed::place)
    }

    /// Each file that changes, with a dash before each file name, or without.
    pub fn with_dashes(&self, wanted: bool) -> BTreeMap<&str, Vec<u8>> {
        let mut edited = BTreeMap::new();
        let mut done = BTreeSet::new();
        for placed in &self.parts {
            match placed.part {
                // A file can be included twice.
                Part::Rule { at, dash, .. } if dash != wanted && done.insert(placed.place()) => {
                    let old = &self.files[&placed.file];
                    let new = edited.entry(&*placed.file).or_insert_with(|| old.clone());
                    // Each edit before this one moved it by one byte.
                    let at = placed.begin + at + new.len() - old.len();
                    match wanted {
                        true => new.insert(at, b'-'),
                        false => drop(new.remove(at)),
                    }
                }
                _ => {}
            }
        }
        edited
    }
}

/// What a line is; `Err` for an include that cannot be followed.
fn part(line: &str) -> Result<Option<Part>, ()> {
    let text = line.trim();
    if text.starts_with('#') {
        return Ok(None);
    }
    if text.starts_with('$') && !text.contains(" then") {
        let (name, value) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let value = value.split('#').next().unwrap_or_default().trim();
        return Ok(match &*name.to_ascii_lowercase() {
            "$includeconfig" => Some(Part::Include(value.to_owned())),
            "$actionfileenablesync" => Some(Part::Sync(value.eq_ignore_ascii_case("on"))),
            name if name.starts_with("$mainmsgqueue") => Some(Part::MainQueue),
            _ => None,
        });
    }
    let dense: String = text
        .split_whitespace()
        .collect::<String>()
        .replace('\'', "\"");
    if dense.starts_with("include(") {
        let file = dense
            .split("file=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        return file
            .map(|file| Some(Part::Include(file.to_owned())))
            .ok_or(());
    }
    if dense.starts_with("main_queue(") {
        return Ok(Some(Part::MainQueue));
    }
    let syncs = dense.contains("sync=\"on\"");
    if syncs || dense.contains("type=\"omfile\"") {
        return Ok(Some(Part::Action(syncs)));
    }
    Ok(rule(line))
}

/// The last word that can be a file name: after a comment or within quotes none can.
fn rule(line: &str) -> Option<Part> {
    let mut found = None;
    let mut quotes = 0;
    let mut begin = 0;
    for word in line.split_inclusive(char::is_whitespace) {
        if word.starts_with('#') {
            break;
        }
        let name = word.strip_prefix('-').unwrap_or(word);
        let is_name = name.starts_with(['/', '?']) && name.trim_end().len() > 1;
        if is_name && quotes % 2 == 0 {
            found = Some(Part::Rule {
                at: begin,
                dash: name.len() < word.len(),
                file: name.trim_end().split(';').next()?.to_owned(),
            });
        }
        quotes += word.matches(['"', '\'']).count();
        begin += word.len();
    }
    found
}

/// The files that a pattern means, by name; `None` for a pattern of another kind than `DIR/*.conf`.
fn included(system: &System, pattern: &str, ours: &str) -> Result<Option<Vec<String>>, Error> {
    let is_plain = |text: &str| !text.contains(['*', '?', '[', '{', '~', '`']);
    if is_plain(pattern) && !pattern.ends_with('/') {
        return Ok(Some(vec![pattern.to_owned()]));
    }
    let parts = pattern.rsplit_once('/').and_then(|(dir, name)| {
        let (begin, end) = if name.is_empty() {
            ("", "")
        } else {
            name.split_once('*')?
        };
        let is_known = dir.starts_with('/') && [dir, begin, end].into_iter().all(is_plain);
        is_known.then_some((dir, begin, end))
    });
    let Some((dir, begin, end)) = parts else {
        return Ok(None);
    };
    let mut names = system.names(dir)?;
    let own = ours.rsplit_once('/').filter(|(of, _)| *of == dir);
    names.extend(own.map(|(_, name)| name.to_owned()));
    names.retain(|name| name.starts_with(begin) && name.ends_with(end) && !name.starts_with('.'));
    names.sort();
    names.dedup();
    Ok(Some(
        names.iter().map(|name| format!("{dir}/{name}")).collect(),
    ))
}
