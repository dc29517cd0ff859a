//! Postfix: main.cf, master.cf and tables. Only parameters of a list stay: any other one could send mail elsewhere,
//! ask another server, run a program, or point to a key.

use std::path::{Path, PathBuf};

use refit_servers::postfix::{COLUMNS, Entry, assignment, entries, joined};

use super::copy::{Copy, Line, copy_of};
use super::{FromError, Kind, Parts};
use crate::folder::Folder;

pub const KIND: Kind = Kind {
    main: main_file,
    make,
};

/// Limits and times stay, by the endings of their names …
const KEPT_ENDINGS: &[&str] = &[
    "_limit",
    "_delay",
    "_time",
    "_timeout",
    "_interval",
    "_depth",
    "_increment",
];

/// … and these.
const KEPT: &str = "append_dot_mydomain compatibility_level disable_vrfy_command enable_long_queue_ids \
    hash_queue_names queue_minfree recipient_delimiter smtpd_banner smtpd_delay_reject smtpd_helo_required \
    smtputf8_enable soft_bounce strict_rfc821_envelopes";

/// Tables of patterns that cleanup reads for each mail.
const CHECKS: &str = "header_checks body_checks mime_header_checks nested_header_checks";

/// Tables of addresses. Whatever they make of an address, its mail goes to the relayhost.
const ADDRESSES: &str =
    "canonical_maps sender_canonical_maps recipient_canonical_maps virtual_alias_maps";

/// Actions of a check that send mail elsewhere, or change it.
const ACTIONS: &[&str] = &[
    "filter", "redirect", "bcc", "prepend", "replace", "hold", "discard", "reject", "delay",
];

/// A socket with this address reaches nothing outside of the machine.
const LOOPBACK: &str = "smtp_bind_address = 127.0.0.1";

fn main_file(path: &Path) -> Option<PathBuf> {
    let directory = if path.is_dir() { path } else { path.parent()? };
    let names = ["main.cf", "master.cf"];
    let is_named = path.is_dir() || names.iter().any(|name| path.ends_with(name));
    let has_both = names.iter().all(|name| directory.join(name).is_file());
    (is_named && has_both).then(|| directory.join("main.cf"))
}

fn make(main: &Path, mut copy: Copy) -> Result<Parts, FromError> {
    let main = main.with_file_name("main.cf");
    let master = main.with_file_name("master.cf");
    let text = joined(&Copy::main(&main)?);
    let rows = Copy::main(&master)?;
    let shipped = Folder::shipped("postfix-cleanup").expect("refit carries it");
    let shipped = |name: &str| {
        let text = shipped.file(name).expect("it is one of its files");
        String::from_utf8_lossy(text).into_owned()
    };
    let private = format!("{}{LOOPBACK}\n", shipped("main.cf"));
    let mut kept = Kept::default();
    copy.rewrite(&main, &text, |copy, line| {
        parameter(line, &private, copy, &mut kept)
    });
    let mut main_cf = copy.take(&main);
    main_cf += "\n# What makes the instance private:\n";
    for line in private.lines() {
        let name = line.split('=').next().unwrap_or_default().trim();
        if !kept.names.iter().any(|kept| kept == name) {
            main_cf += line;
            main_cf += "\n";
        }
    }
    let master_cf = services(&master, &rows, &shipped("master.cf"), &mut copy);
    copy.notes.remarks.push(
        "all mail goes to a server of the load on 127.0.0.1, and Postfix connects from 127.0.0.1 alone; restrictions, \
         transports, filters, policies, milters, TLS and local delivery are not tried"
            .to_owned(),
    );
    let mut tables = "#!/bin/sh\n# Rebuilds the tables.\nset -eu\n".to_owned();
    for table in &kept.tables {
        let (kind, path) = table;
        let path = copy_of(path).replace("@DIR@", "$REFIT_DIR");
        tables += &format!("postmap -c \"$REFIT_DIR/conf\" \"{kind}:{path}\"\n");
    }
    Ok(Parts {
        scripts: "postfix-cleanup",
        server: "Postfix",
        files: vec![
            ("main.cf", main_cf),
            ("master.cf", master_cf),
            ("tables.sh", tables),
        ],
        replaced: vec![(
            "sh $REFIT_RECIPE/setup.sh",
            "sh $REFIT_RECIPE/configure.sh && sh $REFIT_RECIPE/setup.sh && sh $REFIT_RECIPE/tables.sh"
                .to_owned(),
        )],
        now: Vec::new(),
        replaces_lines: true,
        more: String::new(),
        copy,
    })
}

#[derive(Default)]
struct Kept {
    names: Vec<String>,
    /// Those that postmap builds.
    tables: Vec<(String, PathBuf)>,
    /// All that were copied; whether they are tables of patterns.
    copied: Vec<(PathBuf, bool)>,
}

fn has(names: &str, name: &str) -> bool {
    names.split_whitespace().any(|word| word == name)
}

