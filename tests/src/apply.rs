//! `refit plan`, `apply`, `status` and `revert` in a tree (`--root`): no systemd, no root.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Output;

use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed, refit_path};

pub const TESTS: &[Test] = &[
    test!(a_change_is_made_and_taken_back_byte_for_byte),
    test!(applied_twice_is_nothing_to_do),
    test!(what_is_exported_is_nothing_to_do),
    test!(an_edit_of_somebody_else_is_kept_and_shown),
    test!(bad_words_change_nothing),
    test!(a_copy_of_the_c_library_is_refused),
    test!(what_would_not_be_in_effect_is_refused_by_file_and_line),
    test!(a_record_that_cannot_be_written_changes_nothing),
    test!(a_library_of_two_services_goes_with_the_second),
    test!(links_do_not_lead_out_of_the_tree),
    test!(a_trial_moves_to_etc_when_it_is_confirmed),
    test!(what_was_not_confirmed_is_taken_back),
];

const UNIT: &str = "usr/lib/systemd/system/a.service";
pub const DROP_IN: &str = "etc/systemd/system/a.service.d/90-refit.conf";

/// A tree with two units and a library; its path.
pub fn tree(env: &TestEnv, name: &str) -> String {
    let root = env.subdir(name);
    let at = |path: &str| Path::new(&root).join(path);
    for dir in [
        "usr/lib/systemd/system",
        "etc/systemd/system",
        "lib",
        "var/lib",
    ] {
        fs::create_dir_all(at(dir)).expect("the tree is ours");
    }
    fs::write(at(UNIT), "[Service]\nExecStart=/bin/a\n").expect("likewise");
    fs::write(
        at("usr/lib/systemd/system/b.service"),
        "[Service]\nExecStart=/bin/b\nEnvironment=\"LD_PRELOAD=/first.so\"\n",
    )
    .expect("likewise");
    // As long as a page, so that nothing is written in one piece by luck.
    let mut library = elf_start(libc::ET_DYN);
    library.resize(5000, 7);
    fs::write(at("lib/one.so"), library).expect("likewise");
    root
}

/// The first bytes of an ELF file of this machine's kind, to the end of `e_machine`, with `e_type` set; elf(5).
pub fn elf_start(e_type: u16) -> Vec<u8> {
    let mut start = vec![0; 20];
    let mut this = File::open("/proc/self/exe").expect("this test is an ELF file");
    this.read_exact(&mut start).expect("likewise");
    start[16..18].copy_from_slice(&e_type.to_le_bytes());
    start
}

/// Every file and directory of a tree but refit's own state, with mode, owner and a hash
/// of the content.
pub fn listing(root: &str) -> BTreeMap<String, (u32, u32, u32, u64)> {
    let mut found = BTreeMap::new();
    let mut left = vec![Path::new(root).to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).expect("the tree is ours") {
            let path = entry.expect("readable").path();
            let inside = path.strip_prefix(root).expect("below it");
            if inside == Path::new("var/lib/refit") {
                continue;
            }
            let meta = fs::symlink_metadata(&path).expect("it is there");
            let content = if meta.is_dir() {
                left.push(path.clone());
                Vec::new()
            } else {
                fs::read(&path).unwrap_or_default()
            };
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            let about = (meta.mode(), meta.uid(), meta.gid(), hasher.finish());
            found.insert(inside.display().to_string(), about);
        }
    }
    found
}

pub const SETTINGS: [&str; 2] = ["preload=/lib/one.so", "env.WORD=a b%c\"d\\"];

pub fn words<'a>(verb: &'a str, root: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[verb, "--root", root], more].concat()
}

