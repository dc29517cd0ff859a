//! A command, by a script in its place: `wrapper:/usr/local/bin/NAME`.
//!
//! Where nothing has this name yet, the script stands before the program in PATH, which is not
//! touched. Where a program has it, and no package owns that, the program moves aside. A package's
//! file is never replaced: an upgrade would put it back.

mod program;

use refit_knobs::{Ground, Setting, Settings};

use crate::check::{Check, Layer};
use crate::effective::observed;
use crate::environment::Environment;
use crate::kind::{Kind, Step, unknown};
use crate::kinds::systemd_unit::SYNC_OFF;
use crate::packages::owner;
use crate::processes::running;
use crate::replaced_program::Moved;
use crate::script::{script, starts};
use crate::{Change, Error, FileEdit, FileState, Plan, System, glibc_malloc, systemd};
use program::Program;

/// The kind.
pub struct Wrapper;

const PREFIX: &str = "wrapper:";

/// The PATH of systemd's services (systemd.exec(5)) and of Debian's shells for root.
const PATH: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

impl Kind for Wrapper {
    fn name(&self) -> &'static str {
        "command"
    }

    fn form(&self) -> &'static str {
        "wrapper:/PATH/OF/A/COMMAND"
    }

    fn find(&self, system: &System, word: &str) -> Result<Option<String>, Error> {
        let Some(path) = word.strip_prefix(PREFIX) else {
            return Ok(None);
        };
        let is_name = |name: &str| !["", ".", ".."].contains(&name);
        let is_plain = path
            .strip_prefix('/')
            .is_some_and(|path| path.split('/').all(is_name));
        if !is_plain || path.contains(char::is_control) {
            return Err(cannot(
                word,
                "name one file, as in wrapper:/usr/local/bin/NAME",
            ));
        }
        if system.is_live() && !rustix::process::geteuid().is_root() {
            return Err(Error::NotRoot);
        }
        Ok(Some(word.to_owned()))
    }

    fn grounds(&self) -> &'static [Ground] {
        &[Ground::Wrapper]
    }

    /// Anybody may start a command, and of most users the kernel takes no filter of system calls
    /// (seccomp(2)): it would be in effect for root alone.
    fn refusal(&self, service: &str, setting: &Setting) -> Error {
        if setting.to_string() != SYNC_OFF {
            return unknown(service, setting, self.known());
        }
        Error::BadConf {
            setting: SYNC_OFF.to_owned(),
            service: service.to_owned(),
            reason: "who starts a command without CAP_SYS_ADMIN gets a filter of system calls only with \
                     no_new_privs, which takes the rights of set-id programs away from all that it starts\n  \
                     for one start: refit run --quiet sync=off -- COMMAND; of a service: refit plan UNIT \
                     sync=off"
                .to_owned(),
        }
    }

    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        _: bool,
    ) -> Result<Plan, Error> {
        let path = path_of(service);
        let environment = Environment::of(system, &settings.launch(), |_| None)?;
        let mut plan = Plan::new(service, self.name(), settings);
        let head = systemd::written_by(service, &plan.change.settings);
        let text = |program: &str| {
            let text = script(&head, &environment.assignments, &[program]);
            FileState::executable(text.into_bytes())
        };
        let program = match system.metadata(path)? {
            Some(meta) if !meta.is_file() => {
                return Err(cannot(
                    path,
                    "it is not a regular file; name the file itself",
                ));
            }
            Some(_) => {
                refuse_owned(system, path)?;
                let kept = format!("{path}.refit-real");
                plan.change.moved = Some(Moved::new(system, path, text(&kept))?);
                match system.script(path) {
                    Some(_) => kept,
                    None => path.to_owned(),
                }
            }
            None => {
                let program = later_in_path(system, path)?;
                plan.change.files.push(FileEdit {
                    path: path.to_owned(),
                    before: None,
                    after: Some(text(&program)),
                });
                program
            }
        };
        let has_libraries = !environment.libraries.is_empty();
        environment.add_to(&mut plan);
        if system.is_live() {
            glibc_malloc::refuse_program(service, settings, &program)?;
        }
        let about = Program::read(system, &program)?.ok_or_else(|| cannot(path, "it is gone"))?;
        about
            .refuse(has_libraries)
            .map_err(|reason| cannot(&program, reason))?;
        let (dir, _) = path.rsplit_once('/').unwrap_or_default();
        system.is_ours_alone(dir)?;
        if let Some(loader) = about.loader.as_ref().filter(|_| has_libraries) {
            refuse_loader(system, &program, loader)?;
        }
        if !system.is_live() {
            let only_files = "--root: files only; nothing is checked or verified";
            plan.notes.push(only_files.to_owned());
        } else if let Some(loader) = about.loader.filter(|_| has_libraries) {
            plan.commands.push(format!("{loader} --list {program}"));
        }
        plan.notes.extend(notes(&plan.change, path, &program));
        Ok(plan)
    }

    fn comes_from(&self, system: &System, change: &Change) -> Result<Vec<String>, Error> {
        Ok(vec![program_of(system, change)?])
    }

    /// The loader lists what the program would load; the program is not started.
    fn gate(&self, change: &Change) -> Result<(), Error> {
        let system = System::new(None)?;
        let program = program_of(&system, change)?;
        let about = Program::read(&system, &program)?;
        let variables = change.variables.iter();
        let preloads = variables.clone().find(|(name, _)| name == "LD_PRELOAD");
        let (Some(loader), Some((_, libraries))) = (about.and_then(|about| about.loader), preloads)
        else {
            return Ok(());
        };
        program::would_load(&loader, &program, libraries).map_err(|output| Error::Command {
            command: format!("{loader} --list {program}"),
            output,
        })
    }

    /// A command has the change when it is started next.
    fn activate(&self, _: &Change, _: Step) -> Result<(), Error> {
        Ok(())
    }

    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error> {
        let system = System::new(None)?;
        let path = path_of(&change.service);
        let mut checks = Vec::new();
        let (dir, name) = path.rsplit_once('/').unwrap_or_default();
        if PATH.contains(&dir) {
            let found = first_in_path(&system, &PATH, name);
            checks.push(Check {
                layer: Layer::Loaded,
                key: format!("{name} in PATH"),
                expected: path.to_owned(),
                holds: Some(found.as_deref() == Some(path)),
                found: found.unwrap_or_else(|| "not there".to_owned()),
            });
        }
        let program = program_of(&system, change).unwrap_or_default();
        let mut scripts = change.files.iter().filter_map(|edit| edit.after.as_ref());
        let is_started = |script: &FileState| starts(&script.bytes(), &program);
        if let Some(script) = scripts.next() {
            checks.push(Check {
                layer: Layer::Loaded,
                key: format!("{name} later in PATH"),
                expected: "the program of the script".to_owned(),
                holds: Some(is_started(script)),
                found: match &*program {
                    "" => "none".to_owned(),
                    _ => program.clone(),
                },
            });
        }
        let program = std::fs::canonicalize(&program).unwrap_or_else(|_| program.into());
        checks.extend(observed(change, &running(&program.to_string_lossy())));
        Ok(checks)
    }
}