/// Whether a parameter may stay with this value.
fn is_kept(name: &str, value: &str) -> bool {
    if has(KEPT, name) {
        return !value.contains(['/', ':']);
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "$_{}.".contains(c);
    KEPT_ENDINGS.iter().any(|ending| name.ends_with(ending)) && value.chars().all(plain)
}

fn parameter(line: &str, private: &str, copy: &mut Copy, kept: &mut Kept) -> Line {
    if line.trim().is_empty() || line.trim_start().starts_with('#') {
        return Line::Keep;
    }
    let Some((name, value)) = assignment(line) else {
        return Line::LeftOut("a line that assigns no parameter".to_owned());
    };
    if has(CHECKS, name) || has(ADDRESSES, name) {
        return maps(name, value, copy, kept);
    }
    if is_kept(name, value) {
        kept.names.push(name.to_owned());
        return Line::Keep;
    }
    let is_set = |line: &str| line.split('=').next().unwrap_or_default().trim() == name;
    if private.lines().any(is_set) {
        return Line::Moved(format!("{name} = {value}"));
    }
    Line::LeftOut(format!(
        "{name}: not a limit, a time or a table that can be copied"
    ))
}

/// The tables of a parameter: files are copied, others are named.
fn maps(name: &str, value: &str, copy: &mut Copy, kept: &mut Kept) -> Line {
    let mut all = Vec::new();
    for table in value
        .split([' ', ',', '\t'])
        .filter(|word| !word.is_empty())
    {
        let (kind, path) = table.split_once(':').unwrap_or(("hash", table));
        let is_checks = has(CHECKS, name);
        let is_fitting = match is_checks {
            true => ["pcre", "regexp"].contains(&kind),
            false => ["hash", "btree", "lmdb", "cdb", "texthash"].contains(&kind),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
        let path = Path::new(path);
        let is_path = path.is_absolute() && table.chars().all(|c| plain(c) || c == ':');
        if !is_fitting || !is_path {
            copy.left_out(format!(
                "{name} = {table}: neither a file of patterns nor one that postmap builds"
            ));
            continue;
        }
        let known = kept.copied.iter().find(|(known, _)| known == path);
        if known.is_some_and(|(_, of)| *of != is_checks) {
            copy.left_out(format!(
                "{name} = {table}: it is a table of another kind too"
            ));
            continue;
        }
        if known.is_none() {
            let Some(text) = copy.included(path) else {
                continue;
            };
            copy.rewrite(path, &joined(&text), |_, line| match is_checks {
                true => check(line),
                false => Line::Keep,
            });
            kept.copied.push((path.to_owned(), is_checks));
        }
        if !["pcre", "regexp", "texthash"].contains(&kind) {
            kept.tables.push((kind.to_owned(), path.to_owned()));
        }
        all.push(format!("{kind}:{}", copy_of(path)));
    }
    Line::Replaced(format!("{name} = {}", all.join(" ")))
}

/// A line of a table of patterns. One that does not act stays; `if` and `endif` belong together.
fn check(line: &str) -> Line {
    let is_condition = ["if", "endif"].iter().any(|word| line.starts_with(word));
    let text = line.to_lowercase();
    let acts = ACTIONS.iter().any(|action| text.contains(action));
    if acts && !is_condition && !line.starts_with('#') {
        return Line::LeftOut(
            "a check that changes mail, refuses it or sends it elsewhere".to_owned(),
        );
    }
    Line::Keep
}

/// master.cf: the rows of the shipped recipe, with chroot, wakeup time, number of processes and options of the
/// administrator's.
fn services(path: &Path, rows: &str, shipped: &str, copy: &mut Copy) -> String {
    let mut own = entries(rows.as_bytes());
    let mut text = String::new();
    for Entry { words: columns, .. } in entries(shipped.as_bytes()) {
        let [service, kind, private, unprivileged, .., daemon] = &columns[..] else {
            continue;
        };
        let at = own.iter().position(|entry| match &**kind {
            "inet" => entry.words[1] == "inet" && entry.command() == "smtpd",
            _ => entry.words[..2] == columns[..2] && entry.command() == daemon,
        });
        let Some(Entry { line, words, .. }) = at.map(|at| own.remove(at)) else {
            text += &format!("{}\n", columns.join(" "));
            continue;
        };
        let (name, place) = (&words[0], format!("{}:{line}", path.display()));
        if kind == "inet" {
            let moved = format!("service {name} inet smtpd ({place})");
            copy.notes.moved.push(moved);
        }
        let plain = |word: &str| {
            word.chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '?')
        };
        let [chroot, wakeup, processes] = [4, 5, 6].map(|at| match plain(&words[at]) {
            true => &*words[at],
            false => "-",
        });
        text += &format!(
            "{service} {kind} {private} {unprivileged} {chroot} {wakeup} {processes} {daemon}\n"
        );
        for option in options(&words[COLUMNS..]) {
            let setting = option
                .strip_prefix("-o ")
                .and_then(|text| text.split_once('='));
            match setting {
                Some((name, value)) if is_kept(name, value) => text += &format!("  {option}\n"),
                _ => {
                    let option = setting.map_or(&*option, |(name, _)| name);
                    copy.left_out(format!("service {name}: {option} ({place})"));
                }
            }
        }
    }
    for entry in own {
        copy.left_out(format!(
            "service {} {}: the load does without it ({}:{})",
            entry.words[..2].join(" "),
            entry.command(),
            path.display(),
            entry.line
        ));
    }
    text
}

/// `-o NAME=VALUE` and other options of a row, each as one text.
fn options(words: &[String]) -> Vec<String> {
    let mut options: Vec<String> = Vec::new();
    for word in words {
        match options.last_mut() {
            Some(last) if last == "-o" || !word.starts_with('-') => {
                last.push(' ');
                last.push_str(word);
            }
            _ => options.push(word.clone()),
        }
    }
    options
}
