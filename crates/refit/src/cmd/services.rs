//! `refit plan`, `apply`, `confirm`, `status`, `revert`: a change of a service.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Result, bail};
use refit_knobs::Settings;
use refit_report::metrics::{Format, of_status};
use refit_report::services::{
    applied, conflict, exported, not_as_shown, planned, reverted, stated,
};
use refit_services::{
    Applied, By, Dropped, Error, Etckeeper, Phase, Request, ServiceStatus, System, ToDo, Until,
};

use super::result_file::{is_stdout, replace};
use super::{evidence, print};
use crate::cli::{ApplyArgs, ConfirmArgs, PlanArgs, RevertArgs, StatusArgs};

pub fn plan(args: &PlanArgs) -> ExitCode {
    ended(try_plan(args))
}

pub fn apply(args: &ApplyArgs) -> ExitCode {
    ended(try_apply(args))
}

pub fn confirm(args: &ConfirmArgs) -> ExitCode {
    ended(try_confirm(args))
}

pub fn status(args: &StatusArgs) -> ExitCode {
    ended(try_status(args))
}

pub fn revert(args: &RevertArgs) -> ExitCode {
    ended(try_revert(args))
}

fn ended(result: Result<u8>) -> ExitCode {
    let error = match result {
        Ok(code) => return ExitCode::from(code),
        Err(error) => error,
    };
    let of_service = error.downcast_ref::<Error>();
    if let Some(Error::Conflict(changed)) = of_service {
        print::drawn(&conflict(changed));
    }
    print::failed(&error, of_service.map_or(2, Error::exit_code))
}

fn try_plan(args: &PlanArgs) -> Result<u8> {
    let (system, request) = read(args)?;
    let plan = match refit_services::to_do(&system, &request)? {
        ToDo::Nothing { service } => return nothing_to_do(&service),
        ToDo::Planned(plan) => plan,
    };
    print::result(&planned(&plan))?;
    if let Some(gate) = plan.gate {
        return Err(gate.into());
    }
    Ok(0)
}

fn try_apply(args: &ApplyArgs) -> Result<u8> {
    let (system, request) = read(&args.plan)?;
    let mut plan = match refit_services::to_do(&system, &request)? {
        ToDo::Nothing { service } => return nothing_to_do(&service),
        ToDo::Planned(plan) => plan,
    };
    match (args.diff, args.check) {
        (true, _) => print::result(&planned(&plan))?,
        (false, false) => print::drawn(&planned(&plan)),
        (false, true) => {}
    }
    if let Some(gate) = plan.gate.take() {
        return Err(gate.into());
    }
    if args.check {
        return one_line(format_args!("{}: would be changed", plan.change.service));
    }
    if !args.yes {
        if !print::can_ask() {
            bail!("nobody agreed to this change\n  read it above, then agree: --yes");
        }
        if !print::agreed("apply this?")? {
            bail!("not applied");
        }
    }
    let etckeeper = Etckeeper::look(&system);
    match refit_services::apply(&system, &request, &plan)? {
        Applied::Nothing { service } => nothing_to_do(&service),
        Applied::NotAsShown { now } => {
            print::drawn(&not_as_shown(&plan, *now));
            bail!(
                "not applied: since it was shown, what would be done has changed\n  \
                 read the difference above, then apply again"
            );
        }
        Applied::Done { record, checks } => {
            let service = &record.change.service;
            let how = if system.is_live() {
                applied(&checks)
            } else {
                "applied in the tree".to_owned()
            };
            let next = match &record.change.undo {
                Some(undo) if undo.at_unix.is_none() => "keep it by refit confirm",
                Some(_) => "keep it in time by refit confirm",
                None => "take back by refit revert",
            };
            let settings = record.change.settings.join(" ");
            commit(etckeeper, &format!("refit apply {service} {settings}"));
            one_line(format_args!(
                "{service}: {how}; see refit status {service}, {next} {service}"
            ))
        }
    }
}

/// Lets etckeeper commit what was changed; `what`: the command that did it.
fn commit(etckeeper: Option<Etckeeper>, what: &str) {
    if let Some(text) = etckeeper.and_then(|etckeeper| etckeeper.tell(what)) {
        print::say(text);
    }
}

fn nothing_to_do(service: &str) -> Result<u8> {
    one_line(format_args!("{service}: nothing to do"))
}

fn one_line(text: impl Display) -> Result<u8> {
    let mut page = refit_report::Page::default();
    page.line(0, text.to_string());
    print::result(&page.text())?;
    Ok(0)
}

