//! A table of a MariaDB server: `mariadb/DATABASE/TABLE`.
//!
//! Online or not at all: the server refuses what it cannot do with ALGORITHM=INPLACE, LOCK=NONE.

use std::time::{Duration, Instant};

use super::{
    IGNORED, Indexed, Key, Opened, Table, Tables, expect_parts, grouped, joined, list, parts,
    quoted,
};
use crate::ask::{QUESTION, STATEMENT};
use crate::kinds::mariadb::{is_here, server};
use crate::schema::{Database, INVALID, Index, SchemaEdit, USABLE};
use crate::{Error, System};

/// The kind.
pub static MARIADB: Tables = Tables {
    name: "table of a MariaDB server",
    form: "mariadb/DATABASE/TABLE",
    known: "conf.index.NAME=COLUMN,COLUMN (each may have DESC after it), conf.ignored.NAME=on or off",
    find,
    open,
};

/// Debian's, in a tree.
const SOCKET: &str = "/run/mysqld/mysqld.sock";
/// How long the lock of the table is waited for. Who comes meanwhile waits too.
const LOCK_S: u32 = 10;
const ONLINE: &str = "ALGORITHM=INPLACE, LOCK=NONE";
/// What the server refuses that with.
const NOT_ONLINE: &str = "ALGORITHM=INPLACE is not supported";
/// The type of an index that the table's definition has and InnoDB has not, or not whole: after a power cut in a
/// statement, for one.
const CORRUPTED: &str = "Corrupted";
/// How long a statement may take to end when it is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

fn find(system: &System, word: &str) -> Result<Option<String>, Error> {
    let (service, rest) = word.split_once('/').unwrap_or((word, ""));
    if rest.is_empty() || !is_here(system, service)? {
        return Ok(None);
    }
    let service = service.strip_suffix(".service").unwrap_or(service);
    expect_parts(word, service, rest)?;
    Ok(Some(format!("{service}/{rest}")))
}

fn open(system: &System, service: &str) -> Opened {
    let (_, rest) = service.split_once('/').unwrap_or_default();
    let (database, table) = parts(rest).unwrap_or_default();
    let words = match system.is_live() {
        true => Vec::new(),
        // Never this machine's own server.
        false => vec![
            "--no-defaults".to_owned(),
            "--user=root".to_owned(),
            format!("--socket={}", system.path(SOCKET)?.display()),
        ],
    };
    Ok(Some(Box::new(MariadbTable {
        words,
        database: database.to_owned(),
        table: table.to_owned(),
    })))
}

/// A table of a database.
struct MariadbTable {
    /// By which the client finds the server.
    words: Vec<String>,
    database: String,
    table: String,
}

impl MariadbTable {
    fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        let printed = server::client(&self.words, sql, QUESTION)?;
        let rows = printed.lines();
        Ok(rows
            .map(|row| row.split('\t').map(str::to_owned).collect())
            .collect())
    }

    fn names(&self, sql: &str) -> Result<String, String> {
        Ok(self.rows(sql)?.concat().join(", "))
    }

    /// A condition on tables of information_schema.
    fn is_meant(&self) -> String {
        let [database, table] = [&self.database, &self.table].map(|name| quoted(name, '\''));
        format!("TABLE_SCHEMA = {database} AND TABLE_NAME = {table}")
    }

    /// Each with its keys.
    fn indexes(&self) -> Result<Vec<(String, Vec<Key>)>, String> {
        // No column has an empty name: what holds one equals no index.
        let rows = self.rows(&format!(
            "SELECT INDEX_NAME, IF(INDEX_TYPE = 'BTREE' AND SUB_PART IS NULL, COLUMN_NAME, ''), \
             COLLATION FROM information_schema.STATISTICS WHERE {} ORDER BY INDEX_NAME, SEQ_IN_INDEX",
            self.is_meant()
        ))?;
        Ok(grouped(rows))
    }

    /// Those of the table itself, each with its columns.
    fn foreign_keys(&self) -> Result<Vec<(String, Vec<Key>)>, String> {
        let rows = self.rows(&format!(
            "SELECT CONSTRAINT_NAME, COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE {} \
             AND REFERENCED_TABLE_NAME IS NOT NULL ORDER BY CONSTRAINT_NAME, ORDINAL_POSITION",
            self.is_meant()
        ))?;
        Ok(grouped(rows))
    }

    fn alter(&self, what: &str) -> String {
        let [database, table] = [&self.database, &self.table].map(|name| quoted(name, '`'));
        format!("ALTER TABLE {database}.{table} {what}")
    }
}

