//! A command's wrapper on a Debian that systemd boots: what runs is looked at.

use crate::apply_booted::{LIBRARY, booted, files, inside, up, wait_inside};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_message};

pub const TESTS: &[Test] = &[test!(a_command_is_wrapped_verified_and_taken_back)
    .alone()
    .when_named()
    .limit_seconds(300)];

/// What [`files`] does not look at.
fn commands(env: &TestEnv) -> String {
    let list = "cd /usr/local/bin; find . -mindepth 1 -printf '%p %m %U:%G %y %i %T@ %n\\n' | grep -v '/refit ' | sort; sha256sum * | grep -v ' refit$'";
    inside(env, 0, &["sh", "-c", list])
}

fn a_command_is_wrapped_verified_and_taken_back(env: &TestEnv) -> Outcome {
    up(env);
    inside(env, 0, &["cp", "/usr/bin/sleep", "/usr/local/bin/own"]);
    let before = files(env) + &commands(env);
    let unchanged = |what: &str| {
        let now = files(env) + &commands(env);
        let differs: Vec<_> = now.lines().filter(|line| !before.contains(line)).collect();
        assert!(now == before, "{what}: {differs:?}");
    };
    // Started before, and by its path: they have nothing of the change, and are not counted.
    for unit in ["one", "two"] {
        let program = ["/usr/local/bin/own", "/usr/bin/tail"][usize::from(unit == "two")];
        let words = ["systemd-run", "-q", "--unit", unit, program];
        let rest: &[&str] = match unit {
            "two" => &["-f", "/dev/null"],
            _ => &["1000"],
        };
        inside(env, 0, &[&words, rest].concat());
    }
    for (path, program, rest) in [
        (
            "/usr/local/bin/own",
            "/usr/local/bin/own.refit-real",
            &["1000"][..],
        ),
        ("/usr/local/bin/tail", "/usr/bin/tail", &["-f", "/dev/null"]),
    ] {
        let service = format!("wrapper:{path}");
        let name = path.rsplit('/').next().unwrap_or_default();
        let apply = [
            "refit",
            "apply",
            "--yes",
            &service,
            LIBRARY,
            "env.WORD=it's",
        ];
        let check = ["refit", "status", "--exit-code", &service];
        inside(env, 0, &apply);
        assert!(inside(env, 0, &apply).contains("nothing to do"));
        let status = inside(env, 0, &check);
        for line in [
            format!("ok: {name} in PATH {path}"),
            "unknown: executable mapping: not observed".to_owned(),
        ] {
            assert!(status.contains(&line), "{status}");
        }
        // By its name alone, as a service of systemd finds it.
        let start = ["systemd-run", "-q", "--unit", "with", name];
        inside(env, 0, &[&start, rest].concat());
        let maps =
            "grep -q r-xp.*/usr/lib/refit/ /proc/$(systemctl show -p MainPID --value with)/maps";
        wait_inside(env, maps);
        let status = inside(env, 0, &check);
        for line in [
            "ok: executable mapping /usr/lib/refit/",
            "ok: variable WORD=it's",
        ] {
            assert!(status.contains(line), "{status}");
        }
        let executes = "readlink /proc/$(systemctl show -p MainPID --value with)/exe";
        assert_eq!(inside(env, 0, &["sh", "-c", executes]).trim(), program);
        // Another one before it in PATH.
        inside(
            env,
            0,
            &["cp", "/usr/bin/true", &format!("/usr/local/sbin/{name}")],
        );
        let drift = inside(env, 1, &check);
        let meant = format!("DIFFERS: {name} in PATH: expected {path}, found /usr/local/sbin/");
        assert!(drift.contains(&meant), "{drift}");
        inside(env, 0, &["rm", &format!("/usr/local/sbin/{name}")]);
        inside(env, 0, &["refit", "revert", &service]);
        inside(env, 0, &["systemctl", "stop", "with"]);
        unchanged(path);
    }
    inside(env, 0, &["systemctl", "stop", "one", "two"]);

    // A library that the loader does not take: it is listed before anybody starts the command.
    let broken = "head -c 1000 /usr/lib/x86_64-linux-gnu/libeatmydata.so.1.3.0 >/root/broken.so";
    inside(env, 0, &["sh", "-c", broken]);
    for (words, code, named) in [
        (
            ["wrapper:/usr/local/bin/own", "preload=/root/broken.so"],
            1,
            "all was taken back",
        ),
        (
            ["wrapper:/usr/bin/tail", LIBRARY],
            2,
            "belongs to a package (coreutils)",
        ),
        (["wrapper:/bin/tail", LIBRARY], 2, "symbolic link"),
        (["wrapper:/usr/local/bin/su", LIBRARY], 2, "set-id"),
    ] {
        let all = [&["x", "refit", "apply", "--yes"], &words[..]].concat();
        expect_message(&booted(env, &all), code, named);
        unchanged(words[0]);
    }
    inside(env, 0, &["rm", "/root/broken.so", "/usr/local/bin/own"]);
    Outcome::Pass
}
