//! An SQLite file: `sqlite:/PATH`. Its private instance is an empty file in a directory of its own.

use refit_schema::{Client, Private, Server};

use super::scratch::ScratchDirectory;
use super::{Databases, Opened};
use crate::ask::STATEMENT;
use crate::kinds::schema::{PREFIX, file_of};
use crate::kinds::sqlite3::{BUSY_MS, Sql, Sqlite3};
use crate::schema::SchemaDatabase;
use crate::{Error, System};

/// The kind.
pub static SQLITE: Databases = Databases {
    name: "SQLite file",
    form: "sqlite:/PATH",
    table: "TABLE",
    find,
    open,
};

fn find(system: &System, word: &str) -> Result<Option<String>, Error> {
    let Some(path) = word.strip_prefix(PREFIX) else {
        return Ok(None);
    };
    let is_plain = path.starts_with('/') && !path.contains(char::is_control);
    if !is_plain || system.place(path)?.stat()?.is_none() {
        return Ok(None);
    }
    if system.is_live() && !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    Ok(file_of(system, path)?.map(|_| word.to_owned()))
}

fn open(system: &System, service: &str) -> Opened {
    let path = service.strip_prefix(PREFIX).unwrap_or(service);
    let file = file_of(system, path)?;
    Ok(file.map(|file| Box::new(Database(file)) as Box<dyn SchemaDatabase>))
}

/// The file.
struct Database(Sqlite3);

impl Client for Database {
    /// What is counted takes as long as the table is large.
    fn rows(&self, sql: &str, _: usize) -> Result<Vec<Vec<String>>, String> {
        self.0.query_within(sql, STATEMENT)
    }

    fn script(&self, sql: &str) -> Result<(), String> {
        self.0.run(&[], &Sql::Input(sql), STATEMENT).map(|_| ())
    }
}

impl SchemaDatabase for Database {
    fn as_client(&self) -> &dyn Client {
        self
    }

    fn server(&self) -> &'static dyn Server {
        &refit_schema::SQLITE
    }

    fn empty(&self) -> Result<Box<dyn Private>, String> {
        Ok(Box::new(Scratch::new(&self.0)?))
    }

    fn notes(&self) -> Vec<String> {
        vec![format!(
            "all statements are one transaction, which has the file's one lock for writers: others wait, and get \
             `database is locked` after their own limit. refit waits {} s for the lock",
            BUSY_MS / 1000
        )]
    }

    fn tables(&self) -> Result<Vec<String>, String> {
        let rows = self.0.query(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@' ORDER BY name",
        )?;
        Ok(rows.concat())
    }
}

/// An empty file in a directory of its owner's alone, which goes with this value.
struct Scratch {
    _dir: ScratchDirectory,
    file: Database,
}

impl Scratch {
    fn new(of: &Sqlite3) -> Result<Scratch, String> {
        let dir = ScratchDirectory::new((of.uid, of.gid))?;
        let file = Sqlite3 {
            path: dir.path().join("private.db"),
            ..of.clone()
        };
        Ok(Scratch {
            _dir: dir,
            file: Database(file),
        })
    }
}

impl Client for Scratch {
    fn rows(&self, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, String> {
        self.file.rows(sql, columns)
    }

    fn script(&self, sql: &str) -> Result<(), String> {
        self.file.script(sql)
    }
}

impl Private for Scratch {
    /// In safe mode the file reaches no other file and no program.
    fn load(&self, text: &str) -> Result<(), String> {
        let loaded = self.file.0.run(&["-safe"], &Sql::Input(text), STATEMENT);
        loaded.map(|_| ()).map_err(|errors| with_line(&errors))
    }
}

/// `Parse error near line 3: near "x": syntax error` as `3: near "x": syntax error`.
fn with_line(errors: &str) -> String {
    let first = errors.lines().next().unwrap_or_default();
    let line = first
        .split_once("near line ")
        .and_then(|(_, rest)| rest.split_once(": "));
    match line {
        Some((line, error)) => format!("{line}: {error}"),
        None => format!(" {errors}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_error_has_its_line() {
        for (errors, shown) in [
            (
                "Parse error near line 3: near \"x\": syntax error\n  CREATE x",
                "3: near \"x\": syntax error",
            ),
            (
                "Error: near line 2: no such table: t",
                "2: no such table: t",
            ),
            ("out of memory", " out of memory"),
        ] {
            assert_eq!(super::with_line(errors), shown);
        }
    }
}