fn path_of(service: &str) -> &str {
    service.strip_prefix(PREFIX).unwrap_or(service)
}

fn cannot(path: &str, reason: impl Into<String>) -> Error {
    Error::NotWrapped {
        path: path.to_owned(),
        reason: reason.into(),
    }
}

/// The program that the script of a change starts.
fn program_of(system: &System, change: &Change) -> Result<String, Error> {
    match &change.moved {
        Some(moved) => Ok(moved.kept.clone()),
        None => later_in_path(system, path_of(&change.service)),
    }
}

/// The first file of this name in these directories that can be executed.
fn first_in_path(system: &System, dirs: &[&str], name: &str) -> Option<String> {
    let paths = dirs.iter().map(|dir| format!("{dir}/{name}"));
    let is_program = |path: &String| {
        let found = Program::read(system, path).ok().flatten();
        found.is_some_and(|program| program.is_executable())
    };
    paths.into_iter().find(is_program)
}

/// The program that PATH has after this place.
fn later_in_path(system: &System, path: &str) -> Result<String, Error> {
    let (dir, name) = path.rsplit_once('/').unwrap_or_default();
    let Some(at) = PATH.iter().position(|one| *one == dir) else {
        let dir = if dir.is_empty() { "/" } else { dir };
        let reason = format!(
            "nothing is there, and {dir} is not in PATH\n  name a place before the program's, as in \
             wrapper:/usr/local/bin/{name}"
        );
        return Err(cannot(path, reason));
    };
    first_in_path(system, &PATH[at + 1..], name).ok_or_else(|| {
        let reason = format!("neither is it there, nor a program `{name}` later in PATH");
        cannot(path, reason)
    })
}

/// Refuses a program whose loader somebody else may have written: [`Kind::gate`] executes that, as root.
fn refuse_loader(system: &System, program: &str, loader: &str) -> Result<(), Error> {
    if !program::is_loader(loader) {
        let reason = format!(
            "{loader} loads its libraries, which is none of Linux's loaders, and refit does not execute it as root"
        );
        return Err(cannot(program, reason));
    }
    match system.resolved(loader)? {
        Some(file) => system.is_ours_alone(&file),
        None => Ok(()),
    }
}

fn refuse_owned(system: &System, path: &str) -> Result<(), Error> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let shadow = format!("/usr/local/bin/{name}");
    match owner(system, path)? {
        None => Ok(()),
        Some(_) if path == shadow => Err(cannot(path, "it belongs to a package")),
        Some(package) => Err(Error::OfPackage {
            path: path.to_owned(),
            package,
            shadow,
        }),
    }
}

fn notes(change: &Change, path: &str, program: &str) -> Vec<String> {
    let mut notes = vec![
        "what the command starts gets the variables too; processes of it that run have nothing of \
         the change"
            .to_owned(),
    ];
    match &change.moved {
        Some(moved) => notes.push(format!(
            "the program is {} then, and sees this name: in argv[0], `ps` and `pgrep -x`; an \
             installation over {path} takes the script away, which status reports",
            moved.kept
        )),
        None => notes.push(format!(
            "{program} is not touched: who names it by its path, or has a PATH without {} before it \
             (cron has /usr/bin:/bin), starts it without the change; a shell that ran it before \
             remembers its place (hash -r)",
            path.rsplit_once('/').map_or("", |(dir, _)| dir)
        )),
    }
    notes
}
