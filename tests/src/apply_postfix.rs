//! `refit apply` on the Postfix of a tree (`--root`): main.cf and master.cf, byte for byte.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::apply::{SETTINGS, listing, words};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[
    test!(all_daemons_are_changed_and_taken_back),
    test!(the_unit_is_the_one_that_starts_it),
    test!(one_daemon_is_changed_and_taken_back),
    test!(one_daemon_is_started_without_syncs),
    test!(what_is_not_confirmed_goes_at_the_next_start),
    test!(what_cannot_be_applied_changes_nothing),
];

pub const MAIN: &str = "etc/postfix/main.cf";
pub const MASTER: &str = "etc/postfix/master.cf";
pub const ALL: [&str; 5] = [
    "--yes",
    "postfix",
    SETTINGS[0],
    "env.WORD=a, $b",
    "conf.maximal_queue_lifetime=1h",
];
pub const ONE: [&str; 4] = ["--yes", "postfix/cleanup", SETTINGS[0], "env.WORD=it's $b"];

const MASTER_CF: &str = "# service type  private unpriv  chroot  wakeup  maxproc command + args\n\
    smtp      inet  n       -       y       -       -       smtpd\n\
    \x20 -o content_filter=cleanup\n\
    cleanup   unix  n       -       y       -       0       cleanup\n\
    second    unix  n - y\t- 0\n  cleanup -v\n\
    relay     unix  -       -       y       -       -       smtp";

/// A tree with a Postfix; its path.
pub fn tree(env: &TestEnv, name: &str) -> String {
    let root = crate::apply::tree(env, name);
    let at = |path: &str| Path::new(&root).join(path);
    fs::create_dir_all(at("etc/postfix")).expect("the tree is ours");
    let main_cf = "# of the administrator\nmaximal_queue_lifetime =\n  5d\n# why\nrelayhost =\n\
                   import_environment = TZ LD_PRELOAD=/first.so";
    for (path, text) in [
        ("usr/lib/systemd/system/postfix.service", "[Service]\n"),
        ("usr/lib/systemd/system/postfix@.service", "[Service]\n"),
        (MAIN, main_cf),
        (MASTER, MASTER_CF),
    ] {
        fs::write(at(path), text).expect("likewise");
    }
    fs::set_permissions(at(MAIN), Permissions::from_mode(0o640)).expect("likewise");
    root
}

/// A copy of the library that a script or file names, without the directory of its content.
fn hash(text: &str) -> &str {
    let (_, rest) = text.split_once("/usr/lib/refit/").expect("it names one");
    rest.split_once('/').expect("a directory").0
}

/// The script that master.cf names, and the library or launcher that this names, are there: else mail is held.
pub fn script_is_there(root: &str) {
    let text = fs::read_to_string(Path::new(root).join(MASTER)).expect("there");
    let Some((_, rest)) = text.split_once("../../refit/") else {
        return;
    };
    let script = rest.split_ascii_whitespace().next().expect("a path");
    let script = Path::new(root).join("usr/lib/refit").join(script);
    let script = fs::read_to_string(script).expect("the script that master.cf names");
    let words = script.split('\'');
    let placed: Vec<&str> = words
        .filter(|word| word.starts_with("/usr/lib/refit/"))
        .collect();
    assert!(!placed.is_empty(), "{script}");
    for path in placed {
        assert!(Path::new(&format!("{root}{path}")).is_file(), "{path}");
    }
}

/// postfix.service starts nothing on Debian 12, and Postfix on Debian 13, whose template is for other instances.
fn the_unit_is_the_one_that_starts_it(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let unit = Path::new(&root).join("usr/lib/systemd/system/postfix.service");
    for (starts, named) in [
        ("/bin/true", "postfix@-.service: applied in the tree"),
        (
            "postfix debian-systemd-start",
            "postfix.service: applied in the tree",
        ),
        (
            "/usr/sbin/postfix start",
            "postfix.service: applied in the tree",
        ),
    ] {
        let text = format!("[Service]\nType=forking\nExecStart={starts}\n");
        fs::write(&unit, text).expect("the tree is ours");
        for word in ["postfix", "postfix@-"] {
            let apply = words("apply", &root, &["--yes", word, "env.A=1"]);
            expect_printed(&env.refit(&apply), 0, named);
            expect_code(&env.refit(&words("revert", &root, &[word])), 0);
        }
    }
    Outcome::Pass
}

