use std::ffi::OsString;

use super::operations::set;
use super::*;

fn settings(words: &[&str]) -> Settings {
    Settings::parse(words.iter().map(OsString::from)).unwrap()
}

fn profile<'a>(settings: &'a Settings) -> Profile<'a> {
    Profile {
        settings,
        library: Some(Library {
            image: "example/allocators:1".to_owned(),
            path: "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2".to_owned(),
        }),
        seccomp_profile: "refit/sync-off.json",
        refit: Some("/usr/bin/refit"),
        container: None,
    }
}

/// Two containers: one with variables, and one with nothing.
fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"template": {"spec": {
            "containers": [
                {
                    "name": "app",
                    "image": "app",
                    "command": ["/app", "--fast"],
                    "env": [
                        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                        {"name": "LD_PRELOAD", "value": "/own/lib.so"},
                    ],
                    "securityContext": {"runAsUser": 1000},
                },
                {"name": "side", "image": "side"},
            ],
        }}},
    })
}

/// Applies RFC 6902, as far as it is used here; empty lists are left out, as the API server does.
fn applied(object: &Value, operations: &[Value]) -> Value {
    let mut object = object.clone();
    for operation in operations {
        let path = operation["path"].as_str().unwrap();
        let found = object.pointer(path).cloned();
        match operation["op"].as_str().unwrap() {
            "test" => assert_eq!(found.as_ref(), Some(&operation["value"]), "{operation}"),
            "add" => set(&mut object, path, operation["value"].clone()),
            "replace" => {
                assert!(found.is_some(), "{operation}");
                set(&mut object, path, operation["value"].clone());
            }
            "remove" => {
                assert!(found.is_some(), "{operation}");
                let (parent, key) = path.rsplit_once('/').unwrap();
                match object.pointer_mut(parent).unwrap() {
                    Value::Object(map) => drop(map.remove(key)),
                    Value::Array(list) => drop(list.remove(key.parse().unwrap())),
                    other => panic!("{other}"),
                }
            }
            other => panic!("{other}"),
        }
    }
    without_empty_lists(&mut object);
    object
}

fn without_empty_lists(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
            map.values_mut().for_each(without_empty_lists);
        }
        Value::Array(list) => list.iter_mut().for_each(without_empty_lists),
        _ => {}
    }
}

fn variables(object: &Value, container: usize) -> Vec<String> {
    let all = &object["spec"]["template"]["spec"]["containers"][container]["env"];
    let shown = |one: &Value| {
        format!(
            "{}={}",
            one["name"].as_str().unwrap(),
            one["value"].as_str().unwrap_or("…")
        )
    };
    all.as_array().into_iter().flatten().map(shown).collect()
}

#[test]
fn an_allocator_is_brought_and_what_was_preloaded_stays_after_it() {
    let settings = settings(&["malloc=jemalloc"]);
    let before = deployment();
    let patch = patch(&before, &profile(&settings)).unwrap();
    let after = applied(&before, &patch.operations);
    assert_eq!(after, patch.after);
    let library = "/refit/lib/libjemalloc.so.2";
    assert_eq!(
        variables(&after, 0),
        ["KEY=…", &format!("LD_PRELOAD={library}:/own/lib.so")]
    );
    assert_eq!(variables(&after, 1), [format!("LD_PRELOAD={library}")]);
    let pod = &after["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"], json!([{"name": NAME, "emptyDir": {}}]));
    assert_eq!(pod["initContainers"][0]["image"], "example/allocators:1");
    assert_eq!(pod["containers"][1]["volumeMounts"][0]["mountPath"], MOUNT);
    assert!(
        patch
            .notes
            .iter()
            .any(|note| note.contains("/own/lib.so already"))
    );
    assert_eq!(applied(&after, &patch.inverse), before, "taken back");
}

#[test]
fn every_setting_is_taken_back_and_twice_is_nothing_to_do() {
    let words = [
        "malloc=jemalloc",
        "env.A=$HOME",
        "tz=UTC",
        "sync=off",
        "thp=never",
    ];
    let settings = settings(&words);
    let mut profile = profile(&settings);
    profile.container = Some("app");
    let before = deployment();
    let patch = patch(&before, &profile).unwrap();
    let after = applied(&before, &patch.operations);
    assert_eq!(applied(&after, &patch.inverse), before);
    let app = &after["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        app["command"],
        json!([
            "/usr/bin/refit",
            "run",
            "--quiet",
            "thp=never",
            "--",
            "/app",
            "--fast"
        ])
    );
    assert_eq!(app["securityContext"]["runAsUser"], 1000);
    assert_eq!(
        app["securityContext"]["seccompProfile"]["type"],
        "Localhost"
    );
    assert!(variables(&after, 0).contains(&"A=$$HOME".to_owned()));
    assert_eq!(
        after["spec"]["template"]["spec"]["containers"][1],
        before["spec"]["template"]["spec"]["containers"][1]
    );
    let error = super::patch(&after, &profile).unwrap_err();
    assert!(matches!(error, WorkloadError::Nothing(_)), "{error}");
}

