//! bench/sysctls.py, by which `make crash-night` changes sysctls for a while: whatever ends it, they are put back. The
//! files here are the test's own: the machine's sysctls stay as they are.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test_env::{TestEnv, wait_until};
use crate::{sys, test};

pub const TESTS: &[Test] = &[test!(changed_sysctls_are_put_back_whatever_ends_the_script)];

/// Waits with its sysctls changed, and with a child that outlives it, as refit's processes may.
const SCRIPT: &str = "\
import pathlib, signal, subprocess, sys
sys.path[:0] = [sys.argv[1]]
import sysctls
sysctls.VM = pathlib.Path('vm')
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
with sysctls.changed({'dirty_expire_centisecs': 100, 'dirty_writeback_centisecs': 200}):
    child = subprocess.Popen(['sleep', '1000'])
    pathlib.Path('child').write_text(f'{child.pid} ')
    sys.stdin.read()
    child.kill()
";

fn changed_sysctls_are_put_back_whatever_ends_the_script(env: &TestEnv) -> Outcome {
    env.require_command("python3");
    let vm = env.subdir("vm");
    let before = [
        ("dirty_expire_centisecs", "3000"),
        ("dirty_writeback_centisecs", "500"),
    ];
    let is = |values: [&str; 2]| {
        let mut now = before.iter().zip(values);
        now.all(|((name, _), value)| {
            fs::read_to_string(format!("{vm}/{name}")).is_ok_and(|text| text.trim() == value)
        })
    };
    for signal in [
        None,
        Some(libc::SIGINT),
        Some(libc::SIGTERM),
        Some(libc::SIGHUP),
        Some(libc::SIGKILL),
    ] {
        for (name, value) in before {
            env.file(&format!("vm/{name}"), &format!("{value}\n"));
        }
        env.file("child", "");
        let mut python = env.command("python3");
        python.args(["-c", SCRIPT]).arg(source_dir().join("bench"));
        let mut python = python
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 is there");
        let child = || fs::read_to_string(env.path("child")).unwrap_or_default();
        wait_until("its child", || child().ends_with(' '));
        assert!(is(["100", "200"]), "they are changed");
        match signal {
            Some(signal) => sys::send_signal(i32::try_from(python.id()).expect("a pid"), signal),
            None => drop(python.stdin.take()),
        }
        let status = python.wait().expect("it is our child");
        assert_eq!(signal.is_none(), status.success(), "{signal:?}: {status}");
        if signal == Some(libc::SIGKILL) {
            assert_eq!(status.signal(), signal);
        }
        wait_until("the values of before", || is(["3000", "500"]));
        if signal.is_some() {
            sys::kill_hard(child().trim().parse().expect("a pid"));
        }
    }
    Outcome::Pass
}
