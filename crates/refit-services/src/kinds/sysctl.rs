//! Sysctls: a file of refit's in sysctl.d, which counts at the next boot, and the value that the
//! kernel has now, which removing a file does not restore.
//!
//! What writing the value before does not take back is refused.

mod files;
mod kernel;

use std::fmt::Write;
use std::path::Path;

use refit_knobs::{Ground, Settings};

use crate::check::{Check, Layer};
use crate::kind::{Kind, Step};
use crate::{Change, ConfValue, Error, FileEdit, FileState, Plan, System, systemd};
use files::{Line, lines};
use kernel::{Kernel, is_same, refused, zeroed_by};

/// The kind.
pub struct Sysctl;

/// What a service is called that is no unit.
const SERVICE: &str = "sysctl";
const FILE: &str = "sysctl.d/90-refit.conf";
/// It reads the files at boot.
const LOADER: &str = "systemd-sysctl.service";

impl Kind for Sysctl {
    fn name(&self) -> &'static str {
        "sysctls"
    }

    fn form(&self) -> &'static str {
        SERVICE
    }

    fn find(&self, system: &System, word: &str) -> Result<Option<String>, Error> {
        if word != SERVICE {
            return Ok(None);
        }
        if system.is_live() && !rustix::process::geteuid().is_root() {
            return Err(Error::NotRoot);
        }
        Ok(Some(SERVICE.to_owned()))
    }

    fn grounds(&self) -> &'static [Ground] {
        &[Ground::Configuration]
    }

    fn known(&self) -> String {
        "conf.KEY=VALUE, as in conf.vm.swappiness=10".to_owned()
    }

    fn example(&self) -> &'static str {
        "conf.vm.swappiness=10"
    }

    /// The files in /etc are read at boot before an unconfirmed change can be taken back there.
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
        let mut plan = Plan::new(service, self.name(), settings);
        plan.change.trial = trial;
        plan.change.was_active = true;
        let typed = settings.launch().conf.into_iter().map(ConfValue::typed);
        let typed: Vec<ConfValue> = typed.collect();
        let ours = format!("{}/{FILE}", if trial { "/run" } else { "/etc" });
        // The one in /etc would hide the one in /run.
        for dir in ["/etc", "/run"] {
            system.refuse_there(&format!("{dir}/{FILE}"))?;
        }
        let lines = lines(system, &ours)?;
        let mut text = systemd::written_by(service, &plan.change.settings);
        for conf in &typed {
            refuse(conf, &typed, &ours)?;
            let line = lines.iter().rfind(|line| line.key == conf.name);
            if let Some(line) = line.filter(|line| !is_same(&line.value, &conf.value)) {
                if is_later(&line.file) {
                    return Err(overridden(line, ours));
                }
                plan.notes.push(format!(
                    "{} sets {} to `{}`; {ours} is read later, and wins",
                    line.place, line.key, line.value
                ));
            }
            let _ = writeln!(text, "{} = {}", conf.name, conf.value);
        }
        plan.notes.extend(notes(&typed));
        plan.change.files.push(FileEdit {
            path: ours,
            before: None,
            after: Some(FileState::own(text.into_bytes())),
        });
        plan.change.conf = typed;
        if trial {
            let gone = "a trial: the file lies below /run, and a reboot takes it back";
            plan.notes.push(gone.to_owned());
        }
        if system.is_live() {
            ask(system, &mut plan)?;
        } else {
            let only_files = "--root: files only; nothing is checked, set or verified";
            plan.notes.push(only_files.to_owned());
        }
        Ok(plan)
    }

    /// The files as they are now have to set these values.
    fn comes_from(&self, _: &System, _: &Change) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn gate(&self, change: &Change) -> Result<(), Error> {
        let Some(ours) = change.files.first().map(|edit| edit.path.clone()) else {
            return Ok(());
        };
        let lines = lines(&System::new(None)?, &ours)?;
        for conf in of_file(change) {
            let last = lines.iter().rfind(|line| line.key == conf.name);
            if let Some(line) = last.filter(|line| !is_same(&line.value, &conf.value)) {
                return Err(overridden(line, ours));
            }
        }
        Ok(())
    }

    fn activate(&self, change: &Change, step: Step) -> Result<(), Error> {
        let kernel = Kernel::here();
        let done = match step {
            Step::Apply => set(&kernel, change),
            Step::Revert | Step::Recover => set_back(&kernel, change, step),
        };
        done.map_err(|(conf, reason)| bad(&conf, reason))
    }

    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error> {
        let mut checks = Vec::new();
        let lines = lines(&System::new(None)?, "")?;
        for conf in of_file(change) {
            let last = lines.iter().rfind(|line| line.key == conf.name);
            checks.push(Check {
                layer: Layer::Loaded,
                key: format!("{} at boot", conf.name),
                expected: conf.value.clone(),
                found: last.map_or("no file sets it".to_owned(), |line| {
                    format!("{}, by {}", line.value, line.place)
                }),
                holds: Some(last.is_some_and(|line| is_same(&line.value, &conf.value))),
            });
        }
        if Path::new("/run/systemd/system").is_dir() {
            let state = systemd::systemctl(&["show", "-p", "LoadState", "--value", LOADER])?;
            checks.push(Check {
                layer: Layer::Loaded,
                key: LOADER.to_owned(),
                expected: "loaded".to_owned(),
                found: state.trim().to_owned(),
                holds: Some(state.trim() == "loaded"),
            });
        }
        let kernel = Kernel::here();
        for conf in &change.conf {
            let found = kernel.value(&conf.name).map(|value| match value {
                Some(value) => value,
                None => "no such key".to_owned(),
            });
            checks.push(Check {
                layer: Layer::Effective,
                key: conf.name.clone(),
                expected: conf.value.clone(),
                holds: Some(found.as_ref().is_ok_and(|now| is_same(now, &conf.value))),
                found: found.unwrap_or_else(|error| error),
            });
        }
        Ok(checks)
    }
}