#[test]
fn a_merge_has_what_is_new_and_nothing_of_what_was() {
    let settings = settings(&["malloc=jemalloc", "sync=off"]);
    let patch = patch(&deployment(), &profile(&settings)).unwrap();
    let merge = patch.strategic();
    let pod = &merge["spec"]["template"]["spec"];
    let names = |list: &Value| -> Vec<String> {
        let all = list.as_array().into_iter().flatten();
        all.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&pod["containers"]), ["app", "side"]);
    assert_eq!(
        names(&pod["containers"][0]["env"]),
        ["LD_PRELOAD"],
        "{merge:#}"
    );
    assert_eq!(
        pod["containers"][0]["env"][0]["value"],
        "/refit/lib/libjemalloc.so.2:/own/lib.so"
    );
    assert_eq!(pod["containers"][0]["image"], Value::Null);
    assert_eq!(
        pod["containers"][0]["securityContext"],
        json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "refit/sync-off.json"}})
    );
    assert_eq!(names(&pod["volumes"]), [NAME]);
    let component = patch.component();
    assert_eq!(component["patches"][0]["patch"], merge.to_string());
}

#[test]
fn the_pods_of_a_cron_job_and_of_a_job_are_patched_where_they_are() {
    let settings = settings(&["malloc=jemalloc", "tz=UTC"]);
    let template = deployment()["spec"]["template"].clone();
    let about = json!({"name": "renew", "namespace": "n"});
    let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": about,
        "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": {"template": template}});
    for (before, pod) in [
        (&cron, "/spec/jobTemplate/spec/template/spec"),
        (&job, "/spec/template/spec"),
    ] {
        let patch = patch(before, &profile(&settings)).unwrap();
        let after = applied(before, &patch.operations);
        assert_eq!(after, patch.after);
        assert_eq!(applied(&after, &patch.inverse), *before, "taken back");
        let merged = patch.strategic();
        for object in [&after, &merged] {
            let containers = &object.pointer(pod).unwrap()["containers"];
            let env = containers[1]["env"].as_array().unwrap();
            assert!(
                env.contains(&json!({"name": "TZ", "value": "UTC"})),
                "{object:#}"
            );
        }
        let keys = merged["spec"].as_object().unwrap().keys();
        assert_eq!(keys.len(), 1, "{merged:#}");
        let is_told = patch
            .notes
            .iter()
            .any(|note| note.contains("a Job that exists"));
        assert_eq!(is_told, before["kind"] == "Job");
    }
    let error = policy(&cron, &profile(&settings)).unwrap_err().to_string();
    assert!(error.contains("patch the CronJob itself"), "{error}");
}

#[test]
fn what_would_not_be_in_effect_or_replace_something_is_refused() {
    let refused = |words: &[&str], change: fn(&mut Value), part: &str| {
        let settings = settings(words);
        let mut object = deployment();
        change(&mut object["spec"]["template"]["spec"]);
        let error = patch(&object, &profile(&settings)).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    };
    refused(
        &["sync=off"],
        |pod| pod["runtimeClassName"] = json!("gvisor"),
        "a kernel of its own",
    );
    refused(
        &["sync=off"],
        |pod| pod["containers"][1]["securityContext"] = json!({"privileged": true}),
        "privileged",
    );
    refused(
        &["sync=off"],
        |pod| {
            pod["securityContext"] =
                json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "mine.json"}})
        },
        "mine.json",
    );
    refused(
        &["malloc=jemalloc"],
        |pod| pod["containers"][0]["env"][1] = json!({"name": "LD_PRELOAD", "valueFrom": {}}),
        "comes from elsewhere",
    );
    refused(&["env.KEY=1"], |_| {}, "KEY comes from elsewhere");
    refused(&["thp=never"], |_| {}, "its command is that of its image");
    refused(&["disk=4ms"], |_| {}, "`disk=");
    refused(
        &["sync@exe:app=off"],
        |_| {},
        "possible are sync=off, malloc=",
    );
    let settings = settings(&["malloc=jemalloc"]);
    let mut missing = profile(&settings);
    missing.library = None;
    assert!(
        patch(&deployment(), &missing)
            .unwrap_err()
            .to_string()
            .contains("--library")
    );
    missing.container = Some("none");
    missing.library = profile(&settings).library;
    let error = patch(&deployment(), &missing).unwrap_err().to_string();
    assert!(error.contains("app, side"), "{error}");
    let pod = json!({"kind": "Pod", "metadata": {"name": "a"}});
    let error = patch(&pod, &profile(&settings)).unwrap_err().to_string();
    assert!(error.contains("pod/a is none of"), "{error}");
}

#[test]
fn an_empty_variable_is_one_without_a_value() {
    let settings = settings(&["malloc=jemalloc"]);
    let mut before = deployment();
    let env = &mut before["spec"]["template"]["spec"]["containers"][0]["env"];
    env[1] = json!({"name": "LD_PRELOAD"});
    let patch = patch(&before, &profile(&settings)).unwrap();
    let after = applied(&before, &patch.operations);
    assert_eq!(
        variables(&after, 0)[1],
        "LD_PRELOAD=/refit/lib/libjemalloc.so.2"
    );
    assert_eq!(applied(&after, &patch.inverse), before);
}

#[test]
fn options_of_glibc_need_no_library() {
    let settings = settings(&["malloc=glibc:arena_max=2"]);
    let mut profile = profile(&settings);
    profile.library = None;
    let patch = patch(&deployment(), &profile).unwrap();
    assert_eq!(variables(&patch.after, 1).len(), 1, "{:#}", patch.after);
    let pod = &patch.after["spec"]["template"]["spec"];
    assert_eq!([&pod["volumes"], &pod["initContainers"]], [&Value::Null; 2]);
    assert_eq!(variables(&patch.after, 0)[1], "LD_PRELOAD=/own/lib.so");
}
