//! What redis-server of this machine and the running service say of settings, and setting them.

use std::fmt::Write;
use std::time::{Duration, Instant};

use super::client::Client;
use super::sample::Sample;
use super::server::Server;
use crate::kind::Step;
use crate::kinds::systemd_unit::drop_in_of;
use crate::{Change, ConfValue, Error, Plan, System, systemd};

/// How long the first append-only file may take to be written.
const WRITTEN_WITHIN: Duration = Duration::from_secs(600);

/// The server of a service.
///
/// # Errors
/// [`Error::NotReached`] where its unit starts another program now.
pub fn server_of(system: &System, service: &str) -> Result<Server, Error> {
    Server::of(system, &systemd::unit(system, service)?)?.ok_or_else(|| Error::NotReached {
        service: service.to_owned(),
        reason: "its ExecStart= runs no redis-server with a configuration file any more",
    })
}

/// A setting that cannot be applied.
pub fn bad(change: &Change, conf: &ConfValue, reason: String) -> Error {
    Error::BadConf {
        setting: format!("conf.{}={}", conf.name, conf.value),
        service: change.service.clone(),
        reason,
    }
}

/// The lines of a setting. Those of `save` add up, so that the ones before are taken out first.
pub fn lines(path: &str, conf: &ConfValue) -> Result<String, Error> {
    let ConfValue { name, value, .. } = conf;
    if value.contains(char::is_control) {
        return Err(Error::NotOneLine {
            name: name.clone(),
            path: path.to_owned(),
        });
    }
    let mut text = String::new();
    if name == "save" && !value.is_empty() {
        text += "save \"\"\n";
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    let _ = writeln!(text, "{name} \"{escaped}\"");
    Ok(text)
}

/// Completes a plan with what redis-server of this machine says of the values, and the service of
/// those that it has.
pub fn ask(server: &Server, plan: &mut Plan) -> Result<(), Error> {
    let change = &mut plan.change;
    let mut text = String::new();
    for conf in &change.conf {
        text += &lines("", conf)?;
    }
    let first = change.conf[0].clone();
    let sample = Sample::start(&server.program, &text, server.user()?);
    let sample = sample.map_err(|reason| bad(change, &first, reason))?;
    let mut sample = sample
        .client()
        .map_err(|reason| bad(change, &first, reason))?;
    let mut running = None;
    if change.was_active {
        running = Some(server.client().map_err(|reason| not_told(change, reason))?);
    }
    let mut needs_restart = false;
    let mut set = Vec::new();
    for conf in change.conf.clone() {
        let failed = |reason| bad(change, &conf, reason);
        let value = sample.get(&conf.name).map_err(failed)?;
        let value = value.ok_or_else(|| failed("redis knows no such setting".to_owned()))?;
        let can_be_set = match sample.ask(&["CONFIG", "SET", &conf.name, &conf.value]) {
            Ok(_) => true,
            Err(error) if error.contains("immutable") => false,
            Err(error) => return Err(failed(error)),
        };
        needs_restart |= !can_be_set;
        let mut before = None;
        if let Some(running) = &mut running {
            before = running
                .get(&conf.name)
                .map_err(|reason| not_told(change, reason))?;
        }
        set.push(ConfValue {
            name: conf.name,
            value,
            before: before.filter(|_| can_be_set),
        });
    }
    plan.change.conf = set;
    let Some(running) = &mut running else {
        let later = "the service does not run: the change takes effect when it starts";
        plan.notes.push(later.to_owned());
        return Ok(());
    };
    let change = &plan.change;
    let mut now = |name: &str| {
        let mut wanted = change.conf.iter().filter(|conf| conf.name == name);
        let wanted = wanted.next().map(|conf| conf.value.clone());
        let now = wanted.map_or_else(|| running.get(name), |value| Ok(Some(value)));
        now.map(Option::unwrap_or_default)
            .map_err(|reason| not_told(change, reason))
    };
    let (appendonly, save) = (now("appendonly")?, now("save")?);
    let sets = |name: &str| change.conf.iter().any(|conf| conf.name == name);
    if sets("appendonly") && appendonly == "no" && save.is_empty() {
        let reason = "`save` is empty, so that nothing would be on disk at the next start";
        return Err(bad(change, &first, reason.to_owned()));
    }
    if sets("appendfsync") && appendonly == "no" {
        let idle = "appendonly is no here, so that appendfsync does nothing";
        plan.notes.push(idle.to_owned());
    }
    let drop_in = drop_in_of(change).is_some();
    if (needs_restart || drop_in) && appendonly == "no" && save.is_empty() {
        let empties = "the restart empties this server: appendonly is no, and save is empty";
        plan.notes.push(empties.to_owned());
    }
    let names = change.conf.iter().filter(|conf| conf.before.is_some());
    let sets = names.map(|conf| format!("redis-cli CONFIG SET {} '{}'", conf.name, conf.value));
    // Before a restart: one that starts with appendonly=yes does not read its dump.
    let at = usize::from(drop_in);
    plan.commands.splice(at..at, sets.collect::<Vec<_>>());
    if needs_restart && !drop_in {
        plan.commands
            .push(format!("systemctl restart {}", change.service));
    }
    Ok(())
}

fn not_told(change: &Change, reason: String) -> Error {
    Error::Command {
        command: format!("{} cannot be asked", change.service),
        output: reason,
    }
}

/// Sets the values in the running server, or back; whether some need a restart. Where somebody
/// else set another value since, that stays.
pub fn set(change: &Change, step: Step, is_meant: fn(&ConfValue) -> bool) -> Result<bool, Error> {
    let server = server_of(&System::new(None)?, &change.service)?;
    let failed = |reason: String| not_told(change, reason);
    let mut client = server.client().map_err(failed)?;
    let mut needs_restart = false;
    for conf in change.conf.iter().filter(|conf| is_meant(conf)) {
        let Some(before) = &conf.before else {
            let now = client.get(&conf.name).map_err(failed)?;
            needs_restart |= (now.as_ref() == Some(&conf.value)) != (step == Step::Apply);
            continue;
        };
        let value = match step {
            Step::Apply => &conf.value,
            Step::Revert | Step::Recover => {
                if client.get(&conf.name).map_err(failed)?.as_ref() != Some(&conf.value) {
                    continue;
                }
                before
            }
        };
        let set = client.ask(&["CONFIG", "SET", &conf.name, value]);
        set.map_err(|output| Error::Command {
            command: format!("CONFIG SET {} {value}", conf.name),
            output,
        })?;
        if conf.name == "appendonly" {
            wait_until_written(change, &mut client)?;
        }
    }
    Ok(needs_restart)
}

/// A server that writes its first append-only file refuses to end, and a restart would hang.
fn wait_until_written(change: &Change, client: &mut Client) -> Result<(), Error> {
    let began = Instant::now();
    loop {
        let mut is_busy = |name: &str| {
            let found = client.info("persistence", name);
            found.map(|found| found.is_some_and(|found| found == "1"))
        };
        let busy = [
            is_busy("aof_rewrite_in_progress"),
            is_busy("aof_rewrite_scheduled"),
        ];
        let busy: Result<Vec<bool>, String> = busy.into_iter().collect();
        let busy = busy.map_err(|reason| not_told(change, reason))?;
        if !busy.contains(&true) {
            let last = client.info("persistence", "aof_last_bgrewrite_status");
            let last = last.map_err(|reason| not_told(change, reason))?;
            if last.is_some_and(|last| last == "err") {
                let reason = "its append-only file could not be written: see its log".to_owned();
                return Err(not_told(change, reason));
            }
            return Ok(());
        }
        if began.elapsed() > WRITTEN_WITHIN {
            let reason = "its append-only file was not written within 10 min".to_owned();
            return Err(not_told(change, reason));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
