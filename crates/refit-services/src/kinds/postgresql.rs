//! A PostgreSQL cluster of Debian's packages.
//!
//! Libraries and variables go to its file `environment`, since pg_ctlcluster passes nothing else
//! on. Settings of its own go to a file of refit's in conf.d; where that is not included, to
//! postgresql.auto.conf.

pub(super) mod cluster;
mod edits;
mod live;

use refit_knobs::{Ground, Settings};
use refit_servers::risk::{self, Risk};

use crate::check::Check;
use crate::effective::{effective, not_running};
use crate::environment::Environment;
use crate::kind::{Kind, Step};
use crate::processes::processes_of;
use crate::{Change, ConfValue, Error, FileEdit, Plan, System, glibc_malloc, systemd};
use cluster::Cluster;
use edits::{AUTO, conf_edit, environment_edit, environment_file, variable};
use live::{ask, conf_checks, needs_restart, refused, server_of, whole};

/// The kind.
pub struct Postgresql;

/// pg_ctlcluster sets it for the main process; the others write over their environment.
const MARK: &str = "PGDATA";

/// By these refit and Debian's tools find the cluster.
const ITS_PLACE: [&str; 5] = [
    "config_file",
    "data_directory",
    "external_pid_file",
    "port",
    "unix_socket_directories",
];

impl Kind for Postgresql {
    fn name(&self) -> &'static str {
        "PostgreSQL cluster"
    }

    fn form(&self) -> &'static str {
        "postgresql[@VERSION-CLUSTER]"
    }

    fn find(&self, system: &System, word: &str) -> Result<Option<String>, Error> {
        let name = word.strip_suffix(".service").unwrap_or(word);
        if name != "postgresql" && !name.starts_with("postgresql@") {
            return Ok(None);
        }
        let mut services: Vec<String> =
            Cluster::all(system)?.iter().map(Cluster::service).collect();
        services.retain(|service| {
            name == "postgresql" || service.strip_suffix(".service") == Some(name)
        });
        match &*services {
            // The unit of a cluster that is not there starts nothing, and postgresql.service itself never does.
            [] => Err(cluster::unknown(word)),
            [service] => systemd::find(system, service),
            _ => Err(Error::SeveralServices {
                word: word.to_owned(),
                services: services.join(", "),
            }),
        }
    }

    fn risks(&self) -> &'static [Risk] {
        risk::POSTGRESQL
    }

    fn grounds(&self) -> &'static [Ground] {
        &[Ground::ServerEnvironment, Ground::Configuration]
    }

    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        _: bool,
    ) -> Result<Plan, Error> {
        let cluster = Cluster::of(system, service)?;
        if system.is_live() {
            glibc_malloc::refuse_other(service, settings, &systemd::show(service)?)?;
        }
        let launch = settings.launch();
        let mut conf = Vec::new();
        for (name, value) in launch.conf.clone() {
            if ITS_PLACE.contains(&&*name) {
                return Err(Error::BadConf {
                    setting: format!("conf.{name}={value}"),
                    service: service.to_owned(),
                    reason: "refit and pg_ctlcluster find the cluster by it".to_owned(),
                });
            }
            conf.push(ConfValue::typed((name, value)));
        }
        let mut files = Vec::new();
        let base = environment_file(system, &cluster)?;
        let environment = Environment::of(system, &launch, |name| variable(&base, name))?;
        let mut plan = Plan::new(service, self.name(), settings);
        let head = systemd::written_by(service, &plan.change.settings);
        if !environment.is_empty() {
            files.push(environment_edit(
                system,
                &cluster,
                &base,
                &head,
                &environment,
            )?);
        }
        if !conf.is_empty() {
            files.push(conf_edit(system, &cluster, &head, &conf)?);
        }
        plan.change.files = files;
        plan.change.conf = conf;
        environment.add_to(&mut plan);
        if system.is_live() {
            ask(&cluster, &mut plan)?;
        } else {
            let only_files =
                "--root: files only; nothing is checked, reloaded, restarted or verified";
            plan.notes.push(only_files.to_owned());
        }
        plan.notes.extend(notes(&plan.change));
        Ok(plan)
    }

    /// The unit is that of all versions.
    fn comes_from(&self, system: &System, change: &Change) -> Result<Vec<String>, Error> {
        let cluster = Cluster::of(system, &change.service)?;
        Ok(vec![format!("{}/postgres", cluster.programs())])
    }

    /// The server itself reads all files as it would at its start, and prints what it would use.
    fn gate(&self, change: &Change) -> Result<(), Error> {
        let server = server_of(change)?;
        whole(change, &server)?;
        for conf in &change.conf {
            let found = server
                .would_use(&conf.name, None)
                .map_err(|reason| refused(change, reason))?;
            if found != conf.value {
                return Err(refused(
                    change,
                    format!("{} would be {found}, not {}", conf.name, conf.value),
                ));
            }
        }
        Ok(())
    }

    fn activate(&self, change: &Change, step: Step) -> Result<(), Error> {
        let service = &*change.service;
        let is_down = || systemd::show(service).map(|unit| !unit.is_active);
        if is_down()? {
            // A cluster that did not start is `inactive`: the unit ignores how pg_ctlcluster ended.
            if step != Step::Recover || !change.was_active {
                return Ok(());
            }
        } else if !needs_restart(change)? {
            return systemd::systemctl(&["reload", service]).map(|_| ());
        }
        systemd::systemctl(&["restart", service])?;
        if is_down()? {
            return Err(Error::Command {
                command: format!("systemctl restart {service}"),
                output: "the cluster did not start\n  see why: journalctl -u ".to_owned() + service,
            });
        }
        Ok(())
    }

    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error> {
        let unit = systemd::show(&change.service)?;
        if !unit.is_active {
            return Ok(vec![not_running(&unit.state)]);
        }
        let mut checks = conf_checks(change)?;
        let processes = processes_of(&unit);
        checks.extend(effective(change, unit.main_pid, &processes, MARK));
        Ok(checks)
    }
}

/// What surprises in a PostgreSQL of Debian's.
fn notes(change: &Change) -> Vec<String> {
    let mut notes = Vec::new();
    if !change.variables.is_empty() {
        let not_of_unit = "the servers get the variables of this file and nothing of the unit's: \
                           a drop-in with LD_PRELOAD does not reach them";
        notes.push(not_of_unit.to_owned());
    }
    if !change.conf.is_empty() {
        let by_line = "one wrong line in any of these files, and a reload applies nothing, without \
                       an error: refit lets the server check all of them first, and asks \
                       pg_settings afterwards";
        notes.push(by_line.to_owned());
    }
    let of_auto = |edit: &FileEdit| edit.path.ends_with(AUTO);
    if change.files.iter().any(of_auto) {
        let no_include =
            "postgresql.conf does not include conf.d, so this is as ALTER SYSTEM does it";
        notes.push(no_include.to_owned());
    }
    notes.push(format!(
        "postgresql.service stays active when the cluster fails: look at {}",
        change.service
    ));
    notes
}
