//! rsyslog.conf in its two formats: objects such as `action(…)`, and lines with a filter and an action or a `$directive`
//! (<https://www.rsyslog.com/doc/configuration/basic_structure.html>).

use regex_lite::Regex;

/// All objects that a configuration can have.
const OBJECTS: &str = "action dyn_stats global include input lookup_table main_queue module parser ruleset template timezone";

/// A part of a file. All of them are the file.
pub struct Piece<'t> {
    /// The number of its first line, from 1.
    pub line: usize,
    /// Where it begins in the file, in bytes.
    pub at: usize,
    /// As it stands there, a line with its newline.
    pub text: &'t str,
    /// What it is.
    pub what: What<'t>,
}

/// What a part of a file is.
#[derive(Debug, PartialEq, Eq)]
pub enum What<'t> {
    /// A comment.
    Comment,
    /// `$IncludeConfig PATTERN`, `include(file="PATTERN")`: a pattern for [`matching`](crate::matching).
    Include(String),
    /// `$NAME VALUE`
    Directive(String, String),
    /// `NAME(PARAMETERS)`
    Object(&'static str, &'t str),
    /// Any other line, or what of it stands outside of objects: [`split`] finds its action.
    Line,
}

impl Piece<'_> {
    /// Its text as one line: a backslash at the end of a line continues it.
    #[must_use]
    pub fn joined(&self) -> String {
        self.text
            .replace("\\\n", "")
            .trim_end_matches('\n')
            .to_owned()
    }
}

/// The parts of a file.
#[must_use]
pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        let (before, rest) = (&text[start..at], &text[at..]);
        let is_free = before.is_empty() || before.ends_with([' ', '\t', '{', '}']);
        let own = match object_at(before, rest) {
            Some((name, length, body)) => Some((length, object(name, body))),
            None => comment(rest)
                .filter(|_| is_free)
                .map(|length| (length, What::Comment)),
        };
        if let Some((length, what)) = own {
            found.extend(line(before).map(|what| (start, at, what)));
            found.push((at, at + length, what));
            (start, at) = (at + length, at + length);
            continue;
        }
        at += match rest.as_bytes()[0] {
            b'"' | b'\'' => quoted(rest).len(),
            b'\\' if rest.starts_with("\\\n") => 2,
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        if text[..at].ends_with('\n') && !text[..at].ends_with("\\\n") {
            found.extend(line(&text[start..at]).map(|what| (start, at, what)));
            start = at;
        }
    }
    found.extend(line(&text[start..]).map(|what| (start, at, what)));
    let (mut line, mut counted) = (1, 0);
    let piece = |(start, end, what)| {
        line += text[counted..start].matches('\n').count();
        counted = start;
        Piece {
            line,
            at: start,
            text: &text[start..end],
            what,
        }
    };
    found.into_iter().map(piece).collect()
}

/// What a line is, or a part of one; `None`: it is empty.
fn line<'t>(text: &str) -> Option<What<'t>> {
    let line = text.replace("\\\n", "");
    let line = line.trim();
    let directive = line
        .strip_prefix('$')
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_expression(rest));
    let Some(directive) = directive else {
        return (!text.is_empty()).then_some(What::Line);
    };
    let (name, value) = directive.split_once([' ', '\t']).unwrap_or((directive, ""));
    let value = value.trim();
    Some(match name.eq_ignore_ascii_case("includeconfig") {
        true => What::Include(pattern(value)),
        false => What::Directive(name.to_owned(), value.to_owned()),
    })
}

fn object<'t>(name: &'static str, body: &'t str) -> What<'t> {
    let file = (name == "include")
        .then(|| value(&parameters(body), "file"))
        .flatten();
    file.map_or(What::Object(name, body), |file| {
        What::Include(pattern(&file))
    })
}

/// A directory stands for all its files.
fn pattern(path: &str) -> String {
    let all = if path.ends_with('/') { "*" } else { "" };
    format!("{path}{all}")
}

/// The object that begins here: its name, the length of all of it, and what stands between its brackets.
fn object_at<'t>(before: &str, rest: &'t str) -> Option<(&'static str, usize, &'t str)> {
    if before.ends_with(|c: char| c.is_alphanumeric() || "_$!.-".contains(c)) {
        return None;
    }
    let starts = |name: &&str| {
        let word = rest.get(..name.len());
        word.is_some_and(|word| word.eq_ignore_ascii_case(name))
    };
    let name = OBJECTS.split(' ').find(starts)?;
    let body = rest[name.len()..].trim_start().strip_prefix('(')?;
    let start = rest.len() - body.len();
    let (mut at, mut depth) = (start, 1);
    while let Some(letter) = rest[at..].chars().next() {
        if let Some(length) = comment(&rest[at..]) {
            at += length;
            continue;
        }
        at += match letter {
            '"' => spanning(&rest[at..]).len(),
            _ => letter.len_utf8(),
        };
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((name, at, &rest[start..at - 1]));
        }
    }
    None
}

