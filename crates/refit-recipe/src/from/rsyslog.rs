//! rsyslog: rsyslog.conf and the files that it includes. Inputs are left out, and so is every action but those that
//! write to a file, which is moved: no message comes from the machine's log, and none leaves the instance.

mod action;
mod object;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use refit_servers::files;
use refit_servers::rsyslog::{What, pieces, quoted};

use super::copy::{Copy, copy_of, without_parents};
use super::{FromError, Kind, Parts};

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
        for piece in pieces(text) {
            self.place = format!("{}:{}", path.display(), piece.line);
            copied += &match &piece.what {
                What::Comment => String::new(),
                What::Include(pattern) => self.include(pattern),
                What::Directive(name, value) => self.directive(name, value),
                What::Object(name, body) => self.object(name, body),
                What::Line => self.line(&piece.joined()),
            };
            copied += &"\n".repeat(piece.text.matches('\n').count());
        }
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
        for mut path in files(Path::new("."), pattern) {
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
