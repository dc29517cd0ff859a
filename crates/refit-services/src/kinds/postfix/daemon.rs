//! One of Postfix's daemons, by a script in its place.
//!
//! master(8) runs `daemon_directory/COMMAND` for each line of master.cf, and takes no absolute
//! path: the script lies in /usr/lib/refit, and the line names it from there. With `sync=off` it
//! starts the daemon by refit's launcher ([`sync_off`]).

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use refit_knobs::{Ground, Settings};
use refit_servers::postfix::{Entry, entries};

use super::instance::{LATER, ONLY_FILES, asked, file, installed, reload, unit, unit_here};
use super::main_cf;
use super::master_cf::with_command;
use super::processes::{daemons_of, throttled};
use super::tools::{DIRECTORY, expanded};
use super::{sync_off, tools};
use crate::check::Check;
use crate::effective::{not_running, observed};
use crate::environment::Environment;
use crate::kind::{Kind, Step};
use crate::kinds::systemd_unit::{SYNC_OFF, has};
use crate::processes::Process;
use crate::script::script;
use crate::systemd::Unit;
use crate::{Change, Error, FileEdit, Plan, System, library, systemd};

/// The kind.
pub struct PostfixDaemon;

/// master starts a daemon within milliseconds after a client connects.
const STARTED_WITHIN: Duration = Duration::from_secs(10);

/// The daemon that a service's name ends with.
fn daemon(service: &str) -> &str {
    service.strip_prefix("postfix/").unwrap_or(service)
}

impl Kind for PostfixDaemon {
    fn name(&self) -> &'static str {
        "Postfix daemon"
    }

    fn form(&self) -> &'static str {
        "postfix/DAEMON"
    }

    fn find(&self, system: &System, word: &str) -> Result<Option<String>, Error> {
        let Some(daemon) = word.strip_prefix("postfix/") else {
            return Ok(None);
        };
        if installed(system)?.is_none() {
            return Ok(None);
        }
        let (path, state) = file(system, word, "master.cf")?;
        let bytes = state.bytes();
        let runs = |entry: &Entry| entry.command().rsplit('/').next() == Some(daemon);
        match entries(&bytes).iter().any(runs) {
            true => Ok(Some(word.to_owned())),
            false => Err(Error::UnknownService {
                word: word.to_owned(),
                place: format!(" in {path}: no line of it runs `{daemon}`"),
                list: "postconf -M; the last word of a line is the daemon".to_owned(),
            }),
        }
    }

    fn grounds(&self) -> &'static [Ground] {
        &[Ground::Wrapper, Ground::Daemon]
    }

    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        _: bool,
    ) -> Result<Plan, Error> {
        let (path, before) = file(system, service, "master.cf")?;
        let bytes = before.bytes();
        let mut all = entries(&bytes);
        let daemon = daemon(service);
        let is_wrapped = |entry: &&Entry| {
            let command = entry.command();
            command.contains("/refit/") && command.rsplit('/').next() == Some(daemon)
        };
        if let Some(wrapped) = all.iter().find(is_wrapped) {
            return Err(Error::Wrapped {
                place: format!("{path}:{}", wrapped.line),
                daemon: daemon.to_owned(),
            });
        }
        all.retain(|entry| entry.command() == daemon);
        let mut environment = Environment::of(system, &settings.launch(), |_| None)?;
        let directory = directory(system)?;
        let mut plan = Plan::new(service, self.name(), settings);
        let head = systemd::written_by(service, &plan.change.settings);
        let program = format!("{directory}/{daemon}");
        let unit = match system.is_live() {
            true => Some(unit(system)?),
            false => None,
        };
        let shown = unit.as_deref().map(systemd::show).transpose()?;
        let active = shown.as_ref().filter(|unit| unit.is_active);
        let launcher = has(&plan.change, SYNC_OFF).then(|| library::launcher(None));
        let mut started = vec![&*program];
        if let Some((launcher, _)) = &launcher {
            let master = active.and_then(|unit| Running::of(unit, &directory, daemon).master);
            let words = sync_off::words(service, daemon, master.as_ref())?;
            started.splice(..0, words.iter().copied());
            started.insert(0, &launcher.program.path);
            plan.notes.extend(sync_off::notes(daemon, words));
            let mark = sync_off::mark(words);
            let variable = (mark.name.clone(), mark.value.clone());
            environment.variables.push(variable);
            environment.assignments.push(mark);
        }
        let text = script(&head, &environment.assignments, &started);
        environment.add_to(&mut plan);
        let placed = library::script(daemon, text.as_bytes());
        let command = relative(&directory, &placed.path);
        plan.change.files.push(FileEdit {
            path,
            after: Some(before.with_bytes(with_command(&bytes, &all, &command))),
            before: Some(before),
        });
        plan.change.programs.push(placed);
        plan.contents.push(text.into_bytes());
        if let Some((launcher, content)) = launcher {
            plan.change.launcher = Some(launcher);
            plan.contents.push(content);
        }
        plan.change.was_active = active.is_some();
        match unit {
            Some(unit) if active.is_some() => {
                plan.commands.push(format!("systemctl reload {unit}"));
            }
            Some(_) => plan.notes.push(LATER.to_owned()),
            None => plan.notes.push(ONLY_FILES.to_owned()),
        }
        plan.notes.extend(notes(daemon, &all));
        Ok(plan)
    }

    fn comes_from(&self, system: &System, _: &Change) -> Result<Vec<String>, Error> {
        systemd::comes_from(system, &unit(system)?)
    }

    fn gate(&self, _: &Change) -> Result<(), Error> {
        tools::check().map_err(|output| Error::Command {
            command: "postfix check".to_owned(),
            output,
        })
    }

    /// A daemon that was started meanwhile has read the file of the change.
    fn refused(&self, change: &Change) -> Result<(), Error> {
        reload(change)
    }

    /// Postfix starts a daemon when somebody needs it: after a change, refit does, by a connection
    /// that it gives up.
    fn activate(&self, change: &Change, step: Step) -> Result<(), Error> {
        // After a reload master would go on to wait.
        if step != Step::Apply && waits(change)?.holds == Some(false) {
            return systemd::systemctl(&["restart", &unit_here()?]).map(|_| ());
        }
        reload(change)?;
        if step == Step::Apply && systemd::show(&unit_here()?)?.is_active {
            start_one(change)?;
        }
        Ok(())
    }

    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error> {
        let unit = systemd::show(&unit_here()?)?;
        if !unit.is_active {
            return Ok(vec![not_running(&unit.state)]);
        }
        let running = running(change)?;
        let mut checks = observed(change, &running.daemons);
        if has(change, SYNC_OFF) {
            let master = running.master.as_ref();
            checks.extend(sync_off::checks(change, master, &running.daemons));
        }
        checks.push(waits(change)?);
        Ok(checks)
    }
}

