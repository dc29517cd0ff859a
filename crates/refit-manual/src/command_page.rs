//! The manual page of a command, from the definition that it is parsed with.

use clap::Command;
use clap_mangen::Man;

use crate::roff::{escaped, head, marked, section};
use crate::topic::TOPICS;

/// A manual page of section 1.
#[derive(Debug)]
pub struct CommandPage {
    /// The name of its file: `refit-run.1`.
    pub file: String,
    /// Its text, in the macros of man(7).
    pub text: String,
}

/// The page of this command and of every command below it.
#[must_use]
pub fn command_pages(mut command: Command, version: &str) -> Vec<CommandPage> {
    command.build();
    let mut pages = Vec::new();
    add_pages(&command, version, &mut pages);
    pages
}

fn add_pages(command: &Command, version: &str, pages: &mut Vec<CommandPage>) {
    pages.push(CommandPage {
        file: format!("{}.1", page_name(command)),
        text: page(command, version),
    });
    for below in shown(command) {
        add_pages(below, version, pages);
    }
}

/// The `help` that clap adds below a command of its own accord has no page; that of refit is one of its commands.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    let has_help = command.is_disable_help_subcommand_set();
    let all = command.get_subcommands();
    all.filter(move |below| !below.is_hide_set() && (has_help || below.get_name() != "help"))
}

fn page_name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

fn page(command: &Command, version: &str) -> String {
    let name = page_name(command);
    let mut out = head(name, 1, version);
    let about = command.get_about().map(ToString::to_string);
    out.push_str(&section("Name"));
    out.push_str(&format!(
        "{} \\- {}\n",
        escaped(name),
        marked(&about.unwrap_or_default().replace('\n', " "))
    ));

    out.push_str(&section("Synopsis"));
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<String> = usage
        .trim_start_matches("Usage:")
        .lines()
        .map(|line| format!("{}\n", escaped(line.trim())))
        .collect();
    out.push_str(&usage.join(".br\n"));

    let about = command
        .get_long_about()
        .or_else(|| command.get_about())
        .map(ToString::to_string)
        .unwrap_or_default();
    let (codes, mut description): (Vec<&str>, Vec<&str>) = about
        .split("\n\n")
        .partition(|paragraph| paragraph.starts_with("Exit code"));
    // The name says what the first sentence says.
    if description.len() > 1 {
        description.remove(0);
    }
    out.push_str(&section("Description"));
    paragraphs(&mut out, &description);

    out.push_str(&options(command));
    if shown(command).next().is_some() {
        out.push_str(&section("Commands"));
        for below in shown(command) {
            let about = below.get_about().map(ToString::to_string);
            out.push_str(&format!(
                ".TP\n.BR {} (1)\n{}\n",
                escaped(page_name(below)),
                marked(&about.unwrap_or_default().replace('\n', " "))
            ));
        }
    }
    if !codes.is_empty() {
        out.push_str(&section("Exit status"));
        paragraphs(&mut out, &codes);
    }
    out.push_str(&section("See also"));
    out.push_str(&see_also(command));
    out
}

/// Lines that are indented are a table.
fn paragraphs(out: &mut String, paragraphs: &[&str]) {
    for paragraph in paragraphs {
        if paragraph.lines().all(|line| line.starts_with(' ')) {
            for (term, about) in table(paragraph) {
                out.push_str(&format!(".TP\n\\fB{}\\fR\n", escaped(term)));
                out.push_str(&format!("{}\n", marked(&about)));
            }
        } else {
            out.push_str(&format!(".PP\n{}\n", marked(&paragraph.replace('\n', " "))));
        }
    }
}

/// The rows `TERM  TEXT`, with the lines that are indented deeper.
fn table(paragraph: &str) -> Vec<(&str, String)> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let least = paragraph.lines().map(indent).min().unwrap_or(0);
    let mut rows: Vec<(&str, String)> = Vec::new();
    for line in paragraph.lines() {
        let text = line.trim();
        match rows.last_mut() {
            Some((_, about)) if indent(line) > least => {
                about.push(' ');
                about.push_str(text);
            }
            _ => {
                let (term, about) = text.split_once("  ").unwrap_or((text, ""));
                rows.push((term, about.trim_start().to_owned()));
            }
        }
    }
    rows
}

/// What clap_mangen writes, with what is between backticks in bold.
fn options(command: &Command) -> String {
    if !command
        .get_arguments()
        .any(|argument| !argument.is_hide_set())
    {
        return String::new();
    }
    let mut bytes = Vec::new();
    let man = Man::new(command.clone());
    man.render_options_section(&mut bytes)
        .expect("memory takes what is written");
    let text = String::from_utf8_lossy(&bytes);
    let mut out = String::new();
    // The first lines define how an apostrophe is written; no line of ours uses it.
    for line in text.lines() {
        for (at, piece) in line.split('`').enumerate() {
            out.push_str(if at == 0 {
                ""
            } else if at % 2 == 1 {
                "\\fB"
            } else {
                "\\fR"
            });
            out.push_str(piece);
        }
        out.push('\n');
    }
    out
}

/// The whole first, then the pages about something else.
fn see_also(command: &Command) -> String {
    let mut pages = Vec::new();
    if page_name(command) != "refit" {
        pages.push("refit (1)".to_owned());
    }
    let all = page_name(command) == "refit";
    let topics = TOPICS
        .iter()
        .filter(|topic| all || matches!(topic.name, "settings" | "recipe" | "safety"));
    pages
        .extend(topics.map(|topic| format!("refit\\-{} ({})", escaped(topic.name), topic.section)));
    let last = pages.len().saturating_sub(1);
    let lines = pages.iter().enumerate().map(|(at, page)| {
        let comma = if at == last { "" } else { "," };
        format!(".BR {page}{comma}\n")
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    #[test]
    fn a_page_has_what_the_command_says() {
        let run = Command::new("run")
            .about("Run it")
            .long_about(
                "Run it\n\nWith words:\n\n  a=b    a table\n         that goes on\n\nExit code: 0.",
            )
            .override_usage("refit run [WORDS]...\n       refit run --help")
            .arg(Arg::new("seed").long("seed").help("Take `this` seed"))
            .arg(Arg::new("inner").long("inner").hide(true));
        let hidden = Command::new("inside").hide(true);
        let command = Command::new("refit").subcommand(run).subcommand(hidden);
        let pages = command_pages(command, "1.2");
        let files: Vec<&str> = pages.iter().map(|page| &*page.file).collect();
        assert_eq!(files, ["refit.1", "refit-run.1"]);
        let page = &pages[1].text;
        for expected in [
            ".TH \"REFIT\\-RUN\" 1 \"\" \"refit 1.2\"",
            "refit\\-run \\- Run it\n",
            "refit run [WORDS]...\n.br\nrefit run \\-\\-help\n",
            ".TP\n\\fBa=b\\fR\na table that goes on\n",
            "\\-\\-seed",
            "Take \\fBthis\\fR seed",
            ".SH \"EXIT STATUS\"\n.PP\nExit code: 0.\n",
        ] {
            assert!(page.contains(expected), "{expected}\n{page}");
        }
        assert!(!page.contains("inner"), "{page}");
        assert!(!pages[0].text.contains("inside"), "{}", pages[0].text);
    }
}
