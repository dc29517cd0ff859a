//! `refit apply` and `revert` on configurations as nobody would write them: byte for byte, or refused.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use crate::apply::{DROP_IN, SETTINGS, listing, words};
use crate::apply_postgresql::{self, ENVIRONMENT};
use crate::apply_redis::{self, CONFIG};
use crate::runner::{Outcome, Test};
use crate::sys::{set_xattr, xattr};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message};
use crate::{apply_postfix, apply_rsyslog};

pub const TESTS: &[Test] = &[
    test!(any_bytes_are_restored),
    test!(ten_megabytes_are_restored).limit_seconds(180).once(),
    test!(a_line_among_odd_ones_is_edited_or_refused)
        .limit_seconds(180)
        .once(),
    test!(what_is_no_plain_file_is_refused),
    test!(a_name_that_was_added_keeps_its_file),
    test!(attributes_are_restored_and_none_is_added),
    test!(flags_are_restored),
    test!(immutable_files_are_named),
];

const SERVICE: &str = "redis-server@one";
const ACCESS: &str = "system.posix_acl_access";
const DEFAULT: &str = "system.posix_acl_default";

/// acl(5) as the kernel holds it: owner rw, user 65534 r, group r, mask r, others none.
const ACL: [u8; 44] = [
    2, 0, 0, 0, // version
    1, 0, 6, 0, 255, 255, 255, 255, // owner
    2, 0, 4, 0, 254, 255, 0, 0, // user 65534
    4, 0, 4, 0, 255, 255, 255, 255, // group
    16, 0, 4, 0, 255, 255, 255, 255, // mask
    32, 0, 0, 0, 255, 255, 255, 255, // others
];

/// Applied, seen to hold, and taken back, with these bytes in the file.
fn there_and_back(env: &TestEnv, file: &str, apply: &[&str], service: &str, root: &str) {
    let path = Path::new(root).join(file);
    let bytes = fs::read(&path).expect("there");
    let before = listing(root);
    let apply = words("apply", root, apply);
    expect_code(&env.refit(&apply), 0);
    let now = fs::read(&path).expect("there");
    assert!(
        now.starts_with(&bytes) && now != bytes,
        "{file} begins as it was"
    );
    expect_code(&env.refit(&words("status", root, &["--exit-code"])), 0);
    expect_code(&env.refit(&apply), 0);
    expect_code(&env.refit(&words("revert", root, &[service])), 0);
    assert!(
        fs::read(&path).expect("there") == bytes,
        "{file} is as it was"
    );
    assert_eq!(listing(root), before);
}

fn any_bytes_are_restored(env: &TestEnv) -> Outcome {
    let all: Vec<u8> = (0..=255).collect();
    let contents: [&[u8]; 9] = [
        b"",
        b"\n",
        b"\n\n\n",
        b"port 1\r\nmaxmemory 2gb\r\n",
        b"port 1\r\nmaxmemory 2gb\r",
        b"# \xff\xfe\xc3\x28\nport 1\n",
        b"\0\0\0",
        b"\xef\xbb\xbfport 1",
        &all,
    ];
    for (n, content) in contents.iter().enumerate() {
        let root = apply_redis::tree(env, &format!("redis{n}"));
        fs::write(Path::new(&root).join(CONFIG), content).expect("the tree is ours");
        there_and_back(env, CONFIG, &apply_redis::APPLY, SERVICE, &root);
        let root = apply_postgresql::tree(env, &format!("cluster{n}"));
        fs::write(Path::new(&root).join(ENVIRONMENT), content).expect("the tree is ours");
        let service = "postgresql@15-main";
        there_and_back(env, ENVIRONMENT, &apply_postgresql::APPLY, service, &root);
    }
    Outcome::Pass
}