/// Whether a file is read after refit's own.
fn is_later(file: &str) -> bool {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    file == "/etc/sysctl.conf" || name(file) > name(FILE)
}

fn overridden(line: &Line, ours: String) -> Error {
    Error::Overridden {
        name: line.key.clone(),
        value: line.value.clone(),
        place: line.place.clone(),
        ours,
        mend: "take that line out".to_owned(),
    }
}

fn bad(conf: &ConfValue, reason: String) -> Error {
    Error::BadConf {
        setting: format!("conf.{}={}", conf.name, conf.value),
        service: SERVICE.to_owned(),
        reason,
    }
}

/// What no kernel can tell.
fn refuse(conf: &ConfValue, all: &[ConfValue], ours: &str) -> Result<(), Error> {
    let ConfValue { name, value, .. } = conf;
    if value.contains(|c: char| c.is_control() && c != '\t') {
        return Err(Error::NotOneLine {
            name: name.clone(),
            path: ours.to_owned(),
        });
    }
    // A slash is a dot of a name.
    let is_part = |part: &str| !["", "/", "//"].contains(&part);
    let is_key = name.contains('.') && name.split('.').all(is_part);
    let zeroed = zeroed_by(name).filter(|other| all.iter().any(|one| one.name == *other));
    let reason = match () {
        () if !is_key => "a key has dots, as in conf.vm.swappiness=10".to_owned(),
        () if value.trim().is_empty() => "it has no value".to_owned(),
        () => match (refused(name), zeroed) {
            (Some(reason), _) => reason.to_owned(),
            (None, Some(other)) => {
                format!("of {name} and {other} the kernel keeps one: set one of them")
            }
            (None, None) => return Ok(()),
        },
    };
    Err(bad(conf, reason))
}

/// Those that were asked for; the others are what the kernel makes of these.
fn of_file(change: &Change) -> impl Iterator<Item = &ConfValue> {
    let is_asked = |conf: &&ConfValue| {
        let setting = format!("conf.{}=", conf.name);
        change.settings.iter().any(|one| one.starts_with(&setting))
    };
    change.conf.iter().filter(is_asked)
}

fn notes(conf: &[ConfValue]) -> Vec<String> {
    let any = |begin: &[&str]| {
        let mut names = conf.iter().map(|conf| &conf.name);
        names.any(|name| begin.iter().any(|begin| name.starts_with(begin)))
    };
    let mut notes = Vec::new();
    if any(&["vm.dirty", "vm.laptop_mode"]) {
        notes.push(
            "a power cut takes what no program synced and the kernel has not written yet; what was \
             synced is kept"
                .to_owned(),
        );
    }
    if any(&["net.netfilter.", "net.bridge.", "net.nf_conntrack"]) {
        notes.push(
            "these keys are there as long as their kernel module is loaded: one that is loaded \
             later at boot does not get the value"
                .to_owned(),
        );
    }
    if any(&["net."]) {
        notes.push(
            "of this network namespace only; where it could cut you off: --confirm-within 10m"
                .to_owned(),
        );
    }
    notes
}

/// Completes a plan with the values that the kernel has.
fn ask(system: &System, plan: &mut Plan) -> Result<(), Error> {
    let kernel = Kernel::here();
    let mut all = Vec::new();
    for conf in std::mem::take(&mut plan.change.conf) {
        let before = kernel.value_to_change(&conf.name);
        let before = before.map_err(|reason| bad(&conf, reason))?;
        plan.commands
            .push(format!("sysctl --write {}='{}'", conf.name, conf.value));
        let zeroed = zeroed_by(&conf.name).map(|other| (other, kernel.value(other)));
        all.push(ConfValue {
            before: Some(before),
            ..conf
        });
        let earlier = system.looked_away_from();
        let is_zeroed = |other: &str| {
            earlier.is_some_and(|earlier| earlier.conf.iter().any(|name| name == other))
        };
        if let Some((other, Ok(Some(before)))) = zeroed
            && (before != "0" || is_zeroed(other))
        {
            if before != "0" {
                plan.notes.push(format!(
                    "the kernel sets {other} to 0 then; a revert puts `{before}` back"
                ));
            }
            all.push(ConfValue {
                name: other.to_owned(),
                value: "0".to_owned(),
                before: Some(before),
            });
        }
    }
    plan.change.conf = all;
    Ok(())
}

/// Sets the values that were asked for.
fn set(kernel: &Kernel, change: &Change) -> Result<(), (ConfValue, String)> {
    for one in of_file(change) {
        let set = kernel.set(&one.name, &one.value);
        set.map_err(|reason| (one.clone(), reason))?;
    }
    Ok(())
}

/// Sets the values before, from the last one back: of a pair, the one that the kernel set to 0 comes
/// first. Where somebody else set another value since, that stays; not where applying was
/// interrupted, which the kernel can have answered with a value of its own.
fn set_back(kernel: &Kernel, change: &Change, step: Step) -> Result<(), (ConfValue, String)> {
    for one in change.conf.iter().rev() {
        let failed = |reason| (one.clone(), reason);
        let (Some(before), Some(now)) = (&one.before, kernel.value(&one.name).map_err(failed)?)
        else {
            continue;
        };
        if step == Step::Recover || is_same(&now, &one.value) {
            kernel.set(&one.name, before).map_err(failed)?;
        }
    }
    Ok(())
}