fn all_daemons_are_changed_and_taken_back(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let apply = words("apply", &root, &ALL);
    expect_printed(
        &env.refit(&apply),
        0,
        "postfix@-.service: applied in the tree",
    );
    expect_printed(&env.refit(&apply), 0, "nothing to do");
    let path = Path::new(&root).join(MAIN);
    let text = fs::read_to_string(&path).expect("there");
    let hash = hash(&text);
    let head = format!(
        "# {} env.WORD=a, $b conf.maximal_queue_lifetime=1h: written by refit; `refit revert \
         postfix@-.service` takes it out.\n",
        SETTINGS[0]
    );
    let meant = format!(
        "# of the administrator\n{head}maximal_queue_lifetime = 1h\n# why\nrelayhost =\n\
         {head}import_environment = TZ LD_PRELOAD=/first.so \
         LD_PRELOAD=/usr/lib/refit/{hash}/one.so:/first.so {{ WORD=a, $$b }}"
    );
    assert_eq!(text, meant);
    assert_eq!(listing(&root)[MAIN].0 & 0o777, 0o640);
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);

    // As postconf -e would, of a line of refit.
    fs::write(&path, text.replace("lifetime = 1h\n", "lifetime = 2h\n")).expect("ours");
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 1);
    expect_code(&env.refit(&apply), 3);
    let revert = words("revert", &root, &["postfix"]);
    expect_code(&env.refit(&revert), 3);
    fs::write(&path, &text).expect("ours");
    expect_code(&env.refit(&revert), 0);
    assert_eq!(listing(&root), before);

    // Where main.cf assigns nothing of it.
    fs::write(&path, "a = 1").expect("ours");
    let before = listing(&root);
    expect_code(&env.refit(&words("apply", &root, &ALL)), 0);
    let text = fs::read_to_string(&path).expect("there");
    let meant = format!(
        "a = 1\n{head}maximal_queue_lifetime = 1h\nimport_environment = MAIL_CONFIG MAIL_DEBUG \
         MAIL_LOGTAG TZ XAUTHORITY DISPLAY LANG=C POSTLOG_SERVICE POSTLOG_HOSTNAME \
         LD_PRELOAD=/usr/lib/refit/{hash}/one.so {{ WORD=a, $$b }}\n"
    );
    assert_eq!(text, meant);
    expect_code(&env.refit(&revert), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

fn one_daemon_is_changed_and_taken_back(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let apply = words("apply", &root, &ONE);
    expect_printed(
        &env.refit(&apply),
        0,
        "postfix/cleanup: applied in the tree",
    );
    expect_printed(&env.refit(&apply), 0, "nothing to do");
    let at = |path: &str| Path::new(&root).join(path);
    let text = fs::read_to_string(at(MASTER)).expect("there");
    let (_, rest) = text.split_once("../../refit/").expect("a script");
    let hash_of_script = rest.split_once('/').expect("a directory").0;
    let command = format!("../../refit/{hash_of_script}/cleanup");
    let meant = MASTER_CF
        .replace("0       cleanup\n", &format!("0       {command}\n"))
        .replace("  cleanup -v\n", &format!("  {command} -v\n"));
    assert_eq!(text, meant);
    let script = format!("usr/lib/refit/{hash_of_script}/cleanup");
    let text = fs::read_to_string(at(&script)).expect("there");
    let hash = hash(&text);
    let meant = format!(
        "*) LD_PRELOAD='/usr/lib/refit/{hash}/one.so'${{LD_PRELOAD:+:$LD_PRELOAD}} ;;\nesac\nexport \
         LD_PRELOAD\nWORD='it'\\''s $b'\nexport WORD\nexec '/usr/lib/postfix/sbin/cleanup' \"$@\"\n"
    );
    assert!(
        text.starts_with("#!/bin/sh\n# ") && text.ends_with(&meant),
        "{text}"
    );
    assert_eq!(listing(&root)[&script].0 & 0o777, 0o755);
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
    // All daemons at once are another file.
    expect_code(&env.refit(&words("apply", &root, &ALL)), 0);
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
    expect_code(&env.refit(&words("revert", &root, &["postfix"])), 0);

    // Without its script mail is held: that is seen, and what is left is taken back.
    fs::rename(at(&script), at("kept")).expect("ours");
    let status = env.refit(&words("status", &root, &["--exit-code", "postfix/cleanup"]));
    expect_printed(&status, 1, "cleanup: expected as applied, found not there");
    fs::rename(at("kept"), at(&script)).expect("ours");
    fs::write(at(&script), "#!/bin/sh\n").expect("ours");
    let status = env.refit(&words("status", &root, &["--exit-code", "postfix/cleanup"]));
    expect_printed(&status, 1, "other content");
    let revert = words("revert", &root, &["postfix/cleanup"]);
    expect_code(&env.refit(&revert), 3);
    fs::remove_file(at(&script)).expect("ours");
    expect_code(&env.refit(&revert), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

/// `sync=off` of a daemon, with words that accept its risk.
pub const WITHOUT_SYNCS: [&str; 5] = [
    "--yes",
    "postfix/cleanup",
    "sync=off",
    "--accept=loses-on-crash",
    "--no-evidence",
];

/// The script starts the launcher, and that the daemon; named as it is measured, it is the same change.
fn one_daemon_is_started_without_syncs(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let at = |path: &str| Path::new(&root).join(path);
    for named in [
        &["postfix", "sync@exe:cleanup=off"][..],
        &["postfix/cleanup", "sync@exe:cleanup=off"],
        &["postfix/cleanup", "sync=off"],
    ] {
        let refused = words("apply", &root, &[&["--yes"], named].concat());
        expect_message(&env.refit(&refused), 2, "`sync=off` is loses-on-crash");
        let planned = env.refit(&words("plan", &root, named));
        for text in [
            "postfix/cleanup (Postfix daemon)\n",
            "sync=off (loses-on-crash)",
            "/launcher, a program of refit's",
            "not covered: msync, files opened with O_SYNC",
            "local(8), pipe(8)",
        ] {
            expect_printed(&planned, 2, text);
        }
        assert_eq!(listing(&root), before, "{named:?}");
    }
    let apply = words("apply", &root, &WITHOUT_SYNCS);
    expect_printed(
        &env.refit(&apply),
        0,
        "postfix/cleanup: applied in the tree",
    );
    let as_measured = [&["--yes", "postfix", "sync@exe:cleanup=off"], &apply[6..]].concat();
    for again in [apply.clone(), words("apply", &root, &as_measured)] {
        expect_printed(&env.refit(&again), 0, "postfix/cleanup: nothing to do");
    }
    let status = env.refit(&words("status", &root, &["--exit-code"]));
    expect_printed(
        &status,
        0,
        "accepted       loses-on-crash, without evidence",
    );
    let text = fs::read_to_string(at(MASTER)).expect("there");
    let (_, rest) = text.split_once("../../refit/").expect("a script");
    let script = rest.split_ascii_whitespace().next().expect("a path");
    let text = fs::read_to_string(at("usr/lib/refit").join(script)).expect("there");
    let launcher = format!("usr/lib/refit/{}/launcher", hash(&text));
    let meant = format!(
        "\nREFIT_APPLIED='sync=off'\nexport REFIT_APPLIED\nexec '/{launcher}' 'sync=off' \
         '/usr/lib/postfix/sbin/cleanup' \"$@\"\n"
    );
    assert!(text.ends_with(&meant), "{text}");
    assert_eq!(listing(&root)[&launcher].0 & 0o777, 0o755);

    // Without the launcher the script starts nothing: that is seen.
    fs::rename(at(&launcher), at("kept")).expect("ours");
    let status = env.refit(&words("status", &root, &["--exit-code"]));
    expect_printed(&status, 1, "launcher: expected as applied, found not there");
    fs::rename(at("kept"), at(&launcher)).expect("ours");
    expect_code(&env.refit(&words("revert", &root, &["postfix/cleanup"])), 0);
    assert_eq!(listing(&root), before);

    // With variables and a library, in one script.
    let all = [&WITHOUT_SYNCS[..], &[SETTINGS[0], "env.WORD=a"]].concat();
    expect_code(&env.refit(&words("apply", &root, &all)), 0);
    script_is_there(&root);
    expect_code(&env.refit(&words("revert", &root, &["postfix/cleanup"])), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

/// The units that take it back have a name without a slash.
fn what_is_not_confirmed_goes_at_the_next_start(env: &TestEnv) -> Outcome {
    const UNITS: &str = r"refit-undo-postfix\x2fcleanup";
    let root = tree(env, "tree");
    let before = listing(&root);
    let there = |path: &str| Path::new(&root).join(path).is_file();
    let apply = |until| words("apply", &root, &[&[until], &ONE[..]].concat());
    let at_boot = format!("etc/systemd/system/{UNITS}-at-boot.service");
    let revert = ["--unconfirmed", "--at-boot", "postfix/cleanup"];
    let revert = words("revert", &root, &revert);
    for until in ["--confirm-within=1h", "--trial"] {
        expect_code(&env.refit(&apply(until)), 0);
        let timer = there(&format!("run/systemd/system/{UNITS}.timer"));
        assert_eq!(timer, until != "--trial");
        assert!(there(&at_boot));
        expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
        if timer {
            fs::remove_dir_all(format!("{root}/run")).expect("the tree is ours");
        }
        expect_code(&env.refit(&revert), 0);
        assert_eq!(listing(&root), before, "{until}");
    }

    expect_code(&env.refit(&apply("--trial")), 0);
    expect_code(
        &env.refit(&words("confirm", &root, &["postfix/cleanup"])),
        0,
    );
    assert!(!there(&at_boot) && listing(&root)[MASTER] != before[MASTER]);
    script_is_there(&root);
    expect_printed(&env.refit(&revert), 0, "nothing to do");
    // An administrator's line stays, but not one that names refit's script.
    let master = fs::read_to_string(Path::new(&root).join(MASTER)).expect("there");
    let (_, script) = master.split_once("../../refit/").expect("a script");
    let script = script.split_ascii_whitespace().next().expect("a path");
    for (line, code) in [
        (format!("more unix - - - - - ../../refit/{script}"), 3),
        ("more unix - - - - - smtp".to_owned(), 0),
    ] {
        let edited = format!("{master}\n{line}\n");
        fs::write(Path::new(&root).join(MASTER), edited).expect("ours");
        expect_code(
            &env.refit(&words("revert", &root, &["postfix/cleanup"])),
            code,
        );
    }
    let left = fs::read_to_string(Path::new(&root).join(MASTER)).expect("there");
    assert_eq!(left, format!("{MASTER_CF}\nmore unix - - - - - smtp\n"));
    Outcome::Pass
}

fn what_cannot_be_applied_changes_nothing(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    for (rest, named) in [
        (
            &["postfix", "conf.queue_directory=/x"][..],
            "finds its files by it",
        ),
        (
            &["postfix", "conf.myhostname=x"],
            "other machines find this one",
        ),
        (&["postfix", "conf.import_environment=TZ"], "env.NAME=VALUE"),
        (&["postfix", "conf.relayhost=a\nb"], "not one line"),
        (&["postfix", "env.WORD=a}"], "not one line"),
        (
            &["postfix", "sync=off"],
            "refit plan postfix/DAEMON sync=off",
        ),
        (
            &["postfix", "sync@exe:pickup=off"],
            "no line of it runs `pickup`",
        ),
        (&["postfix", "sync@/var/=off"], "a change of one daemon"),
        (
            &["postfix/cleanup", "sync@exe:smtpd=off"],
            "what can: sync=off, malloc=",
        ),
        (
            &["postfix/cleanup", "sync=on"],
            "what can: sync=off, malloc=",
        ),
        (
            &["postfix/cleanup", "thp=never"],
            "what can: sync=off, malloc=",
        ),
        (
            &["postfix/cleanup", "conf.relayhost=a"],
            "cannot be applied to postfix/cleanup",
        ),
        (&["postfix/pickup", "tz=UTC"], "no line of it runs `pickup`"),
        (&["postfix/", "tz=UTC"], "no line of it runs ``"),
        (&["postfix@other", "tz=UTC"], "default instance only"),
    ] {
        let all = [&["--yes"], rest].concat();
        expect_message(&env.refit(&words("apply", &root, &all)), 2, named);
        assert_eq!(listing(&root), before, "{rest:?}");
    }
    fs::remove_file(Path::new(&root).join(MASTER)).expect("ours");
    let words = words("apply", &root, &["--yes", "postfix/cleanup", "tz=UTC"]);
    expect_message(&env.refit(&words), 2, "no main.cf and master.cf");
    Outcome::Pass
}
