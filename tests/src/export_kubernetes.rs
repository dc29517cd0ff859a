//! `refit export kubernetes compare`: what it prints, and what it refuses.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::compared::{list, printed};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, expect_code, expect_message, expect_refused};

pub const TESTS: &[Test] = &[
    test!(words_of_others_stay_words),
    test!(each_option_is_in_its_place),
    test!(what_a_pod_cannot_do_is_refused),
    test!(a_copy_of_refit_runs),
];

const EXPORT: [&str; 5] = ["export", "kubernetes", "compare", "--image", "app:1"];

/// The Job of a manifest.
fn job(manifest: &Value) -> &Value {
    let items = list(&manifest["items"]);
    items.last().expect("it has objects")
}

fn manifest(env: &TestEnv, words: &[&str]) -> Value {
    let output = env.refit(&[&EXPORT[..], words].concat());
    expect_code(&output, 0);
    serde_json::from_str(&printed(&output)).expect("it is JSON")
}

/// A word of a command as the kubelet makes it, of these variables: `$(NAME)` is replaced where NAME is known, `$$` is
/// one `$`, and any other `$` stays (Kubernetes, third_party/forked/golang/expansion).
fn expanded(word: &str, variables: &[(&str, &str)]) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest
            .strip_prefix('(')
            .and_then(|inner| inner.split_once(')'))
        {
            match variables.iter().find(|(known, _)| *known == name) {
                Some((_, value)) => out.push_str(value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out + rest
}

fn words_of_others_stay_words(env: &TestEnv) -> Outcome {
    let hostile = [
        "$(REFIT_INDEX)",
        "$$(REFIT_NODE)$$$",
        "$",
        "\"}], \"kind\": \"ClusterRoleBinding\", \"x\": [{\"",
        "\n---\nkind: ClusterRoleBinding\n",
        "{{ .Values.x }} # !!python/object: &a *a",
        "ä \u{2028} \u{202e} \u{7f} \u{1b}[2J \t",
        "",
        "--",
        "-x",
    ];
    let words = [
        &["--seed", "0x10", "--", "sync=off", "--", "echo"],
        &hostile[..],
    ]
    .concat();
    let manifest = manifest(env, &words);
    let kinds: Vec<&str> = list(&manifest["items"])
        .iter()
        .filter_map(|item| item["kind"].as_str())
        .collect();
    assert_eq!(kinds, ["ServiceAccount", "Job"]);
    let container = &job(&manifest)["spec"]["template"]["spec"]["containers"][0];
    let variables = [("REFIT_INDEX", "3"), ("REFIT_NODE", "db1")];
    let command: Vec<String> = list(&container["command"])
        .iter()
        .map(|word| expanded(word.as_str().expect("a word"), &variables))
        .collect();
    let own = "refit compare --seed 16+3 --machine db1 --log-result 3 --quiet --dir /refit/work sync=off -- echo";
    let expected: Vec<&str> = own.split(' ').chain(hostile).collect();
    assert_eq!(command, expected);
    // All that the words begin with is what refit itself takes: a seed that is a sum.
    let words = [
        "--seed",
        "16+3",
        "--log-result",
        "3",
        "-q",
        "sync=off",
        "--rounds",
        "2",
        "--",
    ];
    let load = [&*env.program("append_log"), "log", "20"];
    let output = env.refit(&[&["compare"], &words[..], &load].concat());
    expect_code(&output, 0);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("\nrefit-result v1 begin 3 "), "{stderr}");
    Outcome::Pass
}

fn each_option_is_in_its_place(env: &TestEnv) -> Outcome {
    let plain = manifest(env, &["--", "sync=off", "--", "true"]);
    let [account, alone] = [&plain["items"][0], job(&plain)];
    assert_eq!(
        account["automountServiceAccountToken"], false,
        "{account:#}"
    );
    let pod = &alone["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false, "{pod:#}");
    assert_eq!(
        pod["serviceAccountName"], account["metadata"]["name"],
        "{pod:#}"
    );
    assert_eq!(alone["spec"]["completionMode"], "Indexed", "{alone:#}");
    assert_eq!(alone["spec"]["completions"], 2, "{alone:#}");
    for absent in [
        "hostPath",
        "initContainers",
        "nodeSelector",
        "\"namespace\"",
        "privileged",
    ] {
        assert!(!plain.to_string().contains(absent), "{absent}: {plain:#}");
    }
    // Two seeds that nobody gave are two.
    assert_ne!(plain, manifest(env, &["--", "sync=off", "--", "true"]));

    let words = "--name own -n other --create-namespace --completions 6 --refit-from image:reg.example/refit:2 \
        --work-on hostpath:/data --node-selector disk=ssd --node-selector a.b/c= --request cpu=500m,memory=1Gi \
        --limit cpu=2 --retries 4 --keep 2h --seed 7 --out own.json -- sqlite-insert";
    let words: Vec<&str> = words.split_whitespace().collect();
    let output = env.refit(&[&EXPORT[..], &words].concat());
    expect_code(&output, 0);
    assert!(output.stdout.is_empty());
    let text = fs::read_to_string(env.path("own.json")).expect("it was written");
    let full: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(full["items"][0]["kind"], "Namespace");
    let of_other = list(&full["items"]).iter().skip(1);
    of_other.for_each(|item| {
        assert_eq!(item["metadata"]["namespace"], "other");
        assert_eq!(item["metadata"]["name"], "own");
    });
    let spec = &job(&full)["spec"];
    let pod = &spec["template"]["spec"];
    let container = &pod["containers"][0];
    for (found, expected) in [
        (&spec["completions"], json!(6)),
        (&spec["backoffLimitPerIndex"], json!(4)),
        (&spec["ttlSecondsAfterFinished"], json!(7200)),
        (&pod["nodeSelector"], json!({"disk": "ssd", "a.b/c": ""})),
        (
            &container["resources"]["requests"],
            json!({"cpu": "500m", "memory": "1Gi"}),
        ),
        (&container["resources"]["limits"], json!({"cpu": "2"})),
        (
            &pod["initContainers"][0]["image"],
            json!("reg.example/refit:2"),
        ),
        (
            &pod["topologySpreadConstraints"][0]["whenUnsatisfiable"],
            json!("ScheduleAnyway"),
        ),
    ] {
        assert_eq!(*found, expected, "{full:#}");
    }
    let volumes = list(&pod["volumes"]);
    let work = volumes.iter().find(|volume| volume["name"] == "work");
    assert_eq!(work.expect("it has one")["hostPath"]["path"], "/data");
    let nodes = manifest(env, &["--nodes", "5", "--", "sync=off", "--", "true"]);
    let spread = &job(&nodes)["spec"]["template"]["spec"]["topologySpreadConstraints"][0];
    assert_eq!(
        [&spread["minDomains"], &spread["whenUnsatisfiable"]],
        [&json!(5), &json!("DoNotSchedule")]
    );
    Outcome::Pass
}

fn what_a_pod_cannot_do_is_refused(env: &TestEnv) -> Outcome {
    let tail = ["sync=off", "--", "true"];
    for (options, compare, texts) in [
        (
            &[][..],
            &["--json", "x"][..],
            &["--json", "refit pool --from kubernetes"][..],
        ),
        (&[], &["--machine", "x"], &["--machine", "node's name"]),
        (&[], &["--seed", "1"], &["--seed", "before `--`"]),
        (&[], &["--log-result", "1"], &["--log-result"]),
        (&[], &["--gate", "wall<+2%"], &["--gate", "judge the pool"]),
        (&[], &["--strict"], &["--strict"]),
        (&[], &["--prove"], &["--prove", "refit crash"]),
        (&[], &["--nonsense"], &["--nonsense"]),
        (&[], &["synk=off"], &["synk"]),
        (&["--name", "a\nb"], &[], &["--name", "at most 52"]),
        (&["--name", "x\": {"], &[], &["--name"]),
        (&["--namespace", "A"], &[], &["--namespace"]),
        (&["--create-namespace"], &[], &["--namespace"]),
        (&["--nodes", "0"], &[], &["--nodes"]),
        (
            &["--nodes", "2", "--completions", "2"],
            &[],
            &["--completions"],
        ),
        (
            &["--refit-from", "/opt/refit"],
            &[],
            &["hostpath:/PATH or image:IMAGE"],
        ),
        (&["--work-on", "hostpath:/a/../etc"], &[], &["without `..`"]),
        (
            &["--node-selector", "x"],
            &[],
            &["kubernetes.io/hostname=db1"],
        ),
        (&["--request", "cpu=lots"], &[], &["cpu=500m"]),
        (&["--keep", "soon"], &[], &["2h or 7d"]),
        (&["--out", "no/where.json"], &[], &["no/where.json"]),
    ] {
        let words = [&EXPORT[..], options, &["--"], compare, &tail].concat();
        expect_refused(env, &words, texts);
    }
    let compare = |words: &[&'static str]| [&EXPORT[..], &["--"], words].concat();
    expect_refused(env, &compare(&["sync=off"]), &["no command to compare"]);
    expect_refused(
        env,
        &compare(&["--", "true"]),
        &["nothing to compare the baseline with"],
    );
    expect_refused(
        env,
        &compare(&["sqlite-insert", "--", "true"]),
        &["a recipe has its own load"],
    );
    expect_refused(env, &compare(&["leap-second"]), &["exact answers"]);
    expect_refused(env, &EXPORT, &["WORD"]);
    // A recipe of one's own is in the image, and not here.
    manifest(env, &["--", "--yes", "./own", "sync=off"]);
    let mut bytes = env.refit_command(&compare(&["sync=off", "--", "true"]));
    bytes.arg(OsStr::from_bytes(b"\xff"));
    expect_message(&bytes.output().expect("refit starts"), 2, "is not UTF-8");
    Outcome::Pass
}

/// Of the init container.
fn a_copy_of_refit_runs(env: &TestEnv) -> Outcome {
    let copy = env.path("copy");
    let words = ["export", "kubernetes", "copy-refit", &copy];
    expect_code(&env.refit(&words), 0);
    assert_eq!(
        printed(&env.run(&[&copy, "--version"])),
        printed(&env.refit(&["--version"]))
    );
    let words = ["export", "kubernetes", "copy-refit", "/none/refit"];
    expect_refused(env, &words, &["cannot write /none/refit"]);
    Outcome::Pass
}
