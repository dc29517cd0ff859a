//! What refit reads of unit files is what systemd reads: `systemd --test` loads a unit from a tree of its own, and prints it.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use refit_servers::systemd::{Files, Unit, words};

use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described};

pub const TESTS: &[Test] = &[test!(a_unit_is_read_as_systemd_reads_it)];

const SYSTEMD: &str = "/usr/lib/systemd/systemd";

const DIRECTORIES: [&str; 3] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/lib/systemd/system",
];

/// A tree; a text that begins with `-> ` is a link to a path in the tree. And the unit.
type Case = (&'static str, &'static [(&'static str, &'static str)]);

const CASES: &[Case] = &[
    (
        "plain",
        &[(
            "usr/plain.service",
            "[Service]\nExecStart=/bin/true a 'b c' \"d\\\"e\"\n",
        )],
    ),
    (
        "stronger",
        &[
            (
                "usr/stronger.service",
                "[Service]\nExecStart=/bin/true usr\n",
            ),
            (
                "etc/stronger.service",
                "[Service]\nExecStart=/bin/true etc\n",
            ),
        ],
    ),
    (
        "order",
        &[
            (
                "usr/order.service",
                "[Service]\nExecStart=/bin/true\nEnvironment=A=unit B=unit\n",
            ),
            (
                "usr/order.service.d/50.conf",
                "[Service]\nEnvironment=A=50 C=50\n",
            ),
            (
                "etc/order.service.d/40.conf",
                "[Service]\nEnvironment=A=40 B=40\n",
            ),
            (
                "run/order.service.d/60.conf",
                "[Service]\nEnvironment=C=60\n",
            ),
        ],
    ),
    (
        "hidden",
        &[
            ("usr/hidden.service", "[Service]\nExecStart=/bin/true\n"),
            (
                "usr/hidden.service.d/a.conf",
                "[Service]\nEnvironment=A=usr\n",
            ),
            (
                "etc/hidden.service.d/a.conf",
                "[Service]\nEnvironment=B=etc\n",
            ),
            (
                "usr/hidden.service.d/b.conf",
                "[Service]\nEnvironment=C=usr\n",
            ),
            ("etc/hidden.service.d/b.conf", "-> /dev/null"),
            ("etc/hidden.service.d/c.conf", ""),
            (
                "usr/hidden.service.d/c.conf",
                "[Service]\nEnvironment=D=usr\n",
            ),
            (
                "etc/hidden.service.d/d.txt",
                "[Service]\nEnvironment=E=no\n",
            ),
        ],
    ),
    (
        "one-two-three",
        &[
            (
                "usr/one-two-three.service",
                "[Service]\nExecStart=/bin/true\n",
            ),
            (
                "etc/one-.service.d/10.conf",
                "[Service]\nEnvironment=A=one\n",
            ),
            (
                "usr/one-two-.service.d/10.conf",
                "[Service]\nEnvironment=A=two\n",
            ),
            (
                "usr/one-two-.service.d/20.conf",
                "[Service]\nEnvironment=B=two\n",
            ),
            (
                "etc/service.d/05.conf",
                "[Service]\nEnvironment=C=all A=all\n",
            ),
            ("etc/service.d/20.conf", "[Service]\nEnvironment=B=all\n"),
            (
                "etc/one-two.service.d/30.conf",
                "[Service]\nEnvironment=D=no\n",
            ),
        ],
    ),
    (
        "of@some-thing",
        &[
            (
                "usr/of@.service",
                "[Service]\nExecStart=/bin/true %i %p %n %N %%\n",
            ),
            (
                "etc/of@.service.d/10.conf",
                "[Service]\nEnvironment=A=template B=%i\n",
            ),
            (
                "usr/of@some-thing.service.d/10.conf",
                "[Service]\nEnvironment=A=instance\n",
            ),
            (
                "usr/of@some-thing.service.d/20.conf",
                "[Service]\nEnvironment=C=instance\n",
            ),
            (
                "etc/of@other.service.d/10.conf",
                "[Service]\nEnvironment=D=no\n",
            ),
        ],
    ),
    (
        "alias",
        &[
            ("usr/real.service", "[Service]\nExecStart=/bin/true\n"),
            ("etc/alias.service", "-> usr/real.service"),
            (
                "etc/alias.service.d/1.conf",
                "[Service]\nEnvironment=A=alias\n",
            ),
            (
                "etc/real.service.d/2.conf",
                "[Service]\nEnvironment=B=real\n",
            ),
        ],
    ),
    (
        "taken-back",
        &[
            (
                "usr/taken-back.service",
                "[Service]\nExecStart=/bin/true one\nEnvironment=A=1\n[Unit]\nDescription=x\nEnvironment=Z=1\n[Service]\nEnvironment=B=2\n",
            ),
            (
                "etc/taken-back.service.d/1.conf",
                "[Service]\nExecStart=\nExecStart=/bin/true two\nEnvironment=\nEnvironment=C=3\n",
            ),
        ],
    ),
    (
        "continued",
        &[(
            "usr/continued.service",
            "[Service]\nExecStart=/bin/true a \\\n# a comment\n; another\n  b\\\nc\nEnvironment=A=1 \\\n  'B=2 3' \\\n\nEnvironment=C=4\n",
        )],
    ),
    (
        "escapes",
        &[(
            "usr/escapes.service",
            "[Service]\nExecStart=/bin/true\nEnvironment=\"A=b c\" 'B=it\\'s' C=\\x41\\101 D=a%%b \"E=\\\\\"\n",
        )],
    ),
];

