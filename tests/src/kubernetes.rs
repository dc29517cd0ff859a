//! A real Kubernetes of two nodes: `scripts/cluster`. Only by `make test-kubernetes`.

use std::fs;

use serde_json::Value;

use crate::cluster::{
    cluster, comparing, index, kubectl, pods, program, text, wait_for, wait_for_job,
};
use crate::compared::{list, messages, number, printed};
use crate::runner::{Outcome, Test};
use crate::sys;
use crate::test;
use crate::test_env::{
    TestEnv, described, expect_code, expect_message, expect_refused, refit_path,
};

pub const TESTS: &[Test] = &[
    test!(indexes_that_were_killed_and_cut_off_count_once)
        .alone()
        .when_named()
        .limit_seconds(900),
    test!(what_a_cluster_refuses_is_explained)
        .alone()
        .when_named()
        .limit_seconds(300),
];

const IMAGE: &str = "docker.io/local/perl:1";

/// Words that Kubernetes, a shell, JSON or YAML would change.
const HOSTILE: [&str; 6] = [
    "$(REFIT_INDEX) $$(REFIT_INDEX) $$ $",
    "\"}]}, \"kind\": \"ClusterRole\"",
    "---\nkind: ClusterRole\n",
    "{{ .Values }} ' ` \\ \t ä \u{2028}",
    "",
    "--",
];

/// Ends with 1 unless the words after it arrive as they were, and else appends lines and syncs each.
const LOAD: &str = "my $all = join '|', @ARGV; $all eq pack('H*', 'EXPECTED') or die \"not as typed: $all\"; \
    open my $log, '>>', 'log' or die; \
    for (1..LINES) { syswrite $log, \"line\\n\"; $log->sync or die }";

/// The words for `refit compare`: `sync=off` beneath this many lines of a log, with words that must arrive as they are.
fn load(lines: u32) -> Vec<String> {
    let expected: String = HOSTILE
        .join("|")
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let load = LOAD
        .replace("EXPECTED", &expected)
        .replace("LINES", &lines.to_string());
    let words = ["sync=off", "--", "perl", "-MIO::Handle", "-e", &load, "--"];
    words
        .into_iter()
        .chain(HOSTILE)
        .map(str::to_owned)
        .collect()
}

/// Makes the Job, and hands it to the cluster; the manifest's path.
fn started(env: &TestEnv, options: &[&str], compare: &[&str]) -> String {
    let manifest = env.path("manifest.json");
    let exported = [
        &["export", "kubernetes", "compare", "--out", &manifest],
        options,
        &["--"],
        compare,
    ];
    expect_code(&env.refit(&exported.concat()), 0);
    kubectl(env, &["apply", "-f", &manifest]);
    manifest
}

