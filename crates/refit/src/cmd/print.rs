//! All that refit prints: results on stdout, its own words on stderr. Nothing else
//! of the command writes to either.
//!
//! Results come drawn from refit-report, and hold no character of others that a
//! terminal would obey; every message is made printable here.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use refit_report::Style;
use refit_run::printable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Columns of the terminal that results go to, where it is one.
pub fn width() -> Option<usize> {
    width_of(io::stdout())
}

/// Columns of the terminal that refit's messages go to, where it is one.
pub fn width_of_messages() -> Option<usize> {
    width_of(io::stderr())
}

fn width_of(output: impl IsTerminal + AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(&output);
    let columns = size.ok().filter(|_| output.is_terminal())?.ws_col;
    (columns > 0).then(|| usize::from(columns))
}

/// The style of what goes to stdout.
pub fn style() -> Style {
    let terminal = io::stdout().is_terminal();
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    Style {
        width: width().or(columns).unwrap_or(120),
        colour: terminal
            && !is_dumb()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

/// Whether the terminal obeys no sequences (terminfo(5)), as far as TERM tells.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb")
}

/// A result, drawn, on stdout. A closed pipe is not a failure: the reader has seen enough. Nor is a terminal that is gone.
pub fn result(text: &str) -> Result<()> {
    result_file(text.as_bytes())
}

/// What a file would hold, on stdout.
pub fn result_file(bytes: &[u8]) -> Result<()> {
    match io::stdout()
        .write_all(bytes)
        .and_then(|()| io::stdout().flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && !has_lost_reader() => {
            Err(error).context("cannot write to stdout")
        }
        _ => Ok(()),
    }
}

/// Whether nobody reads stdout any more: it is a pipe whose reader has ended, or a terminal that is gone (poll(2),
/// POLLERR).
pub fn has_lost_reader() -> bool {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let none = Timespec::default();
    poll(&mut polled, Some(&none)).is_ok() && polled[0].revents().contains(PollFlags::ERR)
}

/// A long text: on a terminal by PAGER, or less; elsewhere, or where that cannot run, as a [`result`].
pub fn page(text: &str) -> Result<()> {
    let pager = io::stdout().is_terminal().then(pager).flatten();
    let Some(mut pager) = pager else {
        return result(text);
    };
    if let Some(mut input) = pager.stdin.take() {
        // Who leaves the pager has seen enough.
        let _ = input.write_all(text.as_bytes());
    }
    // The shell's code where it does not find the pager.
    match pager.wait().context("cannot wait for the pager")?.code() {
        Some(127) => result(text),
        _ => Ok(()),
    }
}

/// less leaves a text on the screen that fits on it.
fn pager() -> Option<Child> {
    let named = std::env::var_os("PAGER").filter(|name| !name.is_empty());
    let mut command = match named {
        Some(words) => {
            let mut shell = Command::new("sh");
            shell.arg("-c").arg(words);
            shell
        }
        None => Command::new("less"),
    };
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    command.stdin(Stdio::piped()).spawn().ok()
}

/// Lines on stderr that a program reads: as [`drawn`], and it has to be told when they are lost.
pub fn log(text: &str) -> Result<()> {
    io::stderr()
        .write_all(text.as_bytes())
        .context("cannot write to stderr")
}

/// A message on stderr, after `refit: `. Where that is closed it is lost.
pub fn say(text: impl Display) {
    drawn(&message(&text.to_string(), &typed()));
}

/// What refit-report drew, on stderr.
pub fn drawn(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// The error, and the code.
pub fn failed(error: &anyhow::Error, code: u8) -> ExitCode {
    say(format_args!("{error:#}"));
    ExitCode::from(code)
}

/// Whether a person sees what goes to stdout on a screen, and has a keyboard.
pub fn is_interactive() -> bool {
    let has_size = || {
        let size = rustix::termios::tcgetwinsize(io::stdout());
        size.is_ok_and(|size| size.ws_col > 0 && size.ws_row > 0)
    };
    !is_dumb() && io::stdin().is_terminal() && has_size()
}

/// Whether a person can be asked, and reads what is asked.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether a person, who sees the question on the same line, answers `y` or `yes`.
pub fn agreed(question: &str) -> io::Result<bool> {
    drawn(&format!("refit: {question} [y/N] "));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Lines after the first are indented, so that no value in a message can pass for
/// a message of refit's; and none that was typed can pass for such a line, which says
/// what to type next.
fn message(text: &str, typed: &[String]) -> String {
    let mut lines = text.trim_end().split('\n');
    let mut out = format!("refit: {}", printable(lines.next().unwrap_or_default()));
    for line in lines {
        let begins: String = "\n".chars().chain(line.chars().take(3)).collect();
        if typed.iter().any(|word| word.contains(&begins)) {
            out.push_str("\\n");
        } else {
            out.push('\n');
            if !line.starts_with("  ") {
                out.push_str("  ");
            }
        }
        out.push_str(&printable(line));
    }
    out.push('\n');
    out
}

/// The words of the command line that have more than one line.
fn typed() -> Vec<String> {
    std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .filter(|word| word.contains('\n'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_forges_a_message_or_steers_the_terminal() {
        assert_eq!(
            message("there is no `a\nrefit: done\u{1b}[2J`\n  type b\n", &[]),
            "refit: there is no `a\n  refit: done\\u{1b}[2J`\n  type b\n"
        );
        for word in ["a\n  type c", "sync=a\n  type c+malloc=d"] {
            assert_eq!(
                message("no `a\n  type c`\n  leave it out\n", &[word.to_owned()]),
                "refit: no `a\\n  type c`\n  leave it out\n"
            );
        }
    }
}
