//! `refit apply wrapper:PATH` in a tree (`--root`): a script before a program, or in its place.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use crate::apply::{SETTINGS, listing, words};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_printed};

pub const TESTS: &[Test] = &[
    test!(a_program_moves_aside_and_back),
    test!(a_script_stands_before_a_program),
    test!(what_is_no_command_of_its_own_is_refused),
];

pub const PLACE: &str = "usr/local/bin/own";
const KEPT: &str = "usr/local/bin/own.refit-real";
pub const MOVED: &str = "wrapper:/usr/local/bin/own";
pub const BEFORE: &str = "wrapper:/usr/local/bin/packaged";
pub const SHADOW: &str = "usr/local/bin/packaged";
pub const IN_PLACE: [&str; 4] = ["--yes", MOVED, SETTINGS[0], "env.WORD=it's $b"];
pub const IN_PATH: [&str; 4] = ["--yes", BEFORE, SETTINGS[0], "env.WORD=it's $b"];
const PROGRAM: &str = "#!/bin/sh\necho own\n";

/// A tree with a program of a package, and one of nobody; its path.
pub fn tree(env: &TestEnv, name: &str) -> String {
    let root = crate::apply::tree(env, name);
    let at = |path: &str| Path::new(&root).join(path);
    for dir in ["usr/local/bin", "usr/bin", "opt", "var/lib/dpkg/info"] {
        fs::create_dir_all(at(dir)).expect("the tree is ours");
    }
    // Without program headers.
    let mut of_no_loader = crate::apply::elf_start(libc::ET_EXEC);
    of_no_loader.resize(200, 0);
    for (path, content, mode) in [
        (PLACE, PROGRAM.as_bytes(), 0o750),
        ("usr/bin/packaged", b"#!/bin/sh\necho packaged\n", 0o755),
        ("usr/bin/static", &of_no_loader, 0o755),
        ("usr/bin/no-program", b"", 0o644),
        ("opt/set-id", b"#!/bin/sh\n", 0o4755),
        ("usr/bin/nobodys", b"#!/bin/sh\n", 0o755),
    ] {
        fs::write(at(path), content).expect("likewise");
        fs::set_permissions(at(path), Permissions::from_mode(mode)).expect("likewise");
    }
    let list = "/.\n/usr\n/bin/packaged\n/usr/bin/static\n";
    fs::write(at("var/lib/dpkg/info/some.list"), list).expect("likewise");
    symlink("packaged", at("usr/local/bin/link")).expect("likewise");
    root
}

/// The command is there, whatever happened: the program, or a script that names what is there.
pub fn command_is_there(root: &str) {
    let at = |path: &str| Path::new(root).join(path);
    let read = |path: &str| fs::read_to_string(at(path)).unwrap_or_default();
    for (place, program) in [(PLACE, KEPT), (SHADOW, "usr/bin/packaged")] {
        let text = read(place);
        if text == PROGRAM || place == SHADOW && !at(place).exists() {
            continue;
        }
        let end = format!("\nexec '/{program}' \"$@\"\n");
        assert!(
            text.starts_with("#!/bin/sh\n# ") && text.ends_with(&end),
            "{place}: {text}"
        );
        assert!(
            read(program).starts_with("#!/bin/sh\necho"),
            "{program} is not there"
        );
        let (_, rest) = text.split_once("\n'/usr/lib/refit/").expect("a library");
        let library = format!(
            "usr/lib/refit/{}",
            rest.split('\'').next().unwrap_or_default()
        );
        assert!(at(&library).is_file(), "{library} is not there");
        assert_eq!(at(place).metadata().expect("there").mode() & 0o777, 0o755);
    }
}

