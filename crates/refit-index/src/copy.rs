//! The copy of a database: taken without a change of the original, packed for the recipe's folder.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::address::{is_mariadb, is_postgresql};
use crate::error::{IndexError, at};

/// What a recipe's folder can hold, with room for its scripts.
const MOST_PACKED: u64 = 15 << 20;

/// What a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// SQLite.
    Sqlite(SqliteFrom),
    /// PostgreSQL.
    Postgresql(PostgresqlFrom),
    /// MariaDB.
    Mariadb(MariadbFrom),
}

/// How a MariaDB database comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MariadbFrom {
    /// From its server.
    Server,
    /// As the statements of mariadb-dump.
    Dump,
}

/// How a PostgreSQL database comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostgresqlFrom {
    /// From its server.
    Server,
    /// As the archive of `pg_dump -Fc`.
    Dump,
}

/// How an SQLite database comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqliteFrom {
    /// As its file.
    File,
    /// As the statements of `.dump`.
    Dump,
}

/// What `from` is, by its first bytes or as an address; `None`: not a database.
pub fn kind(from: &Path) -> Option<Kind> {
    if from.to_str().is_some_and(is_postgresql) {
        return Some(Kind::Postgresql(PostgresqlFrom::Server));
    }
    if from.to_str().is_some_and(is_mariadb) {
        return Some(Kind::Mariadb(MariadbFrom::Server));
    }
    if !from.is_file() {
        return None;
    }
    let mut head = Vec::new();
    File::open(from)
        .ok()?
        .take(512)
        .read_to_end(&mut head)
        .ok()?;
    // https://www.sqlite.org/fileformat.html, 1.3.1; .dump begins with this pragma.
    if head.starts_with(b"SQLite format 3\0") {
        return Some(Kind::Sqlite(SqliteFrom::File));
    }
    if head.starts_with(b"PRAGMA foreign_keys=OFF;") {
        return Some(Kind::Sqlite(SqliteFrom::Dump));
    }
    if head.starts_with(b"PGDMP") {
        return Some(Kind::Postgresql(PostgresqlFrom::Dump));
    }
    // With --skip-comments it begins by setting variables.
    let of_mariadb = [
        "/*M!",
        "-- MariaDB dump",
        "-- MySQL dump",
        "/*!40101 SET @OLD_",
    ];
    if of_mariadb
        .iter()
        .any(|text| head.starts_with(text.as_bytes()))
    {
        return Some(Kind::Mariadb(MariadbFrom::Dump));
    }
    None
}

