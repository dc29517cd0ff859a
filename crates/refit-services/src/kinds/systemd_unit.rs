//! A systemd unit, by a drop-in file of refit's own.
//!
//! Never `systemctl revert`: it deletes the administrator's drop-ins too.

mod filter;
mod later;
mod launcher;
mod loaded;

use std::fmt::Write;

use refit_knobs::{Ground, Settings};
use refit_servers::systemd::quoted;

use crate::check::{Check, Layer};
use crate::effective::{effective, not_running};
use crate::environment::Environment;
use crate::kind::{Kind, Step};
use crate::processes::processes_of;
use crate::systemd::{self, Unit};
use crate::{Change, Error, FileEdit, FileState, Plan, System, glibc_malloc, sync_filter};

/// The kind.
pub struct SystemdUnit;

const FILE: &str = "90-refit.conf";

/// systemd sets it for each service (systemd.exec(5)).
const MARK: &str = "INVOCATION_ID";

/// Services whose processes never see the environment of their unit: seen on Debian 12.
const UNREACHED: [(&str, &str); 2] = [
    (
        "postgresql",
        "this unit starts no server, and /etc/postgresql has no cluster of this name\n  list the \
         clusters: pg_lsclusters; their services are postgresql@VERSION-CLUSTER",
    ),
    (
        "postfix",
        "its master clears the environment of all that it starts, and refit knows its default \
         instance only\n  name that: postfix, or one of its daemons: postfix/DAEMON",
    ),
];

