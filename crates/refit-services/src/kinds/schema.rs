//! Indexes of one table: of an SQLite file, of a PostgreSQL cluster or of a MariaDB server.
//!
//! `conf.index.NAME=COLUMN,COLUMN DESC,…` makes one, and in MariaDB `conf.ignored.NAME=on` hides one from queries.

mod mariadb;
mod postgresql;
mod sqlite;

pub use mariadb::MARIADB;
pub use postgresql::{NAME, POSTGRESQL, end_leftovers};
pub use sqlite::{PREFIX, SQLITE, file_of};

use std::path::PathBuf;

use refit_knobs::{Class, Ground, Setting, Settings};

use crate::check::Check;
use crate::kind::{Kind, Step};
use crate::schema::{Database, SchemaEdit, USABLE};
use crate::{Change, Error, Plan, System};

/// A table that was found; `None`: the database is gone.
type Opened = Result<Option<Box<dyn Indexed>>, Error>;

/// A kind: what differs between databases.
pub struct Tables {
    name: &'static str,
    /// As [`Kind::form`].
    form: &'static str,
    /// As [`Kind::known`].
    known: &'static str,
    /// As [`Kind::find`].
    find: fn(&System, &str) -> Result<Option<String>, Error>,
    /// As [`Kind::database`].
    open: fn(&System, &str) -> Opened,
}

/// What a table has.
struct Table {
    /// As the database spells them.
    columns: Vec<String>,
    /// Each with its keys; only those that an index of these keys would equal.
    indexes: Vec<(String, Vec<Key>)>,
    /// On locks and on what a build needs.
    notes: Vec<String>,
    bytes: u64,
    /// About; `None`: nothing tells.
    rows: Option<String>,
    /// Where the index is written.
    dir: PathBuf,
}

/// A column of an index, and the order of its values.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    column: String,
    is_descending: bool,
}

impl Key {
    /// The column between quotes, and its order.
    fn sql(&self, quote: char) -> String {
        quoted(&self.column, quote) + self.order()
    }

    fn order(&self) -> &'static str {
        if self.is_descending { " DESC" } else { "" }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.column, self.order())
    }
}

/// A database whose tables get indexes.
trait Indexed: Database {
    /// The table.
    fn table(&self) -> Result<Table, String>;

    /// An index that is to be made, `ignored` by all queries or not.
    fn create(&self, name: &str, keys: &[Key], ignored: bool) -> Result<SchemaEdit, String>;

    /// How an index that is there is hidden from queries, or shown; `None`: the database cannot.
    fn ignore(&self, _name: &str, _ignored: bool) -> Option<[String; 2]> {
        None
    }
}

impl Kind for Tables {
    fn name(&self) -> &'static str {
        self.name
    }

    fn form(&self) -> &'static str {
        self.form
    }

    fn find(&self, system: &System, word: &str) -> Result<Option<String>, Error> {
        (self.find)(system, word)
    }

    fn class(&self, _: &Setting) -> Class {
        Class::Safe
    }

    fn grounds(&self) -> &'static [Ground] {
        &[Ground::Configuration]
    }

    fn known(&self) -> String {
        self.known.to_owned()
    }

    fn example(&self) -> &'static str {
        "conf.index.NAME=COLUMN"
    }

    fn only_reverted(&self) -> Option<&'static str> {
        Some("an index is in the database: neither a reboot nor a timer takes it away")
    }

    fn is_beside(&self) -> bool {
        true
    }

    fn plan(
        &'static self,
        system: &System,
        service: &str,
        settings: &Settings,
        _: bool,
    ) -> Result<Plan, Error> {
        let database = (self.open)(system, service)?;
        let gone = || Error::NoTable {
            what: service.to_owned(),
            reason: "it is gone".to_owned(),
        };
        let database = database.ok_or_else(gone)?;
        plan(self, service, settings, &*database)
    }

    /// A table is the user's own.
    fn comes_from(&self, _: &System, _: &Change) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    fn gate(&self, _: &Change) -> Result<(), Error> {
        Ok(())
    }

    fn activate(&self, _: &Change, _: Step) -> Result<(), Error> {
        Ok(())
    }

    fn checks(&self, _: &Change) -> Result<Vec<Check>, Error> {
        Ok(Vec::new())
    }

    fn database(&self, system: &System, service: &str) -> Result<Option<Box<dyn Database>>, Error> {
        let opened = (self.open)(system, service)?;
        Ok(opened.map(|database| database as Box<dyn Database>))
    }
}

/// A part of a plan: an index, and what was asked for it.
struct Wanted {
    setting: String,
    columns: Option<String>,
    ignored: Option<String>,
}

/// Every database can have these.
const INDEXES: &str = "conf.index.NAME=COLUMN,COLUMN (each may have DESC after it)";

/// The state of an index that no query uses.
const IGNORED: &str = "IGNORED";

