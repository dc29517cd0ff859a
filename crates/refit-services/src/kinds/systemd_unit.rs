//! A systemd unit, by a drop-in file of refit's own.
//!
//! Never `systemctl revert`: it deletes the administrator's drop-ins too.

use std::fmt::Write;

use refit_knobs::Settings;

use crate::check::{Check, Layer};
use crate::kind::Kind;
use crate::library::{self, Wanted};
use crate::processes::{Process, processes_of};
use crate::systemd::{self, Unit};
use crate::{Change, Error, FileEdit, FileState, Plan, System};

/// The kind.
pub struct SystemdUnit;

const KNOWN: &str = "malloc=, preload=, env.NAME=, tz=";
const APPLICABLE: [&str; 4] = ["malloc", "preload", "env", "tz"];
const FILE: &str = "90-refit.conf";

/// Services whose processes never see the environment of their unit: seen on Debian 12.
const UNREACHED: [(&str, &str); 2] = [
    (
        "postgresql",
        "its servers get their environment from /etc/postgresql/VERSION/CLUSTER/environment, and \
         nothing of the unit's; refit cannot apply settings there yet",
    ),
    (
        "postfix",
        "its master clears the environment of all that it starts; refit cannot apply settings \
         there yet",
    ),
];

impl Kind for SystemdUnit {
    fn name(&self) -> &'static str {
        "systemd unit"
    }

    fn find(&self, system: &System, word: &str) -> Result<Option<String>, Error> {
        systemd::find(system, word)
    }

    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        trial: bool,
    ) -> Result<Plan, Error> {
        for setting in &settings.0 {
            if !APPLICABLE.contains(&setting.knob().name) {
                return Err(Error::UnknownSetting {
                    setting: setting.to_string(),
                    service: service.to_owned(),
                    known: KNOWN,
                });
            }
        }
        let family = service.split(['.', '@']).next().unwrap_or(service);
        if let Some((_, reason)) = UNREACHED.iter().find(|(name, _)| *name == family) {
            return Err(Error::NotReached {
                service: service.to_owned(),
                reason,
            });
        }
        let launch = settings.launch();
        let mut libraries = Vec::new();
        let mut contents = Vec::new();
        let mut wanted: Vec<Wanted> = launch.preload.iter().map(Wanted::Path).collect();
        wanted.extend(
            launch
                .malloc
                .as_ref()
                .map(|malloc| Wanted::Allocator(&malloc.kind)),
        );
        for wanted in wanted {
            if let Some((file, content)) = library::find(system, wanted)? {
                libraries.push(file);
                contents.push(content);
            }
        }
        let unit = systemd::unit(system, service)?;
        let mut notes = Vec::new();
        let mut variables = Vec::new();
        if !libraries.is_empty() {
            let mut value = unit.variable("LD_PRELOAD").unwrap_or_default();
            if !value.is_empty() {
                notes.push(format!(
                    "the unit preloads {value} already: that stays, and is first"
                ));
            }
            for library in &libraries {
                let separator = if value.is_empty() { "" } else { ":" };
                let _ = write!(value, "{separator}{}", library.path);
            }
            variables.push(("LD_PRELOAD".to_owned(), value));
            notes.push(
                "not covered: static programs, set-id programs, and what is started with a \
                 cleared environment"
                    .to_owned(),
            );
        }
        variables.extend(launch.malloc.into_iter().flat_map(|malloc| malloc.env));
        variables.extend(launch.env);
        variables.extend(launch.tz.map(|zone| ("TZ".to_owned(), zone)));
        if unit.has_environment_file {
            notes.push(
                "a variable of the unit's EnvironmentFile= wins over the same one here".to_owned(),
            );
        }
        if trial {
            notes.push(
                "a trial: the drop-in lies below /run, and a reboot takes it back".to_owned(),
            );
        }
        let path_in = |base| format!("{base}/systemd/system/{service}.d/{FILE}");
        // systemd reads a drop-in in /etc instead of one of the same name in /run.
        for base in ["/etc", "/run"] {
            let path = system.path(&path_in(base))?;
            if FileState::read(&path)?.is_some() {
                return Err(Error::InTheWay { path });
            }
        }
        let path = path_in(if trial { "/run" } else { "/etc" });
        let settings: Vec<String> = settings.0.iter().map(ToString::to_string).collect();
        let text = drop_in(service, &settings, &variables);
        let mut commands = Vec::new();
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
        let class = Settings::parse(settings.iter().map(Into::into))
            .map_or(refit_knobs::Class::ChangesBehaviour, |settings| {
                settings.class()
            });
        Ok(Plan {
            change: Change {
                service: service.to_owned(),
                kind: self.name().to_owned(),
                settings,
                trial,
                was_active: unit.is_active,
                directories: Vec::new(),
                libraries,
                files: vec![FileEdit {
                    path,
                    before: None,
                    after: Some(FileState::own(text.into_bytes())),
                }],
                variables,
                undo: None,
                evidence: None,
            },
            class,
            commands,
            notes,
            contents,
        })
    }

    /// Of what systemd-analyze prints only the lines that name the drop-in count: it ends
    /// with 1 for a missing man page too.
    fn gate(&self, change: &Change) -> Result<(), Error> {
        let printed = systemd::analyze(&change.service);
        let ours = |line: &&str| change.files.iter().any(|edit| line.contains(&*edit.path));
        let lines: Vec<&str> = printed.lines().filter(ours).collect();
        if lines.is_empty() {
            return Ok(());
        }
        Err(Error::Command {
            command: format!("systemd-analyze verify {}", change.service),
            output: lines.join("\n"),
        })
    }

    fn activate(&self, change: &Change) -> Result<(), Error> {
        systemd::systemctl(&["daemon-reload"])?;
        if systemd::is_to_run(&change.service, change.was_active)? {
            // More than a few starts within seconds are refused until this.
            systemd::systemctl(&["reset-failed", &change.service])?;
            systemd::systemctl(&["restart", &change.service])?;
        }
        Ok(())
    }

    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error> {
        let unit = systemd::show(&change.service)?;
        let mut checks = vec![Check {
            layer: Layer::Loaded,
            key: "drop-in".to_owned(),
            expected: change.files[0].path.clone(),
            found: unit.drop_ins.join(" "),
            holds: Some(unit.drop_ins.contains(&change.files[0].path)),
        }];
        checks.push(Check {
            layer: Layer::Loaded,
            key: "daemon-reload needed".to_owned(),
            expected: "no".to_owned(),
            found: unit.needs_reload.clone(),
            holds: Some(unit.needs_reload == "no"),
        });
        if !unit.is_active {
            checks.push(Check {
                layer: Layer::Effective,
                key: "processes".to_owned(),
                expected: "with the change".to_owned(),
                found: format!("none: the service is {}", unit.state),
                holds: None,
            });
            return Ok(checks);
        }
        let processes = processes_of(&unit);
        checks.extend(effective(change, &unit, &processes));
        Ok(checks)
    }
}

