//! The live view of `refit watch` on a terminal.

use crate::runner::{Outcome, Test};
use crate::terminal::Terminal;
use crate::test;
use crate::test_env::{TestEnv, expect_code, refit_path, wait_for_file};
use crate::watch::{Waiting, shell};

pub const TESTS: &[Test] = &[
    test!(the_live_view_ends_by_q_and_puts_the_terminal_back),
    test!(the_live_view_puts_the_terminal_back_after_a_signal),
    test!(the_live_view_keeps_metrics_in_a_file),
    test!(a_terminal_without_a_size_gets_lines),
];

/// The escape sequences for the alternate screen, on and off.
const SCREEN: [&str; 2] = ["\u{1b}[?1049h", "\u{1b}[?1049l"];

fn live(env: &TestEnv, tree: &Waiting, more: &[&str]) -> Terminal {
    // A terminal of no size has no room for a view.
    let script = "stty rows 30 cols 180 && exec \"$@\"";
    let mut command = env.command("sh");
    command.args(["-c", script, "sh", &refit_path(), "watch", &tree.pid()]);
    command.args(["--interval", "200ms"]).args(more);
    command.env("TERM", "xterm");
    Terminal::start(command)
}

fn the_live_view_ends_by_q_and_puts_the_terminal_back(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let mut terminal = live(env, &tree, &[]);
    terminal.wait_for(SCREEN[0]);
    terminal.wait_for("service");
    terminal.wait_for("Enter");
    terminal.type_in("\r");
    terminal.wait_for("process");
    terminal.wait_for(&tree.pid());
    terminal.type_in("\r");
    terminal.wait_for("heap");
    terminal.type_in("q");
    terminal.wait_for(SCREEN[1]);
    terminal.wait_for("% of a core");
    let (status, _) = terminal.finish();
    assert_eq!(status.code(), Some(0));
    tree.end();
    Outcome::Pass
}

fn the_live_view_puts_the_terminal_back_after_a_signal(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let mut terminal = live(env, &tree, &[]);
    terminal.wait_for("service");
    let pid = terminal.pid().to_string();
    expect_code(&env.run(&["kill", "-TERM", &pid]), 0);
    terminal.wait_for(SCREEN[1]);
    terminal.finish();
    tree.end();
    Outcome::Pass
}

fn the_live_view_keeps_metrics_in_a_file(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let file = env.path("refit.prom");
    let mut terminal = live(env, &tree, &["--openmetrics", &file]);
    terminal.wait_for("service");
    let text = wait_for_file(&file);
    assert!(
        text.contains("refit_processes{service=\"sh\"} 1\n"),
        "{text}"
    );
    terminal.type_in("q");
    terminal.wait_for(SCREEN[1]);
    let (status, _) = terminal.finish();
    assert_eq!(status.code(), Some(0));
    tree.end();
    Outcome::Pass
}

fn a_terminal_without_a_size_gets_lines(env: &TestEnv) -> Outcome {
    let tree = shell(env, "echo; read x");
    let mut command = env.refit_command(&["watch", &tree.pid(), "--for", "1s"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start(command);
    terminal.wait_for("growth/h");
    let (status, shown) = terminal.finish();
    assert_eq!(status.code(), Some(0));
    assert!(!shown.contains(SCREEN[0]), "{shown}");
    tree.end();
    Outcome::Pass
}
