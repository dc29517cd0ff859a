//! Reinstalling, upgrading, removing and purging the packages of changed services, on a Debian
//! that systemd boots. The packages are made of the installed files (`tests/packages/repack`).

use crate::apply_booted::{LIBRARY, booted, cluster, expect_same_files, files, inside, up};
use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code};

pub const TESTS: &[Test] = &[
    test!(a_change_outlives_its_package)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(a_changed_conffile_asks)
        .alone()
        .when_named()
        .limit_seconds(300),
    test!(a_program_that_moves_is_followed)
        .alone()
        .when_named()
        .limit_seconds(300),
    test!(a_newer_library_is_named)
        .alone()
        .when_named()
        .limit_seconds(300),
];

/// A service as it is typed, a package that it comes from, and its settings.
struct Subject {
    service: &'static str,
    package: &'static str,
    settings: &'static [&'static str],
    /// Whether processes of it map the library at any time.
    is_mapped: bool,
    /// Whether nothing else that the tests need goes with the package.
    can_go: bool,
}

const UNIT: Subject = Subject {
    service: "cron",
    package: "cron",
    settings: &[LIBRARY, "env.WORD=a b"],
    is_mapped: true,
    can_go: true,
};

const REDIS: Subject = Subject {
    service: "redis",
    package: "redis-server",
    settings: &[LIBRARY, "conf.maxmemory=1gb"],
    ..UNIT
};

const SUBJECTS: [Subject; 10] = [
    Subject {
        service: "wrapper:/usr/local/sbin/nginx",
        package: "nginx",
        settings: &[LIBRARY],
        is_mapped: false,
        ..UNIT
    },
    Subject {
        service: "sysctl",
        package: "procps",
        settings: &["conf.net.core.somaxconn=300"],
        is_mapped: false,
        can_go: false,
    },
    UNIT,
    REDIS,
    Subject {
        service: "rsyslog",
        package: "rsyslog",
        settings: &[LIBRARY, "conf.sync=on"],
        ..UNIT
    },
    Subject {
        service: "postfix",
        package: "postfix",
        settings: &[LIBRARY, "conf.maximal_queue_lifetime=2d"],
        ..UNIT
    },
    Subject {
        service: "postfix/cleanup",
        package: "postfix",
        settings: &[LIBRARY],
        is_mapped: false,
        ..UNIT
    },
    Subject {
        service: "postgresql",
        package: "postgresql",
        settings: &[LIBRARY, "conf.work_mem=8MB"],
        ..UNIT
    },
    Subject {
        service: "mariadb",
        package: "mariadb-server",
        settings: &[LIBRARY, "conf.max_connections=200"],
        ..UNIT
    },
    Subject {
        service: "mariadb",
        package: "mariadb-server-core",
        settings: &["conf.max_connections=200"],
        is_mapped: false,
        can_go: false,
    },
];

/// Appended to a version, it is a higher one.
pub const HIGHER: &str = "+x1";

/// A package by its full name, which has the server's version on a Debian.
pub fn server_package(env: &TestEnv, package: &str) -> String {
    let cluster = cluster(env);
    let version = cluster.split('-').next().unwrap_or_default();
    match package {
        "postgresql" => format!("{package}-{version}"),
        _ => package.to_owned(),
    }
}

pub fn version(env: &TestEnv, package: &str) -> String {
    let line = "dpkg-query -s $0 | sed -n 's/^Version: //p'";
    let printed = inside(env, 0, &["sh", "-c", line, package]);
    printed.trim().to_owned()
}

/// A .deb of an installed package, with a change of its files.
pub fn repacked(env: &TestEnv, package: &str, version: &str, change: &str) -> String {
    let script = source_dir().join("tests/packages/repack");
    let put = ["put", &*script.to_string_lossy(), "/root/repack"];
    expect_code(&booted(env, &put), 0);
    let made = inside(env, 0, &["/root/repack", package, version, change]);
    made.trim().to_owned()
}

/// What apt-get prints, with nobody to answer.
pub fn apt(env: &TestEnv, code: i32, words: &[&str]) -> String {
    let run = "DEBIAN_FRONTEND=noninteractive apt-get -y \"$@\" </dev/null 2>&1";
    inside(env, code, &[&["sh", "-c", run, "sh"], words].concat())
}

/// The number of processes that execute a library of refit's.
fn mapping(env: &TestEnv) -> usize {
    let list = "grep -l r-xp.*/usr/lib/refit/ /proc/[0-9]*/maps 2>/dev/null | wc -l";
    let count = inside(env, 0, &["sh", "-c", list]);
    count.trim().parse().expect("a number")
}

/// `status --exit-code`, which ends with this code and prints these lines.
#[track_caller]
pub fn status(env: &TestEnv, code: i32, service: &str, lines: &[&str]) -> String {
    let printed = inside(env, code, &["refit", "status", "--exit-code", service]);
    for line in lines {
        assert!(printed.contains(line), "no `{line}` in:\n{printed}");
    }
    printed
}

