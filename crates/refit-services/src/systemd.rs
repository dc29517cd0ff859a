//! What systemd and its files say of a unit.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Error, System};

/// Where unit files lie, the strongest first (systemd.unit(5)).
const DIRECTORIES: [&str; 4] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
];

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
    /// Drop-in files that are loaded.
    pub drop_ins: Vec<String>,
    /// `yes` or `no`.
    pub needs_reload: String,
    /// Its last `ExecStart=` line, without prefixes, `%i` replaced.
    pub exec_start: String,
    /// Its `ExecStart=` lines, whole.
    pub exec_lines: Vec<String>,
    /// Its `SystemCallFilter=` lines.
    pub filters: Vec<String>,
    /// Whether it runs as another user than root.
    pub has_user: bool,
    /// Whether variables come from a file too.
    pub has_environment_file: bool,
    environment: Vec<(String, String)>,
}

impl Unit {
    /// The words after the program that it starts, where that has one of these names.
    pub fn arguments_of(&self, programs: &[&str], service: &str) -> Option<Vec<String>> {
        let instance = service.strip_suffix(".service").unwrap_or(service);
        let instance = instance
            .split_once('@')
            .map_or("", |(_, instance)| instance);
        let mut words = words(&self.exec_start).into_iter();
        let program = words.next()?;
        let name = program.rsplit('/').next()?;
        let rest = words.map(|word| word.replace("%i", instance));
        programs.contains(&name).then(|| rest.collect())
    }

