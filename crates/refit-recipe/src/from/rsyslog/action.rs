//! Lines of the traditional format: directives, and rules with an action.

use super::{NOTHING, Walk};

/// Directives that stay, in lower case; one that ends in a letter stands for all that begin so.
const KEPT: &[&str] = &[
    "actionexec",
    "actionfiledefaulttemplate",
    "actionfileenablesync",
    "actionname",
    "actionqueue",
    "actionresume",
    "actionwriteall",
    "dynafilecachesize",
    "escape",
    "filecreatemode",
    "dircreatemode",
    "mainmsgqueue",
    "maxmessagesize",
    "omfile",
    "preservefqdn",
    "repeatedmsg",
    "spacelf",
    "umask",
];

/// Statements that act on nothing outside.
const STATEMENTS: &[&str] = &[
    "~", "stop", "call ", "call\t", "set ", "unset ", "continue", "foreach", "reset ", "if ",
    "if(", "{", "}",
];

impl Walk<'_> {
    /// A line, or what of it stands outside of objects.
    pub fn line(&mut self, line: &str) -> String {
        let text = line.trim();
        if let Some(directive) = text.strip_prefix('$')
            && directive.starts_with(|c: char| c.is_ascii_alphabetic())
            && !is_expression(directive)
        {
            return self.directive(directive);
        }
        let (before, action) = split(text);
        if action.is_empty() || STATEMENTS.iter().any(|word| action.starts_with(word)) {
            return line.to_owned();
        }
        let keeps = |action: String| format!("{before} {action}");
        let (dash, target) = match action.strip_prefix('-') {
            Some(target) => ("-", target),
            None => ("", action),
        };
        let (file, template) = target.split_once(';').unwrap_or((target, ""));
        let file = file.trim();
        if file.starts_with('/') {
            let template = match template.trim() {
                "" => String::new(),
                name => format!(";{name}"),
            };
            return keeps(match self.moved(file) {
                Some(file) => format!("{dash}{file}{template}"),
                None => NOTHING.to_owned(),
            });
        }
        if let Some(name) = file.strip_prefix('?')
            && self.moved_templates.contains(name.trim())
        {
            return keeps(action.to_owned());
        }
        // Without a filter it may be a part of an expression; what is not harmless is found later.
        let acts = action.starts_with(['@', '|', '^', '>', '?', '*']) || action.starts_with(":om");
        if before.is_empty() && !acts {
            return line.to_owned();
        }
        let kind = match action.chars().next() {
            Some('@') => "sends lines to another machine",
            Some('|' | '^') => "hands lines to a program",
            Some('?') => "a file whose place its template does not begin with",
            _ => "reaches users or programs",
        };
        self.left_out(&format!("action {action}: {kind}"));
        keeps(NOTHING.to_owned())
    }

    fn directive(&mut self, directive: &str) -> String {
        let end = directive.find([' ', '\t']).unwrap_or(directive.len());
        let (name, value) = (&directive[..end], directive[end..].trim());
        let lower = name.to_lowercase();
        match &*lower {
            "includeconfig" => return self.include_directory(value),
            "template" => {
                let (template, text) = value.split_once(',').unwrap_or((value, ""));
                let text = text.trim();
                let path = text.strip_prefix("\"/").filter(|path| !path.contains(".."));
                if let Some(path) = path {
                    self.moved_templates.insert(template.trim().to_owned());
                    let files = super::FILES;
                    return format!("$template {},\"{files}/{path}", template.trim());
                }
                return format!("${directive}");
            }
            _ => {}
        }
        if lower.starts_with("mainmsgqueue") {
            self.has_main_queue = true;
        }
        let is_kept = KEPT.iter().any(|start| lower.starts_with(start));
        if is_kept && !value.contains('/') {
            return format!("${directive}");
        }
        let inputs = ["modload", "input", "udpserver", "addunixlistensocket"];
        self.left_out(&match inputs.iter().any(|start| lower.starts_with(start)) {
            true => format!("${name} {value}: an input, or it may send lines elsewhere"),
            false => format!("${name}: it is not the instance's"),
        });
        String::new()
    }

    /// A directory, a file or a pattern.
    fn include_directory(&mut self, value: &str) -> String {
        match value.ends_with('/') {
            true => self.include(&format!("{value}*")),
            false => self.include(value),
        }
    }
}

/// `$msg contains 'x'` in an expression of several lines.
fn is_expression(directive: &str) -> bool {
    let operators = [
        "==",
        "!=",
        "<",
        ">",
        "contains",
        "startswith",
        "endswith",
        "ereregex",
        "and",
        "or",
        "then",
    ];
    let second = directive.split_whitespace().nth(1).unwrap_or_default();
    operators.iter().any(|word| second.starts_with(word))
}

/// What stands before an action, and the action.
fn split(text: &str) -> (&str, &str) {
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
        return Some(open + super::quoted(&text[open..]).len());
    }
    if let Some(at) = outside(text, " then") {
        return Some(at + " then".len());
    }
    let first = text.split_whitespace().next()?;
    let is_selector = first.contains('.')
        && first.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '*')
        && first
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "*,;.!=".contains(c));
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
            '"' | '\'' => super::quoted(&text[at..]).len(),
            _ => letter.len_utf8(),
        };
    }
    None
}
