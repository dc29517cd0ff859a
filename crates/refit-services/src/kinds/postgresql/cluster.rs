//! A PostgreSQL cluster as Debian keeps it: its files below /etc/postgresql/VERSION/NAME, and
//! how its server is asked.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use refit_servers::postgresql::conf::Sources;
use refit_servers::postgresql::directory;

use crate::ask::{Ask, QUESTION, STATEMENT, input};
use crate::{Error, FileError, System};

/// Where the clusters are configured.
const CLUSTERS: &str = "/etc/postgresql";

/// A cluster.
pub struct Cluster {
    /// As `15`.
    pub version: String,
    /// As `main`.
    pub name: String,
}

impl Cluster {
    /// All of a system.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn all(system: &System) -> Result<Vec<Cluster>, Error> {
        let mut found = Vec::new();
        for path in system.matching(&format!("{CLUSTERS}/*/*/postgresql.conf"), "")? {
            if let [.., version, name, _] = path.split('/').collect::<Vec<_>>()[..]
                && system.path(&path)?.is_file()
            {
                found.push(Cluster {
                    version: version.to_owned(),
                    name: name.to_owned(),
                });
            }
        }
        found.sort_by_key(Cluster::service);
        Ok(found)
    }

    /// The cluster of a service.
    ///
    /// # Errors
    /// [`Error::UnknownService`] where it is gone.
    pub fn of(system: &System, service: &str) -> Result<Cluster, Error> {
        let all = Cluster::all(system)?;
        let mut all = all.into_iter();
        all.find(|cluster| cluster.service() == service)
            .ok_or_else(|| unknown(service))
    }

    /// Its systemd unit.
    pub fn service(&self) -> String {
        format!("postgresql@{}-{}.service", self.version, self.name)
    }

    /// Where its server's programs lie.
    pub fn programs(&self) -> String {
        directory(&self.version)
    }

    /// A file of its configuration.
    pub fn file(&self, name: &str) -> String {
        format!("{CLUSTERS}/{}/{}/{name}", self.version, self.name)
    }

    /// How its server is asked, whether it runs or not.
    ///
    /// # Errors
    /// Where its data directory cannot be found.
    pub fn server(&self, system: &System) -> Result<Server, Error> {
        let sources = sources(system, &self.file("postgresql.conf"), "")?;
        let data = sources.last("data_directory");
        let data = data.ok_or_else(|| Error::NoPlace {
            service: self.service(),
            file: self.file("postgresql.conf"),
        })?;
        let data = match system.is_live() {
            true => data.value.clone(),
            false => system.path(&data.value)?.display().to_string(),
        };
        let owner = std::fs::metadata(&data).map_err(FileError::at(Path::new(&data)))?;
        Ok(Server {
            programs: self.programs(),
            config: self.file("postgresql.conf"),
            data,
            system: system.clone(),
            uid: owner.uid(),
            gid: owner.gid(),
        })
    }
}

/// What a file of a system sets, with all that it includes.
///
/// # Errors
/// As [`System::read`].
pub fn sources(system: &System, file: &str, ours: &str) -> Result<Sources, Error> {
    let names = |directory: &str| system.names(directory);
    Sources::read(|file| system.read(file), names, file, ours)
}

/// What is told of a word that means no cluster.
pub fn unknown(word: &str) -> Error {
    Error::UnknownService {
        word: word.to_owned(),
        place: format!(" below {CLUSTERS}"),
        list: "pg_lsclusters".to_owned(),
    }
}

/// A server on this machine, or in a tree.
pub struct Server {
    programs: String,
    config: String,
    data: String,
    system: System,
    uid: u32,
    gid: u32,
}

/// What a running server knows of a setting.
pub struct Known {
    /// In lower case.
    pub name: String,
    /// In the unit of `pg_settings`.
    pub value: String,
    /// What it takes to change it: `postmaster` is a restart.
    pub context: String,
    /// Whether the files hold another value, which waits for a restart.
    pub pending_restart: bool,
    /// The file that it was read from, else what kind of source set it.
    pub source: String,
}

