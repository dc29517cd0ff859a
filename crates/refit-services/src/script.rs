//! A shell script in a program's place: it sets variables and becomes the program.

use std::fmt::Write;

/// The script, with `head` as its comment. What is preloaded already stays, and is first. Nothing
/// but the program is started, so that no other process gets the variables.
pub fn script(head: &str, variables: &[(String, String)], program: &str) -> String {
    let mut text = format!("#!/bin/sh\n{head}");
    for (name, value) in variables {
        let value = quoted(value);
        let _ = match &**name {
            // Also where what it starts runs this script again.
            "LD_PRELOAD" => writeln!(
                text,
                "case :${name}: in\n*:{value}:*) ;;\n*) {name}=${{{name}:+${name}:}}{value} ;;\nesac"
            ),
            _ => writeln!(text, "{name}={value}"),
        };
        let _ = writeln!(text, "export {name}");
    }
    text + &started(program)
}

/// The last line of a script.
fn started(program: &str) -> String {
    format!("exec {} \"$@\"\n", quoted(program))
}

/// Whether a script becomes this program.
pub fn starts(script: &[u8], program: &str) -> bool {
    script.ends_with(started(program).as_bytes())
}

/// One word of a shell, whatever it holds.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_sets_what_is_meant() {
        let value = "a 'b' \"c\" $HOME `d` \\ *\n#";
        let variables = [
            ("LD_PRELOAD".to_owned(), "/b x.so".to_owned()),
            ("WORD".to_owned(), value.to_owned()),
        ];
        let text = script("# head\n", &variables, "/usr/bin/printenv");
        let run = |name: &str| {
            let output = std::process::Command::new("/bin/sh")
                .args([
                    "-c",
                    &text.replace("'/usr/bin/printenv'", "printenv"),
                    "sh",
                    name,
                ])
                .env("LD_PRELOAD", "")
                .output()
                .expect("a shell");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(run("WORD"), format!("{value}\n"));
        assert_eq!(run("LD_PRELOAD"), "/b x.so\n");
        let run = |preloaded: &str| {
            let output = std::process::Command::new("/bin/sh")
                .args([
                    "-c",
                    &text.replace("exec '/usr/bin/printenv' \"$@\"", "echo $LD_PRELOAD"),
                ])
                .env("LD_PRELOAD", preloaded)
                .output()
                .expect("a shell");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(run("/a.so"), "/a.so:/b x.so\n");
        assert_eq!(run("/a.so:/b x.so"), "/a.so:/b x.so\n");
    }
}
