//! rsyslog: whether its files are synced and how it queues, by a file of refit's own in rsyslog.d and the
//! dash before a file name; libraries and variables as for any unit.

mod config;
mod server;
mod test_lines;

use refit_knobs::{Ground, Settings};
use refit_servers::risk::{self, Risk};

use super::systemd_unit::{SystemdUnit, drop_in_of, restart};
use super::unit_and_conf::{Planned, has_conf, plan_unit};
use crate::check::{Check, Layer};
use crate::kind::{Kind, Step};
use crate::systemd::{self, Unit};
use crate::{Change, Error, FileEdit, FileState, Plan, System};
use config::{Config, Part};
use server::{Server, changed_since_start};
use test_lines::TestLines;

/// The kind.
pub struct Rsyslog;

/// Before the files of others: a directive counts for the rules after it.
const FILE: &str = "/etc/rsyslog.d/00-refit.conf";
const DIRECTIVE: &str = "$ActionFileEnableSync";

impl Kind for Rsyslog {
    fn name(&self) -> &'static str {
        "rsyslog"
    }

    fn form(&self) -> &'static str {
        "rsyslog"
    }

    fn is_of_unit(&self, _: &System, unit: &Unit) -> Result<bool, Error> {
        Ok(Server::of(unit).is_some())
    }

    fn risks(&self) -> &'static [Risk] {
        risk::RSYSLOG
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
        let config = Config::read(system, &server.config, FILE)?;
        let own = own_file(&plan.change, &server, &config)?;
        system.refuse_there(FILE)?;
        let change = &mut plan.change;
        let text = systemd::written_by(service, &change.settings) + &own;
        change.files.push(FileEdit {
            path: FILE.to_owned(),
            before: None,
            after: Some(FileState::own(text.into_bytes())),
        });
        let dash = sync_of(change).and_then(|(_, dash)| dash);
        for (file, bytes) in dash
            .map(|dash| config.with_dashes(dash))
            .unwrap_or_default()
        {
            let edit = FileEdit::of(system, file, config.bytes(file), bytes)?;
            change.files.push(edit);
            plan.notes.push(format!(
                "{file} is a package's or an administrator's: an upgrade that brings a new one asks \
                 which to keep, and where nobody can answer it stops half-configured"
            ));
        }
        plan.notes.extend(notes(&plan.change, &config));
        if system.is_live() {
            ask(&server, &config, &mut plan)?;
        }
        Ok(plan)
    }

    /// rsyslogd reads its files; systemd-analyze the drop-in.
    fn gate(&self, change: &Change) -> Result<(), Error> {
        if drop_in_of(change).is_some() {
            SystemdUnit.gate(change)?;
        }
        server_of(&System::new(None)?, &change.service)?.check()
    }

    /// A restart: rsyslogd reads its configuration at no other time. When a change is taken back, a
    /// configuration that somebody else broke since is not taken up.
    fn activate(&self, change: &Change, step: Step) -> Result<(), Error> {
        let take_up = || match drop_in_of(change) {
            Some(_) => SystemdUnit.activate(change, step),
            None => restart(change),
        };
        let system = System::new(None)?;
        let server = Server::of(&systemd::unit(&system, &change.service)?);
        if let (Some(server), true) = (&server, step != Step::Apply) {
            server.check()?;
        }
        let Some(server) = server.filter(|_| step == Step::Apply && change.was_active) else {
            return take_up();
        };
        let lines = TestLines::of(&Config::read(&system, &server.config, FILE)?);
        let failed = |reason: String| Error::NotInEffect {
            service: change.service.clone(),
            reason,
        };
        let before = lines.arrivals().map_err(failed)?;
        if before.is_empty() {
            let nowhere = "before the restart its test lines arrived in no file";
            return Err(failed(nowhere.to_owned()));
        }
        take_up()?;
        let missing = lines.missing(&before).map_err(failed)?;
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.join(", ");
        Err(failed(format!(
            "test lines that arrived before do not arrive now: {missing}"
        )))
    }

    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error> {
        let mut checks = SystemdUnit.checks(change)?;
        if !systemd::show(&change.service)?.is_active {
            return Ok(checks);
        }
        let system = System::new(None)?;
        let server = server_of(&system, &change.service)?;
        let config = Config::read(&system, &server.config, FILE)?;
        let changed = changed_since_start(&change.service, &config)?;
        let mut add = |layer, key: &str, expected: &str, found: String, holds| {
            checks.push(Check {
                layer,
                key: key.to_owned(),
                expected: expected.to_owned(),
                found,
                holds,
            });
        };
        let same = "as when it was started";
        let found = changed.as_ref().map(|file| format!("{file} changed since"));
        let found = found.unwrap_or_else(|| same.to_owned());
        add(
            Layer::Loaded,
            "configuration",
            same,
            found,
            Some(changed.is_none()),
        );
        if let Some((syncs, _)) = sync_of(change) {
            let other = against(change, &config);
            let (synced, all) = config.synced();
            let found = other.as_ref().map(ToString::to_string);
            let found = found.unwrap_or_else(|| format!("{synced} of {all}"));
            let expected = if syncs { "all" } else { "none" };
            add(
                Layer::Loaded,
                "rules that sync",
                expected,
                found,
                Some(other.is_none()),
            );
            add(
                Layer::Effective,
                "syncs",
                expected,
                "not observed".to_owned(),
                None,
            );
        }
        Ok(checks)
    }
}