impl Kind for SystemdUnit {
    fn name(&self) -> &'static str {
        "systemd unit"
    }

    fn form(&self) -> &'static str {
        "UNIT"
    }

    fn is_of_unit(&self, _: &System, _: &Unit) -> Result<bool, Error> {
        Ok(true)
    }

    fn grounds(&self) -> &'static [Ground] {
        &[Ground::Unit]
    }

    fn lies_below_run(&self, _: &Settings) -> bool {
        true
    }

    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        trial: bool,
    ) -> Result<Plan, Error> {
        let family = service.split(['.', '@']).next().unwrap_or(service);
        if let Some((_, reason)) = UNREACHED.iter().find(|(name, _)| *name == family) {
            return Err(Error::NotReached {
                service: service.to_owned(),
                reason,
            });
        }
        let unit = systemd::unit(system, service)?;
        if system.is_live() {
            glibc_malloc::refuse_other(service, settings, &unit)?;
        }
        let environment = Environment::of(system, &settings.launch(), |name| {
            unit.declared.variable(name)
        })?;
        let mut plan = Plan::new(service, self.name(), settings);
        // With a change in it the unit is not as the one that is planned from.
        if system.is_live() && system.looked_away_from().is_none() {
            let note = loaded::compared(&unit, service, &environment.assignments)?;
            plan.notes.extend(note);
        }
        plan.change.trial = trial;
        plan.change.was_active = unit.is_active;
        let mut text = drop_in(service, &plan.change.settings, &environment.variables);
        environment.add_to(&mut plan);
        if has(&plan.change, SYNC_OFF) {
            text += &filter::line();
            plan.notes.push(sync_filter::NOT_COVERED.to_owned());
            if unit.has_user() && filter::takes_rights(system) {
                plan.notes.push(filter::NO_NEW_PRIVILEGES.to_owned());
            }
        }
        if has(&plan.change, THP_NEVER) {
            let (launcher, content) = launcher::launcher(service, &unit)?;
            text += &launcher::lines(&launcher);
            plan.change.launcher = Some(launcher);
            plan.contents.push(content);
            plan.notes.push(launcher::NOTE.to_owned());
            if launcher::has_none(&unit) {
                plan.notes.push(launcher::ALREADY.to_owned());
            }
        }
        let notes = &mut plan.notes;
        let files = unit.declared.list("EnvironmentFile");
        let pattern = files
            .iter()
            .find(|line| line.value.contains(['*', '?', '[']));
        if let (Some(line), false) = (pattern, plan.change.variables.is_empty()) {
            notes.push(format!(
                "{}: a variable in a file of EnvironmentFile={} wins over the same one here",
                line.place(),
                line.value
            ));
        }
        if trial {
            notes.push(
                "a trial: the drop-in lies below /run, and a reboot takes it back".to_owned(),
            );
        }
        let path_in = |base| format!("{base}/systemd/system/{service}.d/{FILE}");
        // systemd reads a drop-in in /etc instead of one of the same name in /run.
        for base in ["/etc", "/run"] {
            system.refuse_there(&path_in(base))?;
        }
        let path = path_in(if trial { "/run" } else { "/etc" });
        later::refuse(system, &unit.declared, &plan.change, &path)?;
        let commands = &mut plan.commands;
        if system.is_live() {
            commands.push("systemctl daemon-reload".to_owned());
            if unit.is_active {
                commands.push(format!("systemctl restart {service}"));
            } else {
                notes.push(
                    "the service does not run: the change takes effect when it starts".to_owned(),
                );
            }
        } else {
            notes.push("--root: files only; nothing is reloaded, restarted or verified".to_owned());
        }
        plan.change.files.push(FileEdit {
            path,
            before: None,
            after: Some(FileState::own(text.into_bytes())),
        });
        Ok(plan)
    }

    /// Of what systemd-analyze prints only the lines that name the drop-in count: it ends
    /// with 1 for a missing man page too.
    fn gate(&self, change: &Change) -> Result<(), Error> {
        let printed = systemd::analyze(&change.service);
        let ours = |line: &&str| change.files.iter().any(|edit| line.contains(&*edit.path));
        let lines: Vec<&str> = printed.lines().filter(ours).collect();
        if !lines.is_empty() {
            return Err(Error::Command {
                command: format!("systemd-analyze verify {}", change.service),
                output: lines.join("\n"),
            });
        }
        match has(change, SYNC_OFF) {
            true => filter::try_out(change),
            false => Ok(()),
        }
    }

    fn activate(&self, change: &Change, _: Step) -> Result<(), Error> {
        systemd::systemctl(&["daemon-reload"])?;
        restart(change)
    }

    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error> {
        let unit = systemd::show(&change.service)?;
        let mut checks = Vec::new();
        let is_there = |path: &&str| {
            let mut edits = change.files.iter();
            edits.any(|edit| edit.path == **path && edit.after.is_some())
        };
        if let Some(drop_in) = drop_in_of(change).filter(is_there) {
            checks.push(Check {
                layer: Layer::Loaded,
                key: "drop-in".to_owned(),
                expected: drop_in.to_owned(),
                found: unit.drop_ins.join(" "),
                holds: Some(unit.drop_ins.iter().any(|path| path == drop_in)),
            });
            checks.push(Check {
                layer: Layer::Loaded,
                key: "daemon-reload needed".to_owned(),
                expected: "no".to_owned(),
                found: unit.needs_reload.clone(),
                holds: Some(unit.needs_reload == "no"),
            });
        }
        if let Some(launcher) = &change.launcher {
            checks.push(launcher::check(change, launcher)?);
        }
        if !unit.is_active {
            checks.push(not_running(&unit.state));
            return Ok(checks);
        }
        let processes = processes_of(&unit);
        checks.extend(effective(change, unit.main_pid, &processes, MARK));
        Ok(checks)
    }
}

/// A setting that is no variable: durability calls are answered with success.
pub const SYNC_OFF: &str = "sync=off";
const THP_NEVER: &str = "thp=never";

/// Whether a change has this setting.
pub fn has(change: &Change, setting: &str) -> bool {
    change.settings.iter().any(|one| one == setting)
}

/// The drop-in of a change that has one, or takes one away.
pub fn drop_in_of(change: &Change) -> Option<&str> {
    let paths = change.files.iter().map(|edit| &*edit.path);
    let end = format!("/systemd/system/{}.d/{FILE}", change.service);
    paths.into_iter().find(|path| path.ends_with(&end))
}

/// Restarts a service that runs, or that failed since it ran.
///
/// # Errors
/// [`Error::Command`].
pub fn restart(change: &Change) -> Result<(), Error> {
    if systemd::is_to_run(&change.service, change.was_active)? {
        // More than a few starts within seconds are refused until this.
        systemd::systemctl(&["reset-failed", &change.service])?;
        systemd::systemctl(&["restart", &change.service])?;
    }
    Ok(())
}

fn drop_in(service: &str, settings: &[String], variables: &[(String, String)]) -> String {
    let mut text = systemd::written_by(service, settings) + "[Service]\n";
    for (name, value) in variables {
        let _ = writeln!(text, "Environment={}", quoted(&format!("{name}={value}")));
    }
    text
}