fn ten_megabytes_are_restored(env: &TestEnv) -> Outcome {
    let lines: String = (0..450_000)
        .map(|n| format!("# a line, number {n}\n"))
        .collect();
    assert!(lines.len() > 10_000_000);
    for (name, first) in [("text", &b""[..]), ("bytes", b"# \xff\n")] {
        let root = apply_redis::tree(env, name);
        let path = Path::new(&root).join(CONFIG);
        fs::write(&path, [first, lines.as_bytes()].concat()).expect("the tree is ours");
        there_and_back(env, CONFIG, &apply_redis::APPLY, SERVICE, &root);
        if name != "text" {
            continue;
        }
        // Edits at both ends, as far from each other as they can be.
        expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
        let now = fs::read(&path).expect("there");
        fs::write(&path, [b"# first\n", &now[..], b"# last\n"].concat()).expect("likewise");
        expect_code(&env.refit(&words("revert", &root, &[SERVICE])), 0);
        let meant = [b"# first\n", first, lines.as_bytes(), b"# last\n"].concat();
        assert!(
            fs::read(&path).expect("there") == meant,
            "{name}: both edits are kept"
        );
    }
    Outcome::Pass
}

/// Files of which refit edits a line, with odd ones after it: restored, or refused as a whole.
fn a_line_among_odd_ones_is_edited_or_refused(env: &TestEnv) -> Outcome {
    let many = "# a line of many\n".repeat(700_000);
    let tails: [(&str, &[u8]); 5] = [
        ("crlf", b"\r\n# second\r\n"),
        ("no newline", b"\n# the last"),
        ("not UTF-8", b"\n# \xff\xfe\xc3\x28\n"),
        ("NUL", b"\n# \0\0\n"),
        ("10 MB", many.as_bytes()),
    ];
    let mut counted = BTreeMap::new();
    for (name, tail) in tails {
        for (tree, file, apply, service) in [
            (
                apply_postfix::tree as fn(&TestEnv, &str) -> String,
                apply_postfix::MAIN,
                &apply_postfix::ALL[..],
                "postfix",
            ),
            (
                apply_postfix::tree,
                apply_postfix::MASTER,
                &apply_postfix::ONE,
                "postfix/cleanup",
            ),
            (
                apply_rsyslog::tree,
                apply_rsyslog::CONFIG,
                &apply_rsyslog::APPLY,
                "rsyslog",
            ),
        ] {
            let root = tree(env, "tree");
            let path = Path::new(&root).join(file);
            let bytes = [&fs::read(&path).expect("there"), tail].concat();
            fs::write(&path, &bytes).expect("the tree is ours");
            let before = listing(&root);
            let apply = words("apply", &root, apply);
            let applied = env.refit(&apply);
            if applied.status.code() == Some(2) {
                expect_message(
                    &applied,
                    2,
                    path.file_name()
                        .and_then(|name| name.to_str())
                        .expect("text"),
                );
                assert_eq!(listing(&root), before, "{name} of {file}");
                *counted.entry((name, "refused")).or_insert(0) += 1;
            } else {
                expect_code(&applied, 0);
                let now = fs::read(&path).expect("there");
                assert!(now != bytes, "{name} of {file}");
                expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
                expect_code(&env.refit(&apply), 0);
                assert!(
                    fs::read(&path).expect("there") == now,
                    "{name} of {file}: applied twice"
                );
                expect_code(&env.refit(&words("revert", &root, &[service])), 0);
                assert!(fs::read(&path).expect("there") == bytes, "{name} of {file}");
                assert_eq!(listing(&root), before, "{name} of {file}");
                *counted.entry((name, "restored")).or_insert(0) += 1;
            }
            fs::remove_dir_all(&root).expect("the tree is ours");
        }
    }
    println!("counted: {counted:?}");
    Outcome::Pass
}

