//! A MariaDB server of Debian's packages: its own settings by SET GLOBAL and a file of refit's in
//! mariadb.conf.d, libraries and variables as for any unit.

pub(super) mod server;

use std::fmt::Write;

use refit_knobs::{Ground, Settings};
use refit_servers::mariadb::in_sql;
use refit_servers::risk::{self, Risk};

use super::systemd_unit::{SystemdUnit, drop_in_of, restart};
use super::unit_and_conf::{Planned, has_conf, plan_unit};
use crate::check::{Check, Layer};
use crate::kind::{Kind, Step};
use crate::systemd::{self, Unit};
use crate::{Change, ConfValue, Error, FileEdit, FileState, Plan, System};
use server::{Options, variable};

/// The kind.
pub struct Mariadb;

const DIR: &str = "/etc/mysql/mariadb.conf.d";
const FILE: &str = "/etc/mysql/mariadb.conf.d/90-refit.cnf";

/// By the names that begin so, the server and its data are found, or code is loaded; a prefix
/// gives a name another meaning.
const REFUSED: [&str; 28] = [
    "basedir",
    "data",
    "defaults",
    "disable_",
    "enable_",
    "general_log_file",
    "init_",
    "innodb_data_",
    "innodb_log_group",
    "innodb_undo_dir",
    "lc_messages_dir",
    "log_bin",
    "log_error",
    "loose_",
    "lower_case",
    "maximum_",
    "pid_file",
    "plugin_",
    "port",
    "relay_log",
    "secure_",
    "skip_",
    "slave_load",
    "slow_query_log_file",
    "socket",
    "tmpdir",
    "user",
    "wsrep_",
];

/// Whether a word means the server.
///
/// # Errors
/// Where systemd cannot be asked.
pub fn is_here(system: &System, word: &str) -> Result<bool, Error> {
    let unit = systemd::find(system, word)?;
    unit.map_or(Ok(false), |unit| is_server(system, &unit))
}

fn is_server(system: &System, unit: &str) -> Result<bool, Error> {
    let has_files = system
        .path(&format!("{DIR}/x"))?
        .with_file_name("")
        .is_dir();
    Ok(unit == "mariadb.service" && has_files)
}

impl Kind for Mariadb {
    fn name(&self) -> &'static str {
        "MariaDB server"
    }

    fn form(&self) -> &'static str {
        "mariadb"
    }

    fn is_of_unit(&self, system: &System, unit: &Unit) -> Result<bool, Error> {
        is_server(system, &unit.declared.files.name)
    }

    fn risks(&self) -> &'static [Risk] {
        risk::MARIADB
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
        let mut text = systemd::written_by(service, &plan.change.settings) + "[mariadbd]\n";
        for conf in &mut plan.change.conf {
            conf.name = in_sql(&conf.name);
            if REFUSED.iter().any(|begins| conf.name.starts_with(begins)) {
                let reason = "the server or its data are found by it, or it loads code";
                return Err(bad(service, conf, reason.to_owned()));
            }
            text += &line(conf)?;
        }
        system.refuse_there(FILE)?;
        plan.change.files.push(FileEdit {
            path: FILE.to_owned(),
            before: None,
            // A server ignores a file that everybody can write.
            after: Some(FileState::own(text.into_bytes())),
        });
        if system.is_live() {
            ask(&mut plan)?;
        }
        Ok(plan)
    }

    /// The server reads its files and prints what it would use.
    fn gate(&self, change: &Change) -> Result<(), Error> {
        if drop_in_of(change).is_some() {
            SystemdUnit.gate(change)?;
        }
        let options = Options::read(None).map_err(|reason| refused(change, reason))?;
        for ConfValue { name, value, .. } in &change.conf {
            if let Some(reason) = options.refused(name) {
                return Err(refused(change, reason));
            }
            let found = options.value(name);
            if found.as_ref() != Some(value) {
                let found = found.unwrap_or_default();
                let reason = format!(
                    "{name} would be {found}, not {value}: a later file sets it\n  see: \
                     mariadbd --print-defaults"
                );
                return Err(refused(change, reason));
            }
        }
        Ok(())
    }

    fn activate(&self, change: &Change, step: Step) -> Result<(), Error> {
        let is_up = systemd::show(&change.service)?.is_active;
        let mut needs_restart = false;
        if is_up {
            needs_restart = set(change, step)?;
        }
        if drop_in_of(change).is_some() {
            return SystemdUnit.activate(change, step);
        }
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
        for ConfValue { name, value, .. } in &change.conf {
            let found = match variable(name) {
                Ok(Some(known)) => known.value,
                Ok(None) => "not known to it".to_owned(),
                Err(error) => error,
            };
            checks.push(Check {
                layer: Layer::Effective,
                key: format!("@@GLOBAL.{name}"),
                expected: value.clone(),
                holds: Some(found == *value),
                found,
            });
        }
        Ok(checks)
    }
}

