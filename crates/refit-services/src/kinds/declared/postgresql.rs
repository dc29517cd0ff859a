//! A database of a PostgreSQL cluster: `postgresql/DATABASE`. Its private instance is a server of the same programs in a
//! directory of its own, by a socket there alone; the file is loaded by a role that owns an empty database and nothing else.

use std::cell::{Cell, OnceCell};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use refit_schema::{Client, Private};
use refit_servers::sql::{Dialect, Kind as TokenKind, tokens};
use rustix::process::{Pid, Signal, kill_process};

use super::scratch::ScratchDirectory;
use super::{Databases, Opened};
use crate::ask::{Ask, QUESTION, STATEMENT};
use crate::kind::Kind;
use crate::kinds::postgresql::Postgresql;
use crate::kinds::postgresql::cluster::{Cluster, Server};
use crate::kinds::schema::{NAME, end_leftovers};
use crate::schema::SchemaDatabase;
use crate::{Error, System, sys};

/// The kind.
pub static POSTGRESQL: Databases = Databases {
    name: "database of a PostgreSQL cluster",
    form: "postgresql[@VERSION-CLUSTER]/DATABASE",
    table: "TABLE",
    find,
    open,
};

/// How long the private server may take to start.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// The role that loads files: what they define does not run as the superuser.
const ROLE: &str = "refit";

fn find(system: &System, word: &str) -> Result<Option<String>, Error> {
    let (cluster, database) = word.split_once('/').unwrap_or((word, ""));
    let has = |c: char| c.is_control() || "'\"`\\/".contains(c);
    if database.is_empty() || database.contains(has) {
        return Ok(None);
    }
    let Some(service) = Postgresql.find(system, cluster)? else {
        return Ok(None);
    };
    let cluster = service.strip_suffix(".service").unwrap_or(&service);
    Ok(Some(format!("{cluster}/{database}")))
}

fn open(system: &System, service: &str) -> Opened {
    let (cluster, database) = service.split_once('/').unwrap_or_default();
    let server = Cluster::of(system, &format!("{cluster}.service"))?.server(system)?;
    Ok(Some(Box::new(PgDatabase {
        server,
        database: database.to_owned(),
        instance: OnceCell::new(),
    })))
}

/// A database.
struct PgDatabase {
    server: Server,
    database: String,
    /// Started by the first that needs it.
    instance: OnceCell<Rc<Instance>>,
}

/// The error that psql prints of its input, without where that comes from.
fn told(error: &str) -> String {
    error.replace("psql:<stdin>:", "")
}

fn rows(
    server: &Server,
    database: &str,
    sql: &str,
    columns: usize,
) -> Result<Vec<Vec<String>>, String> {
    let printed = server.psql(database, sql, &[], STATEMENT)?;
    let fields: Vec<String> = printed.split_terminator('\0').map(str::to_owned).collect();
    let rows = fields.chunks_exact(columns);
    Ok(rows.map(<[String]>::to_vec).collect())
}

impl Client for PgDatabase {
    fn rows(&self, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, String> {
        rows(&self.server, &self.database, sql, columns)
    }

    /// A cast of somebody's own is a function, which does not run as the superuser.
    fn count(&self, sql: &str) -> Result<u64, String> {
        let role = refit_schema::POSTGRESQL.owner(self)?;
        let rows = self.rows(&format!("SET ROLE {role}; SET search_path = ''; {sql}"), 1)?;
        let number = rows.concat().concat();
        let read = number.trim().parse();
        read.map_err(|_| format!("{sql}: another answer: {number}"))
    }

    /// The answer is durable whatever the cluster, the database or the role has set.
    fn script(&self, sql: &str) -> Result<(), String> {
        // A lock that is not had in time is known by its words.
        let options = "-c statement_timeout=0 -c synchronous_commit=on -c lc_messages=C";
        let variables = [("PGAPPNAME", NAME), ("PGOPTIONS", options)];
        let ran = self.server.script(&self.database, sql, &variables);
        ran.map_err(|error| told(&error))
    }
}

impl SchemaDatabase for PgDatabase {
    fn as_client(&self) -> &dyn Client {
        self
    }

    fn server(&self) -> &'static dyn refit_schema::Server {
        &refit_schema::POSTGRESQL
    }

    fn empty(&self) -> Result<Box<dyn Private>, String> {
        let instance = match self.instance.get() {
            Some(instance) => instance.clone(),
            None => {
                let started = Rc::new(Instance::start(&self.server)?);
                self.instance.get_or_init(|| started).clone()
            }
        };
        let created = self.rows(
            "SELECT pg_catalog.format('TEMPLATE template0 ENCODING %L LC_COLLATE %L LC_CTYPE %L', \
             pg_catalog.pg_encoding_to_char(encoding), datcollate, datctype) FROM pg_catalog.pg_database \
             WHERE datname = pg_catalog.current_database()",
            1,
        )?;
        let number = instance.databases.get() + 1;
        instance.databases.set(number);
        let name = format!("private{number}");
        let create = format!(
            "CREATE DATABASE {name} OWNER {ROLE} {}",
            created.concat().concat()
        );
        instance.server.psql("postgres", &create, &[], QUESTION)?;
        Ok(Box::new(PrivateDatabase { instance, name }))
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "what can be one transaction is one; it waits 0.2 s for each lock and is tried again for a minute, so that nobody \
             waits long behind it. Indexes are built, and constraints validated, beside readers and writers"
                .to_owned(),
        ]
    }

    fn tables(&self) -> Result<Vec<String>, String> {
        let rows = self.rows(
            "SELECT schemaname || '.' || tablename FROM pg_catalog.pg_tables \
             WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
            1,
        )?;
        Ok(rows.concat())
    }

    /// A backend does not notice that its client is gone.
    fn end_leftovers(&self) -> Result<(), String> {
        end_leftovers(&self.server)
    }
}