fn try_status(args: &StatusArgs) -> Result<u8> {
    let system = System::new(args.tree.root.as_deref())?;
    if let (true, [database, what]) = (args.export, &*args.services)
        && what == "schema"
    {
        print::result(&refit_services::export_schema(&system, database)?)?;
        return Ok(0);
    }
    let looked_unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let status = refit_services::status(&system, &args.services)?;
    if let Some(path) = &args.openmetrics {
        let looked_unix = looked_unix.map_or(0, |since| since.as_secs());
        let is_whole = args.services.is_empty() && status.unreadable.is_empty();
        let metrics = of_status(&status, is_whole, looked_unix);
        replace(path, metrics.text(Format::Prometheus).as_bytes())?;
    }
    let differs = |one: &&ServiceStatus| one.drift || one.phase != Phase::Applied;
    let unreadable = status.unreadable.first();
    let text = if args.export {
        if let Some(reason) = unreadable {
            bail!("{reason}");
        }
        if let Some(one) = status.services.iter().find(differs) {
            let service = one.service.clone();
            return Err(Error::Drifted { service }.into());
        }
        exported(&status, args.tree.root.as_deref())
    } else {
        stated(&status)
    };
    if let Some(path) = &args.json {
        let json = serde_json::to_string_pretty(&status)? + "\n";
        replace(path, json.as_bytes())?;
    }
    let files = [&args.openmetrics, &args.json];
    if !files.into_iter().flatten().any(|path| is_stdout(path)) {
        print::result(&text)?;
    }
    for reason in &status.unreadable {
        print::say(format_args!("{reason}"));
    }
    if unreadable.is_some() {
        return Ok(2);
    }
    Ok(u8::from(args.exit_code && !status.is_as_applied()))
}

fn try_confirm(args: &ConfirmArgs) -> Result<u8> {
    let system = System::new(args.tree.root.as_deref())?;
    let etckeeper = Etckeeper::look(&system);
    match refit_services::confirm(&system, &args.service)? {
        (service, false) => nothing_to_do(&service),
        (service, true) => {
            commit(etckeeper, &format!("refit confirm {service}"));
            one_line(format_args!("{service}: confirmed; it stays"))
        }
    }
}

fn until(args: &PlanArgs) -> Until {
    match args.confirm_within {
        Some(within) => Until::Confirmed(within),
        None if args.trial => Until::Reboot,
        None => Until::Reverted,
    }
}

fn try_revert(args: &RevertArgs) -> Result<u8> {
    let system = System::new(args.tree.root.as_deref())?;
    // Before any service starts nothing waits for a repository.
    let etckeeper = (!args.at_boot).then(|| Etckeeper::look(&system)).flatten();
    let words = std::iter::once(&args.service).chain(&args.settings);
    let what = words.fold("refit revert".to_owned(), |text, word| text + " " + word);
    if !args.settings.is_empty() {
        let done = refit_services::drop_settings(&system, &args.service, &args.settings)?;
        commit(etckeeper, &what);
        return match done {
            Dropped::All(done) => print::result(&reverted(&done)).map(|()| 0),
            Dropped::Some(change, dropped) => one_line(format_args!(
                "{}: reverted {dropped}; it has {}",
                change.service,
                change.settings.join(" ")
            )),
        };
    }
    let done = if args.unconfirmed {
        let by = if args.at_boot { By::Boot } else { By::Timer };
        match refit_services::revert_unconfirmed(&system, &args.service, by)? {
            Some(done) => done,
            None => return nothing_to_do(&args.service),
        }
    } else {
        refit_services::revert(&system, &args.service)?
    };
    commit(etckeeper, &what);
    print::result(&reverted(&done))?;
    Ok(0)
}

/// The file of `schema=FILE` by its whole path: a record that names it is read in any directory.
fn absolute(word: &OsString) -> OsString {
    let path = word.to_str().and_then(|word| word.strip_prefix("schema="));
    let whole = path.filter(|path| !path.is_empty() && *path != "-");
    let whole = whole.and_then(|path| std::path::absolute(path).ok());
    match whole.as_deref().and_then(Path::to_str) {
        Some(path) => format!("schema={path}").into(),
        None => word.clone(),
    }
}

fn read(args: &PlanArgs) -> Result<(System, Request)> {
    let mut request = Request {
        word: args.service.clone().unwrap_or_default(),
        settings: Settings::parse(args.settings.iter().map(absolute))?,
        dropped: Settings::default(),
        until: until(args),
        evidence: None,
        accept: args.accept,
        no_evidence: args.no_evidence,
        health: args.health.clone(),
    };
    if let Some(path) = &args.from {
        evidence::take(path, &mut request)?;
    }
    if args.tree.root.is_some() {
        // Nothing runs there: what the recipe of a result would ask, nobody answers.
        request.health.clone_from(&args.health);
    }
    let system = System::new(args.tree.root.as_deref())?;
    Ok((system, request.meant()))
}
