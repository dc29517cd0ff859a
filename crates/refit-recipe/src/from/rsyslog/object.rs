//! Objects: `action(…)`, `module(…)`, ….

use refit_servers::rsyslog::{parameters, value};
use regex_lite::Regex;

use super::Walk;

/// Modules that neither take nor send a line.
const MODULES: &[&str] = &[
    "builtin:omfile",
    "fmhash",
    "mmanon",
    "mmfields",
    "mmjsonparse",
    "mmpstrucdata",
    "mmsequence",
    "mmutf8fix",
    "pmaixforwardedfrom",
    "pmciscoios",
    "pmlastmsg",
    "pmsnare",
];

/// Parameters that do not stay: owners, places, networks, keys.
const DROPPED: &[&str] = &[
    "workdirectory",
    "localhostname",
    "default",
    "net.",
    "privdrop",
    "debug.",
    "stdlog",
    "fileowner",
    "filegroup",
    "dirowner",
    "dirgroup",
    "uid",
    "gid",
    "sig.",
    "cry.",
    "tls",
    "oversizemsg.",
    "operatingstate",
];

impl Walk<'_> {
    /// What stands in the place of an object.
    pub fn object(&mut self, name: &str, body: &str) -> String {
        let parameters = parameters(body);
        let value = |key: &str| value(&parameters, key).unwrap_or_default();
        match name {
            "action" => {
                let kind = value("type");
                let place = value("dynafile");
                let is_placed = place.is_empty() || self.moved_templates.contains(&place);
                if !["omfile", "builtin:omfile"].contains(&&*kind) || !is_placed {
                    let target = value("target");
                    let what = format!("action {kind} {target}");
                    self.left_out(&format!("{}: no line leaves the instance", what.trim()));
                    return nothing();
                }
                self.kept(name, &parameters)
            }
            "module" if MODULES.contains(&&*value("load").to_lowercase()) => {
                self.kept(name, &parameters)
            }
            "module" => {
                self.left_out(&format!(
                    "module {}: an input, or it may send lines elsewhere",
                    value("load")
                ));
                String::new()
            }
            "input" => {
                let place = [value("port"), value("socket"), value("file")].concat();
                let what = format!("input {} {place}", value("type"));
                self.left_out(&format!("{}: lines come from the load alone", what.trim()));
                String::new()
            }
            "lookup_table" => {
                self.left_out(&format!("lookup_table {}: it is not copied", value("name")));
                String::new()
            }
            "include" => {
                self.left_out("include of a text: it is not read");
                String::new()
            }
            "template" => self.template(&value("name"), body),
            "main_queue" => {
                self.has_main_queue = true;
                self.kept(name, &parameters)
            }
            _ => self.kept(name, &parameters),
        }
    }

    /// The parameters that stay, with moved files.
    fn kept(&mut self, name: &str, parameters: &[(String, String)]) -> String {
        let mut text = format!("{name}(");
        for (key, value) in parameters {
            let path = value.trim_matches(['"', '\'']);
            if DROPPED.iter().any(|start| key.starts_with(start)) {
                self.left_out(&format!("{name} {key}: it is not the instance's"));
            } else if path.starts_with('/') {
                match self.moved(path) {
                    Some(moved) => text += &format!("{key}=\"{moved}\" "),
                    None => return nothing(),
                }
            } else {
                text += &format!("{key}={value} ");
            }
        }
        let text = text.trim_end().to_owned();
        // An object that would have none is not one.
        if text.ends_with('(') && name != "ruleset" {
            return String::new();
        }
        text + ")"
    }

    /// One that begins with a path names files: these are moved.
    fn template(&mut self, name: &str, body: &str) -> String {
        let files = super::FILES;
        let begins = Regex::new(r#"(?i)\b(string|value)\s*=\s*["']"#).expect("it is constant");
        if let Some(found) = begins.find(body)
            && body[found.end()..].starts_with('/')
            && !body.contains("..")
        {
            self.moved_templates.insert(name.to_owned());
            let (before, path) = body.split_at(found.end());
            return format!("template({before}{files}{path})");
        }
        format!("template({body})")
    }
}

fn nothing() -> String {
    format!("action(type=\"omfile\" file=\"{}\")", super::NOTHING)
}
