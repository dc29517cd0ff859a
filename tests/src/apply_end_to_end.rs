//! From a recipe to a service that stays changed, and back: measured and cut on this machine, applied on a Debian that
//! systemd boots beside it. Only by `make test-services`.
//!
//! What is gained is a wait or memory by construction, many times any noise: a flush that takes 20 ms, a receiver that takes
//! 2 s for a mail, blocks that keep glibc from giving back what lies between them. So a busy machine makes the test slow,
//! and no verdict another one.

use crate::apply_booted::{WAIT_FOR, booted, expect_same_files, files, inside, up};
use crate::crash::require_lab;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code, expect_message};

pub const TESTS: &[Test] = &[
    test!(postgresql_from_its_recipe_and_back)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(redis_from_its_recipe_and_back)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(postfix_from_its_recipe_and_back)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(cleanup_of_postfix_from_its_recipe_and_back)
        .alone()
        .when_named()
        .limit_seconds(1800),
    test!(a_ruby_server_from_its_recipe_and_back)
        .alone()
        .when_named()
        .limit_seconds(1800),
];

/// A service, and its recipe.
struct Subject {
    recipe: &'static str,
    service: &'static str,
    /// Lines of files of the recipe, and what they are here.
    edits: &'static [(&'static str, &'static str, &'static str)],
    /// What is compared with what is beneath it. The first one wins.
    compared: &'static [&'static str],
    /// What the plan of it says.
    planned: &'static str,
    /// The class of what it risks: then it is cut, and accepted.
    accepts: Option<&'static str>,
    /// Lets the service do its work for `$0`, and prints all work so far and the setting. It has [`WAIT_FOR`].
    health: &'static str,
    /// Before anything: on a container that stayed up nothing is left of another run.
    clear: &'static str,
    before: &'static str,
    after: &'static str,
}

/// What is cut.
const SHORT_PROMISE: (&str, &str, &str) = ("recipe.toml", "length = \"8s\"", "length = \"2s\"");

const POSTGRESQL: Subject = Subject {
    recipe: "postgres-pgbench",
    service: "postgresql",
    edits: &[
        ("recipe.toml", "operations = 8000", "operations = 200"),
        SHORT_PROMISE,
    ],
    compared: &["conf.synchronous_commit=off", "--with", SLOW_DISK],
    planned: "conf.synchronous_commit=off",
    accepts: Some("bounded-loss"),
    health: "cd /; psql() { setpriv --reuid=postgres --clear-groups psql -XAtqc \"$1\"; }; \
             psql \"INSERT INTO kept VALUES ('$0')\" && psql 'SELECT word FROM kept' && psql 'SHOW synchronous_commit'",
    clear: "cd /; setpriv --reuid=postgres --clear-groups psql -XAtqc 'DROP TABLE IF EXISTS kept' \
            -c 'CREATE TABLE kept (word text)'",
    before: "on",
    after: "off",
};

const REDIS: Subject = Subject {
    recipe: "redis-aof",
    service: "redis-server",
    edits: &[
        ("recipe.toml", "operations = 10000", "operations = 400"),
        SHORT_PROMISE,
    ],
    compared: &["conf.appendfsync=everysec", "--with", SLOW_DISK],
    planned: "conf.appendfsync=everysec",
    accepts: Some("bounded-loss"),
    health: "redis-cli RPUSH kept $0 >&2 && redis-cli LRANGE kept 0 -1 && redis-cli CONFIG GET appendfsync | tail -1",
    // Debian's redis has everysec: first it is asked to sync each write.
    clear: "redis-cli DEL kept && redis-cli CONFIG SET appendfsync always",
    before: "always",
    after: "everysec",
};

/// A baseline that syncs waits 20 ms each time, by the clock.
const SLOW_DISK: &str = "disk=p50=20ms,p99=25ms";

