//! Postfix, as Debian keeps it: settings of all its daemons, in main.cf; and of one daemon, by a
//! script that master.cf names in the daemon's place ([`daemon`]).
//!
//! Its master gives the daemons what `import_environment` names, and nothing of the unit's. Never
//! `postconf -e`, which formats other lines anew.

mod daemon;
mod instance;
mod main_cf;
mod master_cf;
mod processes;
mod sync_off;
mod tools;

use refit_knobs::{Ground, Scope, Setting, Settings};

use crate::check::{Check, Layer};
use crate::effective::{effective, not_running};
use crate::environment::Environment;
use crate::kind::{Kind, Step, unknown};
use crate::{Change, ConfValue, Error, FileEdit, FileState, Plan, System, systemd};
pub use daemon::PostfixDaemon;
use instance::{LATER, ONLY_FILES, asked, file, installed, reload, start_anew, unit_here};
use processes::{daemons_of, throttled};
use tools::{DIRECTORY, expanded, judged};

/// The kind.
pub struct Postfix;

const IMPORT: &str = "import_environment";

/// A variable that master gives to each daemon.
const MARK: &str = "LANG";

/// `import_environment` of Postfix 3.7, for a tree, where nothing can be asked.
const IMPORTED: &str = "MAIL_CONFIG MAIL_DEBUG MAIL_LOGTAG TZ XAUTHORITY DISPLAY LANG=C \
                        POSTLOG_SERVICE POSTLOG_HOSTNAME";

/// By these Postfix finds its own files, users and instances, or other machines this one: its
/// queue would be another one, or mail would go elsewhere.
const ITS_PLACE: [&str; 20] = [
    "alternate_config_directories",
    "command_directory",
    "compatibility_level",
    "config_directory",
    "daemon_directory",
    "data_directory",
    "default_privs",
    "inet_interfaces",
    "mail_owner",
    "mail_spool_directory",
    "mail_version",
    "meta_directory",
    "mydestination",
    "mydomain",
    "myhostname",
    "mynetworks",
    "myorigin",
    "queue_directory",
    "setgid_group",
    "shlib_directory",
];

/// Read by master when it starts, and not again (postconf(5)).
const ONLY_AT_START: [&str; 2] = ["inet_protocols", "master_service_disable"];

/// Whether a word means the default instance.
fn is_instance(word: &str) -> bool {
    let name = word.strip_suffix(".service").unwrap_or(word);
    ["postfix", "postfix@-"].contains(&name)
}

/// The daemon that `sync@exe:DAEMON=off` of Postfix is for, as a service, and what it is there:
/// `sync=off`. `None`: something else was asked for.
pub fn of_daemon(word: &str, settings: &Settings) -> Option<(String, Settings)> {
    let [setting] = &settings.0[..] else {
        return None;
    };
    let Some(Scope::Exe(daemon)) = setting.scope() else {
        return None;
    };
    let daemon = daemon.as_str();
    let service = format!("postfix/{daemon}");
    let is_postfix = is_instance(word) || word == service;
    let is_off = setting.to_string() == format!("sync@exe:{daemon}=off");
    let off = "sync=off".parse().expect("it is a setting");
    (is_postfix && is_off).then(|| (service, Settings(vec![off])))
}