fn indexes_that_were_killed_and_cut_off_count_once(env: &TestEnv) -> Outcome {
    const SEED: u64 = 71_000;
    const JOB: &str = "spread";
    expect_code(&cluster(env, &["put", &refit_path()]), 0);
    let words = load(150);
    let words: Vec<&str> = ["--rounds", "12", "--budget", "60s"]
        .into_iter()
        .chain(words.iter().map(String::as_str))
        .collect();
    let seed = SEED.to_string();
    let options = [
        &[
            "--name",
            JOB,
            "--namespace",
            "measured",
            "--create-namespace",
            "--seed",
            &*seed,
        ][..],
        &[
            "--completions",
            "6",
            "--image",
            IMAGE,
            "--refit-from",
            "image:docker.io/local/refit:1",
        ],
        &[
            "--request",
            "cpu=100m,memory=32Mi",
            "--limit",
            "memory=512Mi",
        ],
        &["--node-selector", "kubernetes.io/os=linux"],
    ]
    .concat();
    let manifest = started(env, &options, &words);
    let own = program(env, "kubectl", "");
    let pool = [
        "pool",
        "--from",
        "kubernetes",
        "job/spread",
        "--namespace",
        "measured",
        "--kubectl",
        &own,
    ];
    expect_refused(
        env,
        &pool,
        &[
            "job/spread is not finished",
            "wait --for=condition=complete",
        ],
    );

    // One index is killed in the middle, and a node's power is cut in the middle of another.
    let killed = wait_for(env, "refit of index 0", || comparing(SEED, 0));
    sys::kill_hard(i32::try_from(killed).expect("process ids are ints"));
    // That one was killed: it is counted by itself.
    let cut = wait_for(env, "index on node2 after one that completed there", || {
        (1..6).find(|index| is_held_on_second(env, JOB, SEED, *index))
    });
    // Whoever runs in a pod has no rights.
    let pod = pods(env, JOB)
        .into_iter()
        .find(|pod| index(pod) == cut && text(pod, "/status/phase") == "Running")
        .expect("it runs");
    let inside = [
        "exec",
        "--namespace=measured",
        text(&pod, "/metadata/name"),
        "--",
        "ls",
        "/var/run/secrets",
    ];
    let secrets = cluster(env, &[&["kubectl"], &inside[..]].concat());
    assert!(
        messages(&secrets).contains("No such file"),
        "{}",
        described(&secrets)
    );
    expect_code(&cluster(env, &["node", "kill", "2"]), 0);
    let is_ready = |node: &str, expected: &str| {
        let condition = "jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        let ready = kubectl(env, &["get", "node", node, "-o", condition]);
        (ready == expected).then_some(())
    };
    wait_for(env, "notice of node2's end", || {
        is_ready("node2", "Unknown")
    });
    expect_code(&cluster(env, &["node", "start", "2"]), 0);
    wait_for(env, "node2 again", || is_ready("node2", "True"));
    wait_for_job(env, "measured", JOB, "Complete");

    let all = pods(env, JOB);
    let of = |index_of: u64, phase: &str| {
        all.iter()
            .filter(|pod| index(pod) == index_of && text(pod, "/status/phase") == phase)
            .count()
    };
    for again in [0, cut] {
        assert_eq!(
            [of(again, "Failed"), of(again, "Succeeded")],
            [1, 1],
            "{again}: {all:#?}"
        );
    }
    let output = env.refit(&[&pool[..], &["--json", "pool.json"]].concat());
    expect_code(&output, 0);
    let pooled: Value =
        serde_json::from_str(&fs::read_to_string(env.path("pool.json")).expect("it was written"))
            .expect("it is JSON");
    let files: Vec<&str> = list(&pooled["results"])
        .iter()
        .filter_map(|result| result["file"].as_str())
        .collect();
    for index in 0..6 {
        let file = format!("job/spread index {index}");
        let times = files.iter().filter(|one| **one == file).count();
        assert_eq!(times, 1, "{files:?}");
    }
    assert_eq!(files.len(), 6, "{files:?}");
    let seeds = list(&pooled["results"])
        .iter()
        .map(|one| one["seed"].as_u64());
    let mut seeds: Vec<u64> = seeds.flatten().collect();
    seeds.sort_unstable();
    assert_eq!(seeds, (SEED..SEED + 6).collect::<Vec<_>>());
    // Each node's name and disk, and the difference.
    let machines = list(&pooled["machines"]);
    let disk = |name: &str| {
        let machine = machines.iter().find(|machine| machine["name"] == name);
        let machine = machine.unwrap_or_else(|| panic!("no {name}: {machines:#?}"));
        text(machine, "/fixed/disk").to_owned()
    };
    assert_eq!(machines.len(), 2, "{machines:#?}");
    assert_eq!(disk("node2"), "tmpfs");
    assert_ne!(disk("node1"), "tmpfs");
    let variant = &pooled["variants"][0];
    let change = |name: &str| {
        let of = machines.iter().position(|machine| machine["name"] == name);
        let mut effects = list(&variant["machines"]).iter();
        let effect = effects.find(|effect| effect["machine"].as_u64() == of.map(|of| of as u64));
        number(&effect.unwrap_or_else(|| panic!("{variant:#}"))["change"])
    };
    let changes = [change("node1"), change("node2")];
    assert!(
        changes[0] < -0.3 && changes[0] < changes[1] - 0.2,
        "{changes:?}"
    );
    let told = printed(&env.refit(&["report", &env.path("pool.json")]));
    assert!(told.contains("tmpfs (node2)"), "{told}");

    // Nothing is left.
    kubectl(env, &["delete", "-f", &manifest, "--timeout=60s"]);
    wait_for(env, "empty cluster", || {
        let left = "pods,jobs,serviceaccounts";
        let left = kubectl(
            env,
            &[
                "get",
                left,
                "-A",
                "-l",
                "app.kubernetes.io/name=refit-compare",
                "-o",
                "name",
            ],
        );
        let namespaces = kubectl(env, &["get", "namespaces", "-o", "name"]);
        (left.is_empty() && !namespaces.contains("measured")).then_some(())
    });
    println!("counted: 6 indexes of 2 nodes, {changes:?}");
    Outcome::Pass
}

