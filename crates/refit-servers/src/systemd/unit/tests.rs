use std::convert::Infallible;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::*;

/// A tree with these files; a text that begins with `-> ` is a link.
fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            Some(target) => symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
    root
}

fn unit(root: &Path, name: &str) -> Option<Unit> {
    let place = |path: &str| Ok::<PathBuf, Infallible>(root.join(path.trim_start_matches('/')));
    let files = Files::find(place, name).unwrap()?;
    let read = |path: &str| Ok::<_, Infallible>(fs::read(place(path).unwrap()).ok());
    Some(Unit::read(files, read).unwrap())
}

const SYSTEM: &str = "usr/lib/systemd/system";

#[test]
fn the_strongest_file_counts_and_then_its_drop_ins() {
    let a = format!("{SYSTEM}/a@.service");
    let b = format!("{SYSTEM}/b.service");
    let root = tree(&[
        (
            &a,
            "[Unit]\nExecStart=/no\n[Service]\nEnvironment='MORE=-x \"y z\"' DIR=/srv\n\
             ExecStart=-/usr/bin/a --of %i \\\n  --name '%n 100%%' $MORE ${DIR}/a $GONE\n",
        ),
        (&b, "[Service]\nExecStart=/usr/bin/b\n"),
        (
            "etc/systemd/system/b.service",
            "[Service]\nExecStart=/usr/local/bin/b \"x y\"\nWorkingDirectory=-/srv/b\n",
        ),
        (
            "etc/systemd/system/a@.service.d/10.conf",
            "[Service]\nEnvironment=DIR=/weaker\n",
        ),
        (
            "run/systemd/system/a@15-main.service.d/20.conf",
            "[Service]\nEnvironment=DIR=/stronger\n",
        ),
        ("etc/systemd/system/c.service", ""),
        ("etc/systemd/system/e.service", "-> /dev/null"),
        (
            "usr/lib/systemd/system/e.service",
            "[Service]\nExecStart=/bin/e\n",
        ),
    ]);
    let a = unit(root.path(), "a@15-main.service").unwrap();
    let name = "a@15-main.service 100%";
    let words = [
        "/usr/bin/a",
        "--of",
        "15-main",
        "--name",
        name,
        "-x",
        "y z",
        "/stronger/a",
        "$GONE",
    ];
    assert_eq!(a.command(), words);
    assert_eq!((a.family(), a.instance()), ("a", "15-main"));
    let b = unit(root.path(), "b").unwrap();
    assert_eq!(b.command(), ["/usr/local/bin/b", "x y"]);
    assert_eq!(b.last("WorkingDirectory"), "-/srv/b");
    for masked in ["c", "e"] {
        assert!(
            unit(root.path(), masked).unwrap().files.is_masked,
            "{masked}"
        );
    }
    for none in [
        "d", "", "../b", "b/../b", "-x", "b.socket", "b\n", "a@", "@",
    ] {
        assert_eq!(unit(root.path(), none), None, "{none}");
    }
}

#[test]
fn a_line_can_take_back_what_was_before_it() {
    let root = tree(&[
        (
            "usr/lib/systemd/system/a.service",
            "[Service]\nEnvironment=A=1 B=2\nExecStart=/bin/a\nEnvironmentFile=-/etc/a\n",
        ),
        (
            "etc/systemd/system/a.service.d/1.conf",
            "[Service]\nEnvironment=\nEnvironment=B=3\nEnvironmentFile=\n",
        ),
    ]);
    let unit = unit(root.path(), "a").unwrap();
    let environment = unit.environment();
    let [(name, value, line)] = &environment[..] else {
        panic!("{environment:?}");
    };
    assert_eq!((&**name, &**value), ("B", "3"));
    assert_eq!(line.place(), "/etc/systemd/system/a.service.d/1.conf:3");
    assert!(unit.list("EnvironmentFile").is_empty());
}

#[test]
fn a_link_is_another_name_and_both_have_drop_ins() {
    let root = tree(&[
        (
            "usr/lib/systemd/system/real.service",
            "[Service]\nExecStart=/bin/real\n",
        ),
        (
            "etc/systemd/system/other.service",
            "-> /usr/lib/systemd/system/real.service",
        ),
        (
            "etc/systemd/system/other.service.d/1.conf",
            "[Service]\nEnvironment=A=other\n",
        ),
        (
            "etc/systemd/system/real.service.d/2.conf",
            "[Service]\nEnvironment=B=real\n",
        ),
    ]);
    let unit = unit(root.path(), "other").unwrap();
    assert_eq!(unit.name(), "real");
    assert_eq!(unit.files.fragment, "/usr/lib/systemd/system/real.service");
    assert_eq!(unit.variable("A").as_deref(), Some("other"));
    assert_eq!(unit.variable("B").as_deref(), Some("real"));
}
