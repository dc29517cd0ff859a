//! Results in the logs of a Job's pods, by kubectl.

mod job;

use anyhow::{Result, anyhow, bail};
use refit_lab::PoolInput;

use self::job::{Counted, Job, Left, count};
use crate::cli::{KubernetesJob, PoolArgs};
use crate::cmd::kubectl::{Kubectl, KubectlError};
use crate::cmd::log_frame::unframed;
use crate::cmd::output::{self, Stored};
use crate::cmd::print;

/// The container whose log has the result, in the pods of `refit export kubernetes compare`.
pub const CONTAINER: &str = "compare";

/// The results of every Job that was named.
pub fn read(args: &PoolArgs) -> Result<Vec<PoolInput>> {
    let mut inputs = Vec::new();
    for word in &args.results {
        let word = word.display().to_string();
        let Some(name) = word.strip_prefix("job/").filter(|name| is_name(name)) else {
            bail!("{word} is no name of a Job\n  write job/NAME; kubectl get jobs lists them");
        };
        of_job(name, &args.kubernetes, &mut inputs)?;
    }
    if inputs.len() < 2 {
        bail!(
            "results that count: {}, and a pool needs two or more\n  see why pods failed: {} logs --selector batch.kubernetes.io/job-name={}",
            inputs.len(),
            kubectl(&args.kubernetes).typed(),
            args.results[0]
                .display()
                .to_string()
                .trim_start_matches("job/")
        );
    }
    Ok(inputs)
}

/// Of any object (RFC 1123); no option of kubectl looks like this.
fn is_name(name: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
    !name.is_empty() && name.len() <= 253 && name.bytes().all(is_plain) && !name.starts_with('-')
}

fn of_job(name: &str, args: &KubernetesJob, inputs: &mut Vec<PoolInput>) -> Result<()> {
    let kubectl = kubectl(args);
    let failed = |error: KubectlError| failure(&kubectl, name, error);
    let job = kubectl
        .json(&["get", &format!("job/{name}")])
        .map_err(failed)?;
    let job = Job::parse(name, &job)?;
    job.is_finished(&kubectl.typed())?;
    let selector = format!("batch.kubernetes.io/job-name={name}");
    let pods = kubectl
        .json(&["get", "pods", "--selector", &selector])
        .map_err(failed)?;
    let (counted, left) = count(&job, &pods, &args.without)?;
    for Left { index, why } in &left {
        print::say(format_args!(
            "job/{name}: index {index} is not counted: {why}"
        ));
    }
    for one in &counted {
        inputs.push(input(name, one, &kubectl)?);
    }
    Ok(())
}

fn kubectl(args: &KubernetesJob) -> Kubectl {
    Kubectl::new(
        &args.kubectl,
        args.context.as_deref(),
        args.namespace.as_deref(),
    )
}

/// What kubectl printed, and what to type next.
fn failure(kubectl: &Kubectl, job: &str, error: KubectlError) -> anyhow::Error {
    let KubectlError::Failed { typed: words, .. } = &error else {
        return error.into();
    };
    let typed = kubectl.typed();
    let is_log = words.contains(" logs pod/");
    let next = if error.has("(Forbidden)") {
        format!("it needs get of jobs, list of pods and get of pods/log: {typed} auth can-i --list")
    } else if error.has("(NotFound)") && is_log {
        "the pod was deleted meanwhile; try again".to_owned()
    } else if error.has("(NotFound)") {
        format!("{typed} get jobs lists the Jobs; --namespace NAME reads another namespace")
    } else if is_log {
        format!("see whether its node is up: {typed} get nodes; --without leaves an index out")
    } else {
        format!("see whether the cluster answers: {typed} get job/{job}")
    };
    anyhow!("{error}\n  {next}")
}

/// The result of one index. What its node is called is told by the cluster, and not by the pod.
fn input(job: &str, one: &Counted, kubectl: &Kubectl) -> Result<PoolInput> {
    let Counted { index, pod, node } = one;
    let shown = format!("job/{job} index {index}");
    // As far as its node kept it.
    let log = kubectl
        .run(&["logs", &format!("pod/{pod}"), "--container", CONTAINER])
        .map_err(|error| failure(kubectl, job, error))?;
    let leave_out = || {
        format!(
            "read it: {} logs {pod} -c {CONTAINER}\n  or leave it out: refit pool --from kubernetes job/{job} --without {index}",
            kubectl.typed()
        )
    };
    let text = match unframed(*index, &log) {
        Ok(text) => text,
        Err(error) => bail!("{shown}: the log of pod {pod} {error}\n  {}", leave_out()),
    };
    let what = format!("{shown}: the result of pod {pod}");
    match output::parse(&text, &what) {
        Ok(Stored::Comparison(compared)) => {
            let machine = compared
                .comparison
                .experiment
                .environment
                .fixed
                .get("machine");
            if machine != Some(node) {
                bail!(
                    "{what} is of the machine {}, and the pod ran on {node}\n  {}",
                    machine.map_or("?", String::as_str),
                    leave_out()
                );
            }
            Ok(PoolInput::new(shown, &compared.comparison))
        }
        Ok(_) => bail!("{what} is not a comparison\n  {}", leave_out()),
        Err(error) => bail!("{error:#}\n  {}", leave_out()),
    }
}