impl Kind for Postfix {
    fn name(&self) -> &'static str {
        "Postfix"
    }

    fn form(&self) -> &'static str {
        "postfix"
    }

    fn find(&self, system: &System, word: &str) -> Result<Option<String>, Error> {
        match is_instance(word) {
            true => installed(system),
            false => Ok(None),
        }
    }

    fn grounds(&self) -> &'static [Ground] {
        &[Ground::ServerEnvironment, Ground::Configuration]
    }

    fn refusal(&self, service: &str, setting: &Setting) -> Error {
        match setting.knob().name {
            "sync" => Error::BadConf {
                setting: setting.to_string(),
                service: service.to_owned(),
                reason: "it is a change of one daemon, as sync@exe:DAEMON=off alone is too\n  \
                         refit plan postfix/DAEMON sync=off"
                    .to_owned(),
            },
            _ => unknown(service, setting, self.known()),
        }
    }

    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        _: bool,
    ) -> Result<Plan, Error> {
        let launch = settings.launch();
        let mut plan = Plan::new(service, self.name(), settings);
        for (name, value) in launch.conf.clone() {
            let value = value.trim().to_owned();
            let conf = ConfValue::typed((name, value));
            refuse(service, &conf)?;
            plan.change.conf.push(conf);
        }
        let (path, before) = file(system, service, "main.cf")?;
        let imported = match (system.is_live(), system.looked_away_from()) {
            (true, None) => asked(service, tools::value(IMPORT))?,
            // What main.cf sets now is what a change made of it.
            (true, Some(_)) => match main_cf::value(&before.bytes(), IMPORT) {
                Some(value) => value,
                None => asked(service, tools::default(IMPORT))?,
            },
            (false, _) => main_cf::value(&before.bytes(), IMPORT).unwrap_or(IMPORTED.to_owned()),
        };
        let environment = Environment::of(system, &launch, |name| variable(&imported, name))?;
        let conf = plan.change.conf.iter();
        let mut values: Vec<_> = conf
            .map(|conf| (conf.name.clone(), conf.value.clone()))
            .collect();
        if !environment.is_empty() {
            let mut value = imported;
            for (name, text) in &environment.variables {
                value = format!("{value} {}", imports(&path, name, text)?);
            }
            values.push((IMPORT.to_owned(), value));
        }
        environment.add_to(&mut plan);
        let head = systemd::written_by(service, &plan.change.settings);
        let bytes = main_cf::with_values(&before.bytes(), &head, &values);
        plan.change.files.push(FileEdit {
            path,
            after: Some(before.with_bytes(bytes)),
            before: Some(before),
        });
        if system.is_live() {
            ask(&mut plan)?;
        } else {
            plan.notes.push(ONLY_FILES.to_owned());
        }
        plan.notes.extend(notes(&plan.change));
        Ok(plan)
    }

    fn gate(&self, change: &Change) -> Result<(), Error> {
        let (before, after) = main_cf_of(change);
        refuse_new_complaints(change, &before, &after)?;
        tools::check().map_err(|output| Error::Command {
            command: "postfix check".to_owned(),
            output,
        })
    }

    /// Daemons that were started meanwhile have read the files of the change.
    fn refused(&self, change: &Change) -> Result<(), Error> {
        reload(change)
    }

    fn activate(&self, change: &Change, _: Step) -> Result<(), Error> {
        if needs_restart(change) {
            return start_anew(change);
        }
        reload(change)
    }

    fn checks(&self, change: &Change) -> Result<Vec<Check>, Error> {
        let mut checks = Vec::new();
        let (_, after) = main_cf_of(change);
        let mut names: Vec<&str> = change.conf.iter().map(|conf| &*conf.name).collect();
        if !change.variables.is_empty() {
            names.push(IMPORT);
        }
        for name in names {
            let expected = main_cf::value(&after, name).unwrap_or_default();
            let found = tools::value(name);
            checks.push(Check {
                layer: Layer::Loaded,
                key: format!("postconf -h {name}"),
                holds: Some(found.as_ref() == Ok(&expected)),
                expected,
                found: found.unwrap_or_else(|error| error),
            });
        }
        let service = unit_here()?;
        let unit = systemd::show(&service)?;
        if !unit.is_active {
            checks.push(not_running(&unit.state));
            return Ok(checks);
        }
        let processes = daemons_of(
            &unit,
            &asked(&change.service, expanded("daemon_directory"))?,
        );
        checks.extend(effective(change, 0, &processes, MARK));
        checks.push(throttled(&service, ""));
        Ok(checks)
    }
}

fn bad(service: &str, conf: &ConfValue, reason: String) -> Error {
    Error::BadConf {
        setting: format!("conf.{}={}", conf.name, conf.value),
        service: service.to_owned(),
        reason,
    }
}

