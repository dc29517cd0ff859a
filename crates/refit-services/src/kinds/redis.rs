//! A redis server: its own settings by CONFIG SET and a file that redis.conf includes, and
//! libraries and variables as for any unit.
//!
//! Never CONFIG REWRITE, which formats the administrator's other lines anew.

mod client;
mod live;
mod sample;
mod server;

use refit_knobs::{Ground, Settings};
use refit_servers::risk::{self, Risk};

use super::systemd_unit::{SystemdUnit, drop_in_of, restart};
use super::unit_and_conf::{Planned, has_conf, plan_unit};
use crate::check::{Check, Layer};
use crate::kind::{Kind, Step};
use crate::systemd::{self, Unit};
use crate::{Change, ConfValue, Error, FileEdit, Plan, System};
use live::{ask, bad, lines, server_of, set};
use sample::Sample;
use server::Server;

/// The kind.
pub struct Redis;

/// By these the server and its data are found, or they do more than to set a value.
const REFUSED: [&str; 25] = [
    "aclfile",
    "appenddirname",
    "appendfilename",
    "bind",
    "cluster-enabled",
    "daemonize",
    "dbfilename",
    "dir",
    "include",
    "loadmodule",
    "logfile",
    "masterauth",
    "masteruser",
    "pidfile",
    "port",
    "protected-mode",
    "rename-command",
    "replicaof",
    "requirepass",
    "slaveof",
    "supervised",
    "tls-port",
    "unixsocket",
    "unixsocketperm",
    "user",
];

impl Kind for Redis {
    fn name(&self) -> &'static str {
        "redis server"
    }

    fn form(&self) -> &'static str {
        "redis-server[@NAME]"
    }

    fn is_of_unit(&self, system: &System, unit: &Unit) -> Result<bool, Error> {
        Ok(Server::of(system, unit)?.is_some())
    }

    fn risks(&self) -> &'static [Risk] {
        risk::REDIS
    }

    fn grounds(&self) -> &'static [Ground] {
        &[Ground::Unit, Ground::Configuration]
    }

    fn lies_below_run(&self, settings: &Settings) -> bool {
        !has_conf(settings)
    }

    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        trial: bool,
    ) -> Result<Plan, Error> {
        let mut plan = match plan_unit(self.name(), system, service, settings, trial)? {
            Planned::Whole(plan) => return Ok(plan),
            Planned::Unit(plan) => plan,
        };
        let server = server_of(system, service)?;
        for one in &plan.change.conf {
            refuse(&plan.change, one)?;
        }
        add_files(system, &server, &mut plan)?;
        if system.is_live() {
            ask(&server, &mut plan)?;
        }
        plan.notes.extend(notes(&server, &plan.change));
        Ok(plan)
    }

    /// A server that starts with `appendonly yes` reads its append-only file and no dump: the file
    /// has to be there before the configuration says so.
    fn prepare(&self, change: &Change) -> Result<(), Error> {
        if change.was_active && change.conf.iter().any(is_first) {
            set(change, Step::Apply, is_first)?;
        }
        Ok(())
    }

    fn refused(&self, change: &Change) -> Result<(), Error> {
        if change.was_active && change.conf.iter().any(is_first) {
            set(change, Step::Recover, is_first)?;
        }
        Ok(())
    }

    /// A server of refit's own reads the included file; systemd-analyze the drop-in.
    fn gate(&self, change: &Change) -> Result<(), Error> {
        if drop_in_of(change).is_some() {
            SystemdUnit.gate(change)?;
        }
        let system = System::new(None)?;
        let server = server_of(&system, &change.service)?;
        let text = system.read(&server.own_file())?.unwrap_or_default();
        let sample = Sample::start(
            &server.program,
            &String::from_utf8_lossy(&text),
            server.user()?,
        );
        sample.map(|_| ()).map_err(|reason| Error::Command {
            command: format!("redis-server {}", server.own_file()),
            output: reason,
        })
    }

    fn activate(&self, change: &Change, step: Step) -> Result<(), Error> {
        let is_up = systemd::show(&change.service)?.is_active;
        let mut needs_restart = false;
        if is_up {
            needs_restart = set(change, step, |_| true)?;
        }
        if drop_in_of(change).is_some() {
            return SystemdUnit.activate(change, step);
        }
        // One that failed with the change is started without it.
        if needs_restart || !is_up {
            restart(change)?;
        }
        Ok(())
    }

    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error> {
        let mut checks = SystemdUnit.checks(change)?;
        if !systemd::show(&change.service)?.is_active {
            return Ok(checks);
        }
        let mut client = server_of(&System::new(None)?, &change.service)?.client();
        for ConfValue { name, value, .. } in &change.conf {
            let found = match &mut client {
                Ok(client) => client.get(name),
                Err(error) => Err(error.clone()),
            };
            let found = found.map(|found| found.unwrap_or_else(|| "not known to it".to_owned()));
            checks.push(Check {
                layer: Layer::Effective,
                key: format!("CONFIG GET {name}"),
                expected: value.clone(),
                holds: Some(found.as_ref() == Ok(value)),
                found: found.unwrap_or_else(|error| error),
            });
        }
        Ok(checks)
    }
}

