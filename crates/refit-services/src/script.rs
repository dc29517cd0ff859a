//! A shell script in a program's place: it sets variables and becomes the program.

use std::fmt::Write;

use refit_knobs::{Assignment, Join};

/// The script, with `head` as its comment, that becomes `command`: a program, perhaps with first arguments. Nothing
/// else is started, so that no other process gets the variables.
pub fn script(head: &str, assignments: &[Assignment], command: &[&str]) -> String {
    let mut text = format!("#!/bin/sh\n{head}");
    for Assignment { name, value, join } in assignments {
        let value = quoted(value);
        // What it starts may run this script again, which then changes nothing.
        let once = |there: &str, joined: &str| {
            format!("case ${name} in\n{value}|{there}) ;;\n*) {name}={joined} ;;\nesac")
        };
        let set = match join {
            Join::Replace => format!("{name}={value}"),
            Join::Before => once(
                &format!("{value}:*"),
                &format!("{value}${{{name}:+:${name}}}"),
            ),
            Join::After => once(
                &format!("*:{value}"),
                &format!("${{{name}:+${name}:}}{value}"),
            ),
        };
        let _ = writeln!(text, "{set}\nexport {name}");
    }
    text + &started(command)
}

/// The last line of a script.
fn started(command: &[&str]) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    format!("exec {} \"$@\"\n", words.join(" "))
}

/// Whether a script becomes this program.
pub fn starts(script: &[u8], program: &str) -> bool {
    script.ends_with(started(&[program]).as_bytes())
}

/// One word of a shell, whatever it holds.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the script's program gets of a variable.
    fn given(assignment: &Assignment, there: &str) -> String {
        let program = "/usr/bin/printenv";
        let text = script("# head\n", std::slice::from_ref(assignment), &[program]);
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &text, "sh", &assignment.name]);
        if !there.is_empty() {
            shell.env(&assignment.name, there);
        }
        let output = shell.output().expect("a shell");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.strip_suffix('\n').expect("it is set").to_owned()
    }

    #[test]
    fn what_is_there_is_joined_once() {
        for (join, there, meant) in [
            (Join::Replace, "/a", "/b:/c"),
            (Join::Before, "", "/b:/c"),
            (Join::Before, "/a", "/b:/c:/a"),
            (Join::Before, "/b:/c", "/b:/c"),
            (Join::Before, "/b:/c:/a", "/b:/c:/a"),
            (Join::Before, "/b:/cc", "/b:/c:/b:/cc"),
            (Join::After, "", "/b:/c"),
            (Join::After, "/a", "/a:/b:/c"),
            (Join::After, "/a:/b:/c", "/a:/b:/c"),
        ] {
            let assignment = Assignment {
                name: "NAME".to_owned(),
                value: "/b:/c".to_owned(),
                join,
            };
            assert_eq!(given(&assignment, there), meant, "{join:?} {there:?}");
        }
    }

    #[test]
    fn a_value_is_as_it_was_whatever_it_holds() {
        let value = "a 'b' \"c\" $HOME `d` \\ *\n#";
        for join in [Join::Replace, Join::Before, Join::After] {
            let assignment = Assignment {
                name: "WORD".to_owned(),
                value: value.to_owned(),
                join,
            };
            assert_eq!(given(&assignment, ""), value);
        }
    }
}