fn apply(env: &TestEnv, root: &str, service: &str) -> Output {
    let more = ["--yes", service, SETTINGS[0], SETTINGS[1]];
    env.refit(&words("apply", root, &more))
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn a_change_is_made_and_taken_back_byte_for_byte(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let planned = env.refit(&words("plan", &root, &["b", SETTINGS[0], SETTINGS[1]]));
    expect_code(&planned, 0);
    assert_eq!(listing(&root), before, "a plan changes nothing");
    assert!(
        stdout(&planned).contains("/one.so:/first.so"),
        "{}",
        stdout(&planned)
    );

    expect_code(&apply(env, &root, "b"), 0);
    let text = fs::read_to_string(Path::new(&root).join(DROP_IN.replace("a.s", "b.s")))
        .expect("the drop-in");
    assert!(
        text.contains("Environment=\"WORD=a b%%c\\\"d\\\\\"\n"),
        "{text}"
    );
    let library = text
        .split_once("LD_PRELOAD=")
        .and_then(|(_, rest)| rest.split_once(":/first.so\""))
        .map(|(path, _)| path)
        .expect("it preloads before what was preloaded");
    let placed = Path::new(&root).join(&library[1..]);
    assert_eq!(
        fs::read(&placed).expect("placed"),
        fs::read(format!("{root}/lib/one.so")).expect("made above")
    );
    let status = env.refit(&words("status", &root, &["--exit-code"]));
    expect_printed(&status, 0, "b.service: applied\n");
    expect_code(&env.refit(&words("revert", &root, &["b"])), 0);
    assert_eq!(listing(&root), before);
    let status = env.refit(&words("status", &root, &[]));
    assert_eq!(stdout(&status), "nothing is applied\n");
    Outcome::Pass
}

fn applied_twice_is_nothing_to_do(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    expect_code(&apply(env, &root, "a"), 0);
    let after = listing(&root);
    let again = apply(env, &root, "a.service");
    expect_code(&again, 0);
    assert_eq!(stdout(&again), "a.service: nothing to do\n");
    // Also a part of it.
    let part = env.refit(&words("apply", &root, &["--yes", "a", SETTINGS[0]]));
    expect_code(&part, 0);
    assert_eq!(stdout(&part), "a.service: nothing to do\n");
    assert_eq!(listing(&root), after);
    Outcome::Pass
}

/// Pasted into a shell.
fn what_is_exported_is_nothing_to_do(env: &TestEnv) -> Outcome {
    env.require_command("bash");
    let root = tree(env, "tree");
    let export = words("status", &root, &["--export"]);
    for (how, word) in [
        ("--trial", "env.A=it's \\ $HOME `id` *?~#!&;|<>é"),
        ("--confirm-within=1h", "env.A=one\ttwo\u{1b}[1m\u{202e}\\'"),
    ] {
        let apply = words("apply", &root, &["--yes", how, "a", SETTINGS[0], word]);
        expect_code(&env.refit(&apply), 0);
        let line = stdout(&env.refit(&export));
        let plan = format!("refit() {{ shift; {} plan \"$@\"; }}\n{line}", refit_path());
        expect_printed(&env.run(&["bash", "-c", &plan]), 0, "nothing to do");
        fs::write(
            format!("{root}/run/systemd/system/a.service.d/90-refit.conf"),
            "",
        )
        .expect("ours");
        expect_message(&env.refit(&export), 3, "differs from it now");
        fs::remove_dir_all(format!("{root}/run")).expect("likewise");
        expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
    }
    Outcome::Pass
}

fn an_edit_of_somebody_else_is_kept_and_shown(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    expect_code(&apply(env, &root, "a"), 0);
    let place = Path::new(&root).join(DROP_IN);
    let ours = fs::read(&place).expect("applied");
    fs::write(&place, b"[Service]\r\nEnvironment=X=\xff\r\n").expect("the tree is ours");
    let edited = listing(&root);
    let status = env.refit(&words("status", &root, &["--exit-code"]));
    expect_printed(&status, 1, "DIFFERS");
    let refused = env.refit(&words("revert", &root, &["a"]));
    expect_code(&refused, 3);
    let shown = stderr(&refused);
    for part in [
        "+Environment=\"WORD",
        "-Environment=\"WORD",
        "+Environment=X=",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    expect_code(&apply(env, &root, "a"), 3);
    assert_eq!(listing(&root), edited, "nothing was reverted");

    fs::write(&place, &ours).expect("likewise");
    fs::set_permissions(&place, Permissions::from_mode(0o600)).expect("likewise");
    expect_code(&env.refit(&words("revert", &root, &["a"])), 3);
    // A purge, or `systemctl revert`, takes the drop-in away.
    fs::remove_dir_all(place.parent().expect("it has one")).expect("likewise");
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 1);
    let gone = env.refit(&words("revert", &root, &["a"]));
    expect_printed(&gone, 0, "was as before already");
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

fn bad_words_change_nothing(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    fs::create_dir_all(format!("{root}/usr/lib/systemd/system")).expect("the tree is ours");
    fs::write(
        format!("{root}/usr/lib/systemd/system/postfix.service"),
        "[Service]\n",
    )
    .expect("likewise");
    let before = listing(&root);
    for (rest, named) in [
        (&["nosuch", "tz=UTC"][..], "`nosuch`"),
        (&["../a", "tz=UTC"], "`../a`"),
        (&["a", "odirect=off"], "`odirect=off`"),
        (&["a", "conf.x=y"], "`conf.x=y`"),
        (&["a", "maloc=jemalloc"], "`maloc`"),
        (
            &["a", "malloc=jemalloc"],
            "install it: apt install libjemalloc2",
        ),
        (&["a", "preload=/lib/none.so"], "none.so"),
        (
            &["a", "preload=/usr/lib/systemd/system/a.service"],
            "shared library",
        ),
        (&["a"], "nothing to apply"),
        (
            &["a", "malloc=glibc"],
            "nothing to do: malloc=glibc asks for",
        ),
        (&["postfix", "tz=UTC"], "clears the environment"),
        (&["postgresql", "tz=UTC"], "list them: pg_lsclusters"),
        (&["postgresql@15-x", "tz=UTC"], "list them: pg_lsclusters"),
        (&["a@", "tz=UTC"], "there is no service `a@`"),
        (&["wrapper:", "tz=UTC"], "wrapper: cannot be wrapped"),
        (&["wrapper:/none", "tz=UTC"], "/ is not in PATH"),
    ] {
        for verb in ["plan", "apply"] {
            let output = env.refit(&words(verb, &root, rest));
            expect_code(&output, 2);
            assert!(
                stderr(&output).contains(named),
                "{rest:?}: {}",
                stderr(&output)
            );
        }
    }
    let asked = words(
        "apply",
        &root,
        &["--yes", "--health", "true", "a", "tz=UTC"],
    );
    expect_message(&env.refit(&asked), 2, "--health asks a service that runs");
    let unasked = env.refit(&words("apply", &root, &["a", "tz=UTC"]));
    expect_code(&unasked, 2);
    assert!(stderr(&unasked).contains("--yes"));
    expect_code(&env.refit(&words("revert", &root, &["a"])), 2);
    expect_code(&env.refit(&words("status", &root, &["a"])), 2);
    expect_code(&env.refit(&["status", "--root", "/nonexistent"]), 2);
    assert_eq!(listing(&root), before);
    assert!(!Path::new(&root).join("var/lib/refit").exists());
    Outcome::Pass
}

fn what_would_not_be_in_effect_is_refused_by_file_and_line(env: &TestEnv) -> Outcome {
    let later = "etc/systemd/system/a.service.d/99-local.conf";
    let earlier = "etc/systemd/system/a.service.d/10-local.conf";
    let consent = "--accept=loses-on-crash";
    for (index, (path, text, setting, place)) in [
        (
            later,
            "[Service]\nEnvironment=X=1 WORD=2\n",
            "env.WORD=1",
            "99-local.conf:2 sets WORD to `2`",
        ),
        (
            later,
            "[Service]\n\nEnvironment=\n",
            "env.WORD=1",
            "99-local.conf:3 sets Environment to ``",
        ),
        (
            later,
            "[Service]\nSystemCallFilter=\n",
            "sync=off",
            "99-local.conf:2 sets SystemCallFilter",
        ),
        (
            later,
            "[Service]\nExecStart=\nExecStart=/bin/b\n",
            "thp=never",
            "99-local.conf:2 sets ExecStart",
        ),
        (
            earlier,
            "[Service]\nUnsetEnvironment=A WORD\n",
            "env.WORD=1",
            "10-local.conf:2 sets UnsetEnvironment",
        ),
        (
            "etc/default/a",
            "# c\nWORD=3\n",
            "env.WORD=1",
            "/etc/default/a:2 sets WORD to `3`",
        ),
        (
            "etc/a.d/2.env",
            "WORD=5\n",
            "env.WORD=1",
            "/etc/a.d/2.env:1 sets WORD to `5`",
        ),
        (
            "etc/systemd/system/service.d/99-all.conf",
            "[Service]\nEnvironment=WORD=4\n",
            "env.WORD=1",
            "99-all.conf:2 sets WORD to `4`",
        ),
    ]
    .iter()
    .enumerate()
    {
        let root = tree(env, &format!("tree-{index}"));
        let write = |path: &str, text: &str| {
            let path = Path::new(&root).join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("the tree is ours");
            fs::write(path, text).expect("likewise");
        };
        write(
            UNIT,
            "[Service]\nExecStart=/bin/a\nEnvironmentFile=-/etc/default/%p\n\
             EnvironmentFile=-/etc/%p.d/*.env\n",
        );
        write(path, text);
        let before = listing(&root);
        let apply = ["--yes", "a", setting, consent, "--no-evidence"];
        expect_message(&env.refit(&words("apply", &root, &apply)), 2, place);
        assert_eq!(listing(&root), before, "{place}");
        // What other settings do is in effect.
        let other = words("apply", &root, &["--yes", "a", "env.OTHER=1"]);
        let is_reset = text.contains("Environment=\n");
        expect_code(&env.refit(&other), if is_reset { 2 } else { 0 });
    }
    // Nor is anything of a unit that is masked.
    let root = tree(env, "masked");
    let masked = format!("{root}/etc/systemd/system/a.service");
    symlink("/dev/null", masked).expect("the tree is ours");
    let apply = words("apply", &root, &["--yes", "a", "env.WORD=1"]);
    expect_message(&env.refit(&apply), 2, "a.service is masked");
    Outcome::Pass
}

fn a_copy_of_the_c_library_is_refused(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    fs::copy(
        format!("{root}/lib/one.so"),
        format!("{root}/lib/libc.so.6"),
    )
    .expect("ours");
    let before = listing(&root);
    for setting in ["malloc=/lib/libc.so.6", "preload=/lib/libc.so.6"] {
        let apply = words("apply", &root, &["--yes", "a", setting]);
        expect_message(&env.refit(&apply), 2, "/lib/libc.so.6 is the C library");
        assert_eq!(listing(&root), before);
    }
    Outcome::Pass
}

fn a_record_that_cannot_be_written_changes_nothing(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    // A file where the directory of the records has to be made.
    fs::write(format!("{root}/var/lib/refit"), "").expect("the tree is ours");
    expect_code(&apply(env, &root, "a"), 2);
    fs::remove_file(format!("{root}/var/lib/refit")).expect("likewise");
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

fn a_library_of_two_services_goes_with_the_second(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let place = Path::new(&root).join("usr/lib/refit");
    for service in ["a", "b"] {
        expect_code(&apply(env, &root, service), 0);
    }
    expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
    assert!(place.is_dir());
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
    expect_code(&env.refit(&words("revert", &root, &["b"])), 0);
    assert_eq!(listing(&root), before);

    // A directory that both need goes with the second, too.
    for (first, second) in [("a", "b"), ("b", "a")] {
        for service in ["a", "b"] {
            let trial = words("apply", &root, &["--yes", "--trial", service, "tz=UTC"]);
            expect_code(&env.refit(&trial), 0);
        }
        expect_code(&env.refit(&words("revert", &root, &[first])), 0);
        expect_code(&env.refit(&words("revert", &root, &[second])), 0);
        assert_eq!(listing(&root), before);
    }
    Outcome::Pass
}

pub const UNTIL_CONFIRMED: [&str; 5] = [
    "--yes",
    "--confirm-within=1h",
    "a",
    SETTINGS[0],
    SETTINGS[1],
];
const TIMER: &str = "run/systemd/system/refit-undo-a.timer";

fn a_trial_moves_to_etc_when_it_is_confirmed(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    expect_code(
        &env.refit(&words("apply", &root, &["--yes", "a", "tz=UTC"])),
        0,
    );
    let confirm = words("confirm", &root, &["a"]);
    assert!(stdout(&env.refit(&confirm)).contains("nothing to do"));
    expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
    for until in ["--trial", "--confirm-within=1h"] {
        let apply = words("apply", &root, &["--yes", until, "a", SETTINGS[1]]);
        expect_code(&env.refit(&apply), 0);
        assert!(stdout(&env.refit(&apply)).contains("nothing to do"));
        let at = |base: &str| fs::read(Path::new(&root).join(DROP_IN.replacen("etc", base, 1)));
        let trial = at("run").expect("a trial");
        assert!(at("etc").is_err());
        assert_eq!(Path::new(&root).join(TIMER).exists(), until != "--trial");
        expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);

        // Somebody else's edit is not confirmed.
        let place = Path::new(&root).join(DROP_IN.replacen("etc", "run", 1));
        fs::write(&place, "[Service]\n").expect("the tree is ours");
        expect_code(&env.refit(&confirm), 3);
        fs::write(&place, &trial).expect("likewise");

        expect_code(&env.refit(&confirm), 0);
        assert_eq!(at("etc").expect("it stays"), trial);
        assert!(at("run").is_err() && !Path::new(&root).join(TIMER).exists());
        let status = env.refit(&words("status", &root, &["--exit-code"]));
        expect_printed(&status, 0, "a.service: applied\n");
        assert!(stdout(&env.refit(&confirm)).contains("nothing to do"));
        let unconfirmed = words("revert", &root, &["--unconfirmed", "a"]);
        assert!(stdout(&env.refit(&unconfirmed)).contains("nothing to do"));
        assert_eq!(at("etc").expect("it stays"), trial);
        expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
        assert_eq!(listing(&root), before);
    }
    Outcome::Pass
}

fn what_was_not_confirmed_is_taken_back(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let confirm = words("confirm", &root, &["a"]);
    expect_code(&env.refit(&confirm), 2);
    for bad in [
        &["--confirm-within=3s"][..],
        &["--trial", "--confirm-within=1h"],
    ] {
        let all = [bad, &["a", "tz=UTC"]].concat();
        expect_code(&env.refit(&words("plan", &root, &all)), 2);
    }
    let apply = words("apply", &root, &UNTIL_CONFIRMED);
    expect_code(&env.refit(&apply), 0);
    expect_code(
        &env.refit(&words("revert", &root, &["--unconfirmed", "a"])),
        0,
    );
    assert_eq!(listing(&root), before);

    expect_code(&env.refit(&apply), 0);
    fs::remove_dir_all(format!("{root}/run")).expect("as a reboot does");
    let status = env.refit(&words("status", &root, &["--exit-code"]));
    expect_printed(&status, 1, "as after a reboot");
    let late = env.refit(&confirm);
    expect_message(&late, 2, "as after a reboot");
    expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

fn links_do_not_lead_out_of_the_tree(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let outside = env.subdir("outside");
    fs::remove_dir(format!("{root}/etc/systemd/system")).expect("it is empty");
    symlink(&outside, format!("{root}/etc/systemd/system")).expect("the tree is ours");
    let refused = apply(env, &root, "a");
    expect_message(&refused, 2, "symbolic link");
    assert_eq!(fs::read_dir(&outside).expect("ours").count(), 0);
    assert!(!Path::new(&root).join("usr/lib/refit").exists());
    Outcome::Pass
}