/// A line of an option file.
fn line(conf: &ConfValue) -> Result<String, Error> {
    let ConfValue { name, value, .. } = conf;
    if value.contains(|c: char| c.is_control() || c == '"') {
        return Err(Error::NotOneLine {
            name: name.clone(),
            path: FILE.to_owned(),
        });
    }
    let mut text = String::new();
    let _ = writeln!(text, "{name} = \"{}\"", value.replace('\\', "\\\\"));
    Ok(text)
}

fn bad(service: &str, conf: &ConfValue, reason: String) -> Error {
    Error::BadConf {
        setting: format!("conf.{}={}", conf.name, conf.value),
        service: service.to_owned(),
        reason,
    }
}

fn refused(change: &Change, output: String) -> Error {
    Error::Command {
        command: format!(
            "the configuration of {} is refused by mariadbd",
            change.service
        ),
        output,
    }
}

fn not_told(change: &Change, output: String) -> Error {
    Error::Command {
        command: format!("{} cannot be asked by mariadb as root", change.service),
        output,
    }
}

/// Completes a plan with what mariadbd of this machine says of the values, and the running server
/// of those that it has.
fn ask(plan: &mut Plan) -> Result<(), Error> {
    let change = &mut plan.change;
    let options = Options::read(None).map_err(|reason| refused(change, reason))?;
    if let Some(reason) = options.refused("\n") {
        return Err(refused(change, reason));
    }
    let mut needs_restart = false;
    for conf in &mut change.conf {
        let typed = conf.clone();
        let failed = |reason| bad(&change.service, &typed, reason);
        let options = Options::read(Some((&conf.name, &conf.value))).map_err(failed)?;
        if let Some(reason) = options.refused(&conf.name) {
            return Err(failed(reason));
        }
        let value = options.value(&conf.name);
        conf.value =
            value.ok_or_else(|| failed("no such option, or a shortened one".to_owned()))?;
        if !change.was_active {
            continue;
        }
        let known = variable(&conf.name).map_err(failed)?;
        let known = known.ok_or_else(|| failed("no variable of the server".to_owned()))?;
        let can_be_set = !known.is_read_only && known.value != "NULL";
        needs_restart |= !can_be_set;
        if known.is_of_session {
            plan.notes.push(format!(
                "{}: connections that are open keep their own value",
                conf.name
            ));
        }
        conf.before = can_be_set.then_some(known.value);
    }
    plan.commands.push("mariadbd --help --verbose".to_owned());
    let change = &plan.change;
    if !change.was_active {
        let later = "the service does not run: the change takes effect when it starts";
        plan.notes.push(later.to_owned());
        return Ok(());
    }
    let set = change.conf.iter().filter(|conf| conf.before.is_some());
    let set = set.map(|conf| format!("SET GLOBAL {} = {}", conf.name, conf.value));
    plan.commands.extend(set);
    if needs_restart && drop_in_of(change).is_none() {
        plan.commands
            .push(format!("systemctl restart {}", change.service));
    }
    Ok(())
}

/// Sets the values in the running server, or back; whether some need a restart. Where somebody
/// else set another value since, that stays.
fn set(change: &Change, step: Step) -> Result<bool, Error> {
    let failed = |reason: String| not_told(change, reason);
    let mut needs_restart = false;
    for ConfValue {
        name,
        value,
        before,
    } in &change.conf
    {
        let now = variable(name).map_err(failed)?.map(|known| known.value);
        let is_set = now.as_ref() == Some(value);
        let wanted = match (before, step) {
            (None, _) => {
                needs_restart |= is_set != (step == Step::Apply);
                continue;
            }
            (Some(_), Step::Apply) => value,
            (Some(before), _) if is_set => before,
            (Some(_), _) => continue,
        };
        server::set(name, wanted).map_err(failed)?;
    }
    Ok(needs_restart)
}
