//! A recipe of what a unit starts.

use std::path::{Path, PathBuf};

use refit_servers::files;
use refit_servers::systemd::{Files, Unit};

use super::copy::Copy;
use super::{
    FromError, Kind, Made, configured, mariadb, postfix, postgresql, redis, rsyslog, valid,
};

/// The recipe `name` of the service that a systemd unit starts. systemd is asked for the unit's files where it runs.
///
/// # Errors
/// [`FromError`]; nothing was written.
pub fn from_unit(typed: &str, name: &str) -> Result<Made, FromError> {
    valid(name)?;
    let root = Path::new("/");
    let found = find(root, typed)?;
    let mut copy = Copy::with(found.settings);
    copy.notes.remarks.push(format!(
        "of the unit {} its command line counts; its limits, its environment and its sandbox do not",
        found.unit
    ));
    let option = format!("--from-unit {}", found.unit);
    configured(&found.path, Some(found.kind), copy, name, &option)
}

/// The configuration that a unit is started with.
#[derive(Debug)]
struct Found {
    unit: String,
    kind: &'static Kind,
    path: PathBuf,
    /// What its command line adds, as lines of the configuration.
    settings: Vec<String>,
}

fn find(root: &Path, typed: &str) -> Result<Found, FromError> {
    let no_unit = |problem: &str| FromError::Unit {
        unit: typed.to_owned(),
        problem: problem.to_owned(),
    };
    let place = |path: &str| Ok::<_, FromError>(root.join(path.trim_start_matches('/')));
    let files = Files::find(place, typed)?.ok_or_else(|| {
        no_unit("systemd has no service of this name\n  list them: systemctl list-unit-files --type=service")
    })?;
    if files.is_masked {
        return Err(no_unit(
            "the unit is masked, and starts nothing\n  name its configuration: refit recipes new NAME --from PATH",
        ));
    }
    let unit = Unit::read(files, |path| {
        place(path).map(|path| std::fs::read(path).ok())
    })?;
    let command = unit.command();
    let (kind, path, settings) = configuration(root, &unit, &command)?.ok_or_else(|| {
        let program = command.first().map_or("nothing", |word| word);
        no_unit(&format!(
            "the unit starts {program}, which refit does not know\n  refit knows: {KNOWN}\n  \
             another program: refit recipes new NAME --template daemon"
        ))
    })?;
    if path.contains('$') {
        return Err(no_unit(&format!(
            "its command line names {path}, and that variable is not in Environment=\n  \
             name its configuration: refit recipes new NAME --from PATH"
        )));
    }
    let directory = unit.working_directory();
    let path = Path::new(&directory).join(path);
    Ok(Found {
        unit: unit.name().to_owned(),
        kind,
        path: root.join(path.strip_prefix("/").unwrap_or(&path)),
        settings,
    })
}

const KNOWN: &str = "redis-server, postgresql@15-main, mariadb, postfix, rsyslog";

