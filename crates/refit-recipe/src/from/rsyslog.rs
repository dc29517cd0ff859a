//! rsyslog: rsyslog.conf and the files that it includes. Inputs are left out, and so is every action but those that
//! write to a file, which is moved: no message comes from the machine's log, and none leaves the instance.

mod action;
mod object;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::copy::{Copy, copy_of, matching, without_parents};
use super::{FromError, Kind, Parts};
use object::OBJECTS;

pub const KIND: Kind = Kind {
    main: main_file,
    make,
};

/// What stands in the place of an action that is left out: the syntax around it stays as it is.
const NOTHING: &str = "/dev/null";

/// Where files that are written go.
const FILES: &str = "@DIR@/files";

const PRIVATE: &str = r#"# What makes the instance private, and then the configuration.
global(workDirectory="@DIR@/work" localHostname="refit" net.enableDNS="off")
module(load="imuxsock" SysSock.Use="off")
input(type="imuxsock" Socket="@DIR@/socket" RateLimit.Interval="0")

# What the load waits for and the check reads.
*.* @DIR@/messages

"#;

fn main_file(path: &Path) -> Option<PathBuf> {
    let inside = path.join("rsyslog.conf");
    if inside.is_file() {
        return Some(inside);
    }
    let name = path.file_name()?.to_string_lossy();
    let is_named = name.starts_with("rsyslog") && name.ends_with(".conf");
    (path.is_file() && is_named).then(|| path.to_owned())
}

fn make(main: &Path, mut copy: Copy) -> Result<Parts, FromError> {
    let text = Copy::main(main)?;
    let mut walk = Walk::new(&mut copy);
    walk.file(main, &text);
    let (has_queue, problem) = (walk.has_main_queue, walk.problem.take());
    if let Some(problem) = problem {
        return Err(FromError::Unusable {
            path: main.to_owned(),
            problem,
        });
    }
    copy.notes.remarks.push(
        "lines come from a socket of the instance's own, and are also written to a further file, which the load waits for: \
         `sync` and `-` of the configuration count for its own files"
            .to_owned(),
    );
    let private = format!("{PRIVATE}include(file=\"{}\")\n", copy_of(main));
    let mut replaced = vec![(
        "\"sh $REFIT_RECIPE/setup.sh\"",
        "\"sh $REFIT_RECIPE/setup.sh && sh $REFIT_RECIPE/configure.sh rsyslog.conf && rsyslogd -N1 -f rsyslog.conf\""
            .to_owned(),
    )];
    let mut now = Vec::new();
    if has_queue {
        // There can be one main_queue().
        now = vec![("queue", "direct".to_owned()), ("sync", "each".to_owned())];
        replaced.push((", \"conf.sync=on+conf.queue=direct\"", String::new()));
        replaced.push((
            "[conf.queue]\nabout = \"where rsyslog queues a line\"\n",
            String::new(),
        ));
    }
    Ok(Parts {
        scripts: "rsyslog-sync",
        server: "rsyslog",
        files: vec![("rsyslog.conf", private)],
        replaced,
        now,
        replaces_lines: true,
        more: String::new(),
        copy,
    })
}

/// A configuration as it is read, file by file.
struct Walk<'a> {
    copy: &'a mut Copy,
    /// Templates whose text begins with the directory of the moved files.
    moved_templates: BTreeSet<String>,
    has_main_queue: bool,
    problem: Option<String>,
    /// Where the walk is: `FILE:LINE`.
    place: String,
}

