//! `refit watch PID --per COMMAND`: memory against operations, and which part of it grows.

use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use refit_lab::{MemoryWatch, NoSample};
use refit_report::memory_growth;
use refit_run::{count_interruptions, doze, interruptions, with_first_signals};

use super::recording::SHARE;
use crate::cli::WatchArgs;
use crate::cmd::print;

/// How often it is looked whether a sample is due.
const TICK: Duration = Duration::from_millis(20);

pub fn main(args: &WatchArgs, per: &str) -> ExitCode {
    match watch(args, per) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failed(&error, 2),
    }
}

fn watch(args: &WatchArgs, per: &str) -> Result<()> {
    let [pid] = args.what.as_slice() else {
        bail!(
            "--per counts the operations of one process\n  name it: refit watch PID --per '{per}'"
        );
    };
    let word = pid.to_string_lossy();
    let Some(pid) = word.parse().ok().filter(|pid| *pid > 0) else {
        bail!(
            "`{word}` is not the number of a process\n  name it: refit watch $(pgrep -o {word}) --per '{per}'"
        );
    };
    count_interruptions();
    let mut watch = MemoryWatch::new(pid);
    let began = Instant::now();
    let mut due = began;
    loop {
        let over = args.time.is_some_and(|time| began.elapsed() >= time);
        if over || print::has_lost_reader() || interruptions() > 0 {
            break;
        }
        if Instant::now() < due {
            doze(TICK);
            continue;
        }
        let begun = Instant::now();
        match watch.sample(operations(per)?) {
            // Of one core, no more than the share that watching may take.
            Ok(cost) => due = begun + args.interval.max(cost.div_f64(SHARE)),
            Err(NoSample::Ended(_)) if !watch.points().is_empty() => {
                print::say("the process has ended");
                break;
            }
            Err(error @ NoSample::Ended(_)) => bail!("{error}\n  find one: pgrep -a NAME"),
            Err(error) => bail!("{error}\n  watch a process of your own, or as root"),
        }
        print::result(&memory_growth::line(&watch))?;
    }
    print::result(&memory_growth::verdict(&watch))
}

/// The first number that the command prints.
fn operations(per: &str) -> Result<f64> {
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", per])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let output = with_first_signals(&mut shell).output();
    let output = output.context("cannot start /bin/sh")?;
    let text = String::from_utf8_lossy(&output.stdout);
    match first_number(&text) {
        Some(Err(word)) if output.status.success() => bail!(
            "`{per}` printed {word}, which is not digits alone, with at most one point\n  let it print the number as 37200 or 37.2: --per 'COMMAND | tr -d ,'"
        ),
        Some(Ok(number)) if output.status.success() && number.is_finite() => Ok(number),
        _ => bail!(
            "`{per}` gave no number of operations ({})\n  it has to print how many were done so far: --per 'cat FILE'",
            output.status
        ),
    }
}

/// The first number of the text; the word around it where it may be another than its digits are: `37,200` is
/// 37200 to some and 37.2 to others.
fn first_number(text: &str) -> Option<Result<f64, String>> {
    let start = text.find(|letter: char| letter.is_ascii_digit())?;
    let (before, rest) = text.split_at(start);
    let is_of_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let (digits, after) = rest.split_at(rest.find(|c| !is_of_number(c)).unwrap_or(rest.len()));
    let mut next = after.chars();
    let goes_on = match (next.next(), next.next()) {
        (Some(',' | '\'' | '_' | 'e' | 'E' | '\u{a0}' | '\u{202f}'), Some(then)) => {
            then.is_ascii_digit() || ['+', '-'].contains(&then)
        }
        (Some('x'), Some(then)) => digits == "0" && then.is_ascii_hexdigit(),
        _ => false,
    };
    let is_negative = before
        .strip_suffix(['-', '\u{2212}'])
        .is_some_and(|before| !before.ends_with(char::is_alphanumeric));
    // The end of a sentence.
    let digits = digits.strip_suffix('.').unwrap_or(digits);
    match digits.parse() {
        Ok(number) if !goes_on && !is_negative => Some(Ok(number)),
        _ => {
            let word = text.split_whitespace().find(|word| word.contains(digits));
            Some(Err(word.unwrap_or(digits).to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_whole_or_not_at_all() {
        for (text, number) in [
            ("37200\n", Some(37_200.0)),
            ("xact_commit | 37200.5", Some(37_200.5)),
            ("done: 12, failed: 3", Some(12.0)),
            ("It did 12. Then it ended.", Some(12.0)),
            ("cleanup-7", Some(7.0)),
            ("37,200", None),
            ("37'200", None),
            ("1.234.567", None),
            ("1e6", None),
            ("0x1f", None),
            ("-5", None),
        ] {
            let read = first_number(text).expect("it has digits");
            assert_eq!(read.ok(), number, "{text}");
        }
        assert_eq!(first_number("none"), None);
    }
}