fn server_of(system: &System, service: &str) -> Result<Server, Error> {
    Server::of(&systemd::unit(system, service)?).ok_or_else(|| Error::NotReached {
        service: service.to_owned(),
        reason: "its ExecStart= runs no rsyslogd any more",
    })
}

/// What `conf.sync` asks for, by the names of the recipes rsyslog-sync and rsyslog-lease: whether rules
/// sync, and whether file names have a dash.
fn sync_of(change: &Change) -> Option<(bool, Option<bool>)> {
    let conf = change.conf.iter().find(|conf| conf.name == "sync")?;
    Some(match &*conf.value {
        "dash" => (false, Some(true)),
        "off" => (false, None),
        _ => (true, Some(false)),
    })
}

/// What refit's own file says, where that is possible with this configuration.
fn own_file(change: &Change, server: &Server, config: &Config) -> Result<String, Error> {
    let mut queue = Vec::new();
    let mut directive = "";
    for conf in &change.conf {
        let bad = |reason: String| Error::BadConf {
            setting: format!("conf.{}={}", conf.name, conf.value),
            service: change.service.clone(),
            reason,
        };
        match (&*conf.name, &*conf.value) {
            ("sync", "on" | "dash") => directive = "on",
            ("sync", "each") => {
                directive = "on";
                queue.push("queue.dequeueBatchSize=\"1\"");
            }
            ("sync", "off") => directive = "off",
            ("queue", "direct") => queue.push("queue.type=\"Direct\""),
            ("queue", "default") => {
                let reason = "that is what it has without main_queue() and $MainMsgQueue…: take such \
                              lines out yourself";
                return Err(bad(reason.to_owned()));
            }
            _ => {
                let known = "there is conf.sync=on, each, dash or off, and conf.queue=direct";
                return Err(bad(known.to_owned()));
            }
        }
        if !config.has_ours {
            return Err(bad(format!(
                "{} includes no {FILE}\n  add before its rules: $IncludeConfig /etc/rsyslog.d/*.conf",
                server.config
            )));
        }
        if conf.name == "sync" && config.synced().1 == 0 {
            return Err(bad(
                "no rule of the traditional format writes to a file".to_owned()
            ));
        }
        if let (Some(place), false) = (config.first(&Part::MainQueue), queue.is_empty()) {
            return Err(bad(format!(
                "{place} sets the main queue already, and of two rsyslogd ignores one\n  write {} there",
                queue.join(" ")
            )));
        }
    }
    if let Some(error) = against(change, config) {
        return Err(error);
    }
    let mut text = String::new();
    if !queue.is_empty() {
        text += &format!("main_queue({})\n", queue.join(" "));
    }
    if !directive.is_empty() {
        text += &format!("{DIRECTIVE} {directive}\n");
    }
    Ok(text)
}

/// What wins over refit's own file: an action that says so itself, a directive after it, and one
/// before it for rules that come before it too. A dash wins over each directive.
fn against(change: &Change, config: &Config) -> Option<Error> {
    let (syncs, dash) = sync_of(change)?;
    let overridden = |place: String, name: &str| Error::Overridden {
        name: name.to_owned(),
        value: if syncs { "off" } else { "on" }.to_owned(),
        place,
        ours: FILE.to_owned(),
        mend: "take that out".to_owned(),
    };
    let action = config.first(&Part::Action(true)).filter(|_| !syncs);
    if let Some(place) = action {
        return Some(overridden(place, "sync of an action()"));
    }
    let mut rules = config.rules().filter(|_| dash != Some(true));
    rules.find_map(|(rule, _, by)| {
        let by = by.filter(|by| by.part == Part::Sync(!syncs) && by.file != FILE)?;
        let wins = by.is_reached || (!syncs && !rule.is_reached);
        wins.then(|| overridden(by.place(), DIRECTIVE))
    })
}

fn notes(change: &Change, config: &Config) -> Option<String> {
    let (syncs, _) = sync_of(change)?;
    let (now, all) = config.synced();
    let mut note = format!("{now} of {all} rules that write to files sync now");
    if syncs {
        let others = config.parts.iter().filter(|placed| match placed.part {
            Part::Rule { .. } => !placed.is_reached,
            Part::Action(syncs) => !syncs,
            _ => false,
        });
        let others: Vec<String> = others.map(config::Placed::place).collect();
        note += "; with the change each of them, by an fdatasync and an fsync of its directory";
        if !others.is_empty() {
            note += &format!(", but not {}", others.join(", "));
        }
    }
    Some(note)
}

/// Completes a plan with what rsyslogd says of its configuration as it is.
fn ask(server: &Server, config: &Config, plan: &mut Plan) -> Result<(), Error> {
    server.check()?;
    let change = &plan.change;
    plan.commands.insert(0, server.check_command());
    if !change.was_active {
        let later = "the service does not run: the change takes effect when it starts";
        plan.notes.push(later.to_owned());
        return Ok(());
    }
    if let Some(path) = changed_since_start(&change.service, config)? {
        let service = change.service.clone();
        return Err(Error::NotTakenUp { service, path });
    }
    if drop_in_of(change).is_none() {
        plan.commands
            .push(format!("systemctl restart {}", change.service));
    }
    plan.notes.push(format!(
        "before and after the restart one test line of priority info is logged for each of: {}; it has to \
         arrive in the same files",
        TestLines::of(config).facilities()
    ));
    Ok(())
}