/// The length of the comment that begins here.
fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with('#') {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    let inside = rest.strip_prefix("/*")?;
    Some(inside.find("*/").map_or(rest.len(), |at| at + 4))
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

/// A text in quotation marks outside of objects, where it ends on its line; otherwise the mark alone.
#[must_use]
pub fn quoted(text: &str) -> &str {
    let found = spanning(text);
    let is_closed = found.len() > 1 && found.ends_with(&text[..1]);
    match is_closed && !found.replace("\\\n", "").contains('\n') {
        true => found,
        false => &text[..1],
    }
}

/// The parameters of an object: names in lower case, and values as they stand there.
#[must_use]
pub fn parameters(body: &str) -> Vec<(String, String)> {
    let pattern =
        r#"(?s)#[^\n]*|/\*.*?\*/|([A-Za-z0-9_.\-]+)\s*=\s*("(?:\\.|[^"\\])*"|\[[^\]]*\]|[^\s,)]+)"#;
    let pattern = Regex::new(pattern).expect("it is constant");
    let all = pattern.captures_iter(body);
    all.filter_map(|found| Some((found.get(1)?.as_str().to_lowercase(), found[2].to_owned())))
        .collect()
}

/// The value of a parameter, without quotation marks.
#[must_use]
pub fn value(parameters: &[(String, String)], key: &str) -> Option<String> {
    let mut all = parameters.iter();
    all.find_map(|(name, value)| (name == key).then(|| value.trim_matches(['"', '\'']).to_owned()))
}

/// `$msg contains 'x'` in an expression of several lines.
fn is_expression(directive: &str) -> bool {
    let operators = "== != < > contains startswith endswith ereregex and or then";
    let second = directive.split_whitespace().nth(1).unwrap_or_default();
    operators.split(' ').any(|word| second.starts_with(word))
}

/// What stands before the action of a line, and the action; each may be empty.
#[must_use]
pub fn split(text: &str) -> (&str, &str) {
    let mut at = 0;
    while let Some(length) = before_action(&text[at..]) {
        at += length;
        at += text[at..].len() - text[at..].trim_start().len();
    }
    (&text[..at], &text[at..])
}

/// The length of a filter, or of a word that an action may follow.
fn before_action(text: &str) -> Option<usize> {
    for word in ["&", "{", "}", "then", "else", "do"] {
        let rest = text.strip_prefix(word).filter(|rest| {
            let is_word = word.starts_with(|c: char| c.is_ascii_alphabetic());
            !is_word || !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        });
        if rest.is_some() {
            return Some(word.len());
        }
    }
    if text.starts_with(':') && !text.starts_with(":om") {
        let open = text.find('"')?;
        return Some(open + quoted(&text[open..]).len());
    }
    if let Some(at) = outside(text, " then") {
        return Some(at + " then".len());
    }
    let first = text.split_whitespace().next()?;
    let is_selector = first.contains('.')
        && first.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '*')
        && first
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "*,;.!=\\".contains(c));
    (is_selector && text.len() > first.len()).then_some(first.len())
}

/// Where a word stands outside of quotation marks.
fn outside(text: &str, word: &str) -> Option<usize> {
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        if text[at..].starts_with(word) {
            return Some(at);
        }
        at += match letter {
            '"' | '\'' => quoted(&text[at..]).len(),
            _ => letter.len_utf8(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces that are no comment, each after its line.
    fn shown(file: &str) -> String {
        let whole: String = pieces(file).iter().map(|piece| piece.text).collect();
        assert_eq!(whole, file);
        let shown = |piece: &Piece| match &piece.what {
            What::Comment => None,
            What::Line => Some(piece.joined().trim().to_owned()).filter(|text| !text.is_empty()),
            What::Include(pattern) => Some(format!("include {pattern}")),
            What::Directive(name, value) => Some(format!("{name}: {value}")),
            What::Object(name, body) => Some(format!("{name}{:?}", parameters(body))),
        };
        let shown = |piece: &Piece| Some(format!("{} {}", piece.line, shown(piece)?));
        let all: Vec<String> = pieces(file).iter().filter_map(shown).collect();
        all.join(" | ").replace("\\\"", "")
    }

    /// `rsyslogd -N1 -f FILE` of rsyslog 8.2302 takes all of them.
    #[test]
    fn a_file_is_read_as_rsyslogd_reads_it() {
        for (file, meant) in [
            ("*.* /x#y # z\n#/*\n& ~\n", "1 *.* /x#y | 3 & ~"),
            (
                "*.*;\\\n mail.none /x\n\n*.* -/y",
                "1 *.*; mail.none /x | 4 *.* -/y",
            ),
            ("/* *.* /x\n*/\n*.* /y\n", "3 *.* /y"),
            (
                "*.* Action(type=\"omfile\" # it's (odd\n /* ) */ File=\"/x)#y\")\n& /z\n",
                r#"1 *.* | 1 action[("type", "omfile"), ("file", "/x)#y")] | 3 & /z"#,
            ),
            (
                "$FileOwner on # x\n $template T,\"a # b\\\n c\"\n",
                "1 FileOwner: on | 2 template: T,\"a # b c\"",
            ),
            (
                "$IncludeConfig /d/\ninclude(\n file=\"/d/*.x\")",
                "1 include /d/* | 2 include /d/*.x",
            ),
            (
                "if $msg contains 'a' and\n $programname == \"action(\" /* c */ then {\n  /x\n}\n",
                "1 if $msg contains 'a' and | 2 $programname == \"action(\" | 2 then { | 3 /x | 4 }",
            ),
        ] {
            assert_eq!(shown(file), meant, "{file}");
        }
    }

    #[test]
    fn an_action_stands_after_its_filter() {
        for (line, action) in [
            ("*.*;auth,authpriv.none\t-/x;T", "-/x;T"),
            ("*.*;\\\n mail.none /x", "/x"),
            (":msg, contains, \"a /b\" /x", "/x"),
            ("if $msg contains ' then /a' then /x", "/x"),
            ("then { -/x", "-/x"),
            ("else ?T", "?T"),
            ("& @@h", "@@h"),
            ("/x", "/x"),
            ("}", ""),
        ] {
            assert_eq!(split(line).1, action, "{line}");
        }
    }
}