type Configuration = (&'static Kind, String, Vec<String>);

/// The kind, the path and the further settings of a unit whose program refit knows.
fn configuration(
    root: &Path,
    unit: &Unit,
    command: &[String],
) -> Result<Option<Configuration>, FromError> {
    let program = command.first().map_or("", |word| word);
    let arguments = command.get(1..).unwrap_or_default();
    let unnamed = |example: &str| FromError::Unit {
        unit: unit.name().to_owned(),
        problem: format!(
            "its command line names no configuration\n  name it: refit recipes new NAME --from {example}"
        ),
    };
    let starts_mariadb = ["mariadb", "mysql", "mysqld"].contains(&unit.family());
    Ok(Some(match program.rsplit('/').next().unwrap_or_default() {
        "redis-server" => {
            let path = arguments.first().filter(|word| !word.starts_with('-'));
            let path = path.ok_or_else(|| unnamed("/etc/redis/redis.conf"))?;
            (&redis::KIND, path.clone(), redis_lines(&arguments[1..]))
        }
        "pg_ctlcluster" => {
            let mut clusters = arguments.iter().filter(|word| !word.starts_with('-'));
            let cluster = clusters.next().map(|word| word.replacen('-', "/", 1));
            let cluster = cluster.ok_or_else(|| unnamed("/etc/postgresql/15/main"))?;
            (
                &postgresql::KIND,
                format!("/etc/postgresql/{cluster}"),
                Vec::new(),
            )
        }
        "postgres" | "postmaster" | "pg_ctl" => {
            let settings = postgres_settings(arguments);
            let file = settings.iter().find(|(name, _)| name == "config_file");
            let path = file.map(|(_, path)| path.clone());
            let path = path.or_else(|| after(arguments, "-D"));
            let path = path.ok_or_else(|| unnamed("/etc/postgresql/15/main"))?;
            let lines = settings.iter().filter(|(name, _)| name != "config_file");
            let lines =
                lines.map(|(name, value)| format!("{name} = '{}'", value.replace('\'', "''")));
            (&postgresql::KIND, path, lines.collect())
        }
        "true" if unit.name() == "postgresql" => {
            (&postgresql::KIND, only_cluster(root)?, Vec::new())
        }
        "mariadbd" | "mysqld" | "mysqld_safe" | "mariadbd-safe" => {
            let has_group = |word: &String| word.starts_with("--defaults-group-suffix");
            if !unit.instance().is_empty() || arguments.iter().any(has_group) {
                return Err(FromError::Unit {
                    unit: unit.name().to_owned(),
                    problem: "one of several servers, which reads groups of its own in the configuration\n  \
                              name a file that holds its options alone: refit recipes new NAME --from FILE.cnf"
                        .to_owned(),
                });
            }
            let mut words = arguments.iter();
            let file = words.find_map(|word| word.strip_prefix("--defaults-file="));
            let settings = arguments.iter().filter_map(|word| word.strip_prefix("--"));
            let settings = settings.filter(|word| !word.starts_with("defaults-"));
            let file = file.unwrap_or("/etc/mysql").to_owned();
            (&mariadb::KIND, file, settings.map(str::to_owned).collect())
        }
        "rsyslogd" => {
            let path = after(arguments, "-f").unwrap_or_else(|| "/etc/rsyslog.conf".to_owned());
            (&rsyslog::KIND, path, Vec::new())
        }
        "postfix" if arguments.first().is_some_and(|word| word == "-c") => {
            let directory = arguments.get(1).ok_or_else(|| unnamed("/etc/postfix"))?;
            (&postfix::KIND, directory.clone(), Vec::new())
        }
        "postfix" | "postmulti" | "true" if unit.family() == "postfix" => {
            let directory = match unit.instance() {
                "" | "-" => "/etc/postfix".to_owned(),
                instance => format!("/etc/{instance}"),
            };
            (&postfix::KIND, directory, Vec::new())
        }
        // Debian's unit starts the server by way of a shell.
        "sh" if starts_mariadb && unit.instance().is_empty() => {
            (&mariadb::KIND, "/etc/mysql".to_owned(), Vec::new())
        }
        _ => return Ok(None),
    }))
}

/// The word after this option, or the rest of it.
fn after(words: &[String], option: &str) -> Option<String> {
    let at = words.iter().position(|word| word.starts_with(option))?;
    let rest = words[at]
        .strip_prefix(option)
        .filter(|rest| !rest.is_empty());
    rest.map(str::to_owned)
        .or_else(|| words.get(at + 1).cloned())
}

/// `-c NAME=VALUE` and `--NAME=VALUE`.
fn postgres_settings(words: &[String]) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("-c") {
            Some("") => words.next().map(String::as_str),
            Some(glued) => Some(glued),
            None => word.strip_prefix("--"),
        };
        let setting = setting.and_then(|setting| setting.split_once('='));
        settings.extend(setting.map(|(name, value)| (name.replace('-', "_"), value.to_owned())));
    }
    settings
}

/// `--port 7000 --save 60 1` as lines of redis.conf.
fn redis_lines(words: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words {
        match (word.strip_prefix("--"), lines.last_mut()) {
            (Some(name), _) => lines.push(name.to_owned()),
            (None, Some(line)) => {
                let word = word.replace('\\', "\\\\").replace('"', "\\\"");
                *line += &format!(" \"{word}\"");
            }
            (None, None) => {}
        }
    }
    lines
}