/// `etc/x` of a case is below the directory of that name.
fn place(root: &Path, path: &str) -> PathBuf {
    let (word, file) = path.split_once('/').expect("a directory and a file");
    let mut all = DIRECTORIES.iter();
    let directory = all.find(|path| path.starts_with(&format!("/{word}/")));
    root.join(&directory.expect("one of them")[1..]).join(file)
}

fn of_refit(root: &Path, name: &str) -> Unit {
    let place = |path: &str| Ok::<_, Infallible>(root.join(path.trim_start_matches('/')));
    let files = Files::find(place, name).expect("no error");
    let read = |path: &str| place(path).map(|path| fs::read(path).ok());
    Unit::read(files.expect("a unit"), read).expect("no error")
}

/// What systemd prints of a unit below these words. As the manager of a user, which needs no right; root has no such
/// manager.
fn of_systemd(
    env: &TestEnv,
    root: &Path,
    name: &str,
    real: &str,
) -> impl Fn(&str) -> Vec<String> + use<> {
    let paths = DIRECTORIES.map(|path| format!("{}{path}", root.display()));
    // Its own units are looked for in the last one: it starts none without.
    let unit_path = format!("{}:", paths.join(":"));
    let home = [
        "HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
    ];
    let mut words = vec![SYSTEMD, "--test", "--user", "--no-pager"];
    let unit = format!("--unit={name}.service");
    words.push(&unit);
    if env.as_root() {
        words.splice(
            ..0,
            [
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
            ],
        );
    }
    let mut systemd = Command::new(words[0]);
    systemd.args(&words[1..]);
    systemd.env("SYSTEMD_UNIT_PATH", unit_path);
    // The manager's own: it writes there.
    let own = env.subdir(&format!("own-{name}"));
    fs::set_permissions(&own, Permissions::from_mode(0o777)).expect("it is ours");
    systemd.envs(home.map(|name| (name, &own)));
    let output = systemd.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let begin = text.find(&format!("-> Unit {real}.service:"));
    let begin = begin.unwrap_or_else(|| panic!("{name}: {}", described(&output)));
    let rest = &text[begin + 2..];
    let lines: Vec<String> = (rest[..rest.find("-> Unit ").unwrap_or(rest.len())].lines())
        .map(|line| line.trim().to_owned())
        .collect();
    move |word| {
        let values = lines
            .iter()
            .filter_map(|line| line.strip_prefix(word)?.strip_prefix(": "));
        values.map(str::to_owned).collect()
    }
}

fn a_unit_is_read_as_systemd_reads_it(env: &TestEnv) -> Outcome {
    env.require_command(SYSTEMD);
    for (name, files) in CASES {
        let root = PathBuf::from(env.subdir(name));
        for (path, text) in *files {
            let path = place(&root, path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("the tree is ours");
            match text.strip_prefix("-> ") {
                Some("/dev/null") => symlink("/dev/null", path).expect("likewise"),
                Some(target) => {
                    let file = target.rsplit('/').next().expect("a name");
                    symlink(format!("../../../usr/lib/systemd/system/{file}"), path)
                        .expect("likewise");
                }
                None => fs::write(path, text).expect("likewise"),
            }
        }
        let unit = of_refit(&root, name);
        let told = of_systemd(env, &root, name, unit.name());
        let below = |path: &String| format!("{}{path}", root.display());
        let files = &unit.files;
        assert_eq!(told("Fragment Path"), [below(&files.fragment)], "{name}");
        let drop_ins: Vec<String> = files.drop_ins.iter().map(below).collect();
        // systemd lists those too that are masked.
        let has_lines = |path: &String| fs::metadata(path).is_ok_and(|meta| meta.len() > 0);
        let mut told_of = told("DropIn Path");
        told_of.retain(has_lines);
        assert_eq!(told_of, drop_ins, "{name}");
        let environment = unit.environment();
        let variables = environment
            .iter()
            .map(|(name, value, _)| format!("{name}={value}"));
        let variables: BTreeSet<String> = variables.collect();
        assert_eq!(
            told("Environment").into_iter().collect::<BTreeSet<_>>(),
            variables,
            "{name}"
        );
        let commands: Vec<_> = told("Command Line")
            .iter()
            .map(|line| words(line))
            .collect();
        assert_eq!(commands, [unit.command()], "{name}");
    }
    Outcome::Pass
}
