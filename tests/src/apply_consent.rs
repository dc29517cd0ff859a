//! `refit apply` asks, and the machine changes before somebody answers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::apply::{DROP_IN, SETTINGS, listing, tree, words};
use crate::apply_redis::{self, CONFIG, OWN};
use crate::runner::{Outcome, Test};
use crate::terminal::Terminal;
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[
    test!(what_was_shown_is_applied),
    test!(a_check_changes_nothing),
    test!(what_is_not_as_shown_is_refused),
    test!(what_another_one_applied_is_not_applied_again),
    test!(a_library_that_drops_syncs_has_to_be_accepted),
];

/// What is applied, what changes meanwhile, and what is shown of that.
type Case<'a> = (&'a [&'a str], &'a dyn Fn(), &'a [&'a str]);

/// Applies with consent, which comes after `meanwhile`; the exit code, and all that was shown.
fn ask(
    env: &TestEnv,
    root: &str,
    rest: &[&str],
    meanwhile: impl FnOnce(),
) -> (Option<i32>, String) {
    let mut terminal = Terminal::start(env.refit_command(&words("apply", root, rest)));
    terminal.wait_for("apply this? [y/N]");
    meanwhile();
    terminal.type_in("y\n");
    let (status, shown) = terminal.finish();
    (status.code(), shown)
}

fn what_was_shown_is_applied(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    // The change of another service makes a directory and a library that both need: no difference.
    let other = words("apply", &root, &["--yes", "b", SETTINGS[0]]);
    let rest = ["--confirm-within=1h", "a", SETTINGS[0]];
    let (code, shown) = ask(env, &root, &rest, || expect_code(&env.refit(&other), 0));
    assert_eq!(code, Some(0), "{shown}");
    for service in ["a", "b"] {
        let status = words("status", &root, &["--exit-code", service]);
        expect_code(&env.refit(&status), 0);
    }
    // A table that grows is in use, and the same change.
    env.require_command("sqlite3");
    let file = format!("{root}/shop.db");
    let sql = |text: &str| {
        expect_code(
            &env.command("sqlite3")
                .args([&file, text])
                .output()
                .expect("it starts"),
            0,
        )
    };
    sql("CREATE TABLE orders (customer INT)");
    let rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) \
                INSERT INTO orders SELECT i FROM n";
    let index = ["sqlite:/shop.db/orders", "conf.index.by_customer=customer"];
    let (code, shown) = ask(env, &root, &index, || sql(rows));
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("the table is in 8 KiB"), "{shown}");
    Outcome::Pass
}

/// As Ansible asks: nobody is there to answer, and nothing changes.
fn a_check_changes_nothing(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let before = listing(&root);
    let run = |more: &[&str]| env.refit(&words("apply", &root, more));
    let edit = "+Environment=\"WORD=one\"";
    let check = run(&["--check", "a", "env.WORD=one"]);
    expect_printed(&check, 0, "a.service: would be changed\n");
    assert!(!described(&check).contains(edit), "{}", described(&check));
    let check = run(&["--yes", "--check", "--diff", "a", "env.WORD=one"]);
    for text in [edit, "a.service: would be changed\n"] {
        expect_printed(&check, 0, text);
    }
    let unknown = run(&["--check", "a", "conf.x=1"]);
    expect_message(&unknown, 2, "cannot be applied");
    assert_eq!(listing(&root), before);
    let record = Path::new(&root).join("var/lib/refit/changes/a.service.json");
    assert!(!record.exists(), "a record");
    let applied = run(&["--yes", "--diff", "a", "env.WORD=one"]);
    for text in [edit, "a.service: applied in the tree"] {
        expect_printed(&applied, 0, text);
    }
    assert!(record.exists());
    let after = listing(&root);
    let again = run(&["--check", "--diff", "a", "env.WORD=one"]);
    expect_code(&again, 0);
    assert_eq!(again.stdout, b"a.service: nothing to do\n");
    let other = run(&["--check", "a", "env.WORD=two"]);
    expect_printed(&other, 0, "a.service: would be changed\n");
    let drop_in = Path::new(&root).join("etc/systemd/system/a.service.d/90-refit.conf");
    fs::write(&drop_in, "[Service]\n").expect("the tree is ours");
    let drift = listing(&root);
    expect_code(&run(&["--check", "a", "env.WORD=one"]), 3);
    assert!(listing(&root) == drift && drift != after);
    Outcome::Pass
}

