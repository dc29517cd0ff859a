//! `refit doctor PID` where a process cannot be read, or is none; and that none is disturbed.

use std::os::unix::fs::PermissionsExt;

use crate::doctor_process::{Waiting, doctor, started};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, refit_path, wait_until};

pub const TESTS: &[Test] = &[
    test!(a_set_id_program_says_why_its_variables_lead_nowhere),
    test!(what_is_no_program_is_named),
    test!(a_process_of_another_user_names_what_is_missing),
    test!(the_process_is_not_disturbed),
    test!(memory_that_does_not_answer_holds_nobody_up),
];

fn a_set_id_program_says_why_its_variables_lead_nowhere(env: &TestEnv) -> Outcome {
    env.require_root();
    let helper = env.path("wait");
    std::fs::copy(env.program("wait"), &helper).expect("both are ours");
    std::os::unix::fs::chown(&helper, None, Some(65534)).expect("root may give files away");
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o2755)).expect("it is ours");
    let variables = [("LD_PRELOAD", "/no/such.so"), ("MALLOC_ARENA_MAX", "1")];
    let process = started(env, &helper, &[], &variables);
    let page = doctor(env, &process.pid(), 0);
    assert!(
        page.contains("started        in secure-execution mode"),
        "{page}"
    );
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let reason =
        "leads nowhere: the program was started in secure-execution mode, where it is not read";
    assert!(
        page.contains(reason) || !page.contains("MALLOC_ARENA_MAX"),
        "{page}"
    );
    let preload = "/no/such.so is not loaded: the program was started in secure-execution mode";
    assert!(
        page.contains(preload) || !page.contains("LD_PRELOAD"),
        "{page}"
    );
    assert!(page.contains("malloc not swapped"), "{page}");
    Outcome::Pass
}

fn what_is_no_program_is_named(env: &TestEnv) -> Outcome {
    let refused = |word: &str| {
        let output = env.refit(&["doctor", word]);
        expect_code(&output, 2);
        assert!(output.stdout.is_empty(), "{}", described(&output));
        String::from_utf8(output.stderr).expect("a message is text")
    };
    for word in ["0", "2147483648", "99999999999999999999"] {
        let message = refused(word);
        assert!(
            message.contains(&format!("there is no process {word}\n  ps -e")),
            "{message}"
        );
    }
    // Reaped, and so gone; and one that nobody reaped yet.
    let mut ended = env.command("true").spawn().expect("true is there");
    let pid = ended.id();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    wait_until("a zombie", || state().contains(") Z "));
    let message = refused(&pid.to_string());
    assert!(
        message.contains("has ended and waits to be reaped by"),
        "{message}"
    );
    ended.wait().expect("it is our child");
    assert!(refused(&pid.to_string()).contains("there is no process"));
    let kernel = std::fs::read_to_string("/proc/2/status").unwrap_or_default();
    if kernel.contains("kthreadd") {
        let message = refused("2");
        assert!(
            message.contains("process 2 (kthreadd) is a thread of the kernel"),
            "{message}"
        );
    }
    let mut threads = env.command("python3");
    let script = "import sys, threading; threading.Thread(target=sys.stdin.read).start(); print('ready', flush=True)";
    threads.args(["-c", script]);
    let threads = Waiting::start(threads);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", threads.pid())).expect("it lives");
    let mut names = tasks
        .flatten()
        .map(|task| task.file_name().to_string_lossy().into_owned());
    let thread = names
        .find(|tid| *tid != threads.pid())
        .expect("it has a second thread");
    let message = refused(&thread);
    let named = format!(
        "{thread} is a thread of process {0}\n  refit doctor {0}",
        threads.pid()
    );
    assert!(message.contains(&named), "{message}");
    Outcome::Pass
}

fn a_process_of_another_user_names_what_is_missing(env: &TestEnv) -> Outcome {
    let page = if env.as_root() {
        // By its descriptor: the user nobody may have no access to where refit lies.
        let as_nobody = "exec 9<\"$0\"; exec setpriv --reuid=65534 --regid=65534 --clear-groups /proc/self/fd/9 doctor 1";
        let mut command = env.command("sh");
        command.args(["-c", as_nobody, &refit_path()]);
        let output = command.output().expect("sh starts");
        expect_code(&output, 1);
        String::from_utf8(output.stdout).expect("a page is text")
    } else {
        doctor(env, "1", 1)
    };
    for row in [
        "program        unknown",
        "variables      unknown",
        "in use         unknown",
        "settings       unknown",
    ] {
        assert!(page.contains(row), "{row}: {page}");
    }
    assert!(page.contains("sudo refit doctor 1"), "{page}");
    Outcome::Pass
}

/// It is never stopped: the kernel counts no stop, and no context switch that it did not make itself.
fn the_process_is_not_disturbed(env: &TestEnv) -> Outcome {
    let wait = started(env, &env.program("wait"), &[], &[]);
    let switches = || {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", wait.pid())).expect("it lives");
        let lines = status.lines().filter(|line| line.contains("ctxt_switches"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    // It may still be on its way to its read.
    wait_until("the program to wait", || {
        let state =
            std::fs::read_to_string(format!("/proc/{}/stat", wait.pid())).expect("it lives");
        state.contains(") S ")
    });
    let before = switches();
    assert_eq!(before.len(), 2);
    for _ in 0..10 {
        doctor(env, &wait.pid(), 0);
    }
    assert_eq!(switches(), before);
    let (output, trace) = env.strace(
        "ptrace,process_vm_writev,kill,tgkill",
        &[&crate::test_env::refit_path(), "doctor", &wait.pid()],
    );
    expect_code(&output, 0);
    assert_eq!(trace.count("ptrace"), 0);
    Outcome::Pass
}

/// What waits for a FUSE server that has the request cannot be killed.
fn memory_that_does_not_answer_holds_nobody_up(env: &TestEnv) -> Outcome {
    env.require_root();
    if !std::path::Path::new("/dev/fuse").exists() {
        env.skip("there is no /dev/fuse");
    }
    env.require_namespaces(&["--mount"]);
    let process = started(
        env,
        &env.program("stuck_process"),
        &[&env.subdir("place")],
        &[],
    );
    let output = env.refit(&["doctor", &process.pid()]);
    expect_code(&output, 2);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("gave no answer within 20 s"),
        "{}",
        described(&output)
    );
    Outcome::Pass
}
