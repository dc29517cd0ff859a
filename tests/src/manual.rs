//! The pages that refit carries, as text and as manual pages, and the completions of three shells.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::runner::{Outcome, Test};
use crate::terminal::{CLEAR_THE_LINE, CTRL_D, Terminal};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_refused, refit_path};

const CTRL_G: &str = "\x07";

pub const TESTS: &[Test] = &[
    test!(each_command_and_topic_has_a_manual_page),
    test!(manual_pages_are_clean_and_fit_80_columns).once(),
    test!(a_topic_is_text_that_fits_the_terminal),
    test!(a_terminal_shows_a_page_in_the_pager),
    test!(an_unknown_page_names_the_nearest),
    test!(bash_completes_settings_recipes_and_the_command_itself),
    test!(zsh_completes_settings_and_recipes),
    test!(fish_completes_settings_and_recipes),
];

fn stdout(env: &TestEnv, words: &[&str]) -> String {
    let output = env.refit(words);
    expect_code(&output, 0);
    String::from_utf8(output.stdout).expect("pages are UTF-8")
}

/// The first words of the indented lines after this heading.
fn listed(help: &str, heading: &str) -> Vec<String> {
    let (_, after) = help.split_once(heading).expect("it has that heading");
    let lines = after.trim_start_matches('\n').lines();
    let lines = lines.take_while(|line| line.starts_with("  "));
    lines
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// All manual pages: their paths below the directory that they were written to.
fn pages(env: &TestEnv) -> BTreeSet<String> {
    let place = env.path("man");
    stdout(env, &["help", "--write-man", &place]);
    let sections = fs::read_dir(&place).expect("it was written");
    let files = sections.flat_map(|section| {
        let section = section.expect("it stays").path();
        let files = fs::read_dir(section).expect("it was written");
        files.map(|file| file.expect("it stays").path())
    });
    files
        .map(|path| path.to_str().expect("names are text").to_owned())
        .collect()
}

fn each_command_and_topic_has_a_manual_page(env: &TestEnv) -> Outcome {
    let pages = pages(env);
    let has = |name: &str| pages.contains(&env.path(&format!("man/{name}")));
    let help = stdout(env, &["help"]);
    let commands = listed(&help, "\nCommands:");
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        assert!(has(&format!("man1/refit-{command}.1")), "{command}");
        let below = stdout(env, &["help", &command]);
        if below.contains("\nCommands:") {
            for inner in listed(&below, "\nCommands:") {
                let name = format!("man1/refit-{command}-{inner}.1");
                assert!(inner == "help" || has(&name), "{name}");
            }
        }
    }
    let topics = listed(&help, "Topics, for `refit help TOPIC`:");
    assert!(topics.len() > 10, "{topics:?}");
    for topic in topics {
        let section = if topic == "recipe" { 5 } else { 7 };
        assert!(
            has(&format!("man{section}/refit-{topic}.{section}")),
            "{topic}"
        );
    }
    assert!(has("man1/refit.1"));
    Outcome::Pass
}

/// As lintian looks at them.
fn manual_pages_are_clean_and_fit_80_columns(env: &TestEnv) -> Outcome {
    env.require_command("man");
    let man = |options: &[&str], page: &str| {
        let words = [
            &["man", "--warnings", "-E", "UTF-8", "-l"],
            options,
            &[page],
        ]
        .concat();
        let mut command = env.command(words[0]);
        command.args(&words[1..]).env("LC_ALL", "C.UTF-8");
        command.env("MANWIDTH", "80").env("MANROFFSEQ", "");
        let output = command.output().expect("man runs");
        expect_code(&output, 0);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.is_empty(), "{page}: {errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for page in pages(env) {
        man(&["-Tutf8", "-Z"], &page);
        // What is copied from a session stays as wide as it was.
        if page.ends_with(".1") {
            let text = man(&[], &page);
            let wide: Vec<&str> = text
                .lines()
                .filter(|line| line.chars().count() > 80)
                .collect();
            assert!(text.contains("SYNOPSIS"), "{page}: {text}");
            assert!(wide.is_empty(), "{page}: {wide:#?}");
        }
    }
    Outcome::Pass
}

fn a_topic_is_text_that_fits_the_terminal(env: &TestEnv) -> Outcome {
    let mut command = env.refit_command(&["help", "safety"]);
    let output = command.env("COLUMNS", "60").output().expect("refit runs");
    expect_code(&output, 0);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("loses-on-crash"), "{text}");
    for line in text.lines() {
        // Of what is copied from a session, and of a word that is longer than a line, nothing is cut.
        let is_verbatim = line.starts_with("    ") || !line.trim().contains(' ');
        assert!(line.chars().count() <= 60 || is_verbatim, "{line}");
        assert!(!line.contains("]("), "{line}");
    }
    let settings = stdout(env, &["help", "settings"]);
    for knob in [
        "sync", "odirect", "disk", "malloc", "thp", "program", "tz", "env", "preload", "schema",
        "conf",
    ] {
        assert!(settings.contains(&format!("\n{knob}\n")), "{knob}");
    }
    let recipe = stdout(env, &["help", "recipe"]);
    for key in [
        "[load]",
        "[service]",
        "[promise]",
        "[[variant]]",
        "`question` (required)",
    ] {
        assert!(recipe.contains(key), "{key}");
    }
    Outcome::Pass
}

