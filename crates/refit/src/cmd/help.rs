//! `refit help`: the page of a command or of a topic, and all of them as manual pages.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Command;
use refit_knobs::near;
use refit_manual::{TOPICS, command_pages, topic};

use super::print;
use crate::cli::{HelpArgs, VERSION, definition};

/// As wide as the help texts of commands are at most.
const MOST_COLUMNS: usize = 100;

pub fn main(args: &HelpArgs) -> ExitCode {
    let result = match &args.write_man {
        Some(directory) => write_pages(directory),
        None => page(&args.words).and_then(|text| print::page(&text)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failed(&error, 2),
    }
}

/// Exactly what `COMMAND --help` prints, or a page of docs/.
fn page(words: &[String]) -> Result<String> {
    let mut command = definition();
    command.build();
    if let [word] = words
        && let Some(topic) = topic(word)
    {
        return Ok(topic.text(print::style().width.min(MOST_COLUMNS)));
    }
    let mut found = &mut command;
    for (at, word) in words.iter().enumerate() {
        if found.find_subcommand(word).is_none() {
            return unknown(found, &words[..at], word);
        }
        found = found
            .find_subcommand_mut(word)
            .context("it was there before")?;
    }
    Ok(found.render_long_help().to_string())
}

fn unknown(command: &Command, before: &[String], word: &str) -> Result<String> {
    let commands = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set());
    let mut names: Vec<&str> = commands.map(Command::get_name).collect();
    let mut what = "no command".to_owned();
    if before.is_empty() {
        names.extend(TOPICS.iter().map(|topic| topic.name));
        what.push_str(" and no topic");
    }
    let next = match near(word, names.into_iter()).first() {
        Some(name) => [before, &[(*name).to_owned()]].concat().join(" "),
        None => before.join(" "),
    };
    bail!(
        "there is {what} `{word}`\n  type {}",
        format!("refit help {next}").trim_end()
    )
}

fn write_pages(directory: &Path) -> Result<()> {
    let commands = command_pages(definition(), VERSION);
    let commands = commands.into_iter().map(|page| (1, page.file, page.text));
    let topics = TOPICS
        .iter()
        .map(|topic| (topic.section, topic.page_name(), topic.page(VERSION)));
    for (section, file, text) in commands.chain(topics) {
        let section = directory.join(format!("man{section}"));
        fs::create_dir_all(&section)
            .with_context(|| format!("cannot make {}", section.display()))?;
        let path = section.join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