/// The receiver answers 2 s after a mail; Postfix gives it 5 at once in the beginning, or 20.
const POSTFIX: Subject = Subject {
    recipe: "postfix-cleanup",
    service: "postfix",
    edits: &[
        ("load.sh", "smtp-sink -u nobody", "smtp-sink -w 2 -u nobody"),
        ("recipe.toml", "operations = 1500", "operations = 20"),
        ("recipe.toml", "brief = 100", "brief = 5"),
        (
            "recipe.toml",
            "load.sh 100 warmup.test",
            "load.sh 1 warmup.test",
        ),
        (
            "recipe.toml",
            "[conf.queue]",
            "[conf.initial_destination_concurrency]\nabout = \"mails at once in the beginning; the baseline is 5\"\n\
             [conf.initial_destination_concurrency.20]\nclass = \"safe\"\nfile = \"conf/main.cf\"\n\
             to = \"initial_destination_concurrency = 20\"\n\n[conf.queue]",
        ),
    ],
    compared: &["conf.initial_destination_concurrency=20"],
    planned: "conf.initial_destination_concurrency=20",
    accepts: None,
    health: "printf 'Subject: kept %s\\n\\nx\\n' $0 | su nobody -s /bin/sh -c 'sendmail -i root' && \
             wait_for \"the mail $0\" 'grep -q \"^Subject: kept $0$\" /var/mail/root' && \
             sed -n 's/^Subject: kept //p' /var/mail/root && postconf -h initial_destination_concurrency",
    clear: "systemctl restart 'postfix*' && rm -f /var/mail/root",
    before: "5",
    after: "20",
};

/// One sender, who waits for each mail: what it waits for is cleanup's sync.
const CLEANUP: Subject = Subject {
    edits: &[
        (
            "recipe.toml",
            "budget = \"15m\"",
            "budget = \"15m\"\nmain = \"accepted\"",
        ),
        ("recipe.toml", "operations = 1500", "operations = 30"),
        ("recipe.toml", "brief = 100", "brief = 5"),
        (
            "recipe.toml",
            "load.sh 100 warmup.test",
            "load.sh 1 warmup.test",
        ),
        ("recipe.toml", "length = \"6s\"", "length = \"2s\""),
    ],
    service: "postfix/cleanup",
    compared: &[
        "sync@exe:cleanup=off",
        "--with",
        SLOW_DISK,
        "--with",
        "load.sessions=1",
    ],
    planned: "sync=off (loses-on-crash)",
    accepts: Some("loses-on-crash"),
    health: "printf 'Subject: kept %s\\n\\nx\\n' $0 | su nobody -s /bin/sh -c 'sendmail -i root' && \
             wait_for \"the mail $0\" 'grep -q \"^Subject: kept $0$\" /var/mail/root' && \
             sed -n 's/^Subject: kept //p' /var/mail/root && \
             filters() { sed -n 's/^Seccomp_filters:\\t//p' /proc/$1/status; } && \
             echo $(($(filters $(pgrep -nx cleanup)) - $(filters $(cat /var/spool/postfix/pid/master.pid))))",
    before: "0",
    after: "1",
    ..POSTFIX
};

/// In each report blocks that stay lie between larger ones that go, 10 MB of them: glibc keeps these, jemalloc has them
/// elsewhere and gives them back at once where it is told to.
const RUBY: Subject = Subject {
    recipe: "puma-threads",
    service: "web",
    edits: &[
        ("recipe.toml", "operations = 10000", "operations = 400"),
        ("puma.rb", "served = 0\n", "served = 0\nKEPT = []\n"),
        (
            "puma.rb",
            "  page = rows",
            "  if served % 20 == 0\n    Array.new(500) { KEPT << \"k\" * 200; \"x\" * 20_000 }.clear\n    GC.start\n  end\n  page = rows",
        ),
    ],
    compared: &["malloc=jemalloc:dirty_decay_ms:0", "malloc=jemalloc"],
    planned: "malloc=jemalloc:dirty_decay_ms:0",
    accepts: None,
    // The page begins with what was asked for; the parent and both workers are looked at.
    health: "ask='puts Net::HTTP.get(\"127.0.0.1\", \"/\" + ARGV[0], 9292).lines.first'; \
             wait_for \"the page $0\" 'ruby -rnet/http -e \"$ask\" $0 2>/dev/null | grep -q \"of /$0$\"'; \
             procs=/sys/fs/cgroup$(systemctl show -p ControlGroup --value web)/cgroup.procs; \
             [ -e $procs ] || procs=/sys/fs/cgroup/systemd$(systemctl show -p ControlGroup --value web)/cgroup.procs; \
             wait_for 'two workers' '[ $(wc -l <$procs) = 3 ]'; \
             echo $0 >>/root/answered; cat /root/answered; \
             for pid in $(cat $procs); do grep -c 'r-xp.*/usr/lib/refit/.*jemalloc' /proc/$pid/maps; done | xargs",
    clear: "rm -f /root/answered; cd /srv/web && echo off >preload && \
            printf '[Service]\\nWorkingDirectory=/srv/web\\nEnvironment=REFIT_PORT_HTTP=9292\\nExecStart=/usr/bin/puma -C puma.rb\\n' \
            >/etc/systemd/system/web.service && systemctl daemon-reload && systemctl restart web",
    before: "0 0 0",
    after: "1 1 1",
};

