//! What systemd and its files say of a unit.

use std::path::Path;
use std::process::{Command, Stdio};

use refit_servers::systemd::{self as files, Files};

use crate::ask::{Ask, JOB, QUESTION};
use crate::{Error, System};

/// A unit.
#[derive(Clone, Debug, Default)]
pub struct Unit {
    /// Whether it runs.
    pub is_active: bool,
    /// The word for that.
    pub state: String,
    /// 0: systemd knows none.
    pub main_pid: u32,
    /// Below the hierarchy's mount.
    pub cgroup: String,
    /// Its own file.
    pub fragment: String,
    /// Drop-in files that are loaded.
    pub drop_ins: Vec<String>,
    /// `yes` or `no`.
    pub needs_reload: String,
    /// Its `Environment=`, as `systemctl show` prints it.
    pub environment: String,
    /// What its files say; nothing where only its state was asked.
    pub declared: files::Unit,
}

impl Unit {
    /// The words of its last `ExecStart=`, without refit's launcher.
    pub fn command(&self) -> Vec<String> {
        let mut words = self.declared.command();
        if words
            .first()
            .is_some_and(|program| program.starts_with("/usr/lib/refit/"))
        {
            let program = words.iter().skip(1).position(|word| word.starts_with('/'));
            words.drain(..program.map_or(0, |at| at + 1));
        }
        words
    }

    /// Its `ExecStart=` lines, whole.
    pub fn exec_lines(&self) -> Vec<&str> {
        let lines = self.declared.list("ExecStart");
        lines.iter().map(|line| &*line.value).collect()
    }

    /// The program that it starts and the words after it, where the program has one of these names.
    pub fn starts(&self, programs: &[&str]) -> Option<(String, Vec<String>)> {
        let mut words = self.command().into_iter();
        let program = words.next()?;
        let name = program.rsplit('/').next()?;
        programs.contains(&name).then(|| (program, words.collect()))
    }

    /// One whose file has these lines.
    #[cfg(test)]
    pub fn with(lines: &[&str]) -> Unit {
        let text = format!("[Service]\n{}\n", lines.join("\n"));
        let read = |_: &str| Ok::<_, std::convert::Infallible>(Some(text.clone().into_bytes()));
        Unit {
            declared: files::Unit::read(Files::default(), read).expect("it is there"),
            ..Unit::default()
        }
    }

    /// Whether it runs as another user than root.
    pub fn has_user(&self) -> bool {
        let user = self.declared.last("User");
        let is_dynamic = ["1", "yes", "y", "true", "t", "on"];
        !["", "root", "0"].contains(&user)
            || is_dynamic.contains(&self.declared.last("DynamicUser"))
    }
}

/// The full name of the unit that a word means.
///
/// # Errors
/// [`Error::NotRoot`] and [`Error::NoSystemd`] where no unit could be changed.
pub fn find(system: &System, word: &str) -> Result<Option<String>, Error> {
    if !files::is_name(word) {
        return Ok(None);
    }
    let name = if word.ends_with(".service") {
        word.to_owned()
    } else {
        format!("{word}.service")
    };
    if !system.is_live() {
        return Ok(match files_of(system, &name)? {
            Some(files) if files.is_masked => return Err(Error::Masked { unit: files.name }),
            found => found.map(|files| files.name),
        });
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    // sd_booted(3)
    if !Path::new("/run/systemd/system").is_dir() {
        return Err(Error::NoSystemd);
    }
    let shown = property(&systemctl(&["show", "-p", "Id", "-p", "LoadState", &name])?);
    match &*shown("LoadState") {
        "loaded" => Ok(Some(shown("Id"))),
        "masked" => Err(Error::Masked { unit: shown("Id") }),
        _ => Ok(None),
    }
}

/// The files of a unit in a tree.
fn files_of(system: &System, name: &str) -> Result<Option<Files>, Error> {
    // A machine whose /usr is merged has a link at /lib, which is not followed in a tree.
    let is_merged = system.path("/lib/x").is_err();
    let place = |path: &str| match path.strip_prefix("/lib/") {
        Some(rest) if is_merged => system.path(&format!("/usr/lib/{rest}")),
        _ => system.path(path),
    };
    Files::find(place, name)
}

/// What there is to know of a unit before it is changed.
///
/// # Errors
/// Where it cannot be asked or read.
pub fn unit(system: &System, name: &str) -> Result<Unit, Error> {
    unit_without(system, name, None)
}

/// Likewise, as it were without one of its drop-ins.
///
/// # Errors
/// As [`unit`].
pub fn unit_without(system: &System, name: &str, drop_in: Option<&str>) -> Result<Unit, Error> {
    let (mut unit, mut files) = match system.is_live() {
        // What systemd has loaded.
        true => {
            let unit = show(name)?;
            let files = Files {
                name: name.to_owned(),
                fragment: unit.fragment.clone(),
                drop_ins: unit.drop_ins.clone(),
                is_masked: false,
            };
            (unit, files)
        }
        false => {
            let files = files_of(system, name)?;
            (Unit::default(), files.unwrap_or_default())
        }
    };
    files.drop_ins.retain(|path| drop_in != Some(path));
    unit.declared = files::Unit::read(files, |path| match path.starts_with('/') {
        true => system.read(path),
        false => Ok(None),
    })?;
    Ok(unit)
}

/// The file of a unit, and the program that it starts.
///
/// # Errors
/// As [`unit`].
pub fn comes_from(system: &System, name: &str) -> Result<Vec<String>, Error> {
    let unit = unit(system, name)?;
    let program = match unit.command().into_iter().next() {
        // What the shell became.
        Some(shell) if shell.ends_with("/sh") => main_program(&unit),
        program => program,
    };
    let paths = std::iter::once(unit.declared.files.fragment).chain(program);
    Ok(paths.filter(|path| path.starts_with('/')).collect())
}

fn main_program(unit: &Unit) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{}/exe", unit.main_pid)).ok()?;
    Some(link.to_str()?.trim_end_matches(" (deleted)").to_owned())
}

