//! `refit doctor PID`: who serves malloc in programs that run, of every kind.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::locations::{allocator_file, system_library};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, wait_until};

pub const TESTS: &[Test] = &[
    test!(the_c_library_serves_what_nothing_else_serves),
    test!(a_linked_allocator_and_a_preloaded_one_are_told),
    test!(variables_that_nothing_reads_are_told),
    test!(deepbind_and_a_namespace_keep_the_c_librarys),
    test!(static_programs_and_musl_serve_themselves),
    test!(a_malloc_of_the_program_serves_its_libraries_too),
    test!(huge_pages_switched_off_are_told),
];

/// A program that waits for the end of its input.
pub struct Waiting(Child);

impl Waiting {
    /// Started, and so far that it printed a line.
    pub fn start(mut command: Command) -> Waiting {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("start {command:?}: {error}"));
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.as_mut().expect("it is piped"));
        output.read_line(&mut line).expect("it prints text");
        assert_eq!(line, "ready\n", "{command:?}");
        Waiting(child)
    }

    pub fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn started(env: &TestEnv, program: &str, args: &[&str], variables: &[(&str, &str)]) -> Waiting {
    let mut command = env.command(program);
    command.args(args).envs(variables.iter().copied());
    Waiting::start(command)
}

pub fn doctor(env: &TestEnv, pid: &str, code: i32) -> String {
    let output = env.refit(&["doctor", pid]);
    expect_code(&output, code);
    String::from_utf8(output.stdout).expect("a page is text")
}

/// The objects that a row of `who serves malloc` names, folded lines joined.
pub fn objects_of(page: &str, server: &str) -> String {
    let lines = page
        .lines()
        .skip_while(|line| !line.starts_with("who serves malloc"))
        .skip_while(|line| {
            !(line.contains(server) && line.starts_with("  ") && !line.starts_with("   "))
        })
        .skip(1)
        .take_while(|line| line.starts_with("   "));
    let mut text = String::new();
    for line in lines {
        text += line.trim();
        text += " ";
    }
    assert!(!text.is_empty(), "{server} serves nothing in {page}");
    text
}

fn the_c_library_serves_what_nothing_else_serves(env: &TestEnv) -> Outcome {
    let wait = started(env, &env.program("wait"), &[], &[]);
    let page = doctor(env, &wait.pid(), 0);
    let objects = objects_of(&page, "libc.so.6 serves");
    assert!(
        objects.contains("wait") && objects.contains("libc.so.6"),
        "{page}"
    );
    assert!(page.contains("variables      none\n"), "{page}");
    env.require_command("python3");
    let script = "import sys; print('ready', flush=True); sys.stdin.read()";
    let python = started(env, "python3", &["-c", script], &[]);
    let page = doctor(env, &python.pid(), 0);
    assert!(
        objects_of(&page, "libc.so.6 serves").contains("libc.so.6"),
        "{page}"
    );
    Outcome::Pass
}

fn a_linked_allocator_and_a_preloaded_one_are_told(env: &TestEnv) -> Outcome {
    env.require_command("redis-server");
    env.require_command("ruby");
    let socket = env.path("redis.sock");
    let options = [
        "--port",
        "0",
        "--unixsocket",
        &socket,
        "--save",
        "",
        "--daemonize",
        "no",
    ];
    let redis = env
        .command("redis-server")
        .args(options)
        .stdout(Stdio::null())
        .spawn();
    let redis = Waiting(redis.expect("redis starts"));
    wait_until("redis", || std::path::Path::new(&socket).exists());
    let page = doctor(env, &redis.pid(), 0);
    let objects = objects_of(&page, "libjemalloc.so.2 serves");
    assert!(
        objects.contains("redis") && objects.contains("libc.so.6"),
        "{page}"
    );
    assert!(
        page.contains("swapped by any allocator but glibc"),
        "{page}"
    );
    drop(redis);
    let script = "puts 'ready'; $stdout.flush; $stdin.read";
    for library in ["jemalloc", "mimalloc", "tcmalloc"].map(allocator_file) {
        let ruby = started(env, "ruby", &["-e", script], &[("LD_PRELOAD", library)]);
        let page = doctor(env, &ruby.pid(), 0);
        let stem = library.split(".so").next().expect("a first part");
        let objects = objects_of(&page, &format!("{stem}.so"));
        assert!(
            objects.contains("libruby") && objects.contains("libc.so.6"),
            "{page}"
        );
        assert!(
            page.contains(&format!("LD_PRELOAD={library}\n                 read\n")),
            "{page}"
        );
    }
    Outcome::Pass
}