fn refuse(service: &str, conf: &ConfValue) -> Result<(), Error> {
    let refused = |reason: &str| Err(bad(service, conf, reason.to_owned()));
    if ITS_PLACE.contains(&&*conf.name) || conf.name.starts_with("multi_instance_") {
        return refused("Postfix finds its files by it, or other machines find this one");
    }
    if conf.name == IMPORT {
        return refused("name variables by env.NAME=VALUE");
    }
    if conf.value.contains(char::is_control) {
        return Err(Error::NotOneLine {
            name: conf.name.clone(),
            path: format!("{DIRECTORY}/main.cf"),
        });
    }
    Ok(())
}

/// What the daemons have of a variable already.
fn variable(imported: &str, name: &str) -> Option<String> {
    let words = imported.split([',', ' ', '\t']);
    let mut values = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    values.next_back().map(str::to_owned)
}

/// A variable as an element of `import_environment`. In braces white space and commas do not
/// separate, and white space at both ends is cut off; there are no quotes.
fn imports(path: &str, name: &str, value: &str) -> Result<String, Error> {
    let is_cut = value != value.trim() || value.contains(['{', '}']);
    if is_cut || value.contains(char::is_control) {
        return Err(Error::NotOneLine {
            name: name.to_owned(),
            path: path.to_owned(),
        });
    }
    let value = value.replace('$', "$$");
    Ok(match value.is_empty() || value.contains([' ', ',']) {
        true => format!("{{ {name}={value} }}"),
        false => format!("{name}={value}"),
    })
}

fn main_cf_of(change: &Change) -> (Vec<u8>, Vec<u8>) {
    let bytes = |state: Option<&FileState>| state.map(FileState::bytes).unwrap_or_default();
    let edit = change.files.first();
    let before = bytes(edit.and_then(|edit| edit.before.as_ref()));
    (before, bytes(edit.and_then(|edit| edit.after.as_ref())))
}

/// Refuses a main.cf of which Postfix prints what it does not print of the one before.
fn refuse_new_complaints(change: &Change, before: &[u8], after: &[u8]) -> Result<(), Error> {
    let old = asked(&change.service, judged(before))?;
    let mut new = asked(&change.service, judged(after))?;
    if let Some(fatal) = old.iter().find(|line| line.contains("fatal: ")) {
        return Err(Error::Command {
            command: format!("the configuration of {} is refused", change.service),
            output: fatal.clone(),
        });
    }
    new.retain(|line| !old.contains(line));
    match new.is_empty() {
        true => Ok(()),
        false => Err(Error::Command {
            command: format!(
                "{} cannot be applied to {}: Postfix prints",
                change.settings.join(" "),
                change.service
            ),
            output: new.join("; "),
        }),
    }
}

/// Whether a value can be what Postfix has as a number or a time, going by its default. Some
/// daemons that read a wrong one do not start, and no command looks at it before.
fn is_of_kind(value: &str, default: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time =
        |text: &str| is_number(text.strip_suffix(['s', 'm', 'h', 'd', 'w']).unwrap_or(text));
    if value.contains('$') {
        return true;
    }
    match default {
        _ if is_number(default) => is_number(value.strip_prefix('-').unwrap_or(value)),
        _ if is_time(default) => is_time(value),
        _ => true,
    }
}

/// Completes a plan with what Postfix on this machine says.
fn ask(plan: &mut Plan) -> Result<(), Error> {
    let change = &mut plan.change;
    for conf in &change.conf {
        let default = asked(&change.service, tools::default(&conf.name))?;
        if !is_of_kind(&conf.value, &default) {
            let reason = format!("it is a number or a time: its default is {default}");
            return Err(bad(&change.service, conf, reason));
        }
    }
    let (before, after) = main_cf_of(change);
    refuse_new_complaints(change, &before, &after)?;
    change.was_active = systemd::show(&change.service)?.is_active;
    plan.commands.push("postconf -n; postfix check".to_owned());
    if !change.was_active {
        plan.notes.push(LATER.to_owned());
        return Ok(());
    }
    let verb = if needs_restart(change) {
        "restart"
    } else {
        "reload"
    };
    plan.commands
        .push(format!("systemctl {verb} {}", change.service));
    Ok(())
}

