//! kubectl, as a process.

use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::CONTAINER;
use crate::cli::KubernetesJob;

/// How long the server may take for an answer, so that a cluster that is gone is reported.
const TIMEOUT: &str = "--request-timeout=60s";

/// More than any list of pods, and than any log that a node keeps.
const MOST_BYTES: u64 = 512 << 20;

/// Bytes of its messages that are read.
const MESSAGE: u64 = 4 << 10;

pub struct Kubectl {
    program: PathBuf,
    place: Vec<String>,
}

impl Kubectl {
    pub fn new(args: &KubernetesJob) -> Kubectl {
        let option = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| format!("--{name}={value}"))
        };
        let place = [
            option("context", &args.context),
            option("namespace", &args.namespace),
        ];
        Kubectl {
            program: args.kubectl.clone(),
            place: place.into_iter().flatten().collect(),
        }
    }

    /// How its command begins where a user types it.
    pub fn typed(&self) -> String {
        let program = self.program.display().to_string();
        [&[program], self.place.as_slice()].concat().join(" ")
    }

    /// An object, or a list of them, as JSON.
    pub fn json(&self, job: &str, words: &[&str]) -> Result<String> {
        let out = self.run(job, &[words, &["--output=json"]].concat())?;
        let shown = self.program.display();
        String::from_utf8(out).with_context(|| format!("what {shown} printed is not UTF-8"))
    }

    /// What the container of a pod printed, as far as its node kept it.
    pub fn log(&self, job: &str, pod: &str) -> Result<Vec<u8>> {
        self.run(
            job,
            &["logs", &format!("pod/{pod}"), "--container", CONTAINER],
        )
    }

    fn run(&self, job: &str, words: &[&str]) -> Result<Vec<u8>> {
        let shown = self.program.display();
        let failed = || format!("cannot run {shown}");
        let mut stderr = tempfile::tempfile().context("cannot make a temporary file")?;
        let mut command = Command::new(&self.program);
        command.args(&self.place).arg(TIMEOUT).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(stderr.try_clone().with_context(failed)?);
        let mut child = command.spawn().with_context(|| {
            format!("cannot run {shown}; install kubectl, or name it: --kubectl /PATH/kubectl")
        })?;
        let mut out = Vec::new();
        let read = match child.stdout.take() {
            Some(stdout) => stdout.take(MOST_BYTES + 1).read_to_end(&mut out),
            None => Ok(0),
        };
        let is_too_large = out.len() as u64 > MOST_BYTES;
        if is_too_large {
            // It may have ended by itself.
            let _ = child.kill();
        }
        let status = child.wait().with_context(failed)?;
        read.with_context(failed)?;
        if is_too_large {
            bail!("{shown} {} printed more than {MOST_BYTES} bytes", words[0]);
        }
        if status.success() {
            return Ok(out);
        }
        let mut message = Vec::new();
        stderr
            .seek(SeekFrom::Start(0))
            .and_then(|_| stderr.take(MESSAGE).read_to_end(&mut message))
            .with_context(failed)?;
        bail!(self.failure(job, words, &String::from_utf8_lossy(&message)))
    }

    /// What it printed, and what to type next.
    fn failure(&self, job: &str, words: &[&str], message: &str) -> String {
        let typed = self.typed();
        let mut lines = message.lines().map(str::trim);
        // Before it a client repeats each request that failed.
        let line = lines.rfind(|line| !line.is_empty());
        let line = line.unwrap_or("it printed no reason");
        let is_log = words[0] == "logs";
        let next = if message.contains("(Forbidden)") {
            format!(
                "it needs get of jobs, list of pods and get of pods/log: {typed} auth can-i --list"
            )
        } else if message.contains("(NotFound)") && is_log {
            "the pod was deleted meanwhile; try again".to_owned()
        } else if message.contains("(NotFound)") {
            format!("{typed} get jobs lists the Jobs; --namespace NAME reads another namespace")
        } else if is_log {
            format!("see whether its node is up: {typed} get nodes; --without leaves an index out")
        } else {
            format!("see whether the cluster answers: {typed} get job/{job}")
        };
        format!("{typed} {} failed: {line}\n  {next}", words.join(" "))
    }
}