fn a_program_moves_aside_and_back(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let at = |path: &str| Path::new(&root).join(path);
    let about = |path: &str| {
        let meta = at(path).metadata().expect("there");
        (meta.ino(), meta.mtime_nsec(), meta.nlink())
    };
    let (before, file) = (listing(&root), about(PLACE));
    let apply = words("apply", &root, &IN_PLACE);
    let plan = words("plan", &root, &IN_PLACE[1..]);
    expect_printed(
        &env.refit(&plan),
        0,
        "move /usr/local/bin/own to /usr/local/bin/own.refit-real",
    );
    assert_eq!(listing(&root), before);
    expect_printed(
        &env.refit(&apply),
        0,
        "wrapper:/usr/local/bin/own: applied in the tree",
    );
    expect_printed(&env.refit(&apply), 0, "nothing to do");
    command_is_there(&root);
    let script = fs::read_to_string(at(PLACE)).expect("there");
    assert!(
        script.contains("\nWORD='it'\\''s $b'\nexport WORD\nexec "),
        "{script}"
    );
    assert_eq!(about(KEPT), file, "the file itself, not a copy");
    let check = words("status", &root, &["--exit-code"]);
    let revert = words("revert", &root, &[MOVED]);
    expect_printed(
        &env.refit(&check),
        0,
        "ok: /usr/local/bin/own.refit-real the program",
    );

    // By hand: each is seen, and nothing is reverted over it.
    for (path, content, named) in [
        (
            PLACE,
            Some("#!/bin/sh\necho newer\n"),
            "own: expected as applied, found other content",
        ),
        (PLACE, None, "own: expected as applied, found not there"),
        (
            KEPT,
            Some("#!/bin/sh\necho newer\n"),
            "refit-real: expected the program, found other",
        ),
        (
            KEPT,
            None,
            "refit-real: expected the program, found not there",
        ),
    ] {
        fs::rename(at(path), at("kept")).expect("ours");
        if let Some(content) = content {
            fs::write(at(path), content).expect("ours");
        }
        let now = listing(&root);
        expect_printed(&env.refit(&check), 1, named);
        expect_code(&env.refit(&apply), 3);
        expect_message(&env.refit(&revert), 3, "nothing was reverted");
        assert_eq!(listing(&root), now, "{path} {content:?}");
        fs::rename(at("kept"), at(path)).expect("ours");
    }
    expect_code(&env.refit(&revert), 0);
    assert_eq!((listing(&root), about(PLACE)), (before.clone(), file));

    // As the message says: the program is put back by hand, and the change forgotten.
    expect_code(&env.refit(&apply), 0);
    fs::write(at(PLACE), "#!/bin/sh\necho newer\n").expect("ours");
    fs::rename(at(KEPT), at(PLACE)).expect("ours");
    expect_printed(
        &env.refit(&check),
        1,
        "own: expected as applied, found the program",
    );
    expect_printed(
        &env.refit(&revert),
        0,
        "/usr/local/bin/own was as before already",
    );
    assert_eq!((listing(&root), about(PLACE)), (before, file));
    Outcome::Pass
}

fn a_script_stands_before_a_program(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let at = |path: &str| Path::new(&root).join(path);
    let before = listing(&root);
    let apply = words("apply", &root, &IN_PATH);
    let check = words("status", &root, &["--exit-code"]);
    let revert = words("revert", &root, &[BEFORE]);
    expect_code(&env.refit(&apply), 0);
    expect_printed(&env.refit(&apply), 0, "nothing to do");
    assert!(at(SHADOW).is_file());
    command_is_there(&root);
    // Two commands are two changes, each with its own record.
    expect_code(&env.refit(&words("apply", &root, &IN_PLACE)), 0);
    expect_code(&env.refit(&check), 0);
    expect_code(&env.refit(&words("revert", &root, &[MOVED])), 0);

    let script = fs::read_to_string(at(SHADOW)).expect("there");
    fs::write(at(SHADOW), "#!/bin/sh\n").expect("ours");
    expect_printed(
        &env.refit(&check),
        1,
        "packaged: expected as applied, found other content",
    );
    expect_code(&env.refit(&revert), 3);
    fs::write(at(SHADOW), script).expect("ours");
    expect_code(&env.refit(&revert), 0);
    assert_eq!(listing(&root), before);
    expect_code(&env.refit(&apply), 0);
    fs::remove_file(at(SHADOW)).expect("ours");
    expect_printed(
        &env.refit(&check),
        1,
        "packaged: expected as applied, found as before",
    );
    expect_code(&env.refit(&revert), 0);
    assert_eq!(listing(&root), before);
    Outcome::Pass
}