/// A reload reads main.cf again, but not `import_environment`: seen with Postfix 3.7.
fn needs_restart(change: &Change) -> bool {
    let mut conf = change.conf.iter();
    !change.variables.is_empty() || conf.any(|conf| ONLY_AT_START.contains(&&*conf.name))
}

fn notes(change: &Change) -> Vec<String> {
    let mut notes = Vec::new();
    let mut add = |text: &str| notes.push(text.to_owned());
    if !change.variables.is_empty() {
        add(
            "all daemons get the variables; what local(8) and pipe(8) start for a recipient does not",
        );
        add("one daemon alone: refit plan postfix/DAEMON");
    }
    if !change.conf.is_empty() {
        add(
            "daemons that run keep their values until they end; no command asks them: what is \
             verified is main.cf as Postfix reads it",
        );
        add(
            "a value that a single daemon refuses keeps this daemon from starting: status reports \
             that from the journal once it was tried",
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_one_element() {
        let imports = |value: &str| imports("main.cf", "A", value).ok();
        for (value, meant) in [
            ("/a.so", Some("A=/a.so")),
            ("a b,c", Some("{ A=a b,c }")),
            ("$x", Some("A=$$x")),
            ("", Some("{ A= }")),
            (" a", None),
            ("a}", None),
            ("a\nb", None),
        ] {
            assert_eq!(imports(value).as_deref(), meant, "{value:?}");
        }
        let imported = "TZ LD_PRELOAD=/a.so,LANG=C\tLD_PRELOAD=/b.so:/c.so X";
        assert_eq!(
            variable(imported, "LD_PRELOAD").as_deref(),
            Some("/b.so:/c.so")
        );
    }

    #[test]
    fn a_daemon_without_syncs_is_a_service_of_its_own() {
        let of_daemon = |word: &str, settings: &[&str]| {
            let parsed = settings.iter().map(|one| one.parse().expect("a setting"));
            let (service, settings) = of_daemon(word, &Settings(parsed.collect()))?;
            let settings: Vec<String> = settings.0.iter().map(ToString::to_string).collect();
            Some(format!("{service} {}", settings.join(" ")))
        };
        let meant = Some("postfix/cleanup sync=off".to_owned());
        for word in ["postfix", "postfix.service", "postfix@-", "postfix/cleanup"] {
            assert_eq!(of_daemon(word, &["sync@exe:cleanup=off"]), meant, "{word}");
        }
        for (word, settings) in [
            ("postfix/smtpd", &["sync@exe:cleanup=off"][..]),
            ("redis", &["sync@exe:cleanup=off"]),
            ("postfix", &["sync@exe:cleanup=on"]),
            ("postfix", &["sync@/var/=off"]),
            ("postfix", &["odirect@exe:cleanup=off"]),
            ("postfix", &["sync=off"]),
            ("postfix", &["sync@exe:cleanup=off", "tz=UTC"]),
            ("postfix", &[]),
        ] {
            assert_eq!(of_daemon(word, settings), None, "{word} {settings:?}");
        }
    }

    #[test]
    fn a_value_is_of_the_kind_of_its_default() {
        for (value, default, meant) in [
            ("1", "100", true),
            ("-1", "100", true),
            ("abc", "100", false),
            ("1s", "100", false),
            ("$x", "100", true),
            ("", "100", false),
            ("5m", "300s", true),
            ("5", "300s", true),
            ("5x", "300s", false),
            ("abc", "", true),
            ("abc", "no", true),
            ("abc", "${stress?{10}:{300}}s", true),
        ] {
            assert_eq!(is_of_kind(value, default), meant, "{value} {default}");
        }
    }
}