/// Runs a program of the database; what it printed.
pub fn output(
    command: &mut Command,
    package: &'static str,
    what: &str,
) -> Result<String, IndexError> {
    let program = command.get_program().display().to_string();
    let output = command.output().map_err(|cause| match cause.kind() {
        std::io::ErrorKind::NotFound => IndexError::Missing {
            program,
            package: package.to_owned(),
        },
        _ => IndexError::File {
            path: PathBuf::from(program),
            cause,
        },
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // sqlite3 reports some errors with the exit code 0.
    if !output.status.success() || !output.stderr.is_empty() {
        let errors = text(&output.stderr);
        return Err(IndexError::Failed {
            what: what.to_owned(),
            output: match errors.trim() {
                "" => output.status.to_string(),
                errors => errors.to_owned(),
            },
        });
    }
    Ok(text(&output.stdout))
}

/// Copies an SQLite database to `to`.
pub fn sqlite(from: &Path, how: SqliteFrom, to: &Path) -> Result<(), IndexError> {
    let what = format!("the copy of {}", from.display());
    let sqlite3 = || {
        let mut command = Command::new("sqlite3");
        command.args(["-batch", "-init", "/dev/null", "-bail"]);
        command
    };
    if how == SqliteFrom::Dump {
        let dump = File::open(from).map_err(at(from))?;
        let mut command = sqlite3();
        // A dump of somebody else's runs no commands of the shell.
        command.arg("-safe").arg(to).stdin(dump);
        return output(&mut command, "sqlite3", &what).map(drop);
    }
    let beside = |ending: &str| {
        let mut name = from.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let (log, index) = (beside("-wal"), beside("-shm"));
    let uri = |options: &str| -> Result<String, IndexError> {
        let path = fs::canonicalize(from).map_err(at(from))?;
        let bytes = path.as_os_str().as_encoded_bytes().iter();
        let escaped: String = bytes
            .map(|&byte| match byte {
                b'/' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
                _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
                _ => format!("%{byte:02X}"),
            })
            .collect();
        Ok(format!("file:{escaped}?{options}"))
    };
    // A reader makes both files where the journal is a WAL, and nothing is to be made beside the
    // original: https://www.sqlite.org/wal.html#read_only_databases
    let has_log = log.exists();
    let source = match (has_log, index.exists()) {
        (true, false) => {
            return Err(IndexError::Failed {
                what,
                output: format!(
                    "{} was not taken into the file, since no program has it open\n  \
                     open it once: sqlite3 {} 'PRAGMA wal_checkpoint'",
                    log.display(),
                    from.display()
                ),
            });
        }
        (false, _) if is_wal(from)? => uri("immutable=1")?,
        _ => uri("mode=ro")?,
    };
    // The name of the copy stands in a command of sqlite3's: it is of refit's own making.
    let backup = format!(".backup '{}'", to.display());
    output(sqlite3().arg(source).arg(backup), "sqlite3", &what)?;
    if !has_log && log.exists() {
        return Err(IndexError::Failed {
            what,
            output: "a program began to write it meanwhile; try again".to_owned(),
        });
    }
    Ok(())
}

fn is_wal(file: &Path) -> Result<bool, IndexError> {
    let mut head = [0; 20];
    let mut file_read = File::open(file).map_err(at(file))?;
    file_read.read_exact(&mut head).map_err(at(file))?;
    Ok(head[18] == 2 || head[19] == 2)
}

/// Packs a file; the same bytes give the same ones.
pub fn packed(file: &Path, from: &Path) -> Result<Vec<u8>, IndexError> {
    let input = File::open(file).map_err(at(file))?;
    let mut gzip = Command::new("gzip");
    gzip.args(["-n", "-c"]).stdin(input);
    limited(&mut gzip, "gzip", &from.display().to_string())
}

/// What a program prints of the database `from`, where a recipe can hold that.
pub fn limited(command: &mut Command, what: &str, from: &str) -> Result<Vec<u8>, IndexError> {
    let program = command.get_program().to_owned();
    let mut errors = tempfile::tempfile().map_err(at(std::env::temp_dir()))?;
    let to = errors.try_clone().map_err(at(&program))?;
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(to)
        .spawn()
        .map_err(at(&program))?;
    let mut bytes = Vec::new();
    if let Some(stdout) = &mut child.stdout {
        let read = stdout.take(MOST_PACKED + 1).read_to_end(&mut bytes);
        read.map_err(at(&program))?;
    }
    let is_too_large = bytes.len() as u64 > MOST_PACKED;
    if is_too_large {
        // It may hold locks of the database.
        child.kill().map_err(at(&program))?;
    }
    let status = child.wait().map_err(at(&program))?;
    if is_too_large {
        return Err(IndexError::TooLarge {
            from: from.to_owned(),
            most: MOST_PACKED >> 20,
        });
    }
    if !status.success() {
        let mut text = String::new();
        errors.rewind().map_err(at(&program))?;
        errors.read_to_string(&mut text).map_err(at(&program))?;
        return Err(IndexError::Failed {
            what: what.to_owned(),
            output: match text.trim() {
                "" => status.to_string(),
                text => text.to_owned(),
            },
        });
    }
    Ok(bytes)
}

/// Writes a file of the scratch directory.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), IndexError> {
    let file = File::create(path);
    file.and_then(|mut file| file.write_all(bytes))
        .map_err(at(path))
}