/// The main process has to have everything; where systemd knows none, each process has to.
fn effective(change: &Change, unit: &Unit, processes: &[Process]) -> Vec<Check> {
    let judged = |has: &dyn Fn(&Process) -> bool| {
        let with = processes.iter().filter(|process| has(process)).count();
        let main = processes
            .iter()
            .find(|process| process.pid == unit.main_pid);
        let holds = match main {
            Some(main) => has(main),
            None => with > 0 && with == processes.len(),
        };
        let main_word = match main {
            Some(main) if has(main) => ", the main one among them",
            Some(_) => ", the main one not among them",
            None => "",
        };
        (
            format!("{with} of {} processes{main_word}", processes.len()),
            holds,
        )
    };
    let mut checks = Vec::new();
    for library in &change.libraries {
        let (found, holds) = judged(&|process| process.executes(&library.path));
        checks.push(Check {
            layer: Layer::Effective,
            key: "executable mapping".to_owned(),
            expected: library.path.clone(),
            found,
            holds: Some(holds),
        });
    }
    // Of LD_PRELOAD the mappings tell more.
    for (name, value) in change
        .variables
        .iter()
        .filter(|(name, _)| name != "LD_PRELOAD")
    {
        let (found, holds) = judged(&|process| process.variable(name).as_ref() == Some(value));
        let is_told = processes.iter().any(Process::tells_variables);
        checks.push(Check {
            layer: Layer::Effective,
            key: "variable".to_owned(),
            expected: format!("{name}={value}"),
            found: if is_told {
                found
            } else {
                "the processes wrote over their environment".to_owned()
            },
            holds: is_told.then_some(holds),
        });
    }
    checks
}

fn drop_in(service: &str, settings: &[String], variables: &[(String, String)]) -> String {
    let mut text = format!(
        "# {}: written by refit; `refit revert {service}` takes it out.\n[Service]\n",
        systemd::comment(&settings.join(" "))
    );
    for (name, value) in variables {
        let _ = writeln!(
            text,
            "Environment={}",
            systemd::quoted(&format!("{name}={value}"))
        );
    }
    text
}
