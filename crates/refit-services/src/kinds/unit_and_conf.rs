//! A service with settings of its own beside those of its unit.

use refit_knobs::{Setting, Settings};

use super::systemd_unit::SystemdUnit;
use crate::kind::Kind;
use crate::{Change, ConfValue, Error, Plan, System, systemd};

/// How far a plan is.
pub enum Planned {
    /// Complete: no setting is the service's own.
    Whole(Plan),
    /// What the unit does of it, with the service's own settings as they were typed.
    Unit(Plan),
}

/// Whether a setting is the service's own.
pub fn has_conf(settings: &Settings) -> bool {
    settings.0.iter().any(|setting| setting.conf().is_some())
}

/// The part of a plan that the unit does.
///
/// # Errors
/// [`Error::UnknownSetting`], or as of a unit.
pub fn plan_unit(
    kind: &str,
    system: &System,
    service: &str,
    settings: &Settings,
    trial: bool,
) -> Result<Planned, Error> {
    let is_conf = |setting: &Setting| setting.conf().is_some();
    let (conf, of_unit): (Vec<_>, Vec<_>) = settings.0.iter().cloned().partition(is_conf);
    if conf.is_empty() {
        let plan = SystemdUnit.plan(system, service, settings, trial)?;
        return Ok(Planned::Whole(plan));
    }
    let mut plan = Plan::new(service, kind, settings);
    if of_unit.is_empty() {
        plan.change.was_active = system.is_live() && systemd::show(service)?.is_active;
        if !system.is_live() {
            let only_files = "--root: files only; nothing is checked, set or verified";
            plan.notes.push(only_files.to_owned());
        }
    } else {
        let part = SystemdUnit.plan(system, service, &Settings(of_unit), trial)?;
        plan.change = Change {
            kind: kind.to_owned(),
            settings: plan.change.settings,
            ..part.change
        };
        (plan.commands, plan.notes, plan.contents) = (part.commands, part.notes, part.contents);
    }
    let conf = settings.launch().conf.into_iter().map(ConfValue::typed);
    plan.change.conf = conf.collect();
    Ok(Planned::Unit(plan))
}
