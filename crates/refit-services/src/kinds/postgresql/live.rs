//! What the server on this machine says of a change.

use super::cluster::{Cluster, Server};
use crate::check::{Check, Layer};
use crate::{Change, ConfValue, Error, Plan, System, systemd};

/// Completes a plan with what the cluster on this machine says.
pub fn ask(cluster: &Cluster, plan: &mut Plan) -> Result<(), Error> {
    let server = server_of(&plan.change)?;
    let change = &mut plan.change;
    whole(change, &server)?;
    for conf in &mut change.conf {
        conf.value = server
            .would_use(&conf.name, Some(&conf.value))
            .map_err(|reason| Error::BadConf {
                setting: format!("conf.{}={}", conf.name, conf.value),
                service: change.service.clone(),
                reason,
            })?;
    }
    let unit = systemd::show(&change.service)?;
    change.was_active = unit.is_active;
    let config = cluster.file("postgresql.conf");
    let checked = if change.conf.is_empty() {
        "data_directory"
    } else {
        "NAME"
    };
    plan.commands
        .push(format!("postgres -C {checked} -c config_file={config}"));
    if !unit.is_active {
        let later = "the cluster does not run: the change takes effect when it starts";
        plan.notes.push(later.to_owned());
        return Ok(());
    }
    let asked = |reason| not_told(change, reason);
    let names: Vec<&str> = change.conf.iter().map(|conf| &*conf.name).collect();
    let known = server.uses(&names).map_err(asked)?;
    if let Some(fixed) = known.iter().find(|known| known.context == "internal") {
        return Err(Error::BadConf {
            setting: format!("conf.{}", fixed.name),
            service: change.service.clone(),
            reason: "it cannot be set".to_owned(),
        });
    }
    for own in server.own_values(&names).map_err(asked)? {
        plan.notes
            .push(format!("stays as it is, and wins there: {own}"));
    }
    if needs_restart(change)? {
        plan.commands
            .push(format!("systemctl restart {}", change.service));
        plan.notes
            .push("the restart ends all connections".to_owned());
        let pending = server.pending().map_err(asked)?;
        if !pending.is_empty() {
            plan.notes.push(format!(
                "edited before, and takes effect by the restart too: {}",
                pending.join(", ")
            ));
        }
    } else {
        plan.commands
            .push(format!("systemctl reload {}", change.service));
    }
    Ok(())
}

/// The server on this machine.
pub fn server_of(change: &Change) -> Result<Server, Error> {
    let system = System::new(None)?;
    let cluster = Cluster::of(&system, &change.service)?;
    cluster.server(&system)
}

/// Whether the server accepts its configuration as it is. A restart with a wrong line leaves it
/// down.
pub fn whole(change: &Change, server: &Server) -> Result<(), Error> {
    let read = server.would_use("data_directory", None);
    read.map(|_| ()).map_err(|reason| refused(change, reason))
}

/// The server does not accept its configuration.
pub fn refused(change: &Change, reason: String) -> Error {
    Error::Command {
        command: format!(
            "the configuration of {} is refused by its server",
            change.service
        ),
        output: reason,
    }
}

fn not_told(change: &Change, reason: String) -> Error {
    Error::Command {
        command: format!("{} cannot be asked by psql as its own user", change.service),
        output: reason,
    }
}

/// Whether a reload is not enough. A server that cannot be asked is restarted.
pub fn needs_restart(change: &Change) -> Result<bool, Error> {
    if !change.variables.is_empty() {
        return Ok(true);
    }
    let names: Vec<&str> = change.conf.iter().map(|conf| &*conf.name).collect();
    let known = server_of(change)?.uses(&names);
    Ok(known.map_or(true, |known| {
        known.iter().any(|known| known.context == "postmaster")
    }))
}

/// What a new connection sees of the settings.
pub fn conf_checks(change: &Change) -> Result<Vec<Check>, Error> {
    let names: Vec<&str> = change.conf.iter().map(|conf| &*conf.name).collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let known = server_of(change)?.uses(&names);
    let mut checks = Vec::new();
    for ConfValue { name, value, .. } in &change.conf {
        let found = match &known {
            Ok(known) => known.iter().find(|known| known.name == name.to_lowercase()),
            Err(_) => None,
        };
        let Some(found) = found else {
            let unknown = || "not known to the server".to_owned();
            checks.push(Check {
                layer: Layer::Effective,
                key: format!("pg_settings {name}"),
                expected: value.clone(),
                found: known.as_ref().err().cloned().unwrap_or_else(unknown),
                holds: Some(false),
            });
            continue;
        };
        let is_ours = change.files.iter().any(|edit| edit.path == found.source);
        let expected = change.files.last().map(|edit| edit.path.clone());
        let waits = if found.pending_restart { "yes" } else { "no" };
        checks.extend([
            Check {
                layer: Layer::Loaded,
                key: format!("source of {name}"),
                expected: expected.unwrap_or_default(),
                found: found.source.clone(),
                holds: Some(is_ours),
            },
            Check {
                layer: Layer::Loaded,
                key: format!("{name} waits for a restart"),
                expected: "no".to_owned(),
                found: waits.to_owned(),
                holds: Some(!found.pending_restart),
            },
            Check {
                layer: Layer::Effective,
                key: format!("pg_settings {name}"),
                expected: value.clone(),
                found: found.value.clone(),
                holds: Some(found.value == *value),
            },
        ]);
    }
    Ok(checks)
}
