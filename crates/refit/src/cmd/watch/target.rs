//! What the words of `refit watch` name.

use std::ffi::OsString;

use anyhow::{Result, bail};
use refit_recipe::{Recipe, running};
use refit_run::series::{Instances, Target, instances_of_unit};

/// The directory alone is there with hidepid=noaccess as well.
fn is_shown(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/stat")).is_ok()
}

/// /proc is mounted so that it shows a user their own processes alone (proc(5), hidepid). Members of the group that it
/// names, and processes with CAP_SYS_PTRACE, see all.
pub fn hides_processes() -> bool {
    if is_shown(1) {
        return false;
    }
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut mounts = text.lines().filter_map(|line| line.split_once(" - proc "));
    mounts.any(|(mount, options)| {
        mount.split(' ').nth(4) == Some("/proc") && options.contains("hidepid=")
    })
}

/// Numbers of processes, the name of a unit, or of a recipe that runs.
pub fn target(words: &[OsString]) -> Result<Target> {
    let mut pids = Vec::new();
    for word in words {
        let text = word.to_string_lossy();
        match text.parse::<u32>() {
            Ok(pid) if pid > 0 && is_shown(pid) => pids.push(pid),
            Ok(pid) if hides_processes() => bail!(
                "/proc shows no process {pid} to this user: there is none, or it is hidden (hidepid, proc(5))\n  watch it as root: sudo refit watch {pid}"
            ),
            Ok(pid) => bail!("there is no process {pid}\n  find one: pgrep -a NAME"),
            Err(_) if words.len() > 1 => {
                bail!(
                    "`{text}` is not the number of a process\n  name processes by number, or one unit alone: refit watch {text}"
                )
            }
            Err(_) => return named(&text),
        }
    }
    if let [pid] = *pids
        && let Some(instances) = running().into_iter().find(|one| one.refit == pid)
    {
        return Ok(Target::Instances(instances));
    }
    Ok(match pids.is_empty() {
        true => Target::Machine,
        false => Target::Processes(pids),
    })
}

/// A unit, or what a recipe runs.
fn named(text: &str) -> Result<Target> {
    let recipe = Recipe::find(text).ok();
    let name = recipe.as_ref().map_or(text, Recipe::name);
    let mut instances = running();
    instances.retain(|one| one.recipe == name);
    match (Target::unit(text), &*instances) {
        (Ok(unit), []) => Ok(unit),
        (Ok(_), some) => bail!(
            "`{text}` is a unit that runs, and a recipe that runs\n  name the unit in full: refit watch {text}.service\n  or what the recipe runs: {}",
            by_refit(some)
        ),
        (Err(_), [one]) => Ok(Target::Instances(one.clone())),
        (Err(_), some @ [_, ..]) => bail!(
            "the recipe {name} runs {} times\n  name one by the process of its refit: {}",
            some.len(),
            by_refit(some)
        ),
        (Err(_), []) if recipe.is_some() => bail!(
            "no refit of this user runs the recipe {name} now\n  start it: refit compare {text}"
        ),
        (Err(reason), []) => match &*instances_of_unit(text) {
            [] => bail!("{reason}\n  name a process: refit watch $(pgrep -o {text})"),
            units => bail!(
                "no unit `{text}` has a running process, but its instances have\n  watch one: refit watch {}",
                units.join(", or refit watch ")
            ),
        },
    }
}

fn by_refit(instances: &[Instances]) -> String {
    let words = instances
        .iter()
        .map(|one| format!("refit watch {}", one.refit));
    words.collect::<Vec<_>>().join(", or ")
}
