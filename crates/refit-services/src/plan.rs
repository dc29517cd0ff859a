//! What a change would do, before any of it is done.

use std::path::Path;

use refit_knobs::{Class, Setting, Settings};
use refit_run::{ElfFacts, replaced_syncs};

use crate::accept::{self, Basis};
use crate::amend;
use crate::glibc_malloc::asks_nothing;
use crate::kind::{Kind, refuse_unknown};
use crate::kinds::{kind_of, of_daemon};
use crate::packages::packages_of;
use crate::store::Store;
use crate::undo::{self, Until};
use crate::{Change, Error, Evidence, FileError, FileState, Package, Plan, Record, System};

/// How many bytes a service's name may have as a part of a unit's name. The unit's file is written under a name that has 38
/// bytes more, and a file's name has 255 at most (NAME_MAX, limits.h).
const LONGEST: usize = 217;

/// What is asked for.
pub struct Request {
    /// The service, as it was typed.
    pub word: String,
    /// What it is to have, beside what it has.
    pub settings: Settings,
    /// What it is to have no more, of the change that is there.
    pub dropped: Settings,
    /// For how long.
    pub until: Until,
    /// What was measured of it.
    pub evidence: Option<Evidence>,
    /// The risk that is accepted.
    pub accept: Option<Class>,
    /// Accepted without a result that shows gain and loss.
    pub no_evidence: bool,
    /// A command that ends with 0 where the service does its work.
    pub health: Option<String>,
}

impl Request {
    /// What is meant: `sync@exe:DAEMON=off` of Postfix, as it is measured, is `sync=off` of the
    /// service postfix/DAEMON.
    #[must_use]
    pub fn meant(mut self) -> Request {
        if let Some((word, settings)) = of_daemon(&self.word, &self.settings) {
            (self.word, self.settings) = (word, settings);
        }
        self
    }
}

/// A service that was found, and what is asked for it.
pub struct Target<'a> {
    /// Where it is.
    pub system: &'a System,
    /// Its kind.
    pub kind: &'static dyn Kind,
    /// Its full name.
    pub service: String,
    /// What is asked for.
    pub request: &'a Request,
}

impl<'a> Target<'a> {
    /// The service that a request means.
    ///
    /// # Errors
    /// [`Error::UnknownService`].
    pub fn find(system: &'a System, request: &'a Request) -> Result<Target<'a>, Error> {
        let (kind, service) = kind_of(system, &request.word)?;
        Ok(Target {
            system,
            kind,
            service,
            request,
        })
    }

    /// What is asked for, as a plan from the change that is there.
    ///
    /// # Errors
    /// As [`Target::plan_from`].
    pub fn plan(&self) -> Result<Plan, Error> {
        let first = Store::to_read(self.system)?.load(&self.service)?;
        self.plan_from(first)
    }

    /// What applying the settings to the service, which has this change, would do. Nothing is changed.
    ///
    /// # Errors
    /// Where it cannot be done: [`Error`] says why.
    pub fn plan_from(&self, first: Option<Record>) -> Result<Plan, Error> {
        plan(
            self.system,
            self.kind,
            self.service.clone(),
            first,
            self.request,
        )
    }
}