/// What is set before the files are edited.
fn is_first(conf: &ConfValue) -> bool {
    conf.name == "appendonly" && conf.value == "yes"
}

fn refuse(change: &Change, conf: &ConfValue) -> Result<(), Error> {
    if REFUSED.contains(&&*conf.name) {
        let reason = "the server or its data are found by it, or it does more than to set a value";
        return Err(bad(change, conf, reason.to_owned()));
    }
    if conf.name == "appendonly" && conf.value != "no" && !change.was_active {
        let reason = "the service does not run, and started with it would not read its dump: it \
                      would be empty\n  start it first";
        return Err(bad(change, conf, reason.to_owned()));
    }
    Ok(())
}

/// The own file, and the line of the configuration that includes it.
fn add_files(system: &System, server: &Server, plan: &mut Plan) -> Result<(), Error> {
    let change = &mut plan.change;
    let own = server.own_file();
    let head = systemd::written_by(&change.service, &change.settings);
    let before = system.state(&server.config)?;
    let before = before.ok_or(Error::NotReached {
        service: change.service.clone(),
        reason: "its configuration file is not there",
    })?;
    let mut bytes = before.bytes();
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    bytes.extend(format!("{head}include {own}\n").into_bytes());
    let mut text = head;
    for conf in &change.conf {
        text += &lines(&own, conf)?;
    }
    system.refuse_there(&own)?;
    // What is included has to be there first: redis does not start without it.
    change.files.push(FileEdit {
        path: own,
        before: None,
        after: Some(before.with_bytes(text.into_bytes())),
    });
    change.files.push(FileEdit {
        path: server.config.clone(),
        after: Some(before.with_bytes(bytes)),
        before: Some(before),
    });
    Ok(())
}

fn notes(server: &Server, change: &Change) -> Vec<String> {
    let mut notes = vec![
        format!(
            "{} belongs to the package: an upgrade that brings a new one asks which to keep, and \
             where nobody can answer it stops half-configured",
            server.config
        ),
        "CONFIG REWRITE, which Sentinel does too, writes the values into it: `refit revert` then changes \
         nothing and shows that"
            .to_owned(),
    ];
    if change.conf.iter().any(|conf| conf.name == "appendonly") {
        let stays = "the append-only file stays after a revert; a start with `appendonly yes` would \
                     then read it, as old as it is";
        notes.push(stays.to_owned());
    }
    let every_second = |conf: &ConfValue| conf.name == "appendfsync" && conf.value == "everysec";
    if change.conf.iter().any(every_second) {
        notes.push(
            "everysec: a power cut takes up to 2 s of writes (refit recipes show redis-aof)"
                .to_owned(),
        );
    }
    notes
}