    /// A variable of its `Environment=` lines.
    pub fn variable(&self, name: &str) -> Option<String> {
        let mut all = self.environment.iter();
        all.rfind(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
    }
}

/// The full name of the unit that a word means.
///
/// # Errors
/// [`Error::NotRoot`] and [`Error::NoSystemd`] where no unit could be changed.
pub fn find(system: &System, word: &str) -> Result<Option<String>, Error> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    // A template is started under names of its own.
    let is_template = word.strip_suffix(".service").unwrap_or(word).ends_with('@');
    if is_template
        || word.is_empty()
        || word.starts_with(['.', '-'])
        || !word.chars().all(allowed)
        || word.len() > 200
    {
        return Ok(None);
    }
    let name = if word.ends_with(".service") {
        word.to_owned()
    } else {
        format!("{word}.service")
    };
    if !system.is_live() {
        return Ok(file_of(system, &name)?.map(|_| name));
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    // sd_booted(3)
    if !Path::new("/run/systemd/system").is_dir() {
        return Err(Error::NoSystemd);
    }
    let shown = property(&systemctl(&["show", "-p", "Id", "-p", "LoadState", &name])?);
    let is_loaded = shown("LoadState") == "loaded";
    Ok(is_loaded.then(|| shown("Id")))
}

/// The file of a unit in a tree, or of its template.
fn file_of(system: &System, name: &str) -> Result<Option<String>, Error> {
    let template = name
        .split_once('@')
        .map(|(family, _)| format!("{family}@.service"));
    for name in std::iter::once(name.to_owned()).chain(template) {
        for dir in DIRECTORIES {
            let path = format!("{dir}/{name}");
            if system.path(&path)?.is_file() {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
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
    if system.is_live() {
        let mut unit = show(name)?;
        let files = std::iter::once(fragment(name)?).chain(unit.drop_ins.clone());
        let others = files.filter(|file| drop_in != Some(file));
        for file in others.filter(|file| file.starts_with('/')) {
            read_variables(&mut unit, &system.read(&file)?.unwrap_or_default());
        }
        return Ok(unit);
    }
    let mut unit = Unit::default();
    if let Some(file) = file_of(system, name)? {
        read_variables(&mut unit, &system.read(&file)?.unwrap_or_default());
    }
    let mut drop_ins = Vec::new();
    for dir in DIRECTORIES.iter().rev() {
        let dir = format!("{dir}/{name}.d");
        let entries = std::fs::read_dir(system.path(&format!("{dir}/x"))?.with_file_name(""));
        for entry in entries.into_iter().flatten().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            if file.ends_with(".conf") {
                drop_ins.push((file.clone(), format!("{dir}/{file}")));
            }
        }
    }
    drop_ins.sort();
    drop_ins.retain(|(_, path)| drop_in != Some(path));
    for (_, path) in drop_ins {
        read_variables(&mut unit, &system.read(&path)?.unwrap_or_default());
    }
    Ok(unit)
}

/// The file of a unit, and the program that it starts.
///
/// # Errors
/// As [`unit`].
pub fn comes_from(system: &System, name: &str) -> Result<Vec<String>, Error> {
    let file = match system.is_live() {
        true => Some(fragment(name)?),
        false => file_of(system, name)?,
    };
    let unit = unit(system, name)?;
    let program = match words(&unit.exec_start).into_iter().next() {
        // What the shell became.
        Some(shell) if shell.ends_with("/sh") => main_program(&unit),
        program => program,
    };
    let paths = file.into_iter().chain(program);
    Ok(paths.filter(|path| path.starts_with('/')).collect())
}

fn main_program(unit: &Unit) -> Option<String> {
    let link = std::fs::read_link(format!("/proc/{}/exe", unit.main_pid)).ok()?;
    Some(link.to_str()?.trim_end_matches(" (deleted)").to_owned())
}

fn fragment(name: &str) -> Result<String, Error> {
    let shown = systemctl(&["show", "-p", "FragmentPath", "--value", name])?;
    Ok(shown.trim().to_owned())
}

/// Adds what a unit file says of the environment.
fn read_variables(unit: &mut Unit, file: &[u8]) {
    let text = String::from_utf8_lossy(file).replace("\\\n", " ");
    let mut in_service = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            in_service = line == "[Service]";
        }
        if !in_service {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        match key.trim() {
            "Environment" if value.trim().is_empty() => unit.environment.clear(),
            "Environment" => {
                let pairs = words(value);
                let pairs = pairs.iter().filter_map(|word| word.split_once('='));
                unit.environment
                    .extend(pairs.map(|(k, v)| (k.to_owned(), v.to_owned())));
            }
            "SystemCallFilter" if value.trim().is_empty() => unit.filters.clear(),
            "SystemCallFilter" => unit.filters.push(value.trim().to_owned()),
            "User" => unit.has_user = !["", "root", "0"].contains(&value.trim()),
            "DynamicUser" => {
                let is_on = ["1", "yes", "y", "true", "t", "on"].contains(&value.trim());
                unit.has_user |= is_on;
            }
            "ExecStart" => {
                match value.trim() {
                    "" => unit.exec_lines.clear(),
                    line => unit.exec_lines.push(line.to_owned()),
                }
                let line = value.trim().trim_start_matches(['@', '-', ':', '+', '!']);
                unit.exec_start = without_launcher(line).to_owned();
            }
            "EnvironmentFile" => unit.has_environment_file = !value.trim().is_empty(),
            _ => {}
        }
    }
}

/// The program that a launcher of refit's becomes, with its arguments; a line without one as it is.
fn without_launcher(line: &str) -> &str {
    match line.find(" /") {
        Some(at) if line.starts_with("/usr/lib/refit/") => &line[at + 1..],
        _ => line,
    }
}

/// Words with systemd's quotes and backslashes, `%%` for a percent sign.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\\' => word.get_or_insert_default().extend(rest.next()),
            '%' if rest.peek() == Some(&'%') => word.get_or_insert_default().extend(rest.next()),
            c if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && quote.is_none() => found.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    found.extend(word);
    found
}

/// One word of an `Environment=` line, whatever it holds (systemd.syntax(7), systemd.unit(5)
/// on specifiers).
pub fn quoted(word: &str) -> String {
    let mut text = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '%' => text.push_str("%%"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            c => text.push(c),
        }
    }
    text + "\""
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
    let asked =
        "-pActiveState -pSubState -pMainPID -pControlGroup -pDropInPaths -pNeedDaemonReload";
    let mut words = vec!["show"];
    words.extend(asked.split(' '));
    words.push(name);
    let shown = property(&systemctl(&words)?);
    Ok(Unit {
        is_active: shown("ActiveState") == "active",
        state: format!("{} ({})", shown("ActiveState"), shown("SubState")),
        main_pid: shown("MainPID").parse().unwrap_or(0),
        cgroup: shown("ControlGroup"),
        drop_ins: shown("DropInPaths")
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
        needs_reload: shown("NeedDaemonReload"),
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
    let output = Command::new("systemctl")
        .args(words)
        .stdin(Stdio::null())
        .output()
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
        .output();
    output.map_or_else(
        |_| String::new(),
        |output| String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_word_is_read_as_it_was() {
        for word in ["A=b", "A=b c", "A=\"q\" 'r' \\ %n %%", "A="] {
            assert_eq!(words(&quoted(word)), [word]);
        }
        assert_eq!(words(" A=1 'B=2 3'  \"C=\" "), ["A=1", "B=2 3", "C="]);
    }

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

    #[test]
    fn the_last_assignment_of_a_variable_counts() {
        let mut unit = Unit::default();
        read_variables(
            &mut unit,
            b"[Unit]\nEnvironment=LD_PRELOAD=/no\n[Service]\nEnvironment=A=1 \\\n LD_PRELOAD=/a.so\n",
        );
        assert_eq!(unit.variable("LD_PRELOAD").as_deref(), Some("/a.so"));
        read_variables(&mut unit, b"[Service]\nEnvironment=\"LD_PRELOAD=/b.so\"\n");
        assert_eq!(unit.variable("LD_PRELOAD").as_deref(), Some("/b.so"));
        read_variables(
            &mut unit,
            b"[Service]\nEnvironment=\nEnvironmentFile=-/etc/default/x\n",
        );
        assert_eq!(unit.variable("LD_PRELOAD"), None);
        assert!(unit.has_environment_file);
    }
}