fn a_change_outlives_its_package(env: &TestEnv) -> Outcome {
    up(env);
    for subject in &SUBJECTS {
        outlives(env, subject);
    }
    println!("counted: {} services", SUBJECTS.len());
    Outcome::Pass
}

fn outlives(env: &TestEnv, subject: &Subject) {
    let Subject {
        service, package, ..
    } = subject;
    let package = &*server_package(env, package);
    let old = version(env, package);
    let new = format!("{old}{HIGHER}");
    let same_deb = repacked(env, package, &old, "");
    let higher_deb = repacked(env, package, &new, "");
    let before = files(env);
    let apply = [&["refit", "apply", "--yes", service], subject.settings].concat();
    let revert = ["refit", "revert", service];
    inside(env, 0, &apply);

    apt(env, 0, &["install", "--reinstall", &same_deb]);
    let printed = status(env, 0, service, &[]);
    assert!(!printed.contains("package  "), "{printed}");
    assert!(!subject.is_mapped || mapping(env) > 0, "{service}");
    apt(env, 0, &["install", &higher_deb]);
    // procps is not what sets the keys at boot.
    let named = format!("package        {package} {old} → {new}\n");
    match *service {
        "sysctl" => status(env, 0, service, &[]),
        _ => status(env, 0, service, &[&named]),
    };
    assert!(!subject.is_mapped || mapping(env) > 0, "{service}");
    inside(env, 0, &revert);
    expect_same_files(env, &before);
    assert_eq!(mapping(env), 0, "{service}");

    inside(env, 0, &apply);
    assert!(inside(env, 0, &apply).contains("nothing to do"));
    let printed = status(env, 0, service, &[]);
    assert!(!printed.contains("package  "), "{printed}");
    if subject.can_go {
        let next = format!("next           {}", revert[..2].join(" "));
        for (verb, named) in [
            ("remove", "→ removed, its configuration is kept"),
            ("purge", "→ purged, what refit wrote is left"),
        ] {
            // nginx has no configuration: removed, it is purged.
            if package == "nginx" && verb == "remove" {
                continue;
            }
            apt(env, 0, &[verb, package]);
            let named = format!("package        {package} {new} {named}");
            status(env, 1, service, &[&named, &next]);
        }
        inside(env, 0, &revert);
        let left = "find /etc /usr/lib /usr/local/sbin /run/systemd -name '*refit*'; \
                    grep -rl /usr/lib/refit/ /etc; true";
        assert_eq!(inside(env, 0, &["sh", "-c", left]), "", "{service}");
        let printed = inside(env, 0, &["refit", "status"]);
        assert_eq!(printed, "nothing is applied\n", "{service}");
        apt(env, 0, &["install", &higher_deb]);
        inside(env, 0, &apply);
        status(env, 0, service, &[]);
    }
    inside(env, 0, &revert);
    println!("{service}: {package} reinstalled, upgraded, removed, purged");
}

/// A conffile that refit edits, and that another version of the package has too.
fn a_changed_conffile_asks(env: &TestEnv) -> Outcome {
    up(env);
    let config = "/etc/redis/redis.conf";
    let own = inside(env, 0, &["cat", config]);
    let Subject {
        service,
        package,
        settings,
        ..
    } = REDIS;
    let old = version(env, package);
    let add = "echo '# of a later version' >>etc/redis/redis.conf";
    let debs: Vec<(String, String)> = (2..5)
        .map(|n| {
            let version = format!("{old}+x{n}");
            let deb = repacked(
                env,
                package,
                &version,
                &format!("{add}; echo '# {n}' >>etc/redis/redis.conf"),
            );
            (version, deb)
        })
        .collect();
    let apply = [&["refit", "apply", "--yes", service], settings].concat();
    let revert = ["refit", "revert", service];
    inside(env, 0, &apply);

    // Nobody can answer: also a noninteractive frontend asks, since dpkg itself does.
    let (half, deb) = &debs[0];
    let printed = apt(env, 100, &["install", deb]);
    assert!(
        printed.contains("end of file on stdin at conffile prompt"),
        "{printed}"
    );
    let named = format!("package        {package} {old} → {half}, unpacked: dpkg --configure -a\n");
    status(
        env,
        0,
        service,
        &[&named, "ok: /etc/redis/redis.conf as applied"],
    );
    // Taken back, the file is the package's: nothing is asked.
    inside(env, 0, &revert);
    assert_eq!(inside(env, 0, &["cat", config]), own);
    inside(env, 0, &["dpkg", "--configure", "-a"]);
    let of_package = inside(env, 0, &["cat", config]);
    assert!(of_package.ends_with("# of a later version\n# 2\n"));

    // The answer is to keep it.
    inside(env, 0, &apply);
    let (_, deb) = &debs[1];
    apt(
        env,
        0,
        &["-oDPkg::Options::=--force-confold", "install", deb],
    );
    status(env, 0, service, &["ok: /etc/redis/redis.conf as applied"]);
    inside(env, 0, &revert);
    assert_eq!(inside(env, 0, &["cat", config]), of_package);

    // The answer is the package's, with none of refit's lines.
    inside(env, 0, &apply);
    let (_, deb) = &debs[2];
    apt(
        env,
        0,
        &["-oDPkg::Options::=--force-confnew", "install", deb],
    );
    status(env, 1, service, &["DIFFERS: /etc/redis/redis.conf"]);
    let printed = inside(env, 0, &revert);
    assert!(
        printed.contains("redis.conf was edited elsewhere: that is kept"),
        "{printed}"
    );
    let left = inside(env, 0, &["cat", config]);
    assert_eq!(left, of_package.replace("# 2\n", "# 4\n"));
    inside(
        env,
        0,
        &[
            "sh",
            "-c",
            "rm /etc/redis/redis.conf.dpkg-*; ! ls /etc/redis/*refit*",
        ],
    );
    Outcome::Pass
}