fn variables_that_nothing_reads_are_told(env: &TestEnv) -> Outcome {
    let wait = env.program("wait");
    let page = |variables: &[(&str, &str)]| {
        let process = started(env, &wait, &[], variables);
        // Texts are folded.
        let page = doctor(env, &process.pid(), 0);
        page.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let glibc = page(&[
        ("MALLOC_CONF", "narenas:1"),
        ("MALLOC_ARENA_MAX", "1"),
        ("MIMALLOC_SHOW_ERRORS", "1"),
    ]);
    assert!(glibc.contains("MALLOC_ARENA_MAX=1 read"), "{glibc}");
    let only = "leads nowhere: only jemalloc reads it, and malloc is served by libc.so.6";
    assert!(
        glibc.contains(&format!("MALLOC_CONF=narenas:1 {only}")),
        "{glibc}"
    );
    assert!(
        glibc.contains("leads nowhere: only mimalloc reads it"),
        "{glibc}"
    );
    let jemalloc = page(&[
        ("LD_PRELOAD", "libjemalloc.so.2"),
        (
            "MALLOC_CONF",
            "narenas:1,background_thread:false,dirty_decay:0",
        ),
        ("MALLOC_ARENA_MAX", "1"),
    ]);
    assert!(
        jemalloc.contains("the file of libjemalloc.so.2 has no option `dirty_decay`"),
        "{jemalloc}"
    );
    assert!(
        jemalloc.contains("leads nowhere: only glibc's malloc reads it"),
        "{jemalloc}"
    );
    let missing = page(&[("LD_PRELOAD", "/no/such.so")]);
    assert!(
        missing.contains("leads nowhere: /no/such.so is not loaded: there is no such file"),
        "{missing}"
    );
    Outcome::Pass
}

fn deepbind_and_a_namespace_keep_the_c_librarys(env: &TestEnv) -> Outcome {
    let program = env.program("wait_deepbind");
    let preload = [("LD_PRELOAD", "libjemalloc.so.2")];
    let deep = started(env, &program, &["namespace"], &preload);
    let page = doctor(env, &deep.pid(), 0);
    assert!(
        objects_of(&page, "libjemalloc.so.2 serves").contains("wait_deepbind"),
        "{page}"
    );
    let past = "libc.so.6, and not libjemalloc.so.2, serves (RTLD_DEEPBIND";
    // libjemalloc.so.2 needs libstdc++ itself where it was built with C++: then it was there before.
    let before = String::from_utf8_lossy(
        &env.run(&["ldd", &system_library("libjemalloc.so.2")])
            .stdout,
    )
    .contains("libstdc++");
    assert_eq!(page.contains(past), !before, "{page}");
    let namespace = "libc.so.6, in a namespace of its own (dlmopen), serves";
    assert!(objects_of(&page, namespace).contains("libc.so.6"), "{page}");
    // Without jemalloc there is no other to be past of.
    let plain = started(env, &program, &[], &[]);
    let page = doctor(env, &plain.pid(), 0);
    assert!(
        objects_of(&page, "libc.so.6 serves").contains("libstdc++"),
        "{page}"
    );
    // mimalloc is plain C: libstdc++ is new, and looks into the C library that it needs first.
    let library = allocator_file("mimalloc");
    let mimalloc = started(env, &program, &[], &[("LD_PRELOAD", library)]);
    let page = doctor(env, &mimalloc.pid(), 0);
    let past = page
        .lines()
        .find(|line| line.contains(&format!("libc.so.6, and not {library}")))
        .unwrap_or_else(|| panic!("nothing was bound past mimalloc in {page}"));
    assert!(
        objects_of(&page, past.trim()).contains("libstdc++"),
        "{page}"
    );
    Outcome::Pass
}

fn static_programs_and_musl_serve_themselves(env: &TestEnv) -> Outcome {
    for program in ["wait_static", "wait_go"] {
        let process = started(
            env,
            &env.program(program),
            &[],
            &[("LD_PRELOAD", "libjemalloc.so.2")],
        );
        let output = env.refit(&["doctor", &process.pid()]);
        expect_code(&output, 0);
        let page = described(&output);
        assert!(
            page.contains("the program is static: the allocator in it serves it"),
            "{page}"
        );
        assert!(
            page.contains("leads nowhere: the program is static: no loader reads it"),
            "{page}"
        );
    }
    let musl = started(
        env,
        &env.program("wait_musl"),
        &[],
        &[("MALLOC_ARENA_MAX", "1")],
    );
    let page = doctor(env, &musl.pid(), 0);
    assert!(page.contains("dynamic, musl"), "{page}");
    assert!(objects_of(&page, "musl").contains("wait_musl"), "{page}");
    assert!(
        page.contains("leads nowhere: only glibc's malloc reads it"),
        "{page}"
    );
    Outcome::Pass
}

fn a_malloc_of_the_program_serves_its_libraries_too(env: &TestEnv) -> Outcome {
    let pipe = env.path("pipe");
    expect_code(&env.run(&["mkfifo", &pipe]), 0);
    // It waits for whoever reads from the pipe.
    let program = env.command(&env.program("own_malloc")).arg(&pipe).spawn();
    let program = Waiting(program.expect("it was just compiled"));
    let state =
        || std::fs::read_to_string(format!("/proc/{}/stat", program.pid())).unwrap_or_default();
    wait_until("the pipe", || state().contains("(own_malloc) S "));
    let page = doctor(env, &program.pid(), 0);
    let objects = objects_of(&page, "own_malloc serves");
    assert!(objects.contains("libc.so.6"), "{page}");
    assert!(page.contains("exports a malloc of its own"), "{page}");
    Outcome::Pass
}

fn huge_pages_switched_off_are_told(env: &TestEnv) -> Outcome {
    let wait = env.program("wait");
    let allowed = started(env, &wait, &[], &[]);
    let page = doctor(env, &allowed.pid(), 0);
    let own = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    if !own.contains("THP_enabled:\t1") {
        env.skip("this process has no huge pages, or its kernel does not tell");
    }
    assert!(page.contains("process        allowed\n"), "{page}");
    let mut command = env.refit_command(&["run", "--quiet", "thp=never", "--", &wait]);
    let mut refit = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("refit starts");
    let mut line = String::new();
    let output = refit.stdout.as_mut().expect("it is piped");
    BufReader::new(output)
        .read_line(&mut line)
        .expect("it prints text");
    // With --quiet it becomes the program.
    let page = described(&env.refit(&["doctor", &refit.id().to_string()]));
    drop(refit.stdin.take());
    assert!(refit.wait().expect("it is our child").success());
    assert!(
        page.contains(", wait\n") && page.contains("process        switched off by prctl"),
        "{page}"
    );
    Outcome::Pass
}