fn plan(
    system: &System,
    kind: &'static dyn Kind,
    service: String,
    first: Option<Record>,
    request: &Request,
) -> Result<Plan, Error> {
    let over = undo::in_unit_name(&service).len().saturating_sub(LONGEST);
    if over > 0 {
        return Err(Error::LongName { service, over });
    }
    if let Some(first) = &first {
        amend::refuse_unsettled(first)?;
    }
    let earlier = first.as_ref().map(|first| &first.change);
    let wanted = earlier.map(|earlier| amend::wanted(&request.settings, &request.dropped, earlier));
    let wanted = wanted.transpose()?;
    let (settings, until) = (wanted.as_ref().unwrap_or(&request.settings), request.until);
    if request.settings.is_empty() && request.dropped.is_empty() {
        let example = kind.example();
        return Err(Error::NoSettings { service, example });
    }
    refuse_unknown(kind, &service, settings)?;
    if let (Until::Reboot | Until::Confirmed(_), Some(why)) = (until, kind.only_reverted()) {
        return Err(Error::NotByItself { service, why });
    }
    // What goes on from a change that stays is taken back to that one.
    let lies_below_run = earlier.is_none() && kind.lies_below_run(settings);
    let trial = until != Until::Reverted && lies_below_run;
    if request.health.is_some() && !system.is_live() {
        return Err(Error::NothingRuns);
    }
    let new = earlier.map_or(settings.clone(), |earlier| amend::new_of(settings, earlier));
    let mut plan = match earlier {
        Some(_) if kind.is_beside() => kind.plan(system, &service, &new, trial)?,
        Some(earlier) => {
            let without = system.without(amend::looked_away_from(earlier));
            kind.plan(&without, &service, settings, trial)?
        }
        None => kind.plan(system, &service, settings, trial)?,
    };
    plan.change.settings = settings.0.iter().map(ToString::to_string).collect();
    if asks_nothing(settings) {
        let settings = plan.change.settings.join(" ");
        return Err(Error::AsksNothing { service, settings });
    }
    plan.change.word.clone_from(&request.word);
    plan.change.health.clone_from(&request.health);
    let comes_from = kind.comes_from(system, &plan.change)?;
    plan.change.packages = packages_of(system, comes_from)?;
    plan.change.evidence.clone_from(&request.evidence);
    if let Some(evidence) = &mut plan.change.evidence {
        compare_versions(evidence, &plan.change.packages);
    }
    for library in &mut plan.change.libraries {
        let mut packages = packages_of(system, vec![library.from.clone()])?;
        library.package = packages.pop();
    }
    for setting in &settings.0 {
        let of_file = |path: &Path| {
            let content = system.read(&path.to_string_lossy());
            content.ok()?.map(|content| ElfFacts::read(&content))
        };
        let syncs = replaced_syncs(setting, of_file);
        plan.classes.push(match syncs {
            Some(_) => Class::LosesOnCrash,
            None if destroys(&plan.change) => Class::LosesData,
            None => kind.class(setting),
        });
        plan.notes.extend(syncs);
    }
    let is_new = |setting: &Setting| new.0.contains(setting);
    let classes = settings.0.iter().zip(&mut plan.classes);
    let (of_new, of_old): (Vec<_>, Vec<_>) = classes.partition(|(setting, _)| is_new(setting));
    let keeps_risk = of_old.iter().any(|(_, class)| class.risks_data());
    let evidence = plan.change.evidence.as_ref();
    if evidence.is_some_and(|evidence| evidence.fewer_durable)
        && !of_new.iter().any(|(_, class)| class.risks_data())
    {
        // Which of the settings it is was not seen.
        of_new
            .into_iter()
            .for_each(|(_, class)| *class = Class::LosesOnCrash);
        let note = "the result shows fewer durable calls than at the baseline, and no cuts that lost nothing";
        plan.notes.push(note.to_owned());
    }
    let basis = match request.no_evidence {
        true => Basis::DoneWithout,
        false => Basis::Named(plan.change.evidence.as_ref()),
    };
    let of_new = settings.0.iter().zip(&plan.classes);
    let of_new = of_new.filter(|(setting, _)| is_new(setting));
    let judged = match destroys(&plan.change) {
        true => accept::of_destroyed(&plan.change, request.accept),
        false => accept::judged(of_new, request.accept, basis),
    };
    match judged {
        Ok(accepted) => plan.change.accepted = accepted,
        Err(error) => plan.gate = Some(error),
    }
    if let Some(first) = first {
        let (change, earlier) = (&mut plan.change, &first.change);
        change.evidence = amend::both(earlier, change.evidence.take(), &new);
        change.accepted = amend::accepted(earlier, change.accepted.take(), keeps_risk);
        amend::begin_at(&mut plan, first);
    }
    match until {
        Until::Confirmed(within) => undo::add(system, &mut plan, Some(within))?,
        Until::Reboot if !trial => undo::add(system, &mut plan, None)?,
        Until::Reboot | Until::Reverted => {}
    }
    for edit in plan.change.edits() {
        let place = system.place(&edit.path)?;
        if edit
            .before
            .as_ref()
            .is_some_and(FileState::is_set_id_program)
        {
            let path = place.path().to_owned();
            return Err(FileError::SetId { path }.into());
        }
        place.refuse_taken()?;
        place.refuse_fixed()?;
        place.refuse_other_names()?;
    }
    for file in plan.change.placed() {
        system.is_ours_alone(&file.path)?;
    }
    plan.change.directories = missing(system, &plan.change)?;
    Ok(plan)
}

/// Whether the change itself destroys data.
fn destroys(change: &Change) -> bool {
    let declared = change.declared.as_ref();
    declared.is_some_and(|declared| !declared.losses().is_empty())
}

/// Adds what was measured with another version of the service's packages. One whose name holds its version, as
/// postgresql-17 does, stands for those of the same name without.
fn compare_versions(evidence: &mut Evidence, packages: &[Package]) {
    for Package { name, version } in packages {
        // dpkg's lists name the architecture of some.
        let name = name.split(':').next().unwrap_or(name);
        let is_same = |(other, _): &(&String, &String)| *other == name;
        let stem = unversioned(name);
        let is_kin = |(other, _): &(&String, &String)| stem.is_some() && unversioned(other) == stem;
        let mut all = evidence.packages.iter();
        let then = all
            .find(is_same)
            .or_else(|| evidence.packages.iter().find(is_kin));
        let differs = |(other, then): &(&String, &String)| *other != name || *then != version;
        let Some((other, then)) = then.filter(differs) else {
            continue;
        };
        let then = if other == name {
            then.clone()
        } else {
            format!("{other} {then}")
        };
        let differs = format!("{name}: measured with {then}, here is {version}");
        evidence
            .lacks
            .push(format!("it was measured with another version: {differs}"));
        evidence.differs.push(differs);
    }
}

/// `postgresql` of `postgresql-17`; `None` of a name without a version.
fn unversioned(package: &str) -> Option<&str> {
    let (name, end) = package.rsplit_once('-')?;
    let mut bytes = end.bytes();
    let is_version = bytes.next().is_some_and(|first| first.is_ascii_digit())
        && bytes.all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_version.then_some(name)
}

/// Adds directories that another change made: whichever is reverted last takes them away.
pub fn share_directories(store: &Store, change: &mut Change) -> Result<(), Error> {
    let records = store.all()?.readable;
    for dir in records.iter().flat_map(|record| &record.change.directories) {
        let below = format!("{dir}/");
        let is_above = change.edits().any(|edit| edit.path.starts_with(&below));
        if is_above && !change.directories.contains(dir) {
            change.directories.push(dir.clone());
        }
    }
    change.directories.sort();
    Ok(())
}

/// Directories above the change's files that are not there, from the outermost.
pub fn missing(system: &System, change: &Change) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for edit in change.edits() {
        let mut above = edit.path.as_str();
        let mut of_this = Vec::new();
        while let Some((dir, _)) = above.rsplit_once('/')
            && !dir.is_empty()
            && system.place(dir)?.stat()?.is_none()
        {
            of_this.push(dir.to_owned());
            above = dir;
        }
        for dir in of_this.into_iter().rev() {
            if !found.contains(&dir) {
                found.push(dir);
            }
        }
    }
    Ok(found)
}
