//! The namespace of a comparison, and its end.
//!
//! Another process deletes it when refit ends, however it ends: it waits for the end of a pipe that refit holds. Where the whole machine ends, the server deletes what is in it: the Job that owns all of it has a
//! time, and a minute after that it is deleted. Then the empty namespace stays.

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::{Value, json};

use super::objects;
use crate::cmd::kubectl::{Kubectl, KubectlError};
use crate::cmd::print;

/// Beyond the comparison's own time, for the start of the last round pair and its end.
const SLACK: Duration = Duration::from_secs(15 * 60);

/// It is deleted when this is dropped.
#[derive(Debug)]
pub struct Namespace {
    pub name: String,
    /// The uid of the Job that owns what is in it.
    pub owner: String,
    remover: Child,
}

impl Namespace {
    /// Makes it, with what pods in it need. `kubectl` asks in it.
    pub fn create(
        kubectl: &Kubectl,
        name: &str,
        of: &str,
        read: &[Value],
        budget: Duration,
    ) -> Result<Namespace> {
        // First who will delete it: nothing may end refit between.
        let mut namespace = Namespace {
            name: name.to_owned(),
            owner: String::new(),
            remover: remover(kubectl, name)?,
        };
        let seconds = budget.saturating_add(SLACK).as_secs();
        let create = ["create", "--output=json", "--filename=-"];
        let made = |object: &Value| -> Result<Value> {
            let printed = kubectl
                .given(&create, Some(object))
                .map_err(|error| failure(kubectl, error))?;
            serde_json::from_slice(&printed).context("what kubectl printed is not JSON")
        };
        // This kubectl holds the pipe too: where refit is killed meanwhile, nothing is deleted before it is made.
        namespace.hand_down(FdFlags::empty())?;
        made(&objects::namespace(name, of))?;
        namespace.hand_down(FdFlags::CLOEXEC)?;
        let owner = made(&objects::owner(seconds))?;
        let uid = owner["metadata"]["uid"].as_str();
        uid.unwrap_or_default().clone_into(&mut namespace.owner);
        if namespace.owner.is_empty() {
            bail!("what kubectl printed is not the Job that it made");
        }
        let account = std::iter::once(objects::account());
        let items: Vec<Value> = account
            .chain(read.iter().map(objects::copied))
            .map(|object| objects::owned(object, &namespace.owner))
            .collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        kubectl
            .given(&create, Some(&list))
            .map_err(|error| failure(kubectl, error))?;
        Ok(namespace)
    }

    /// Whether what is started from now on holds the remover's pipe.
    fn hand_down(&self, flags: FdFlags) -> Result<()> {
        let pipe = self.remover.stdin.iter();
        let set = pipe.map(|pipe| fcntl_setfd(pipe, flags));
        set.collect::<Result<(), _>>()
            .context("cannot hand down a pipe")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        drop(self.remover.stdin.take());
        let status = self.remover.wait();
        if !status.as_ref().is_ok_and(ExitStatus::success) {
            print::say(format_args!(
                "the namespace {} may be left\n  remove it: kubectl delete namespace {0}",
                self.name
            ));
        }
    }
}

fn failure(kubectl: &Kubectl, error: KubectlError) -> anyhow::Error {
    match error.has("(Forbidden)") {
        true => anyhow!(
            "{error}\n  it needs the rights to create and delete a namespace, and all in it: {} auth can-i --list",
            kubectl.typed()
        ),
        false => error.into(),
    }
}

/// This program again, in a process group of its own, which Ctrl-C does not reach.
fn remover(kubectl: &Kubectl, name: &str) -> Result<Child> {
    let mut remover = Command::new("/proc/self/exe");
    remover.args(["export", "kubernetes", "remove-namespace", name, "--"]);
    remover.args(kubectl.of_cluster());
    remover.stdin(Stdio::piped()).stdout(Stdio::null());
    remover
        .process_group(0)
        .spawn()
        .context("cannot start the process that removes the namespace")
}

/// What that process does.
pub fn remove_at_end(name: &str, kubectl: &[OsString]) -> Result<()> {
    let mut nothing = Vec::new();
    std::io::stdin()
        .read_to_end(&mut nothing)
        .context("cannot read stdin")?;
    let (program, place) = kubectl
        .split_first()
        .context("no kubectl was named after `--`")?;
    let mut command = Command::new(program);
    command.args(place);
    command.args([
        "delete",
        "namespace",
        name,
        "--ignore-not-found",
        "--timeout=180s",
    ]);
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("cannot run kubectl")?;
    if !status.success() {
        bail!("kubectl delete namespace {name} failed");
    }
    Ok(())
}
