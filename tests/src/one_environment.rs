//! What a program finds in its environment is the same wherever settings act: in a run, and where they are made
//! permanent.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::apply::{listing, words};
use crate::export_oci::exported;
use crate::locations::system_library;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message};
use crate::{apply_postfix, apply_postgresql, apply_wrapper};

pub const TESTS: &[Test] = &[
    test!(a_program_has_the_same_variables_on_every_ground),
    test!(a_zone_that_is_not_there_is_refused_on_every_ground),
];

/// What is there before the settings.
const THERE: [(&str, &str); 3] = [
    ("LD_PRELOAD", "/lib64/inherited.so"),
    ("GLIBC_TUNABLES", "glibc.pthread.rseq=0"),
    ("MALLOC_CONF", "narenas:7"),
];

/// The variables that are compared.
const NAMES: [&str; 5] = ["LD_PRELOAD", "GLIBC_TUNABLES", "MALLOC_CONF", "TZ", "WORD"];

type Variables = BTreeMap<String, String>;

/// The compared ones, libraries by their names alone: each ground has its own copies.
fn compared(all: impl IntoIterator<Item = (String, String)>) -> Variables {
    let names = |value: &str| -> String {
        let paths = value.split(':').map(Path::new);
        let names = paths.filter_map(|path| path.file_name()?.to_str());
        let theirs = names.filter(|name| !name.starts_with("librefit-"));
        theirs.collect::<Vec<_>>().join(":")
    };
    all.into_iter()
        .filter(|(name, _)| NAMES.contains(&&**name))
        .map(|(name, value)| match &*name {
            "LD_PRELOAD" => (name, names(&value)),
            _ => (name, value),
        })
        .filter(|(_, value)| !value.is_empty())
        .collect()
}

fn pairs(lines: &str) -> Vec<(String, String)> {
    let pairs = lines.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
}

fn there() -> impl Iterator<Item = (String, String)> {
    THERE
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
}

fn in_a_run(env: &TestEnv, settings: &[&str], is_with: bool) -> Variables {
    let mut run =
        env.refit_command(&[&["run", "--quiet"], settings, &["--", "/usr/bin/env"]].concat());
    for (name, value) in THERE {
        match is_with {
            true => run.env(name, value),
            false => run.env_remove(name),
        };
    }
    let output = run.output().expect("refit starts");
    expect_code(&output, 0);
    compared(pairs(&String::from_utf8_lossy(&output.stdout)))
}

/// A change of a service in a tree that has this machine's libraries too.
fn applied(env: &TestEnv, root: &str, service: &str, settings: &[&str], libraries: &[&str]) {
    for library in libraries {
        let copy = format!("{root}{library}");
        let directory = Path::new(&copy).parent().expect("it has one");
        fs::create_dir_all(directory).expect("the tree is ours");
        fs::copy(library, &copy).expect("the library is there");
    }
    let apply = words("apply", root, &[&["--yes", service], settings].concat());
    expect_code(&env.refit(&apply), 0);
}

fn read(root: &str, path: &str) -> String {
    fs::read_to_string(Path::new(root).join(path)).expect("it is there")
}

/// Of `Environment=` lines whose words are in quotes.
fn of_a_unit(root: &str) -> Variables {
    let mut all: Vec<_> = there().collect();
    for line in read(root, crate::apply::DROP_IN).lines() {
        if let Some(word) = line.strip_prefix("Environment=\"") {
            let word = word.strip_suffix('"').expect("a closing quote");
            let plain = word.replace("\\\"", "\"").replace("%%", "%");
            all.extend(pairs(&plain));
        }
    }
    compared(all)
}

fn of_a_script(env: &TestEnv, script: &str) -> Variables {
    // The real program is env itself, which ld.so would give the libraries.
    let text = fs::read_to_string(script).expect("it is there");
    let (head, _) = text.rsplit_once("exec ").expect("it starts a program");
    let head = env.file("script", &format!("{head}/usr/bin/env -u _\n"));
    let mut shell = env.command("/bin/sh");
    let output = shell.arg(head).envs(THERE).output().expect("a shell");
    compared(pairs(&String::from_utf8_lossy(&output.stdout)))
}

/// `NAME = 'VALUE'`, the last one counts.
fn of_a_cluster(root: &str) -> Variables {
    let text = read(root, apply_postgresql::ENVIRONMENT);
    let lines = text.lines().filter_map(|line| line.split_once(" = "));
    compared(lines.map(|(name, value)| {
        let value = value.trim_matches('\'').replace("''", "'");
        (name.to_owned(), value.replace("\\\\", "\\"))
    }))
}

