//! What is printed where the words that were typed are not a command line of refit.

use std::error::Error;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use refit_knobs::near;
use refit_run::printable;

use super::coming_from::hints;
use super::definition;
use crate::cmd::print;

/// Exit code of a usage error: `run` keeps 1 and 2 for the program.
pub fn usage_code() -> u8 {
    if std::env::args_os().nth(1).is_some_and(|verb| verb == "run") {
        125
    } else {
        2
    }
}

/// Prints clap's message and ends.
pub fn usage_error(mut error: clap::Error) -> ! {
    suggest(&mut error);
    match harmless(&mut error) {
        Some(text) => print::drawn(&text),
        // Nothing is left to do when even this cannot be printed.
        None => drop(error.print()),
    }
    let code = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => 0,
        _ => usage_code().into(),
    };
    std::process::exit(code)
}

/// What was typed becomes words that a terminal only shows; where that cannot be done in the error, its text.
fn harmless(error: &mut clap::Error) -> Option<String> {
    let typed: Vec<(ContextKind, ContextValue)> = error
        .context()
        // The usage is ours, and has lines.
        .filter(|(kind, _)| *kind != ContextKind::Usage)
        .map(|(kind, value)| (kind, shown(value)))
        .collect();
    for (kind, value) in typed {
        error.insert(kind, value);
    }
    // A parser of ours repeats the value in its sentence, and not in the error's context.
    let reason = error.source().map(ToString::to_string).unwrap_or_default();
    (printable(&reason) != reason).then(|| {
        let text = error.render().to_string();
        text.replace(&reason, &printable(&reason))
    })
}

/// Verb, an option's name as it was, and as it is.
const RENAMED: [(&str, &str, &str); 2] = [
    ("status", "--check", "--exit-code"),
    ("compare", "--confirm", "--remeasure"),
];

/// In place of an option that was renamed, or of an option or a verb of another tool.
fn suggest(error: &mut clap::Error) {
    let unknown = error
        .get(ContextKind::InvalidArg)
        .or(error.get(ContextKind::InvalidSubcommand));
    let Some(ContextValue::String(typed)) = unknown.cloned() else {
        return;
    };
    let verb = std::env::args_os().nth(1);
    let verb = verb.as_ref().and_then(|verb| verb.to_str());
    // Before a verb, an option is the first word.
    let verb = verb.filter(|verb| !verb.starts_with('-') && *verb != typed);
    let mut hints = hints(verb, &typed);
    let now = RENAMED
        .iter()
        .find(|(of, old, _)| verb == Some(*of) && typed == *old);
    hints.extend(now.map(|(_, _, now)| format!("it is {now} now")));
    if hints.is_empty() {
        hints.extend(nearest(&typed));
    }
    // clap would propose to pass an unknown option after `--`, where the command begins.
    error.remove(ContextKind::Suggested);
    if !hints.is_empty() {
        let hints = hints.into_iter().map(StyledStr::from).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(hints));
    }
}

/// The option or the verb that was probably meant, of the command whose words were typed before it.
fn nearest(typed: &str) -> Option<String> {
    let mut command = &definition();
    let mut words = vec!["refit".to_owned()];
    for word in std::env::args_os().skip(1) {
        let Some(next) = word.to_str().and_then(|word| command.find_subcommand(word)) else {
            break;
        };
        command = next;
        words.push(command.get_name().to_owned());
    }
    if typed.starts_with('-') {
        let all = command.get_arguments().filter(|one| !one.is_hide_set());
        let names: Vec<&str> = all.filter_map(|one| one.get_long()).collect();
        let near = near(typed.trim_start_matches('-'), names.into_iter());
        return near.first().map(|name| format!("did you mean --{name}?"));
    }
    let all = command.get_subcommands().filter(|one| !one.is_hide_set());
    let near = near(typed, all.map(clap::Command::get_name));
    let name = near.first()?;
    Some(format!("did you mean {} {name}?", words.join(" ")))
}

fn shown(value: &ContextValue) -> ContextValue {
    let styled = |text: &StyledStr| StyledStr::from(printable(&text.to_string()));
    match value {
        ContextValue::String(text) => ContextValue::String(printable(text)),
        ContextValue::Strings(all) => {
            ContextValue::Strings(all.iter().map(|text| printable(text)).collect())
        }
        ContextValue::StyledStr(text) => ContextValue::StyledStr(styled(text)),
        ContextValue::StyledStrs(all) => ContextValue::StyledStrs(all.iter().map(styled).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod fuzz {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    /// What follows `refit`, a line each word.
    const SEEDS: [&str; 12] = [
        "run\nsync=off\n--\ntrue",
        "run\n--heap\n--json\nfile\nmalloc=jemalloc\n--\nsh\n-c\nx",
        "compare\nsync=off\nmalloc=jemalloc\n--budget\n50s\n--fresh-copy\n.\n--\n./a",
        "compare\npostgres-pgbench\n--prove\n--cuts\n200\n--gate\nwall<+2%",
        "crash\nsync=off\n--check\nx\n--ack\nfd:1\n--\n./a",
        "watch\n--batch\n--interval\n1s\n--listen\n127.0.0.1:1\n1",
        "tune\n--accept\nloses-on-crash\n--\n./a",
        "plan\nredis\nconf.appendfsync=always",
        "apply\n--from\nfile\n--confirm-within\n5m\n--yes",
        "export\nkubernetes\ncompare\n--nodes\n4\n--\nsync=off\n--\n./a",
        "report\na.json\n--html\n-\n--history\n.",
        "help\nsafety",
    ];

    #[test]
    fn command_lines() {
        refit_fuzz::Target::new(env!("CARGO_MANIFEST_DIR"), "command_lines")
            .seeds(SEEDS)
            .words([
                "\n",
                "\n--",
                "=",
                "+",
                "--with\n",
                "--rounds\n",
                "\u{1b}[2J",
                "\u{202e}",
                "-1",
                "1e308s",
            ])
            .longest(512)
            .mutations(30)
            .memory(8 << 20, 1 << 10)
            .run(|input| {
                let typed = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec);
                let words = std::iter::once(b"refit".to_vec()).chain(typed);
                let Err(mut error) = Cli::try_parse_from(words.map(OsString::from_vec)) else {
                    return;
                };
                suggest(&mut error);
                let text = harmless(&mut error).unwrap_or_else(|| error.render().to_string());
                let obeyed = |line: &&str| printable(line) != **line;
                assert_eq!(text.lines().find(obeyed), None);
            });
    }
}