fn a_program_that_moves_is_followed(env: &TestEnv) -> Outcome {
    up(env);
    // The unit names its new place: what was applied is still in effect.
    let old = version(env, "cron");
    let new = format!("{old}+x5");
    let moves = "mkdir -p usr/libexec; mv usr/sbin/cron usr/libexec/cron; \
                 sed -i s,/usr/sbin/cron,/usr/libexec/cron, $(find . -name cron.service)";
    let there = repacked(env, "cron", &new, moves);
    let back = repacked(env, "cron", &format!("{old}+x6"), "");
    inside(env, 0, &["refit", "apply", "--yes", "cron", LIBRARY]);
    apt(env, 0, &["install", &there]);
    let named = format!("package        cron {old} → {new}\n");
    status(
        env,
        0,
        "cron",
        &[&named, "ok: executable mapping /usr/lib/refit/"],
    );
    let program = "readlink /proc/$(systemctl show -p MainPID --value cron)/exe";
    assert_eq!(
        inside(env, 0, &["sh", "-c", program]),
        "/usr/libexec/cron\n"
    );
    inside(env, 0, &["refit", "revert", "cron"]);
    assert_eq!(mapping(env), 0);
    apt(env, 0, &["install", &back]);

    // A script that starts it by its old place does not: status says so, and revert repairs it.
    let wrapped = "wrapper:/usr/local/sbin/nginx";
    let old = version(env, "nginx");
    let there = repacked(
        env,
        "nginx",
        &format!("{old}+x5"),
        "mkdir usr/bin; mv usr/sbin/nginx usr/bin/nginx",
    );
    let back = repacked(env, "nginx", &format!("{old}+x6"), "");
    inside(env, 0, &["refit", "apply", "--yes", wrapped, LIBRARY]);
    apt(env, 0, &["install", &there]);
    let differs =
        "DIFFERS: nginx later in PATH: expected the program of the script, found /usr/bin/nginx";
    status(env, 1, wrapped, &[differs]);
    inside(env, 127, &["/usr/local/sbin/nginx", "-v"]);
    inside(env, 0, &["refit", "revert", wrapped]);
    inside(env, 0, &["nginx", "-v"]);
    apt(env, 0, &["install", &back]);
    Outcome::Pass
}

/// The copy does not change: status names what is newer.
fn a_newer_library_is_named(env: &TestEnv) -> Outcome {
    up(env);
    let package = "libjemalloc2";
    let old = version(env, package);
    let new = format!("{old}{HIGHER}");
    let name = "libjemalloc.so.2";
    let same = repacked(env, package, &format!("{old}+x2"), "");
    let higher = repacked(
        env,
        package,
        &new,
        &format!("echo | tee -a usr/lib/*/{name}"),
    );
    inside(env, 0, &["refit", "apply", "--yes", "cron", LIBRARY]);
    let printed = status(env, 0, "cron", &[]);
    assert!(!printed.contains("library  "), "{printed}");
    apt(env, 0, &["install", &higher]);
    let named = format!(" {old} → {new}\n");
    let earlier = format!("/{name} is an earlier {}", LIBRARY.replace("preload=", ""));
    let printed = status(
        env,
        0,
        "cron",
        &[&named, &earlier, "package        libjemalloc2"],
    );
    let mut lines = printed
        .lines()
        .filter(|line| line.contains("is an earlier"));
    assert!(
        lines
            .next()
            .is_some_and(|line| line.starts_with("  library        /usr/lib/refit/"))
    );
    assert!(lines.next().is_none());
    // A version with the same bytes as the copy is no newer library.
    apt(env, 0, &["install", &same]);
    let printed = status(env, 0, "cron", &[]);
    assert!(!printed.contains("library  "), "{printed}");
    apt(env, 0, &["install", "--allow-downgrades", &higher]);
    inside(env, 0, &["refit", "revert", "cron"]);
    // Applied again, it is the newer one.
    inside(env, 0, &["refit", "apply", "--yes", "cron", LIBRARY]);
    let printed = status(env, 0, "cron", &[]);
    assert!(
        !printed.contains("library  ") && !printed.contains("package  "),
        "{printed}"
    );
    inside(env, 0, &["refit", "revert", "cron"]);
    apt(env, 0, &["install", &same]);
    Outcome::Pass
}