fn what_is_no_plain_file_is_refused(env: &TestEnv) -> Outcome {
    let outside = env.file("outside.conf", "port 1\n");
    let make = |path: &Path, kind: &str| match kind {
        "a link in the tree" => symlink("other.conf", path).expect("the tree is ours"),
        "a link out of it" => symlink(&outside, path).expect("likewise"),
        "a link to nothing" => symlink("nothing.conf", path).expect("likewise"),
        "a directory" => fs::create_dir(path).expect("likewise"),
        "a pipe" => expect_code(&env.run(&["mkfifo", path.to_str().expect("text")]), 0),
        _ => fs::hard_link(path.with_file_name("other.conf"), path).expect("likewise"),
    };
    for (kind, named) in [
        ("a link in the tree", "is not a regular file"),
        ("a link out of it", "is not a regular file"),
        ("a link to nothing", "is not a regular file"),
        ("a directory", "is not a regular file"),
        ("a pipe", "is not a regular file"),
        ("a second name", "hard links"),
    ] {
        for (tree, file, apply) in [
            (
                apply_redis::tree as fn(&TestEnv, &str) -> String,
                CONFIG,
                &apply_redis::APPLY[..],
            ),
            (
                apply_postgresql::tree,
                ENVIRONMENT,
                &apply_postgresql::APPLY,
            ),
            (
                apply_postfix::tree,
                apply_postfix::MAIN,
                &apply_postfix::ALL,
            ),
            (
                apply_postfix::tree,
                apply_postfix::MASTER,
                &apply_postfix::ONE,
            ),
        ] {
            let root = tree(env, "tree");
            let path = Path::new(&root).join(file);
            fs::rename(&path, path.with_file_name("other.conf")).expect("the tree is ours");
            make(&path, kind);
            let before = of_names(&root);
            for verb in ["plan", "apply"] {
                let words = words(verb, &root, &apply[usize::from(verb == "plan")..]);
                let refused = env.refit(&words);
                let text = String::from_utf8_lossy(&refused.stderr).into_owned();
                // A directory cannot be read as a file either.
                let is_named = text.contains(named)
                    || kind == "a directory" && text.contains("Is a directory");
                assert!(
                    refused.status.code() == Some(2) && is_named,
                    "{kind}: {text}"
                );
                let name = path
                    .file_name()
                    .expect("it has one")
                    .to_string_lossy()
                    .into_owned();
                assert!(text.contains(&name), "{kind}: {text}");
            }
            assert_eq!(of_names(&root), before, "{kind}");
            assert_eq!(fs::read_to_string(&outside).expect("ours"), "port 1\n");
            fs::remove_dir_all(&root).expect("the tree is ours");
        }
    }
    Outcome::Pass
}

/// Names, kinds and inodes: pipes cannot be read.
fn of_names(root: &str) -> Vec<(String, u32, u64)> {
    let mut found = Vec::new();
    let mut left = vec![Path::new(root).to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).expect("the tree is ours") {
            let path = entry.expect("readable").path();
            let meta = fs::symlink_metadata(&path).expect("it is there");
            if path.ends_with("var/lib/refit") {
                continue;
            }
            if meta.is_dir() {
                left.push(path.clone());
            }
            found.push((path.display().to_string(), meta.mode(), meta.ino()));
        }
    }
    found.sort();
    found
}

fn a_name_that_was_added_keeps_its_file(env: &TestEnv) -> Outcome {
    let root = apply_redis::tree(env, "tree");
    let before = listing(&root);
    expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
    let at = |path: &str| Path::new(&root).join(path);
    let (copy, drop_in) = (env.path("copy.conf"), env.path("copy.drop-in"));
    let unit = DROP_IN.replace("a.service", &format!("{SERVICE}.service"));
    fs::hard_link(at(CONFIG), &copy).expect("one file system");
    fs::hard_link(at(&unit), &drop_in).expect("likewise");
    let applied = [&copy, &drop_in].map(|path| fs::read(path).expect("ours"));
    expect_code(&env.refit(&words("revert", &root, &[SERVICE])), 0);
    assert_eq!(listing(&root), before);
    assert_eq!(
        [&copy, &drop_in].map(|path| fs::read(path).expect("ours")),
        applied
    );
    Outcome::Pass
}

fn attributes_are_restored_and_none_is_added(env: &TestEnv) -> Outcome {
    let root = apply_redis::tree(env, "tree");
    let path = Path::new(&root).join(CONFIG);
    if set_xattr(&path, "user.note", b"one\0two").is_err()
        || set_xattr(&path, ACCESS, &ACL).is_err()
    {
        env.skip("this file system has no extended attributes or ACLs");
    }
    if env.as_root() {
        std::os::unix::fs::chown(&path, Some(1234), Some(4321)).expect("as root");
        set_xattr(&path, "trusted.note", b"three").expect("as root");
    }
    fs::set_permissions(&path, Permissions::from_mode(0o2640)).expect("the tree is ours");
    let all = |path: &Path| ["user.note", "trusted.note", ACCESS].map(|name| xattr(path, name));
    let of_file = all(&path);
    let before = listing(&root);
    for dir in ["etc/redis", "etc/systemd/system"] {
        set_xattr(&Path::new(&root).join(dir), DEFAULT, &ACL).expect("it has ACLs");
    }
    expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
    assert_eq!(all(&path), of_file);
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
    expect_code(&env.refit(&words("revert", &root, &[SERVICE])), 0);
    assert_eq!(all(&path), of_file);
    assert_eq!(listing(&root), before);

    // A file without an ACL gets none of its directory's.
    fs::remove_file(&path).expect("ours");
    let plain = env.file("plain", "port 1\n");
    fs::rename(plain, &path).expect("one file system");
    assert_eq!(xattr(&path, ACCESS), None);
    there_and_back(env, CONFIG, &apply_redis::APPLY, SERVICE, &root);
    assert_eq!(xattr(&path, ACCESS), None);

    // What somebody else gives it since stays.
    expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
    set_xattr(&path, "user.note", b"later").expect("it has attributes");
    expect_code(&env.refit(&words("revert", &root, &[SERVICE])), 0);
    assert_eq!(xattr(&path, "user.note").as_deref(), Some(&b"later"[..]));
    assert_eq!(fs::read(&path).expect("there"), b"port 1\n");
    Outcome::Pass
}