fn what_is_no_command_of_its_own_is_refused(env: &TestEnv) -> Outcome {
    let root = tree(env, "tree");
    let at = |path: &str| Path::new(&root).join(path);
    fs::write(at("usr/local/bin/busy"), PROGRAM).expect("ours");
    fs::set_permissions(at("usr/local/bin/busy"), Permissions::from_mode(0o755)).expect("ours");
    fs::write(at("usr/local/bin/busy.refit-real"), "").expect("ours");
    // refit would execute its loader, as root.
    let mut own_loader = fs::read("/bin/true").expect("there");
    let name = b"/ld-linux";
    let loader = own_loader
        .windows(name.len())
        .position(|bytes| bytes == name);
    let loader = loader.expect("it is dynamic");
    own_loader[loader..loader + name.len()].copy_from_slice(b"/ld-evilx");
    fs::write(at("usr/local/bin/own-loader"), own_loader).expect("ours");
    fs::set_permissions(
        at("usr/local/bin/own-loader"),
        Permissions::from_mode(0o755),
    )
    .expect("ours");
    fs::create_dir(at("opt/open")).expect("ours");
    fs::write(at("opt/open/own"), PROGRAM).expect("ours");
    fs::set_permissions(at("opt/open/own"), Permissions::from_mode(0o755)).expect("ours");
    fs::set_permissions(at("opt/open"), Permissions::from_mode(0o777)).expect("ours");
    let before = listing(&root);
    let long = format!("wrapper:/usr/local/bin/{}", "x".repeat(300));
    for (rest, named) in [
        (&["wrapper:own", SETTINGS[0]][..], "name one file"),
        (&["wrapper:/usr/local/../own", SETTINGS[0]], "name one file"),
        (&["wrapper:/usr/local/bin/", SETTINGS[0]], "name one file"),
        (&["wrapper:", SETTINGS[0]], "name one file"),
        (
            &[&long, SETTINGS[0]],
            "too long for files named after it, by ",
        ),
        (
            &["wrapper:/usr/local/bin/own-loader", SETTINGS[0]],
            "none of Linux's loaders",
        ),
        (
            &["wrapper:/opt/open/own", "tz=UTC"],
            "can be written by other users",
        ),
        (
            &["wrapper:/usr/local/bin/nosuch", SETTINGS[0]],
            "nor a program `nosuch` later in PATH",
        ),
        (
            &["wrapper:/usr/local/bin/no-program", SETTINGS[0]],
            "nor a program `no-program`",
        ),
        (
            &["wrapper:/opt/packaged", SETTINGS[0]],
            "as in wrapper:/usr/local/bin/packaged",
        ),
        (
            &["wrapper:/usr/bin/packaged", SETTINGS[0]],
            "belongs to a package (some)",
        ),
        (
            &["wrapper:/usr/bin/packaged", "tz=UTC"],
            "refit plan wrapper:/usr/local/bin/packaged",
        ),
        (
            &["wrapper:/usr/local/bin/static", SETTINGS[0]],
            "it is a static program",
        ),
        (&["wrapper:/opt/set-id", SETTINGS[0]], "it is set-id"),
        (
            &["wrapper:/usr/local/bin/link", SETTINGS[0]],
            "it is not a regular file",
        ),
        (
            &["wrapper:/usr/local/bin", SETTINGS[0]],
            "it is not a regular file",
        ),
        (
            &["wrapper:/usr/local/bin/busy", SETTINGS[0]],
            "busy.refit-real is there already",
        ),
        (
            &[MOVED, "sync=off"],
            "for one start: refit run --quiet sync=off -- COMMAND",
        ),
        (&[MOVED, "conf.a=b"], "cannot be applied to wrapper:"),
    ] {
        let all = [&["--yes"], rest].concat();
        expect_message(&env.refit(&words("apply", &root, &all)), 2, named);
        assert_eq!(listing(&root), before, "{rest:?}");
    }
    let long = format!("/usr/local/bin/{}", "x".repeat(180));
    fs::write(at(&long[1..]), PROGRAM).expect("ours");
    fs::set_permissions(at(&long[1..]), Permissions::from_mode(0o755)).expect("ours");
    let before = listing(&root);
    let word = format!("wrapper:{long}");
    let until = words(
        "apply",
        &root,
        &["--yes", "--confirm-within", "1h", &word, "env.A=1"],
    );
    expect_code(&env.refit(&until), 0);
    expect_code(&env.refit(&words("revert", &root, &[&word])), 0);
    assert_eq!(listing(&root), before, "{word}");
    // A static program has variables all the same; a file that no list names is nobody's.
    for word in ["wrapper:/usr/local/bin/static", "wrapper:/usr/bin/nobodys"] {
        expect_code(
            &env.refit(&words("apply", &root, &["--yes", word, "tz=UTC"])),
            0,
        );
        expect_code(&env.refit(&words("revert", &root, &[word])), 0);
        assert_eq!(listing(&root), before, "{word}");
    }
    // Without dpkg's lists only what lies below /usr/local and /opt is surely nobody's.
    fs::remove_file(at("var/lib/dpkg/info/some.list")).expect("ours");
    let unknown = ["--yes", "wrapper:/usr/bin/nobodys", "tz=UTC"];
    expect_message(
        &env.refit(&words("apply", &root, &unknown)),
        2,
        "dpkg is not installed",
    );
    expect_code(&env.refit(&words("apply", &root, &IN_PLACE)), 0);
    expect_code(&env.refit(&words("revert", &root, &[MOVED])), 0);
    Outcome::Pass
}
