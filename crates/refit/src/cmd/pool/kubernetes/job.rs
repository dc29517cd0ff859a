//! Which pods of a Job count.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// More indexes than `refit export kubernetes compare` makes.
const MOST: u32 = 10_000;

/// A pod whose result counts.
#[derive(Debug, PartialEq, Eq)]
pub struct Counted {
    pub index: u32,
    pub pod: String,
    pub node: String,
}

/// An index that does not count.
#[derive(Debug, PartialEq, Eq)]
pub struct Left {
    pub index: u32,
    pub why: String,
}

/// What is read of a Job.
#[derive(Deserialize)]
pub struct Job {
    metadata: Metadata,
    #[serde(default)]
    spec: JobSpec,
    #[serde(default)]
    status: JobStatus,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    uid: String,
    annotations: BTreeMap<String, String>,
    owner_references: Vec<Owner>,
}

#[derive(Deserialize)]
struct Owner {
    uid: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct JobSpec {
    completion_mode: String,
    completions: u32,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct JobStatus {
    conditions: Vec<Condition>,
    succeeded: u32,
    completed_indexes: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

#[derive(Deserialize)]
struct Pods {
    items: Vec<Pod>,
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    phase: String,
    reason: String,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ContainerStatus {
    state: ContainerState,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ContainerState {
    terminated: Option<Terminated>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Terminated {
    exit_code: i32,
    reason: String,
    finished_at: Option<String>,
}

impl Job {
    /// What kubectl printed of it.
    pub fn parse(name: &str, text: &str) -> Result<Job> {
        let job: Job = serde_json::from_str(text)
            .with_context(|| format!("what kubectl printed is not the Job {name}"))?;
        if job.metadata.name != name || job.metadata.uid.is_empty() {
            bail!("what kubectl printed is not the Job {name}");
        }
        if job.spec.completion_mode != "Indexed" || !(1..=MOST).contains(&job.spec.completions) {
            bail!(
                "job/{name} is not one that refit export kubernetes compare made: its pods have no index\n  make one: refit export kubernetes compare --image IMAGE -- VARIANT… -- COMMAND"
            );
        }
        Ok(job)
    }

    /// It is, where it failed too: other indexes completed.
    pub fn is_finished(&self, kubectl: &str) -> Result<()> {
        let is_end =
            |one: &Condition| matches!(&*one.r#type, "Complete" | "Failed") && one.status == "True";
        if self.status.conditions.iter().any(is_end) {
            return Ok(());
        }
        let name = &self.metadata.name;
        bail!(
            "job/{name} is not finished: {} of {} indexes have completed\n  wait for it: {kubectl} wait --for=condition=complete --timeout=1h job/{name}\n  see what it waits for: {kubectl} get pods --selector batch.kubernetes.io/job-name={name}",
            self.status.succeeded,
            self.spec.completions
        )
    }

    /// Whether its pod succeeded, though the pod may be gone. As `0-2,5`.
    fn has_completed(&self, index: u32) -> bool {
        self.status.completed_indexes.split(',').any(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| text.parse::<u32>().ok();
            number(first)
                .zip(number(last))
                .is_some_and(|(first, last)| (first..=last).contains(&index))
        })
    }
}

/// Of each index the one pod that succeeded, or why it does not count. `pods` is a list of kubectl's.
pub fn count(job: &Job, pods: &str, without: &[u32]) -> Result<(Vec<Counted>, Vec<Left>)> {
    let pods: Pods =
        serde_json::from_str(pods).context("what kubectl printed is not a list of pods")?;
    if let Some(unknown) = without.iter().find(|index| **index >= job.spec.completions) {
        bail!(
            "--without {unknown}: job/{} has the indexes 0 to {}",
            job.metadata.name,
            job.spec.completions - 1
        );
    }
    let mut of_index: BTreeMap<u32, Vec<&Pod>> = BTreeMap::new();
    for pod in &pods.items {
        let mut owners = pod.metadata.owner_references.iter();
        // A Job of the same name that was deleted has another uid.
        let is_own = owners.any(|owner| owner.uid == job.metadata.uid);
        if let (true, Some(index)) = (is_own, pod.index()) {
            of_index.entry(index).or_default().push(pod);
        }
    }
    let (mut counted, mut left) = (Vec::new(), Vec::new());
    for index in 0..job.spec.completions {
        let pods = of_index.get(&index).map_or(&[][..], Vec::as_slice);
        let succeeded = pods.iter().filter(|pod| pod.status.phase == "Succeeded");
        // Two, where the node of one was cut off after its end: the first.
        let first = succeeded.min_by_key(|pod| (pod.finished_at(), &pod.metadata.name));
        match first {
            _ if without.contains(&index) => left.push(Left {
                index,
                why: "--without names it".to_owned(),
            }),
            Some(pod) => counted.push(Counted {
                index,
                pod: pod.metadata.name.clone(),
                node: pod.spec.node_name.clone(),
            }),
            None => left.push(Left {
                index,
                why: why(job, index, pods),
            }),
        }
    }
    Ok((counted, left))
}

/// Why none of its pods counts.
fn why(job: &Job, index: u32, pods: &[&Pod]) -> String {
    let last = pods
        .iter()
        .max_by_key(|pod| (pod.finished_at(), &pod.metadata.name));
    match last {
        _ if job.has_completed(index) => {
            "it completed, but its pod was deleted, and its result with it".to_owned()
        }
        Some(pod) => {
            let pods = match pods.len() {
                1 => String::new(),
                more => format!(", the last of {more} pods"),
            };
            format!("pod {}{pods}: {}", pod.metadata.name, pod.end())
        }
        None => "it has no pod".to_owned(),
    }
}

impl Pod {
    fn index(&self) -> Option<u32> {
        let annotations = &self.metadata.annotations;
        let index = annotations.get("batch.kubernetes.io/job-completion-index")?;
        index.parse().ok()
    }

    fn terminated(&self) -> Option<&Terminated> {
        let mut states = self.status.container_statuses.iter();
        states.find_map(|one| one.state.terminated.as_ref())
    }

    /// As RFC 3339 in UTC, which sorts as text.
    fn finished_at(&self) -> &str {
        let end = self.terminated();
        end.and_then(|end| end.finished_at.as_deref()).unwrap_or("")
    }

    fn end(&self) -> String {
        let reason = &self.status.reason;
        match self.terminated() {
            // As Evicted.
            _ if !reason.is_empty() => reason.clone(),
            Some(end) if end.reason == "Error" || end.reason.is_empty() => {
                format!("exit code {}", end.exit_code)
            }
            Some(end) => format!("{}, exit code {}", end.reason, end.exit_code),
            None => self.status.phase.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = r#"{"metadata": {"name": "j", "uid": "1"},
        "spec": {"completionMode": "Indexed", "completions": 3},
        "status": {"conditions": [{"type": "Failed", "status": "True"}], "completedIndexes": "1"}}"#;

    /// Of index, phase and the second of its end.
    fn pod(name: &str, index: &str, phase: &str, second: u32) -> String {
        format!(
            r#"{{"metadata": {{"name": "{name}", "ownerReferences": [{{"uid": "1"}}],
                "annotations": {{"batch.kubernetes.io/job-completion-index": "{index}"}}}},
                "spec": {{"nodeName": "n"}},
                "status": {{"phase": "{phase}", "containerStatuses": [{{"state": {{"terminated":
                    {{"exitCode": 2, "reason": "Error", "finishedAt": "2026-01-01T00:00:{second:02}Z"}}}}}}]}}}}"#
        )
    }

    fn counted(pods: &[String], without: &[u32]) -> (Vec<String>, Vec<String>) {
        let job = Job::parse("j", JOB).unwrap();
        let pods = format!("{{\"items\": [{}]}}", pods.join(","));
        let (counted, left) = count(&job, &pods, without).unwrap();
        let counted = counted
            .iter()
            .map(|one| format!("{} {}", one.index, one.pod));
        let left = left.iter().map(|one| format!("{} {}", one.index, one.why));
        (counted.collect(), left.collect())
    }

    #[test]
    fn of_each_index_the_pod_counts_that_succeeded_first() {
        let pods = [
            pod("failed", "0", "Failed", 1),
            pod("late", "0", "Succeeded", 9),
            pod("early", "0", "Succeeded", 8),
            pod("two", "2", "Failed", 1),
            pod("runs", "7", "Running", 1),
            pod("odd", "-1", "Succeeded", 1),
        ];
        let gone = "1 it completed, but its pod was deleted, and its result with it";
        assert_eq!(
            counted(&pods, &[]),
            (
                vec!["0 early".to_owned()],
                vec![gone.to_owned(), "2 pod two: exit code 2".to_owned()]
            )
        );
        assert_eq!(counted(&pods, &[0]).0, Vec::<String>::new());
    }

    #[test]
    fn nulls_and_absent_fields_are_read() {
        let pod = r#"{"metadata": {"name": "p", "ownerReferences": [{"uid": "1"}],
            "annotations": {"batch.kubernetes.io/job-completion-index": "2"}},
            "status": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"finishedAt": null}}}]}}"#;
        let (_, left) = counted(&[pod.to_owned()], &[]);
        assert_eq!(left[2], "2 pod p: exit code 0");
        assert_eq!(left[0], "0 it has no pod");
    }

    #[test]
    fn ranges_of_completed_indexes_are_read_and_others_are_not() {
        let mut job = Job::parse("j", JOB).unwrap();
        for (text, completed) in [
            ("0-2,5", &[0, 1, 2, 5][..]),
            ("3", &[3]),
            ("", &[]),
            ("x-y,-,2-1,99999999999", &[]),
            ("0-4294967295", &[0, 1, 2, 3, 4, 5, 6]),
        ] {
            job.status.completed_indexes = text.to_owned();
            let found: Vec<u32> = (0..7).filter(|index| job.has_completed(*index)).collect();
            assert_eq!(found, completed, "{text}");
        }
    }

    #[test]
    fn what_has_not_ended_is_not_finished() {
        let mut job = Job::parse("j", JOB).unwrap();
        assert!(job.is_finished("kubectl").is_ok());
        for (kind, status) in [
            ("Failed", "False"),
            ("Suspended", "True"),
            ("FailureTarget", "True"),
        ] {
            job.status.conditions[0].r#type = kind.to_owned();
            job.status.conditions[0].status = status.to_owned();
            assert!(job.is_finished("kubectl").is_err(), "{kind}");
        }
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;

    /// A Job, a line of dashes, the list of its pods.
    #[test]
    fn jobs() {
        let job = r#"{"metadata":{"name":"j","uid":"1"},"spec":{"completionMode":"Indexed","completions":3},"status":{"conditions":[{"type":"Failed","status":"True"}],"completedIndexes":"0-1,2"}}"#;
        let pod = r#"{"metadata":{"name":"p","ownerReferences":[{"uid":"1"}],"annotations":{"batch.kubernetes.io/job-completion-index":"1"}},"spec":{"nodeName":"n"},"status":{"phase":"Succeeded","containerStatuses":[{"state":{"terminated":{"exitCode":2,"reason":"Error","finishedAt":"2026-01-01T00:00:00Z"}}}]}}"#;
        let seed = format!("{job}\n---\n{{\"items\":[{pod},{pod}]}}");
        refit_fuzz::Target::new(env!("CARGO_MANIFEST_DIR"), "jobs")
            .seeds([seed])
            .words([
                "4294967295",
                "10000",
                "0-4294967295",
                "\"1\"",
                "Succeeded",
                "Evicted",
                "null",
                "{}",
                "[]",
            ])
            // Ten thousand indexes, none of which has a pod.
            .memory(4 << 20, 256)
            .run(|input| {
                let text = String::from_utf8_lossy(input);
                let (job, pods) = text
                    .split_once("\n---\n")
                    .unwrap_or((&text, "{\"items\":[]}"));
                let Ok(job) = Job::parse("j", job) else {
                    return;
                };
                let _ = job.is_finished("kubectl");
                let Ok((counted, left)) = count(&job, pods, &[0]) else {
                    return;
                };
                let mut all: Vec<u32> = counted.iter().map(|one| one.index).collect();
                all.extend(left.iter().map(|one| one.index));
                all.sort_unstable();
                let expected: Vec<u32> = (0..job.spec.completions).collect();
                assert_eq!(all, expected, "each index once");
                assert!(left.iter().any(|one| one.index == 0), "--without names it");
            });
    }
}