fn flags_are_restored(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_command("chattr");
    let root = apply_redis::tree(env, "tree");
    let path = Path::new(&root).join(CONFIG);
    let path = path.to_str().expect("text");
    if !env.run(&["chattr", "+SdA", path]).status.success() {
        env.skip("this file system has no flags of chattr");
    }
    let flags = || {
        let printed = env.run(&["lsattr", path]);
        expect_code(&printed, 0);
        let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
        printed.split(' ').next().unwrap_or_default().to_owned()
    };
    let before = flags();
    assert!(
        ["S", "d", "A"].iter().all(|flag| before.contains(flag)),
        "{before}"
    );
    // What a directory gives to each new file is none of the file's.
    expect_code(&env.run(&["chattr", "+d", &format!("{root}/etc/redis")]), 0);
    expect_code(&env.refit(&words("apply", &root, &apply_redis::APPLY)), 0);
    assert_eq!(flags(), before);
    expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
    expect_code(&env.refit(&words("revert", &root, &[SERVICE])), 0);
    assert_eq!(flags(), before);
    Outcome::Pass
}

fn immutable_files_are_named(env: &TestEnv) -> Outcome {
    env.require_root();
    env.require_command("chattr");
    let root = apply_redis::tree(env, "tree");
    let at = |path: &str| Path::new(&root).join(path);
    let chattr = |flag: &str, path: &str| {
        let path = at(path);
        env.run(&["chattr", flag, path.to_str().expect("text")])
            .status
            .success()
    };
    if !chattr("+i", CONFIG) {
        env.skip("this file system has no immutable files");
    }
    let before = listing(&root);
    let apply = words("apply", &root, &apply_redis::APPLY);
    let refused = env.refit(&apply);
    assert!(chattr("-i", CONFIG));
    expect_message(&refused, 2, "redis-one.conf");
    expect_message(&refused, 2, "chattr -i");
    assert_eq!(listing(&root), before);
    // A directory in which nothing can be made.
    assert!(chattr("+i", "etc/redis"));
    let refused = env.refit(&apply);
    assert!(chattr("-i", "etc/redis"));
    expect_message(&refused, 2, "etc/redis");
    assert_eq!(listing(&root), before);

    expect_code(&env.refit(&apply), 0);
    let applied = listing(&root);
    let revert = words("revert", &root, &[SERVICE]);
    for (flag, off, path) in [
        ("+i", "-i", CONFIG),
        ("+a", "-a", apply_redis::OWN),
        ("+i", "-i", "etc/redis"),
        ("+i", "-i", apply_redis::UNIT),
    ] {
        assert!(chattr(flag, path), "{path}");
        let refused = env.refit(&revert);
        assert!(chattr(off, path), "{path}");
        expect_message(&refused, 2, path);
        assert_eq!(listing(&root), applied, "{path}");
        expect_code(&env.refit(&words("status", &root, &["--exit-code"])), 0);
    }
    expect_code(&env.refit(&revert), 0);
    assert_eq!(listing(&root), before);
    let unit = words("apply", &root, &["--yes", "a", SETTINGS[0]]);
    expect_code(&env.refit(&unit), 0);
    expect_code(&env.refit(&words("revert", &root, &["a"])), 0);
    Outcome::Pass
}
