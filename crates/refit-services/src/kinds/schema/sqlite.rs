//! A table of an SQLite file: `sqlite:/PATH/TABLE`.

use std::fs;
use std::io::Read;
use std::path::Path;

use rustix::fs::FileType;

use super::{INDEXES, Indexed, Key, Opened, Table, Tables, grouped, list, quoted};
use crate::ask::STATEMENT;
use crate::kinds::sqlite3::{BUSY_MS, Sql, Sqlite3};
use crate::schema::{Database, Index, SchemaEdit};
use crate::{Error, Place, System};

/// The kind.
pub static SQLITE: Tables = Tables {
    name: "table of an SQLite file",
    form: "sqlite:/PATH/TABLE",
    known: INDEXES,
    find,
    open,
};

pub const PREFIX: &str = "sqlite:";
/// How a file begins: <https://www.sqlite.org/fileformat.html#magic_header_string>.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

fn find(system: &System, word: &str) -> Result<Option<String>, Error> {
    let Some(path) = word.strip_prefix(PREFIX) else {
        return Ok(None);
    };
    if system.is_live() && !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    SqliteFile::of(system, path)?;
    Ok(Some(word.to_owned()))
}

fn open(system: &System, service: &str) -> Opened {
    let path = service.strip_prefix(PREFIX).unwrap_or(service);
    let (file, _) = path.rsplit_once('/').unwrap_or_default();
    if system.place(file)?.stat()?.is_none() {
        return Ok(None);
    }
    Ok(Some(Box::new(SqliteFile::of(system, path)?)))
}

/// An SQLite database that is there.
///
/// # Errors
/// [`Error::Link`], [`Error::NoTable`] where it is another file.
pub fn file_of(system: &System, path: &str) -> Result<Option<Sqlite3>, Error> {
    let place = system.place(path)?;
    let Some(stat) = place.stat()? else {
        return Ok(None);
    };
    let file = Sqlite3 {
        path: place.path().to_owned(),
        uid: stat.st_uid,
        gid: stat.st_gid,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => Err(Error::Link { path: file.path }),
        FileType::RegularFile => refuse_other(&place).map(|()| Some(file)),
        _ => Ok(None),
    }
}

/// Refuses what is no database, or has another name by which its journals would not be found.
fn refuse_other(place: &Place) -> Result<(), Error> {
    let mut begin = [0; 16];
    let file = place.open()?;
    let is_read = file.is_some_and(|mut file| file.read_exact(&mut begin).is_ok());
    if !is_read || begin != *MAGIC {
        return Err(Error::NoTable {
            what: place.path().display().to_string(),
            reason: "it is not an SQLite database".to_owned(),
        });
    }
    place.refuse_fixed()?;
    Ok(place.refuse_other_names()?)
}

/// A table of a file.
struct SqliteFile {
    file: Sqlite3,
    table: String,
}

impl SqliteFile {
    /// `path` is the file's, and after a slash the table's name.
    fn of(system: &System, path: &str) -> Result<SqliteFile, Error> {
        let no_table = |reason: String| Error::NoTable {
            what: format!("{PREFIX}{path}"),
            reason,
        };
        let open = |path: &str, table: &str| {
            let file = file_of(system, path)?;
            let table = table.to_owned();
            Ok::<_, Error>(file.map(|file| SqliteFile { file, table }))
        };
        let is_absolute = path.starts_with('/') && !path.contains(char::is_control);
        let (dir, table) = path.rsplit_once('/').unwrap_or_default();
        if let (true, Some(file)) = (is_absolute, open(dir, table)?) {
            return Ok(file);
        }
        if let (true, Some(file)) = (is_absolute, open(path, "")?) {
            let tables = file.tables().map_err(no_table)?;
            let reason = format!("name a table after it: {PREFIX}{path}/TABLE; it has: {tables}");
            return Err(no_table(reason));
        }
        let reason = format!("the file does not exist\n  name file and table: {PREFIX}/PATH/TABLE");
        Err(no_table(reason))
    }

    fn tables(&self) -> Result<String, String> {
        let rows = self.query(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' \
             ESCAPE '@' ORDER BY name",
        )?;
        let names: Vec<&str> = rows.iter().map(|row| &*row[0]).collect();
        Ok(names.join(", "))
    }

    fn query(&self, sql: &str) -> Result<Vec<Vec<String>>, String> {
        self.file.query(sql)
    }
}