impl Indexed for MariadbTable {
    fn table(&self) -> Result<Table, String> {
        let is_meant = self.is_meant();
        let rows = self.rows(&format!(
            "SELECT TABLE_TYPE, COALESCE(ENGINE, ''), COALESCE(DATA_LENGTH + INDEX_LENGTH, 0), @@datadir, \
             COALESCE(TABLE_ROWS, 0) FROM information_schema.TABLES WHERE {is_meant}"
        ))?;
        let Some(row) = rows.into_iter().next() else {
            let tables = self.names(&format!(
                "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} ORDER BY 1",
                quoted(&self.database, '\'')
            ))?;
            let databases = self.names(
                "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN \
                 ('information_schema', 'performance_schema', 'mysql', 'sys') ORDER BY 1",
            )?;
            let (database, table) = (&self.database, &self.table);
            let none = |names: String| {
                if names.is_empty() {
                    "none".to_owned()
                } else {
                    names
                }
            };
            let (tables, databases) = (none(tables), none(databases));
            return Err(format!(
                "there is no table {table} in {database}; there are: {tables}; databases: {databases}"
            ));
        };
        let [kind, engine, bytes, dir, rows] = row.try_into().map_err(|_| OTHER)?;
        if kind != "BASE TABLE" || engine != "InnoDB" {
            return Err(format!(
                "it is a {kind} of {engine}: an index is made without locking the table in InnoDB only"
            ));
        }
        let columns = self.rows(&format!(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE {is_meant} ORDER BY ORDINAL_POSITION"
        ))?;
        let mut notes = Vec::new();
        if !self.foreign_keys()?.is_empty() {
            notes.push(
                "MariaDB takes away an index that it made by itself for a foreign key as soon as another one \
                 serves that key: the revert makes it again, as an ordinary one"
                    .to_owned(),
            );
        }
        Ok(Table {
            columns: columns.concat(),
            indexes: self.indexes()?,
            notes: [
                vec![format!(
                    "the table stays open to queries and writes, but for a moment at both ends; for that refit \
                     waits {LOCK_S} s, and queries that come meanwhile wait as long. Where the server cannot do \
                     that online, it refuses, and nothing is changed"
                )],
                notes,
            ]
            .concat(),
            bytes: bytes.parse().unwrap_or_default(),
            rows: Some(rows),
            dir: dir.into(),
        })
    }

    fn create(&self, name: &str, keys: &[Key], ignored: bool) -> Result<SchemaEdit, String> {
        let names: Vec<String> = keys.iter().map(|key| quoted(&key.column, '\'')).collect();
        let long = self.names(&format!(
            "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE {} AND COLUMN_NAME IN ({}) AND \
             (DATA_TYPE LIKE '%text' OR DATA_TYPE LIKE '%blob')",
            self.is_meant(),
            names.join(", ")
        ))?;
        if !long.is_empty() {
            return Err(format!(
                "{long} is TEXT or BLOB, of which MariaDB takes a prefix only; refit makes indexes of whole columns"
            ));
        }
        let index = quoted(name, '`');
        let word = if ignored { " IGNORED" } else { "" };
        let add = format!("ADD INDEX {index} ({}){word}", list(keys, '`'));
        // An index that a foreign key needs may be gone by then.
        let foreign = self.foreign_keys()?;
        let mut again = String::new();
        for (name, of) in self.indexes()? {
            let serves = |(_, key): &(String, Vec<Key>)| of.starts_with(key);
            if keys.starts_with(&of) && foreign.iter().any(serves) {
                let (name, of) = (quoted(&name, '`'), list(&of, '`'));
                again += &format!("ADD INDEX IF NOT EXISTS {name} ({of}), ");
            }
        }
        Ok(SchemaEdit {
            index: name.to_owned(),
            apply: self.alter(&format!("{add}, {ONLINE}")),
            inverse: self.alter(&format!("{again}DROP INDEX {index}, {ONLINE}")),
            before: None,
            after: Index {
                definition: format!("BTREE ({})", joined(keys)),
                state: if ignored { IGNORED } else { USABLE }.to_owned(),
            },
        })
    }

