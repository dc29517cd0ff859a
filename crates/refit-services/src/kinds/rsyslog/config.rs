//! rsyslog's configuration with all that it includes: which rules write to files, and whether they sync.
//!
//! Counted by strace on rsyslog 8.2302, 5 lines: 10 syncs with `$ActionFileEnableSync on`, 0 with a
//! dash before the file name, 0 in an `action()` without `sync="on"`.

use std::collections::{BTreeMap, BTreeSet};

use refit_servers::rsyslog::{Piece, What, parameters, pieces, split, value};

use crate::{Error, System};

/// What a part of a file does, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// `$ActionFileEnableSync`: for the rules of the traditional format after it.
    Sync(bool),
    /// A rule of the traditional format that writes to a file.
    Rule {
        /// Where the file name begins in the file, or the dash before it, in bytes.
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
        let text = str::from_utf8(&bytes).map_err(|_| not_read(1))?;
        for piece in pieces(text) {
            let part = match &piece.what {
                What::Include(pattern) => {
                    for file in system.matching(pattern, ours)? {
                        self.add(system, &file, ours, depth - 1)?;
                    }
                    continue;
                }
                What::Object("include", _) => return Err(not_read(piece.line)),
                What::Object(name, body) => object(name, body),
                What::Directive(name, value) => directive(name, value),
                What::Line => rule(&piece),
                What::Comment => None,
            };
            self.parts.extend(part.map(|part| Placed {
                part,
                file: file.to_owned(),
                line: piece.line,
                is_reached: self.has_ours,
            }));
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
    /// What was read of one of the files.
    pub fn bytes(&self, file: &str) -> &[u8] {
        self.files.get(file).map_or(b"", Vec::as_slice)
    }

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
                    let at = at + new.len() - old.len();
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

fn directive(name: &str, value: &str) -> Option<Part> {
    match &*name.to_ascii_lowercase() {
        "actionfileenablesync" => Some(Part::Sync(value.eq_ignore_ascii_case("on"))),
        name => name.starts_with("mainmsgqueue").then_some(Part::MainQueue),
    }
}

fn object(name: &str, body: &str) -> Option<Part> {
    let parameters = parameters(body);
    let is = |key, wanted| value(&parameters, key).is_some_and(|value| value == wanted);
    match name {
        "main_queue" => Some(Part::MainQueue),
        "action" if is("type", "omfile") => Some(Part::Action(is("sync", "on"))),
        _ => None,
    }
}

fn rule(piece: &Piece) -> Option<Part> {
    let text = piece.text.trim_end();
    let (_, action) = split(text.trim_start());
    let name = action.strip_prefix('-').unwrap_or(action);
    let file = name.split([';', ' ', '\t']).next()?;
    (file.starts_with(['/', '?']) && file.len() > 1).then(|| Part::Rule {
        at: piece.at + text.len() - action.len(),
        dash: name.len() < action.len(),
        file: file.to_owned(),
    })
}