/// Elements of `import_environment`, in braces where they hold blanks.
fn of_all_daemons(root: &str) -> Variables {
    let text = read(root, apply_postfix::MAIN);
    let line = text
        .lines()
        .rfind(|line| line.starts_with("import_environment"));
    let mut rest = line
        .expect("it has one")
        .split_once(" = ")
        .expect("a value")
        .1;
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (element, after) = match rest.strip_prefix("{ ") {
            Some(braced) => braced.split_once(" }").expect("closed"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        all.extend(pairs(&element.replace("$$", "$")));
        rest = after.trim_start();
    }
    compared(all)
}

fn of_a_pod(env: &TestEnv, settings: &[&str]) -> Variables {
    let there: Vec<Value> =
        (there().map(|(name, value)| json!({"name": name, "value": value}))).collect();
    let object = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "n"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {
            "containers": [{"name": "a", "image": "i", "env": there}],
        }}},
    });
    let file = env.file("w.json", &object.to_string());
    let library = "registry.example/l:1:/lib64/libjemalloc.so.2";
    let own = [
        "export",
        "kubernetes",
        "apply",
        "--of",
        &file,
        "--form",
        "merge",
        "--library",
        library,
    ];
    let output = env.refit(&[&own[..], settings].concat());
    expect_code(&output, 0);
    let patch: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let of_container = &patch["spec"]["template"]["spec"]["containers"][0]["env"];
    let changed = of_container
        .as_array()
        .expect("variables")
        .iter()
        .map(|one| {
            let text = |key: &str| one[key].as_str().expect("text").replace("$$", "$");
            (text("name"), text("value"))
        });
    compared(self::there().chain(changed))
}

fn a_program_has_the_same_variables_on_every_ground(env: &TestEnv) -> Outcome {
    let jemalloc = system_library("libjemalloc.so.2");
    let own = system_library("libm.so.6");
    let preload = format!("preload={own}");
    let libraries = [&*jemalloc, &*own];
    let cases: [&[&str]; 5] = [
        &[&preload, "malloc=jemalloc"],
        &["malloc=jemalloc:narenas:2,dirty_decay_ms:0", &preload],
        &[
            "malloc=glibc:arena_max=2",
            "tz=UTC",
            "env.WORD=a b%c\"$HOME,",
        ],
        &["env.GLIBC_TUNABLES=glibc.malloc.tcache_count=0"],
        &["tz=Europe/Berlin", "env.WORD=it's"],
    ];
    for (index, settings) in cases.iter().enumerate() {
        let measured = in_a_run(env, settings, true);
        assert!(measured.len() > 2, "{measured:?}");
        let name = |kind: &str| format!("{kind}-{index}");

        let root = crate::apply::tree(env, &name("unit"));
        let lines = THERE.map(|(name, value)| format!("Environment={name}={value}\n"));
        let unit = format!("[Service]\nExecStart=/bin/a\n{}", lines.concat());
        fs::write(format!("{root}/usr/lib/systemd/system/a.service"), unit).expect("ours");
        applied(env, &root, "a", settings, &libraries);
        assert_eq!(of_a_unit(&root), measured, "a unit, {settings:?}");

        let root = apply_wrapper::tree(env, &name("wrapper"));
        applied(env, &root, apply_wrapper::MOVED, settings, &libraries);
        let script = format!("{root}/{}", apply_wrapper::PLACE);
        assert_eq!(
            of_a_script(env, &script),
            measured,
            "a wrapper, {settings:?}"
        );

        let root = apply_postgresql::tree(env, &name("postgresql"));
        let lines = THERE.map(|(name, value)| format!("{name} = '{value}'\n"));
        fs::write(
            format!("{root}/{}", apply_postgresql::ENVIRONMENT),
            lines.concat(),
        )
        .expect("ours");
        applied(env, &root, "postgresql@15-main", settings, &libraries);
        assert_eq!(of_a_cluster(&root), measured, "PostgreSQL, {settings:?}");

        let root = apply_postfix::tree(env, &name("postfix"));
        let main_cf = format!("{root}/{}", apply_postfix::MAIN);
        let there = THERE
            .map(|(name, value)| format!("{name}={value}"))
            .join(" ");
        fs::write(main_cf, format!("import_environment = {there}\n")).expect("ours");
        applied(env, &root, "postfix", settings, &libraries);
        assert_eq!(of_all_daemons(&root), measured, "Postfix, {settings:?}");

        // What an image has of its own is not known: it is replaced, and refit tells so.
        let (options, _) = exported(env, settings);
        let variables = options.windows(2).filter(|pair| pair[0] == "-e");
        let variables = variables.flat_map(|pair| pairs(&pair[1]));
        let alone = in_a_run(env, settings, false);
        assert_eq!(compared(variables), alone, "a container, {settings:?}");

        // A pod's libraries come from an image: one, the allocator's.
        let of_pods: Vec<&str> = settings
            .iter()
            .copied()
            .filter(|one| *one != preload)
            .collect();
        let measured = in_a_run(env, &of_pods, true);
        assert_eq!(of_a_pod(env, &of_pods), measured, "a pod, {settings:?}");
    }
    Outcome::Pass
}

fn a_zone_that_is_not_there_is_refused_on_every_ground(env: &TestEnv) -> Outcome {
    let meant = "tz=Europe/Nowhere: there is no such time zone in ";
    let run = env.refit(&["run", "tz=Europe/Nowhere", "--", "true"]);
    expect_message(&run, 125, meant);
    let root = apply_wrapper::tree(env, "tree");
    let zones = format!("{root}/usr/share/zoneinfo/Europe");
    fs::create_dir_all(&zones).expect("the tree is ours");
    fs::write(format!("{zones}/Rome"), "").expect("likewise");
    let before = listing(&root);
    for service in ["a", apply_wrapper::MOVED] {
        let apply = words("apply", &root, &["--yes", service, "tz=Europe/Nowhere"]);
        expect_message(&env.refit(&apply), 2, meant);
        assert_eq!(listing(&root), before);
    }
    let apply = words("apply", &root, &["--yes", "a", "tz=Europe/Rome"]);
    expect_code(&env.refit(&apply), 0);
    Outcome::Pass
}