/// Gives r.json the versions of packages that the booted machine has, as if the measurement had been made there; whether
/// one was another.
fn as_of_this_version(env: &TestEnv) -> bool {
    let path = env.path("r.json");
    let text = std::fs::read_to_string(&path).expect("written");
    let mut result: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    // Name or name:architecture, and version. A format of our own has `${`, which systemd-run replaces.
    let printed = inside(env, 0, &["dpkg-query", "-W"]);
    let lines = printed.lines().filter_map(|line| line.split_once('\t'));
    let here: Vec<(&str, &str)> = lines
        .map(|(name, version)| (name.split(':').next().unwrap_or(name), version))
        .collect();
    assert!(here.len() > 10, "{printed}");
    let measured = result["recipe"]["packages"].as_object_mut();
    let measured = measured.map(std::mem::take).unwrap_or_default();
    let mut differs = false;
    for (name, version) in measured {
        // postgresql-17 stands for postgresql-15.
        let stem = |name: &str| {
            let (stem, version) = name.rsplit_once('-')?;
            version.parse::<u32>().ok().map(|_| stem.to_owned())
        };
        let exact = here.iter().find(|(other, _)| *other == name);
        let kin = || {
            let of = stem(&name)?;
            here.iter()
                .find(|(other, _)| stem(other).as_ref() == Some(&of))
        };
        let (name, version) = match exact.or_else(kin) {
            Some((other, here)) => {
                differs |= *other != name || version != *here;
                ((*other).to_owned(), (*here).into())
            }
            None => (name, version),
        };
        result["recipe"]["packages"][name] = version;
    }
    std::fs::write(&path, result.to_string()).expect("the directory is ours");
    differs
}