/// Stops the index where it runs, so that it is in the middle for as long as it takes; it goes on unless it runs on node2
/// after another one that completed there.
fn is_held_on_second(env: &TestEnv, job: &str, seed: u64, index_of: u64) -> bool {
    let Some(refit) = comparing(seed, index_of) else {
        return false;
    };
    let pid = i32::try_from(refit).expect("process ids are ints");
    sys::send_signal(pid, libc::SIGSTOP);
    let pods = pods(env, job);
    let on_second = |phase: &str| {
        let of = |pod: &&Value| {
            text(pod, "/spec/nodeName") == "node2" && text(pod, "/status/phase") == phase
        };
        pods.iter().filter(of).map(index).collect::<Vec<_>>()
    };
    // The cluster may still call it pending.
    let is_there = ["Pending", "Running"]
        .iter()
        .any(|phase| on_second(phase).contains(&index_of));
    if !is_there || on_second("Succeeded").is_empty() {
        sys::send_signal(pid, libc::SIGCONT);
        return false;
    }
    on_second("Running").contains(&index_of) && comparing(seed, index_of) == Some(refit)
}

fn what_a_cluster_refuses_is_explained(env: &TestEnv) -> Outcome {
    expect_code(&cluster(env, &["put", &refit_path()]), 0);
    let own = program(env, "kubectl", "--namespace=default");
    let stranger = program(env, "kubectl-of-nobody", "--namespace=default --as=nobody");
    for (kubectl, words, texts) in [
        (
            &own,
            &["job/none"][..],
            &["(NotFound)", "get jobs lists the Jobs"][..],
        ),
        (
            &own,
            &["job/none", "--context", "none"],
            &["none", "does not exist"],
        ),
        (
            &stranger,
            &["job/none"],
            &["(Forbidden)", "auth can-i --list"],
        ),
    ] {
        let pool = ["pool", "--from", "kubernetes", "--kubectl", kubectl];
        expect_refused(env, &[&pool[..], words].concat(), texts);
    }
    // The server takes every object of a manifest with all options, which are checked by its schema.
    let options = [
        &[
            "--name",
            "all",
            "--nodes",
            "2",
            "--image",
            IMAGE,
            "--refit-from",
            "hostpath:/opt/refit",
        ][..],
        &[
            "--work-on",
            "hostpath:/var/lib",
            "--request",
            "cpu=1",
            "--limit",
            "cpu=2,memory=1Gi",
        ],
        &[
            "--node-selector",
            "disk=ssd",
            "--retries",
            "1",
            "--keep",
            "2h",
            "--out",
            "all.json",
        ],
        &["--", "sync=off", "--", "true"],
    ];
    expect_code(
        &env.refit(&[&["export", "kubernetes", "compare"], &options.concat()[..]].concat()),
        0,
    );
    let dry = [
        "apply",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        &env.path("all.json"),
    ];
    kubectl(env, &dry);

    // Every index fails: each is named, and none is counted.
    let failing = [
        "--name",
        "fails",
        "--completions",
        "2",
        "--retries",
        "0",
        "--image",
        IMAGE,
        "--refit-from",
        "hostpath:/opt/refit",
    ];
    let manifest = started(env, &failing, &["sync=off", "--", "/bin/none"]);
    wait_for_job(env, "default", "fails", "Failed");
    let output = env.refit(&[
        "pool",
        "--from",
        "kubernetes",
        "job/fails",
        "--kubectl",
        &own,
    ]);
    expect_message(&output, 2, "results that count: 0");
    for index in 0..2 {
        expect_message(&output, 2, &format!("index {index} is not counted"));
    }
    expect_message(&output, 2, "exit code 2");
    kubectl(env, &["delete", "-f", &manifest]);
    Outcome::Pass
}