fn what_is_not_as_shown_is_refused(env: &TestEnv) -> Outcome {
    let root = apply_redis::tree(env, "tree");
    let at = |path: &str| Path::new(&root).join(path);
    let own = |text: &str| {
        let dir = at("etc/systemd/system/a.service.d");
        fs::create_dir_all(&dir).expect("the tree is ours");
        fs::write(dir.join("10-own.conf"), text).expect("likewise");
    };
    let redis = ["redis-server@one", "conf.maxmemory=1gb"];
    let preload = ["a", SETTINGS[0]];
    let timed = ["--confirm-within=1h", "a", SETTINGS[0]];
    let preloads = || own("[Service]\nEnvironment=LD_PRELOAD=/theirs.so\n");
    let cases: [Case; 5] = [
        (
            &preload,
            &preloads,
            &[
                "-+Environment=\"LD_PRELOAD=/usr/lib/refit/",
                "/one.so:/theirs.so\"",
            ],
        ),
        (
            &timed,
            &|| own("[Service]\nEnvironment=LD_PRELOAD=/others.so\n"),
            &["/one.so:/others.so\""],
        ),
        (
            &preload,
            &|| {
                let mut library = fs::read(at("lib/one.so")).expect("there");
                library.push(8);
                fs::write(at("lib/one.so"), library).expect("likewise");
            },
            &[
                "-  copy           /lib/one.so to /usr/lib/refit/",
                "+                 sha256 ",
            ],
        ),
        (
            &redis,
            &|| fs::write(at(CONFIG), "port 6379\ntimeout 5\nmaxmemory 2gb").expect("likewise"),
            &["\n+timeout 5\n", "+++ /etc/redis/redis-one.conf (mode 0640"],
        ),
        (
            &redis,
            &|| {
                fs::set_permissions(at(CONFIG), fs::Permissions::from_mode(0o600))
                    .expect("likewise")
            },
            &["(mode 0640", "(mode 0600"],
        ),
    ];
    for (rest, change, named) in cases {
        let mut changed = Default::default();
        let (code, shown) = ask(env, &root, rest, || {
            change();
            changed = listing(&root);
        });
        assert_eq!(code, Some(2), "{shown}");
        let (_, after) = shown.split_once("[y/N]").expect("it asked");
        for text in named {
            assert!(after.contains(text), "{text}: {after}");
        }
        assert!(after.contains("apply again"), "{after}");
        assert_eq!(listing(&root), changed, "{rest:?}");
        assert!(!at(DROP_IN).exists() && !at(OWN).exists());
    }
    // Shown again, it is applied.
    for rest in [&preload[..], &redis] {
        let (code, shown) = ask(env, &root, rest, || ());
        assert_eq!(code, Some(0), "{shown}");
    }
    Outcome::Pass
}

fn what_another_one_applied_is_not_applied_again(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let same = words("apply", &root, &["--yes", "a", SETTINGS[0]]);
    let (code, shown) = ask(env, &root, &["a", SETTINGS[0]], || {
        expect_code(&env.refit(&same), 0)
    });
    assert!(
        code == Some(0) && shown.contains("nothing to do"),
        "{shown}"
    );
    Outcome::Pass
}

/// Nothing in the word tells it.
fn a_library_that_drops_syncs_has_to_be_accepted(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    fs::copy(env.program("no_fsync"), format!("{root}/lib/no_fsync.so")).expect("the tree is ours");
    let before = listing(&root);
    for setting in ["preload=/lib/no_fsync.so", "malloc=/lib/no_fsync.so"] {
        let ask = |accept: &[&str]| {
            let more = [&["--yes"], accept, &["a", setting]].concat();
            env.refit(&words("apply", &root, &more))
        };
        let refused = ask(&[]);
        expect_message(&refused, 2, "loses-on-crash");
        expect_message(
            &ask(&["--accept=loses-on-crash"]),
            2,
            "no --from RESULT was named",
        );
        assert_eq!(listing(&root), before);
        let plan = env.refit(&words("plan", &root, &["a", setting]));
        expect_printed(&plan, 2, "/lib/no_fsync.so defines fsync");
        expect_code(&ask(&["--accept=loses-on-crash", "--no-evidence"]), 0);
        expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
        assert_eq!(listing(&root), before);
    }
    let setting = format!("preload={}", env.program("no_fsync"));
    let run = env.refit(&["run", &setting, "--", "true"]);
    expect_message(&run, 0, "(loses-on-crash)");
    let explained = env.refit(&["run", "--explain", &setting]);
    expect_printed(&explained, 0, "loses-on-crash");
    // The path of a test's directory decides where a line ends.
    let text = String::from_utf8_lossy(&explained.stdout);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("no_fsync defines fsync"), "{text}");
    Outcome::Pass
}