/// What is asked for each index, in the order in which they are named.
fn wanted(
    kind: &Tables,
    service: &str,
    settings: &Settings,
) -> Result<Vec<(String, Wanted)>, Error> {
    let mut all: Vec<(String, Wanted)> = Vec::new();
    for (name, value) in settings.launch().conf {
        let setting = || format!("conf.{name}={value}");
        let (word, index) = name.split_once('.').unwrap_or_default();
        if !["index", "ignored"].contains(&word) {
            return Err(Error::UnknownSetting {
                setting: setting(),
                service: service.to_owned(),
                known: kind.known.to_owned(),
            });
        }
        if let Some(reason) = not_plain(index) {
            return Err(Error::BadConf {
                setting: setting(),
                service: service.to_owned(),
                reason,
            });
        }
        let at = all.iter().position(|(other, _)| other == index);
        let at = at.unwrap_or_else(|| {
            let none = Wanted {
                setting: setting(),
                columns: None,
                ignored: None,
            };
            all.push((index.to_owned(), none));
            all.len() - 1
        });
        match word {
            "index" => all[at].1.columns = Some(value),
            _ => all[at].1.ignored = Some(value),
        }
    }
    Ok(all)
}

/// The plan: nothing of it is specific to a database.
fn plan(
    kind: &Tables,
    service: &str,
    settings: &Settings,
    database: &dyn Indexed,
) -> Result<Plan, Error> {
    let all = wanted(kind, service, settings)?;
    let asked = |output| Error::Command {
        command: service.to_owned(),
        output,
    };
    let mut plan = Plan::new(service, kind.name, settings);
    let mut table = database.table().map_err(asked)?;
    for (index, wanted) in all {
        let bad = |reason: String| Error::BadConf {
            setting: wanted.setting.clone(),
            service: service.to_owned(),
            reason,
        };
        let ignored = match wanted.ignored.as_deref() {
            None => None,
            Some("on") => Some(true),
            Some("off") => Some(false),
            Some(_) => return Err(bad(format!("conf.ignored.{index} is on or off"))),
        };
        let ways = database.ignore(&index, ignored == Some(true));
        if ignored.is_some() && ways.is_none() {
            return Err(bad("only MariaDB can hide an index from queries".to_owned()));
        }
        let now = database.index(&index).map_err(asked)?;
        let edit = match (&wanted.columns, now) {
            (Some(_), Some(now)) => {
                let next = format!("name another one: conf.index.{index}_2=…");
                return Err(bad(format!(
                    "there is an index {index} already: {now}\n  {next}"
                )));
            }
            (Some(typed), None) => {
                let keys = keys(&table, typed).map_err(bad)?;
                let is_equal = |(_, of): &&(String, Vec<Key>)| *of == keys;
                if let Some((equal, _)) = table.indexes.iter().find(is_equal) {
                    let keys = joined(&keys);
                    let reason = format!("index {equal} is of these columns already: ({keys})");
                    return Err(bad(reason));
                }
                let edit = database.create(&index, &keys, ignored == Some(true));
                table.indexes.push((index.clone(), keys));
                edit.map_err(bad)?
            }
            (None, None) => {
                let names: Vec<&str> = table.indexes.iter().map(|(name, _)| &**name).collect();
                let known = names.join(", ");
                return Err(bad(format!(
                    "there is no index {index}; there are: {known}"
                )));
            }
            (None, Some(now)) => {
                let [apply, inverse] = ways.unwrap_or_default();
                let state = if ignored == Some(true) {
                    IGNORED
                } else {
                    USABLE
                };
                if now.state == state {
                    return Err(bad(format!("the index is {state} already")));
                }
                let mut after = now.clone();
                after.state = state.to_owned();
                SchemaEdit {
                    index,
                    apply,
                    inverse,
                    before: Some(now),
                    after,
                }
            }
        };
        plan.change.schema.push(edit);
    }
    plan.change.was_active = true;
    plan.sizes = vec![space(&table)];
    plan.notes = table.notes;
    Ok(plan)
}

/// The shortest limit of all databases: PostgreSQL's NAMEDATALEN − 1.
const LONGEST_NAME: usize = 63;

/// Why a name is none that all databases take.
fn not_plain(name: &str) -> Option<String> {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let reason = match name {
        "" => return Some("name the index: conf.index.NAME=COLUMN".to_owned()),
        long if long.len() > LONGEST_NAME => format!(
            "the name of the index has {} bytes, and PostgreSQL takes {LONGEST_NAME} at most",
            long.len()
        ),
        odd if !odd.chars().all(is_of_name) || odd.starts_with(|c: char| c.is_ascii_digit()) => {
            format!(
                "`{odd}` is not a name of lower case letters, digits and _ that begins with no digit: no other is made without quotes"
            )
        }
        own if own.starts_with("sqlite_") => {
            "names that begin with sqlite_ are SQLite's own".to_owned()
        }
        "primary" => "in MariaDB this is the name of the primary key".to_owned(),
        _ => return None,
    };
    Some(format!(
        "{reason}\n  choose another name: conf.index.NAME=COLUMN"
    ))
}