/// A private server. It ends with this value, and with this process.
struct Instance {
    server: Server,
    child: Child,
    _dir: ScratchDirectory,
    databases: Cell<u32>,
}

impl Instance {
    fn start(of: &Server) -> Result<Instance, String> {
        let dir = ScratchDirectory::new(of.user())?;
        let place = dir.path().display().to_string();
        let data = format!("{place}/data");
        let command = |program: &str| {
            let mut command = Command::new(format!("{}/{program}", of.programs()));
            command
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .env("LC_ALL", "C.UTF-8");
            command
                .current_dir("/")
                .gid(of.user().1)
                .uid(of.user().0)
                .stdin(Stdio::null());
            command
        };
        let failed = |error: std::io::Error| format!("{}/postgres: {error}", of.programs());
        let made = command("initdb")
            .args([
                "--no-sync",
                "--auth=trust",
                "--encoding=UTF8",
                "--locale=C",
                "-D",
                &data,
            ])
            .answer(QUESTION);
        let made = made.map_err(failed)?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).trim().to_owned());
        }
        let mut postgres = command("postgres");
        let sockets = format!("unix_socket_directories={place}");
        postgres.args(["-D", &data, "-F", "-c", &sockets]);
        for setting in [
            "listen_addresses=",
            "autovacuum=off",
            "shared_buffers=16MB",
            "max_connections=10",
            "wal_level=minimal",
            "max_wal_senders=0",
        ] {
            postgres.args(["-c", setting]);
        }
        sys::ends_with_this(&mut postgres);
        let log = format!("{place}/log");
        let errors = File::create(&log).map_err(|error| format!("{log}: {error}"))?;
        let child = postgres.stdout(Stdio::null()).stderr(errors).spawn();
        let mut instance = Instance {
            server: of.elsewhere(&data).map_err(|error| error.to_string())?,
            child: child.map_err(failed)?,
            _dir: dir,
            databases: Cell::new(0),
        };
        let began = Instant::now();
        let create = format!("CREATE ROLE {ROLE} LOGIN");
        while let Err(error) = instance.server.psql("postgres", &create, &[], QUESTION) {
            let has_ended = !matches!(instance.child.try_wait(), Ok(None));
            if has_ended || began.elapsed() > STARTS_WITHIN {
                let text = std::fs::read_to_string(&log).unwrap_or_default();
                let last = text.lines().last().unwrap_or(&error);
                return Err(format!("a private PostgreSQL does not start: {last}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(instance)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // At once, and without the shared memory that a kill would leave.
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            let _ = kill_process(id, Signal::QUIT);
        }
        let _ = self.child.wait();
    }
}

/// An empty database of a private server.
struct PrivateDatabase {
    instance: Rc<Instance>,
    name: String,
}

const AS_ROLE: [(&str, &str); 1] = [("PGUSER", ROLE)];

impl Client for PrivateDatabase {
    fn rows(&self, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, String> {
        rows(&self.instance.server, &self.name, sql, columns)
    }

    fn script(&self, sql: &str) -> Result<(), String> {
        let ran = self.instance.server.script(&self.name, sql, &AS_ROLE);
        ran.map_err(|error| told(&error))
    }
}

impl Private for PrivateDatabase {
    fn load(&self, text: &str) -> Result<(), String> {
        let text = without_commands(text)?;
        self.script(&text)
    }
}

/// The file without the two commands of psql's that pg_dump writes around its own.
///
/// # Errors
/// The line of another one: psql runs programs and reads files by them.
fn without_commands(text: &str) -> Result<String, String> {
    let is_of_dump =
        |line: &str| line.starts_with("\\restrict ") || line.starts_with("\\unrestrict ");
    let lines = text
        .lines()
        .map(|line| if is_of_dump(line) { "" } else { line });
    let text = lines.fold(String::new(), |text, line| text + line + "\n");
    let all = tokens(&text, Dialect::Postgresql);
    let command = all
        .iter()
        .find(|token| token.kind == TokenKind::Sign && token.text.starts_with('\\'));
    match command {
        None => Ok(text),
        Some(token) => {
            let line = text[..token.at].matches('\n').count() + 1;
            Err(format!(
                "{line}: psql's own commands, which begin with \\, are not run\n  \
                 of a dump only the schema is taken: pg_dump -s --no-owner --no-privileges"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_commands;

    #[test]
    fn commands_of_psql_are_refused() {
        let dump = "\\restrict abc\nCREATE TABLE t (a text DEFAULT '\\x');\n\\unrestrict abc\n";
        assert!(without_commands(dump).unwrap().contains("'\\x'"));
        let error = without_commands("SELECT 1;\nSELECT 2 \\! id\n").unwrap_err();
        assert!(error.starts_with("2: psql's own"), "{error}");
    }
}