/// The first line of what refit writes for a service.
pub fn written_by(service: &str, settings: &[String]) -> String {
    format!(
        "# {}: written by refit; `refit revert {service}` takes it out.\n",
        comment(&settings.join(" "))
    )
}

/// Text that can stand in a comment: one line, which does not continue.
pub fn comment(text: &str) -> String {
    let text = refit_run::printable(text);
    text.trim_end_matches('\\').to_owned()
}

/// What systemd has loaded of a unit, and its processes.
///
/// # Errors
/// [`Error::Command`].
pub fn show(name: &str) -> Result<Unit, Error> {
    let asked = "-pActiveState -pSubState -pMainPID -pControlGroup -pFragmentPath -pDropInPaths \
                 -pNeedDaemonReload -pEnvironment";
    let mut words = vec!["show"];
    words.extend(asked.split(' '));
    words.push(name);
    let shown = property(&systemctl(&words)?);
    Ok(Unit {
        is_active: shown("ActiveState") == "active",
        state: format!("{} ({})", shown("ActiveState"), shown("SubState")),
        main_pid: shown("MainPID").parse().unwrap_or(0),
        cgroup: shown("ControlGroup"),
        fragment: shown("FragmentPath"),
        drop_ins: shown("DropInPaths")
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        needs_reload: shown("NeedDaemonReload"),
        environment: shown("Environment"),
        ..Unit::default()
    })
}

/// Whether a unit runs, or failed since it ran. One that somebody stopped stays so, and one whose
/// file went with its package (`not-found`, or `masked` where it was not purged) is not started.
///
/// # Errors
/// [`Error::Command`].
pub fn is_to_run(name: &str, was_active: bool) -> Result<bool, Error> {
    let shown = property(&systemctl(&[
        "show",
        "-p",
        "ActiveState",
        "-p",
        "LoadState",
        name,
    ])?);
    Ok(match &*shown("ActiveState") {
        _ if shown("LoadState") != "loaded" => false,
        "inactive" => false,
        "failed" => was_active,
        _ => true,
    })
}

fn property(shown: &str) -> impl Fn(&str) -> String + use<> {
    let lines: Vec<(String, String)> = shown
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    move |name| {
        let found = lines.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }
}

/// Runs systemctl; its output.
///
/// # Errors
/// [`Error::Command`], with what it printed.
pub fn systemctl(words: &[&str]) -> Result<String, Error> {
    let failed = |output: String| Error::Command {
        command: format!("systemctl {}", words.join(" ")),
        output,
    };
    let within = match words.first() {
        Some(&"show" | &"--version" | &"daemon-reload" | &"list-units") => QUESTION,
        _ => JOB,
    };
    let output = Command::new("systemctl")
        .args(words)
        .stdin(Stdio::null())
        .answer(within)
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The version of systemd here: of `systemd 257 (257.13-1)` 257.
pub fn version() -> Option<u32> {
    let printed = systemctl(&["--version"]).ok()?;
    version_in(&printed)
}

fn version_in(printed: &str) -> Option<u32> {
    let number = printed.strip_prefix("systemd ")?;
    let end = number.find(|c: char| !c.is_ascii_digit())?;
    number[..end].parse().ok()
}

/// What systemd-analyze prints of a unit; nothing where it is not installed.
pub fn analyze(name: &str) -> String {
    let output = Command::new("systemd-analyze")
        .args(["verify", name])
        .stdin(Stdio::null())
        .answer(QUESTION);
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_first_number() {
        for (printed, meant) in [
            ("systemd 252 (252.39-1~deb12u2)\n+PAM +AUDIT\n", Some(252)),
            ("systemd 257~rc1 (257)\n", Some(257)),
            ("257\n", None),
            ("systemd\n", None),
        ] {
            assert_eq!(version_in(printed), meant, "{printed}");
        }
    }
}