    fn ignore(&self, name: &str, ignored: bool) -> Option<[String; 2]> {
        let index = quoted(name, '`');
        let hide = self.alter(&format!("ALTER INDEX {index} IGNORED"));
        let show = self.alter(&format!("ALTER INDEX {index} NOT IGNORED"));
        Some(if ignored { [hide, show] } else { [show, hide] })
    }
}

const OTHER: &str = "the client printed other columns";

impl Database for MariadbTable {
    fn index(&self, name: &str) -> Result<Option<Index>, String> {
        let rows = self.rows(&format!(
            "SELECT CONCAT(IF(INDEX_TYPE = '{CORRUPTED}', 'BTREE', INDEX_TYPE), IF(NON_UNIQUE, '', ' UNIQUE'), ' (', GROUP_CONCAT(CONCAT(COLUMN_NAME, \
             IF(SUB_PART IS NULL, '', CONCAT('(', SUB_PART, ')')), IF(COLLATION = 'D', ' DESC', '')) \
             ORDER BY SEQ_IN_INDEX SEPARATOR ', '), ')'), MAX(IGNORED), INDEX_TYPE FROM information_schema.STATISTICS \
             WHERE {} AND INDEX_NAME = {} GROUP BY INDEX_NAME, INDEX_TYPE, NON_UNIQUE",
            self.is_meant(),
            quoted(name, '\'')
        ))?;
        Ok(rows.into_iter().next().map(|row| Index {
            definition: row[0].clone(),
            state: match row.get(1..).unwrap_or_default() {
                [_, kind] if kind == CORRUPTED => INVALID,
                [ignored, _] if ignored == "YES" => IGNORED,
                _ => USABLE,
            }
            .to_owned(),
        }))
    }

    fn moved(&self, edit: &SchemaEdit) -> Result<Option<Index>, String> {
        let [database, table, index] =
            [&self.database, &self.table, &edit.index].map(|name| quoted(name, '\''));
        let rows = self.rows(&format!(
            "SELECT DISTINCT TABLE_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = {database} \
             AND INDEX_NAME = {index} AND NOT EXISTS (SELECT 1 FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = {database} AND TABLE_NAME = {table}) ORDER BY 1"
        ))?;
        for table in rows.concat() {
            let other = MariadbTable {
                words: self.words.clone(),
                database: self.database.clone(),
                table: table.clone(),
            };
            if let Some(index) = other.index(&edit.index)?
                && index.definition == edit.after.definition
            {
                return Ok(Some(Index {
                    definition: format!("{} of the table {table}", index.definition),
                    ..index
                }));
            }
        }
        Ok(None)
    }

    fn run(&self, sql: &str) -> Result<(), String> {
        let limits = format!("SET SESSION lock_wait_timeout = {LOCK_S}, max_statement_time = 0");
        let words = [&*self.words, &[format!("--init-command={limits}")]].concat();
        let run = server::client(&words, sql, STATEMENT);
        run.map(|_| ()).map_err(|error| match error.contains(NOT_ONLINE) && sql.contains(" DROP INDEX ") {
            true => format!(
                "{error}\n  the server cannot drop it online; while writes wait, by a copy of the table: {}\n  \
                 then revert again",
                sql.replace(ONLINE, "ALGORITHM=COPY")
            ),
            false => error,
        })
    }

    /// The server does not notice that its client is gone.
    fn end_leftovers(&self, edits: &[SchemaEdit]) -> Result<(), String> {
        let all = edits.iter().flat_map(|edit| [&edit.apply, &edit.inverse]);
        let all: Vec<String> = all.map(|sql| quoted(sql, '\'')).collect();
        let sql = format!(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO IN ({})",
            all.join(", ")
        );
        let began = Instant::now();
        loop {
            let ids = self.rows(&sql)?.concat();
            if ids.is_empty() {
                return Ok(());
            }
            if began.elapsed() > ENDS_WITHIN {
                return Err(format!(
                    "SHOW PROCESSLIST: statement {} does not end",
                    ids.join(", ")
                ));
            }
            for id in ids {
                // It may have ended meanwhile.
                let _ = self.rows(&format!("KILL {id}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