fn in_terminal(env: &TestEnv, words: &[&str]) -> Command {
    let mut command = env.command(words[0]);
    let bin = env.path("bin");
    if fs::create_dir(&bin).is_ok() {
        std::os::unix::fs::symlink(refit_path(), format!("{bin}/refit")).expect("bin/ is ours");
    }
    let path = std::env::var("PATH").expect("there is one");
    command
        .args(&words[1..])
        .env("PATH", format!("{bin}:{path}"));
    command.env("TERM", "dumb").env("HOME", env.dir());
    command.env("LC_ALL", "C.UTF-8");
    command
}

fn a_terminal_shows_a_page_in_the_pager(env: &TestEnv) -> Outcome {
    let mut command = in_terminal(env, &["refit", "help", "safety"]);
    command.env("PAGER", "sed 's/^/paged: /'");
    let mut terminal = Terminal::start(command);
    terminal.wait_for("paged: WHAT REFIT RISKS");
    let mut command = in_terminal(env, &["refit", "help", "safety"]);
    command.env("PAGER", "exec /no/such/pager");
    Terminal::start(command).wait_for("WHAT REFIT RISKS");
    Outcome::Pass
}

fn an_unknown_page_names_the_nearest(env: &TestEnv) -> Outcome {
    expect_refused(
        env,
        &["help", "saftey"],
        &[
            "there is no command and no topic `saftey`",
            "type refit help safety",
        ],
    );
    expect_refused(
        env,
        &["help", "recipes", "chek"],
        &[
            "there is no command `chek`",
            "type refit help recipes check",
        ],
    );
    expect_refused(env, &["help", "zzzzzzzz"], &["type refit help\n"]);
    Outcome::Pass
}

/// What is typed before the tab, and what then stands there.
const TYPED: &[(&str, &str)] = &[
    ("refit run sy", "refit run sync="),
    ("refit run sync=of", "refit run sync=off "),
    ("refit run thp=n", "refit run thp=never "),
    ("refit run malloc=je", "refit run malloc=jemalloc "),
    (
        "refit compare sync=off+malloc=mi",
        "refit compare sync=off+malloc=mimalloc ",
    ),
    (
        "refit compare postgres-pg",
        "refit compare postgres-pgbench ",
    ),
    ("refit tune redis-ao", "refit tune redis-aof "),
    (
        "refit crash postgres-pgbench conf.fs",
        "refit crash postgres-pgbench conf.fsync=off ",
    ),
    ("refit help saf", "refit help safety "),
    ("refit run --backend pre", "refit run --backend preload "),
];

fn bash_completes_settings_recipes_and_the_command_itself(env: &TestEnv) -> Outcome {
    let rc = env.file(
        "rc",
        "PS1='ready> '\nsource <(refit completions bash)\nbind 'set enable-bracketed-paste off'\n",
    );
    env.file("an-input-file", "");
    let command = in_terminal(env, &["bash", "--rcfile", &rc, "-i"]);
    let scoped = [
        (
            "refit run sync@exe:cleanup=of",
            "refit run sync@exe:cleanup=off ",
        ),
        (
            "refit run malloc=jemalloc:narena",
            "refit run malloc=jemalloc:narenas:",
        ),
        (
            "refit run program=./an-in",
            "refit run program=./an-input-file ",
        ),
        // Without bash-completion files are what bash itself completes.
        (
            "refit run sync=off -- cat an-in",
            "refit run sync=off -- cat an-input-file ",
        ),
    ];
    let mut terminal = Terminal::start(command);
    for (before, after) in TYPED.iter().chain(&scoped) {
        terminal.wait_for("ready> ");
        terminal.type_in(&format!("{before}\t"));
        terminal.wait_for(after);
        terminal.type_in(CLEAR_THE_LINE);
    }
    terminal.wait_for("ready> ");
    terminal.type_in(CTRL_D);
    Outcome::Pass
}

fn zsh_completes_settings_and_recipes(env: &TestEnv) -> Outcome {
    env.require_command("zsh");
    fs::write(
        format!("{}/_refit", env.subdir("functions")),
        stdout(env, &["completions", "zsh"]),
    )
    .expect("the directory is ours");
    env.file(
        ".zshrc",
        &format!(
            "PS1='ready> '\nfpath=({} $fpath)\nautoload -Uz compinit\ncompinit -u -D\n\
             show() {{ print -r -- \"line: $BUFFER|\" }}\nzle -N show\nbindkey '^G' show\n",
            env.path("functions")
        ),
    );
    let mut command = in_terminal(env, &["zsh", "-i"]);
    command.env("ZDOTDIR", env.dir());
    // zsh draws anew what stands there in its own way: it is asked for.
    let mut terminal = Terminal::start(command);
    for (before, after) in TYPED {
        terminal.wait_for("ready> ");
        terminal.type_in(&format!("{before}\t{CTRL_G}"));
        terminal.wait_for(&format!("line: {after}|"));
        terminal.type_in(CLEAR_THE_LINE);
    }
    terminal.wait_for("ready> ");
    terminal.type_in(CTRL_D);
    Outcome::Pass
}

/// fish itself tells what it would complete.
fn fish_completes_settings_and_recipes(env: &TestEnv) -> Outcome {
    env.require_command("fish");
    for (before, after) in TYPED {
        let script = format!("refit completions fish | source; complete --do-complete '{before}'");
        let output = in_terminal(env, &["fish", "--no-config", "-c", &script])
            .output()
            .expect("fish runs");
        expect_code(&output, 0);
        let text = String::from_utf8_lossy(&output.stdout);
        let words: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split('\t').next())
            .collect();
        let expected = after.split_whitespace().last().unwrap_or_default();
        assert_eq!(words, [expected], "{before}");
    }
    Outcome::Pass
}