/// Whether master waits before it starts the script again.
fn waits(change: &Change) -> Result<Check, Error> {
    let program = change.programs.first().map_or("", |program| &*program.path);
    let program = program.strip_prefix("/usr/lib").unwrap_or(program);
    Ok(throttled(&unit_here()?, program))
}

/// daemon_directory.
fn directory(system: &System) -> Result<String, Error> {
    if system.is_live() {
        return asked("Postfix", expanded("daemon_directory"));
    }
    let main_cf = system.read(&format!("{DIRECTORY}/main.cf"))?;
    let value = main_cf::value(&main_cf.unwrap_or_default(), "daemon_directory");
    Ok(value.unwrap_or("/usr/lib/postfix/sbin".to_owned()))
}

/// A path as it is named from a directory.
fn relative(directory: &str, path: &str) -> String {
    let words = |text: &str| -> Vec<String> {
        let words = text.split('/').filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    let (from, to) = (words(directory), words(path));
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = vec!["..".to_owned(); from.len() - same];
    [&up, &to[same..]].concat().join("/")
}

/// What runs of a daemon now.
struct Running {
    daemons: Vec<Process>,
    /// It starts them.
    master: Option<Process>,
}

impl Running {
    fn of(unit: &Unit, directory: &str, daemon: &str) -> Running {
        let program = |name: &str| format!("{directory}/{name}");
        let all = daemons_of(unit, directory);
        let (daemons, mut others): (Vec<_>, Vec<_>) = all
            .into_iter()
            .partition(|process| process.program == program(daemon));
        others.retain(|process| process.program == program("master"));
        Running {
            daemons,
            master: others.pop(),
        }
    }
}

fn running(change: &Change) -> Result<Running, Error> {
    let directory = asked(&change.service, expanded("daemon_directory"))?;
    let unit = systemd::show(&unit_here()?)?;
    Ok(Running::of(&unit, &directory, daemon(&change.service)))
}

/// Connects to the first socket that the daemon serves, and waits until it runs as it was
/// planned, or was not started in time: what is seen of it then is left to the checks.
fn start_one(change: &Change) -> Result<(), Error> {
    let system = System::new(None)?;
    let (_, state) = file(&system, &change.service, "master.cf")?;
    let bytes = state.bytes();
    let daemon = daemon(&change.service);
    let entries = entries(&bytes);
    let mut ours = entries
        .iter()
        .filter(|entry| entry.command().rsplit('/').next() == Some(daemon));
    let Some(socket) = ours.find_map(|entry| entry.socket()) else {
        return Ok(());
    };
    let queue = asked(&change.service, expanded("queue_directory"))?;
    let Ok(stream) = UnixStream::connect(format!("{queue}/{socket}")) else {
        return Ok(());
    };
    let began = Instant::now();
    let is_new = || -> Result<bool, Error> {
        let checks = observed(change, &running(change)?.daemons);
        Ok(checks.iter().all(|check| check.holds == Some(true)))
    };
    while !is_new()? && began.elapsed() < STARTED_WITHIN {
        std::thread::sleep(Duration::from_millis(10));
    }
    if daemon == "cleanup" {
        let _ = give_up(stream);
    }
    Ok(())
}

/// A client of cleanup(8) that ends before it sent a mail: it reads the id of the queue file and
/// says which flags it has, none. cleanup then removes the file, and logs nothing.
fn give_up(mut stream: UnixStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(STARTED_WITHIN))?;
    let mut answer = [0; 1024];
    let _ = stream.read(&mut answer)?;
    stream.write_all(b"flags\x000\0\0")
}

fn notes(daemon: &str, entries: &[Entry]) -> Vec<String> {
    let lines: Vec<String> = entries.iter().map(|entry| entry.line.to_string()).collect();
    let mut notes = vec![format!(
        "every line of master.cf that runs {daemon} is changed: {}",
        lines.join(", ")
    )];
    notes.push(
        "processes of it that run keep what they have until they end; what is verified is a new one"
            .to_owned(),
    );
    notes.push(
        "should its script be missing, mail is held, also up to 60 s after a repair, and postfix check \
         prints nothing; status looks at the script and at the journal"
            .to_owned(),
    );
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_named_from_the_daemons_directory() {
        for (from, meant) in [
            ("/usr/lib/postfix/sbin", "../../refit/0/a"),
            ("/usr/libexec/postfix/", "../../lib/refit/0/a"),
            ("/opt/p", "../../usr/lib/refit/0/a"),
        ] {
            assert_eq!(relative(from, "/usr/lib/refit/0/a"), meant);
        }
    }
}