impl Indexed for SqliteFile {
    fn table(&self) -> Result<Table, String> {
        let table = quoted(&self.table, '\'');
        let found = self.query(&format!(
            "SELECT sql LIKE 'CREATE VIRTUAL %' FROM sqlite_schema WHERE type = 'table' AND name = {table}"
        ))?;
        match found.first() {
            None => {
                let table = &self.table;
                return Err(format!(
                    "there is no table {table}; there are: {}",
                    self.tables()?
                ));
            }
            Some(row) if row[0] == "1" => {
                return Err("a virtual table has no indexes of SQLite's".to_owned());
            }
            Some(_) => {}
        }
        // table_info leaves out generated columns (2 and 3); 1 is hidden in a virtual table.
        let columns = self.query(&format!(
            "SELECT name FROM pragma_table_xinfo({table}) WHERE hidden <> 1"
        ))?;
        // Those that collate otherwise or leave rows out do not replace a plain one.
        let rows = self.query(&format!(
            "SELECT l.name, i.name, iif(i.desc, 'D', '') FROM pragma_index_list({table}) l, pragma_index_xinfo(l.name) i \
             WHERE i.key AND NOT l.partial AND NOT EXISTS (SELECT 1 FROM pragma_index_xinfo(l.name) o \
             WHERE o.key AND (o.coll <> 'BINARY' OR o.cid < 0)) ORDER BY l.seq, i.seqno"
        ))?;
        let bytes = fs::metadata(&self.file.path).map_or(0, |meta| meta.len());
        let dir = self.file.path.parent().unwrap_or(Path::new("/"));
        let mode = self.query("PRAGMA journal_mode")?;
        let readers = match mode.first().is_some_and(|row| row[0] == "wal") {
            true => "readers go on (WAL)",
            false => "readers wait while it is written to the file",
        };
        Ok(Table {
            columns: columns.into_iter().flatten().collect(),
            indexes: grouped(rows),
            notes: vec![
                format!(
                    "CREATE INDEX has the file's one lock for writers until it ends: others wait, and get \
                     `database is locked` after their own limit; {readers}. refit waits {} s for the lock",
                    BUSY_MS / 1000
                ),
                "a revert leaves the pages to the file, which does not get smaller without VACUUM; \
                 without ANALYZE SQLite guesses how many rows a value has"
                    .to_owned(),
            ],
            bytes,
            rows: None,
            dir: dir.to_owned(),
        })
    }

    fn create(&self, name: &str, keys: &[Key], _: bool) -> Result<SchemaEdit, String> {
        let (index, table) = (quoted(name, '"'), quoted(&self.table, '"'));
        let apply = format!("CREATE INDEX {index} ON {table} ({})", list(keys, '"'));
        Ok(SchemaEdit {
            index: name.to_owned(),
            inverse: format!("DROP INDEX {index}"),
            before: None,
            after: Index::usable(apply.clone()),
            apply,
        })
    }
}

impl Database for SqliteFile {
    /// sqlite_schema has the statement, and the planner is asked whether it can use it.
    fn index(&self, name: &str) -> Result<Option<Index>, String> {
        let rows = self.query(&format!(
            "SELECT coalesce(sql, 'of a constraint'), tbl_name, (SELECT name FROM pragma_index_info(s.name) \
             LIMIT 1) FROM sqlite_schema s WHERE type = 'index' AND name = {} COLLATE NOCASE",
            quoted(name, '\'')
        ))?;
        let Some(row) = rows.into_iter().next() else {
            return Ok(None);
        };
        let [definition, table, first] = row.try_into().map_err(|_| "other columns".to_owned())?;
        let asked = self.query(&format!(
            "EXPLAIN QUERY PLAN SELECT * FROM {} INDEXED BY {} WHERE {} = 0",
            quoted(&table, '"'),
            quoted(name, '"'),
            quoted(&first, '"')
        ));
        Ok(Some(match asked {
            Ok(_) => Index::usable(definition),
            Err(state) => Index { definition, state },
        }))
    }

    /// EXTRA syncs the directory after the journal is removed, which ends the transaction: a power cut
    /// that brought the journal back would take back what was answered. Not by -cmd: after one with SQL the client of
    /// SQLite 3.53 runs no other statement, and ends with 0.
    fn run(&self, sql: &str) -> Result<(), String> {
        let sql = format!("PRAGMA synchronous = EXTRA; {sql}");
        self.file.run(&[], &Sql::Word(&sql), STATEMENT).map(|_| ())
    }

    /// There is no server.
    fn end_leftovers(&self, _: &[SchemaEdit]) -> Result<(), String> {
        Ok(())
    }
}