/// The columns that a value names, as the database spells them, each with its order.
fn keys(table: &Table, value: &str) -> Result<Vec<Key>, String> {
    let mut found: Vec<Key> = Vec::new();
    for typed in value.split(',').map(str::trim) {
        let key = table.key(typed).ok_or_else(|| table.no_key(typed, value))?;
        if found.iter().any(|other| other.column == key.column) {
            return Err(format!("`{}` is named twice", key.column));
        }
        found.push(key);
    }
    Ok(found)
}

impl Table {
    /// A column, or one with `DESC` or `ASC` after it.
    fn key(&self, typed: &str) -> Option<Key> {
        let key = |name: &str, is_descending| {
            let column = self.columns.iter().find(|column| *column == name)?;
            Some(Key {
                column: column.clone(),
                is_descending,
            })
        };
        let with_order = || {
            let (name, order) = typed.rsplit_once(char::is_whitespace)?;
            let is_descending = order.eq_ignore_ascii_case("DESC");
            let is_order = is_descending || order.eq_ignore_ascii_case("ASC");
            is_order.then(|| key(name.trim_end(), is_descending))?
        };
        key(typed, false).or_else(with_order)
    }

    /// Why a part of a value is none.
    fn no_key(&self, typed: &str, value: &str) -> String {
        let known = self.columns.join(", ");
        let is_where = |text: &str| text.to_ascii_lowercase().starts_with("where ");
        let mut rests = value.match_indices(char::is_whitespace);
        if let Some(rest) =
            rests.find_map(|(at, _)| Some(value[at..].trim()).filter(|r| is_where(r)))
        {
            return format!(
                "`{rest}`: refit makes no partial index; make this one by hand, or leave out the condition"
            );
        }
        if typed.contains(|c: char| c.is_whitespace() || c == '(') {
            return format!(
                "`{typed}` is not a column, nor a column and DESC: refit makes no index of an expression, \
                 a prefix, a collation or an operator class; the table has: {known}"
            );
        }
        format!("the table has no column `{typed}`; it has: {known}")
    }
}

/// An amount of data, as a person reads it.
fn amount(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let unit = UNITS.iter().find(|(_, size)| bytes >= *size);
    match unit {
        Some((name, size)) => format!("{} {name}", (bytes + size / 2) / size),
        None => format!("{bytes} bytes"),
    }
}

/// What is free where the index is written, against the table.
fn space(table: &Table) -> String {
    let free = rustix::fs::statvfs(&table.dir).map(|found| found.f_bavail * found.f_frsize);
    let free = free.map_or("unknown".to_owned(), amount);
    let rows = table.rows.as_ref();
    let rows = rows.map_or(String::new(), |rows| format!(" (about {rows} rows)"));
    format!(
        "the table is in {}{rows}, {} holds {free} free: an index takes a part of the table, and the build as \
         much again while it sorts; it reads the whole table, and how long that takes was not measured",
        amount(table.bytes),
        table.dir.display()
    )
}

/// Rows of a name, a column and, where its values are in descending order, `D`: each name with its keys.
fn grouped(rows: Vec<Vec<String>>) -> Vec<(String, Vec<Key>)> {
    let mut groups: Vec<(String, Vec<Key>)> = Vec::new();
    for row in rows {
        let mut row = row.into_iter();
        let mut next = || row.next().unwrap_or_default();
        let name = next();
        let key = Key {
            column: next(),
            is_descending: next() == "D",
        };
        match groups.last_mut() {
            Some((last, keys)) if *last == name => keys.push(key),
            _ => groups.push((name, vec![key])),
        }
    }
    groups
}

/// A quoted name: `quote` twice is one in it.
fn quoted(name: &str, quote: char) -> String {
    let twice = format!("{quote}{quote}");
    format!("{quote}{}{quote}", name.replace(quote, &twice))
}

/// Quoted columns with their orders, and with commas.
fn list(keys: &[Key], quote: char) -> String {
    let keys: Vec<String> = keys.iter().map(|key| key.sql(quote)).collect();
    keys.join(", ")
}

/// The same as a person reads it, and as MariaDB's definitions are composed.
fn joined(keys: &[Key]) -> String {
    let keys: Vec<String> = keys.iter().map(Key::to_string).collect();
    keys.join(", ")
}

/// A service's database and table, after its first slash; `None` where a name is not one that can be
/// put between quotes.
fn parts(rest: &str) -> Option<(&str, &str)> {
    let (database, table) = rest.split_once('/')?;
    let is_name = |name: &str| {
        let has = |c: char| c.is_control() || "'\"`\\/".contains(c);
        !name.is_empty() && !name.contains(has)
    };
    (is_name(database) && is_name(table)).then_some((database, table))
}

/// Refuses a word without them: `service` is its first part, `rest` what follows.
fn expect_parts(word: &str, service: &str, rest: &str) -> Result<(), Error> {
    match parts(rest) {
        Some(_) => Ok(()),
        None => Err(Error::NoTable {
            what: word.to_owned(),
            reason: format!(
                "name database and table: {service}/DATABASE/TABLE\n  \
                 a whole schema, schema=FILE, is taken of an SQLite file and of a PostgreSQL database only"
            ),
        }),
    }
}