impl<'a> Walk<'a> {
    fn new(copy: &'a mut Copy) -> Walk<'a> {
        Walk {
            copy,
            moved_templates: BTreeSet::new(),
            has_main_queue: false,
            problem: None,
            place: String::new(),
        }
    }

    fn file(&mut self, path: &Path, text: &str) {
        let before = std::mem::take(&mut self.place);
        self.copy.put(path, String::new());
        let mut copied = String::new();
        let mut line = String::new();
        let mut rest = text;
        let (mut number, mut counted) = (1, 0);
        while let Some(letter) = rest.chars().next() {
            let at = text.len() - rest.len();
            number += text[counted..at].matches('\n').count();
            counted = at;
            self.place = format!("{}:{number}", path.display());
            if let Some((name, whole, body)) = object_at(&line, rest) {
                copied += &self.line(&line);
                line.clear();
                copied += &self.object(name, body);
                copied += &"\n".repeat(whole.matches('\n').count());
                rest = &rest[whole.len()..];
                continue;
            }
            let taken = match letter {
                '"' | '\'' => quoted(rest),
                '#' if line.is_empty() || line.ends_with([' ', '\t', '{', '}']) => {
                    let end = rest.find('\n').unwrap_or(rest.len());
                    rest = &rest[end..];
                    continue;
                }
                '/' if rest.starts_with("/*")
                    && (line.is_empty() || line.ends_with([' ', '\t'])) =>
                {
                    let end = rest.find("*/").map_or(rest.len(), |at| at + 2);
                    copied += &"\n".repeat(rest[..end].matches('\n').count());
                    rest = &rest[end..];
                    continue;
                }
                '\\' if rest.starts_with("\\\n") => {
                    copied.push('\n');
                    rest = &rest[2..];
                    continue;
                }
                '\n' => {
                    copied += &self.line(&line);
                    copied.push('\n');
                    line.clear();
                    rest = &rest[1..];
                    continue;
                }
                _ => &rest[..letter.len_utf8()],
            };
            line += taken;
            rest = &rest[taken.len()..];
        }
        copied += &self.line(&line);
        self.expect_harmless(path, &copied);
        self.copy.put(path, copied);
        self.place = before;
    }

    /// Nothing that could send a line elsewhere stays, even where the syntax was not understood.
    fn expect_harmless(&mut self, path: &Path, text: &str) {
        for (number, line) in text.lines().enumerate() {
            let mut bare = String::new();
            let mut rest = line;
            while let Some(letter) = rest.chars().next() {
                let taken = match letter {
                    '"' | '\'' => quoted(rest),
                    _ => &rest[..letter.len_utf8()],
                };
                if taken.len() == letter.len_utf8() {
                    bare.push(letter);
                }
                rest = &rest[taken.len()..];
            }
            let is_outside = |word: &str| {
                let path = word.trim_start_matches(['-', '?', '{']);
                path.starts_with('/') && path != NOTHING
            };
            let has_path = bare.split_whitespace().any(is_outside);
            let bare = bare.replace("@DIR@", "");
            if has_path || bare.contains(['@', '^', '|']) || bare.contains(":om") {
                self.problem = Some(format!(
                    "line {} of {} may write or send lines elsewhere, and refit cannot tell how\n  \
                     leave it out of a copy: cp -r /etc/rsyslog.conf /etc/rsyslog.d .",
                    number + 1,
                    path.display()
                ));
            }
        }
    }

    fn include(&mut self, pattern: &str) -> String {
        let mut text = String::new();
        for mut path in matching(pattern) {
            without_parents(&mut path);
            if let Some(included) = self.copy.included(&path) {
                self.file(&path, &included);
                text += &format!("include(file=\"{}\") ", copy_of(&path));
            }
        }
        if text.is_empty() && !pattern.contains('*') {
            self.left_out(&format!("include {pattern}: nothing to read"));
        }
        text
    }

    fn left_out(&mut self, what: &str) {
        let place = &self.place;
        self.copy.left_out(format!("{what} ({place})"));
    }

    /// Where a file that is written goes; `None` for a device.
    fn moved(&mut self, path: &str) -> Option<String> {
        if Path::new(path).starts_with("/dev") || path.contains("..") {
            self.left_out(&format!("{path}: it is not a file of a log"));
            return None;
        }
        let place = &self.place;
        self.copy.notes.moved.push(format!("{path} ({place})"));
        Some(format!("{FILES}{path}"))
    }
}

/// The object that begins here: its name, all of it, and what stands between its brackets.
fn object_at<'t>(before: &str, rest: &'t str) -> Option<(&'static str, &'t str, &'t str)> {
    if before.ends_with(|c: char| c.is_alphanumeric() || "_$!.-".contains(c)) {
        return None;
    }
    let starts = |name: &&&str| {
        rest.get(..name.len())
            .is_some_and(|word| word.eq_ignore_ascii_case(name))
    };
    // `main_queue` before a name that it begins with.
    let name = OBJECTS
        .iter()
        .filter(starts)
        .max_by_key(|name| name.len())?;
    let after = rest[name.len()..].trim_start();
    let body = after.strip_prefix('(')?;
    let start = rest.len() - body.len();
    let mut at = start;
    let mut depth = 1;
    while let Some(letter) = rest[at..].chars().next() {
        match letter {
            '"' | '\'' => {
                at += spanning(&rest[at..]).len();
                continue;
            }
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        at += letter.len_utf8();
        if depth == 0 {
            return Some((name, &rest[..at], &rest[start..at - 1]));
        }
    }
    None
}

/// A text in quotation marks, with these; in an object it may have several lines.
fn spanning(text: &str) -> &str {
    let mut letters = text.char_indices();
    let open = letters.next().map(|(_, letter)| letter);
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if Some(letter) == open {
            return &text[..=at];
        }
    }
    text
}

/// The same outside of objects, where it ends on its line; otherwise the mark alone.
fn quoted(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    let found = spanning(line);
    let is_closed = found.len() > 1 && found.ends_with(['"', '\'']);
    if is_closed { found } else { &text[..1] }
}