fn from_recipe_and_back(env: &TestEnv, subject: &Subject) -> Outcome {
    // Before minutes are spent on comparing.
    up(env);
    let folder = env.path("recipe");
    expect_code(&env.refit(&["recipes", "copy", subject.recipe, &folder]), 0);
    for (file, from, to) in subject.edits {
        let file = format!("{folder}/{file}");
        let text = std::fs::read_to_string(&file).expect("copied");
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&file, text.replace(from, to)).expect("the folder is ours");
    }
    // So many rounds, however long they take.
    let words = [
        "compare",
        &folder,
        "--yes",
        "--remeasure",
        "--rounds",
        "10",
        "--json",
        "r.json",
    ];
    let prove = ["--prove", "--cuts", "24"];
    let prove = if subject.accepts.is_some() {
        &prove[..]
    } else {
        &[]
    };
    let compared = env.refit(&[&words, subject.compared, prove].concat());
    expect_code(&compared, 0);

    let put = || booted(env, &["put", &env.path("r.json"), "/root/r.json"]);
    expect_code(&put(), 0);
    if let (true, Some(class)) = (as_of_this_version(env), subject.accepts) {
        let apply = ["x", "refit", "apply", "--yes", "--from", "/root/r.json"];
        let output = booted(env, &[&apply[..], &["--accept", class]].concat());
        expect_message(&output, 2, "it was measured with another version");
    }
    expect_code(&put(), 0);
    if subject.service == "web" {
        // The server that was measured.
        let app = format!("{folder}/puma.rb");
        expect_code(&booted(env, &["put", &app, "/srv/web/puma.rb"]), 0);
    }
    let mut written: Vec<String> = Vec::new();
    let mut is_healthy = |word: &str, setting: &str| {
        written.push(word.to_owned());
        let health = format!("{WAIT_FOR} {}", subject.health);
        let found = inside(env, 0, &["sh", "-c", &health, word]);
        let expected = format!("{}\n{setting}\n", written.join("\n"));
        assert_eq!(found, expected);
    };
    inside(env, 0, &["sh", "-c", subject.clear]);
    let before = files(env);
    is_healthy("one", subject.before);
    let mut from = vec!["--from", "/root/r.json"];
    if subject.service == "web" {
        // Its recipe stands for no service.
        let plan = booted(env, &[&["x", "refit", "plan"], &from[..]].concat());
        expect_message(
            &plan,
            2,
            "name the service: refit plan --from /root/r.json SERVICE",
        );
        from.push(subject.service);
    }
    let apply = [&["refit", "apply", "--yes"], &from[..]].concat();
    let plan = booted(env, &[&["x", "refit", "plan"], &from[..]].concat());
    let text = described(&plan);
    assert!(
        text.contains(subject.planned) && text.contains("when measured again"),
        "{text}"
    );
    let mut accepted = vec!["--confirm-within", "10m"];
    if let Some(class) = subject.accepts {
        // Somebody's decision.
        expect_code(&plan, 2);
        for words in [
            // With or without a bound: "lost at most", "lost up to".
            "loss           lost ",
            &format!("to accept it: --accept {class}"),
            "disk=p50=20ms",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        inside(env, 2, &apply);
        assert_eq!(files(env), before);
        accepted.extend(["--accept", class]);
    } else {
        expect_code(&plan, 0);
    }
    inside(env, 0, &[&apply[..], &accepted].concat());
    is_healthy("two", subject.after);
    inside(env, 0, &["refit", "confirm", subject.service]);
    is_healthy("three", subject.after);
    let status = inside(env, 0, &["refit", "status", "--exit-code", subject.service]);
    let accepted = match subject.accepts {
        Some(class) => status.contains(&format!("accepted       {class}\n")),
        None => !status.contains("accepted "),
    };
    assert!(accepted && status.contains("/root/r.json"), "{status}");
    inside(env, 0, &["refit", "revert", subject.service]);
    is_healthy("four", subject.before);
    expect_same_files(env, &before);
    println!(
        "counted: {}",
        described(&compared)
            .lines()
            .take(3)
            .collect::<Vec<_>>()
            .join(" ")
    );
    Outcome::Pass
}

fn postgresql_from_its_recipe_and_back(env: &TestEnv) -> Outcome {
    require_lab(env);
    from_recipe_and_back(env, &POSTGRESQL)
}

fn redis_from_its_recipe_and_back(env: &TestEnv) -> Outcome {
    require_lab(env);
    from_recipe_and_back(env, &REDIS)
}

fn postfix_from_its_recipe_and_back(env: &TestEnv) -> Outcome {
    up(env);
    // One of the recipe's own variants stays a measurement: it would be another queue.
    let before = files(env);
    for (setting, named) in [
        ("conf.queue=tmpfs", "unused parameter: queue=tmpfs"),
        ("conf.queue_directory=/tmp", "finds its files by it"),
    ] {
        let words = ["x", "refit", "apply", "--yes", "postfix", setting];
        expect_message(&booted(env, &words), 2, named);
    }
    assert_eq!(files(env), before);
    from_recipe_and_back(env, &POSTFIX)
}

fn cleanup_of_postfix_from_its_recipe_and_back(env: &TestEnv) -> Outcome {
    require_lab(env);
    from_recipe_and_back(env, &CLEANUP)
}

fn a_ruby_server_from_its_recipe_and_back(env: &TestEnv) -> Outcome {
    up(env);
    let has_puma = booted(env, &["x", "test", "-x", "/usr/bin/puma"]);
    assert!(
        has_puma.status.success(),
        "the root of scripts/booted has no puma; make it again: scripts/booted down --wipe"
    );
    inside(env, 0, &["mkdir", "-p", "/srv/web"]);
    from_recipe_and_back(env, &RUBY)
}