/// PostgreSQL's only cluster, which Debian's unit `postgresql` starts.
fn only_cluster(root: &Path) -> Result<String, FromError> {
    let clusters = files(root, "etc/postgresql/*/*/postgresql.conf");
    if let [one] = &*clusters {
        let path = one.strip_prefix(root).unwrap_or(one);
        return Ok(Path::new("/").join(path).display().to_string());
    }
    Err(FromError::Unit {
        unit: "postgresql".to_owned(),
        problem: format!(
            "it stands for {} clusters\n  name one: refit recipes new NAME --from-unit postgresql@15-main",
            clusters.len()
        ),
    })
}

#[cfg(test)]
pub mod tests {
    use std::fs;

    use super::*;

    pub fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    /// Finds the configuration of a unit with this command line: its path and its further settings.
    fn found(unit: &str, command: &str) -> Result<(String, String), String> {
        let file = unit.split_inclusive('@').next().unwrap();
        let file = format!("etc/systemd/system/{file}.service");
        let text = format!("[Service]\nWorkingDirectory=/srv/x\nExecStart={command}\n");
        let root = tree(&[
            (&file, &text),
            ("etc/postgresql/15/main/postgresql.conf", "port = 1\n"),
        ]);
        let found = find(root.path(), unit).map_err(|error| error.to_string())?;
        let path = found.path.strip_prefix(root.path()).unwrap();
        Ok((path.display().to_string(), found.settings.join("; ")))
    }

    #[test]
    fn the_command_line_names_the_configuration() {
        for (unit, command, path, settings) in [
            (
                "redis-server",
                "/usr/bin/redis-server /etc/redis/redis.conf --supervised systemd --save 60 1",
                "etc/redis/redis.conf",
                r#"supervised "systemd"; save "60" "1""#,
            ),
            (
                "redis-server@two",
                "/usr/bin/redis-server redis-%i.conf",
                "srv/x/redis-two.conf",
                "",
            ),
            (
                "postgresql@15-main",
                "-/usr/bin/pg_ctlcluster --skip-systemctl-redirect %i start",
                "etc/postgresql/15/main",
                "",
            ),
            (
                "postgresql",
                "/bin/true",
                "etc/postgresql/15/main/postgresql.conf",
                "",
            ),
            (
                "pg",
                "/usr/lib/postgresql/15/bin/postgres -D /d -c work_mem=9MB --config-file=/c/p.conf",
                "c/p.conf",
                "work_mem = '9MB'",
            ),
            ("postfix", "/bin/true", "etc/postfix", ""),
            (
                "rsyslog",
                "/usr/sbin/rsyslogd -n -iNONE",
                "etc/rsyslog.conf",
                "",
            ),
            (
                "log",
                "/usr/sbin/rsyslogd -n -f/srv/r.conf",
                "srv/r.conf",
                "",
            ),
            (
                "postfix@-",
                "/usr/sbin/postmulti -i %i -p start",
                "etc/postfix",
                "",
            ),
            (
                "mail",
                "/usr/sbin/postfix -c /srv/mail start-fg",
                "srv/mail",
                "",
            ),
            (
                "mariadb",
                "/bin/sh -c 'exec /usr/sbin/mariadbd $OPTIONS'",
                "etc/mysql",
                "",
            ),
            (
                "db",
                "/usr/sbin/mariadbd --defaults-file=/srv/my.cnf --max-connections=9",
                "srv/my.cnf",
                "max-connections=9",
            ),
        ] {
            let expected = (path.to_owned(), settings.to_owned());
            assert_eq!(found(unit, command), Ok(expected), "{unit}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused_with_what_to_type() {
        for (unit, command, texts) in [
            (
                "web",
                "/usr/sbin/nginx -g x",
                ["starts /usr/sbin/nginx", "--template daemon"],
            ),
            ("none", "", ["starts nothing", "--template daemon"]),
            (
                "true",
                "/bin/true",
                ["starts /bin/true", "--template daemon"],
            ),
            (
                "r",
                "/usr/bin/redis-server --port 1",
                ["no configuration", "--from /etc/redis/redis.conf"],
            ),
            (
                "r",
                "/usr/bin/redis-server $FILE",
                ["names $FILE", "--from PATH"],
            ),
            (
                "m@2",
                "/usr/sbin/mariadbd",
                ["one of several servers", "--from FILE.cnf"],
            ),
        ] {
            let error = found(unit, command).unwrap_err();
            for text in texts {
                assert!(error.contains(text), "{text}: {error}");
            }
        }
    }
}