impl Server {
    /// What the server would use as its setting `name` if it started now with these files; with
    /// `value`, if it were set to this. Nothing is started.
    ///
    /// # Errors
    /// What the server reports: of the whole configuration, not only of this setting.
    pub fn would_use(&self, name: &str, value: Option<&str>) -> Result<String, String> {
        let mut words = vec![
            "-C".to_owned(),
            name.to_owned(),
            "-c".to_owned(),
            format!("config_file={}", self.config),
        ];
        if let Some(value) = value {
            words.extend(["-c".to_owned(), format!("{name}={value}")]);
        }
        let printed = self.run("postgres", &words, &[], QUESTION)?;
        Ok(printed.trim_end_matches('\n').to_owned())
    }

    /// A server of the same programs and of the same user, with its data elsewhere on this machine.
    ///
    /// # Errors
    /// [`Error::Root`].
    pub fn elsewhere(&self, data: &str) -> Result<Server, Error> {
        Ok(Server {
            programs: self.programs.clone(),
            config: String::new(),
            data: data.to_owned(),
            system: System::new(None)?,
            uid: self.uid,
            gid: self.gid,
        })
    }

    /// Where its programs lie.
    pub fn programs(&self) -> &str {
        &self.programs
    }

    /// Its user and group.
    pub fn user(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Its data directory, on this machine.
    pub fn data(&self) -> &str {
        &self.data
    }

    /// What the running server uses in a new connection.
    ///
    /// # Errors
    /// What psql reports.
    pub fn uses(&self, names: &[&str]) -> Result<Vec<Known>, String> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT lower(name), setting, context, pending_restart, coalesce(sourcefile, source) \
             FROM pg_catalog.pg_settings WHERE lower(name) IN ({})",
            list(names)
        );
        let rows = self.query(&sql, 5)?;
        let known = rows.into_iter().filter_map(|row| {
            let [name, value, context, pending, source] = row.try_into().ok()?;
            Some(Known {
                name,
                value,
                context,
                pending_restart: pending == "t",
                source,
            })
        });
        Ok(known.collect())
    }

    /// Roles and databases that have a value of their own for one of these: `role r in all
    /// databases: fsync=on`.
    ///
    /// # Errors
    /// What psql reports.
    pub fn own_values(&self, names: &[&str]) -> Result<Vec<String>, String> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT coalesce('role ' || r.rolname, 'all roles') || ' in ' || \
             coalesce('database ' || d.datname, 'all databases') || ': ' || c \
             FROM pg_catalog.pg_db_role_setting s CROSS JOIN unnest(s.setconfig) c \
             LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole \
             LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase \
             WHERE lower(split_part(c, '=', 1)) IN ({}) ORDER BY 1",
            list(names)
        );
        let rows = self.query(&sql, 1)?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// Settings that wait for a restart already.
    ///
    /// # Errors
    /// What psql reports.
    pub fn pending(&self) -> Result<Vec<String>, String> {
        let sql = "SELECT name FROM pg_catalog.pg_settings WHERE pending_restart ORDER BY 1";
        Ok(self.query(sql, 1)?.into_iter().flatten().collect())
    }

    /// Rows of columns.
    fn query(&self, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, String> {
        self.rows("postgres", sql, columns)
    }

    /// Rows of columns of a database.
    ///
    /// # Errors
    /// What psql reports.
    pub fn rows(
        &self,
        database: &str,
        sql: &str,
        columns: usize,
    ) -> Result<Vec<Vec<String>>, String> {
        let printed = self.psql(database, sql, &[], QUESTION)?;
        let fields: Vec<String> = printed.split_terminator('\0').map(str::to_owned).collect();
        Ok(fields
            .chunks_exact(columns)
            .map(<[String]>::to_vec)
            .collect())
    }

    /// What psql prints of one statement, which may take so long, asked as the cluster's own user by its socket. `variables` are
    /// those of libpq.
    ///
    /// # Errors
    /// What psql reports.
    pub fn psql(
        &self,
        database: &str,
        sql: &str,
        variables: &[(&str, &str)],
        within: Duration,
    ) -> Result<String, String> {
        let words = self.at(database)?;
        let words = [words, vec!["-c".to_owned(), sql.to_owned()]].concat();
        self.run("psql", &words, variables, within)
    }

    /// Runs statements as psql's input, up to the first that fails: there is no limit of length, and errors have lines.
    ///
    /// # Errors
    /// As [`Server::psql`].
    pub fn script(
        &self,
        database: &str,
        sql: &str,
        variables: &[(&str, &str)],
    ) -> Result<(), String> {
        let mut words = self.at(database)?;
        words.extend(["-v", "ON_ERROR_STOP=1", "-f", "-"].map(str::to_owned));
        let input = input(sql.as_bytes()).map_err(|error| format!("psql: {error}"))?;
        let ran = self.run_with("psql", &words, variables, STATEMENT, input.into());
        ran.map(|_| ())
    }

    /// The words by which psql finds a database by the server's socket.
    fn at(&self, database: &str) -> Result<Vec<String>, String> {
        // Port and directory of the socket are its 4th and 5th line.
        let pid = std::fs::read_to_string(format!("{}/postmaster.pid", self.data));
        let pid = pid.map_err(|error| format!("{}/postmaster.pid: {error}", self.data))?;
        let line = |n| pid.lines().nth(n).unwrap_or_default().trim().to_owned();
        let (port, dir) = (line(3), line(4));
        let host = match (&*dir, self.system.is_live()) {
            ("", true) => "localhost".to_owned(),
            // Never this machine's own server.
            ("", false) => return Err("the server has no socket in the tree".to_owned()),
            (dir, _) => self.system.as_reported(dir).map_err(|e| e.to_string())?,
        };
        let words = [
            "-X", "-w", "-q", "-A", "-t", "-z", "-0", "-h", &host, "-p", &port, "-d", database,
        ];
        Ok(words.map(str::to_owned).to_vec())
    }

    fn run(
        &self,
        program: &str,
        words: &[String],
        variables: &[(&str, &str)],
        within: Duration,
    ) -> Result<String, String> {
        self.run_with(program, words, variables, within, Stdio::null())
    }

    fn run_with(
        &self,
        program: &str,
        words: &[String],
        variables: &[(&str, &str)],
        within: Duration,
        input: Stdio,
    ) -> Result<String, String> {
        let output = Command::new(format!("{}/{program}", self.programs))
            .args(words)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("LC_ALL", "C.UTF-8")
            .env("PGCONNECT_TIMEOUT", "10")
            .envs(variables.iter().copied())
            .current_dir("/")
            .gid(self.gid)
            .uid(self.uid)
            .stdin(input)
            .answer(within)
            .map_err(|error| format!("{}/{program}: {error}", self.programs))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(told(&String::from_utf8_lossy(&output.stderr)))
    }
}

/// Names of settings as a list of SQL.
fn list(names: &[&str]) -> String {
    let names = names
        .iter()
        .map(|name| format!("'{}'", name.to_lowercase()));
    names.collect::<Vec<_>>().join(", ")
}

/// A server's messages without time and process: `2026-11-23 03:21:12.213 GMT [363] FATAL:  text`.
fn told(stderr: &str) -> String {
    let lines = stderr.lines().map(|line| {
        let words = ["LOG:", "HINT:", "FATAL:", "DETAIL:"];
        let starts = words.iter().filter_map(|word| line.find(word)).min();
        starts.map_or(line, |at| &line[at..]).trim()
    });
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_a_server_says_has_no_time() {
        let stderr = "2026-11-23 03:21:12.213 GMT [363] FATAL:  invalid value\n\
                      2026-11-23 03:21:12.213 GMT [363] HINT:  Available values: on, off.\n";
        assert_eq!(
            super::told(stderr),
            "FATAL:  invalid value; HINT:  Available values: on, off."
        );
    }
}
