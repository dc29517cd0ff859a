//! Lines of the traditional format: directives, and rules with an action.

use refit_servers::rsyslog::split;

use super::{FILES, NOTHING, Walk};

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
    /// A rule, or what of it stands outside of objects.
    pub fn line(&mut self, line: &str) -> String {
        let (before, action) = split(line.trim());
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

    /// `$NAME VALUE`.
    pub fn directive(&mut self, name: &str, value: &str) -> String {
        let lower = name.to_lowercase();
        if lower == "template" {
            let (template, text) = value.split_once(',').unwrap_or((value, ""));
            let text = text.trim();
            let path = text.strip_prefix("\"/").filter(|path| !path.contains(".."));
            if let Some(path) = path {
                self.moved_templates.insert(template.trim().to_owned());
                return format!("$template {},\"{FILES}/{path}", template.trim());
            }
            return format!("${name} {value}");
        }
        if lower.starts_with("mainmsgqueue") {
            self.has_main_queue = true;
        }
        let is_kept = KEPT.iter().any(|start| lower.starts_with(start));
        if is_kept && !value.contains('/') {
            return format!("${name} {value}");
        }
        let inputs = ["modload", "input", "udpserver", "addunixlistensocket"];
        self.left_out(&match inputs.iter().any(|start| lower.starts_with(start)) {
            true => format!("${name} {value}: an input, or it may send lines elsewhere"),
            false => format!("${name}: it is not the instance's"),
        });
        String::new()
    }
}
