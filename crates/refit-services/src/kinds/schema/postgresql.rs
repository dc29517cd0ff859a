//! A table of a PostgreSQL cluster: `postgresql/DATABASE/TABLE`.
//!
//! CREATE INDEX CONCURRENTLY is no transaction: what fails leaves an INVALID index, which no query
//! uses and every write maintains. It is dropped.

use std::time::{Duration, Instant};

use super::{
    INDEXES, Indexed, Key, Opened, Table, Tables, expect_parts, grouped, list, parts, quoted,
};
use crate::ask::STATEMENT;
use crate::kind::Kind;
use crate::kinds::postgresql::Postgresql;
use crate::kinds::postgresql::cluster::{Cluster, Server};
use crate::schema::{Database, INVALID, Index, SchemaEdit, USABLE};
use crate::{Error, System};

/// The kind.
pub static POSTGRESQL: Tables = Tables {
    name: "table of a PostgreSQL cluster",
    form: "postgresql[@VERSION-CLUSTER]/DATABASE/TABLE",
    known: INDEXES,
    find,
    open,
};

/// The name under which the statements are seen in `pg_stat_activity`.
pub const NAME: &str = "refit apply";
/// How long older transactions of others are waited for, each of them.
const LOCK_MIN: u32 = 10;
/// How long a statement may take to end when it is told to.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

fn find(system: &System, word: &str) -> Result<Option<String>, Error> {
    let (cluster, rest) = word.split_once('/').unwrap_or((word, ""));
    let service = match rest {
        "" => None,
        _ => Postgresql.find(system, cluster)?,
    };
    let Some(service) = service else {
        return Ok(None);
    };
    expect_parts(word, cluster, rest)?;
    let cluster = service.strip_suffix(".service").unwrap_or(&service);
    Ok(Some(format!("{cluster}/{rest}")))
}

fn open(system: &System, service: &str) -> Opened {
    let (cluster, rest) = service.split_once('/').unwrap_or_default();
    let (database, table) = parts(rest).unwrap_or_default();
    let server = Cluster::of(system, &format!("{cluster}.service"))?.server(system)?;
    Ok(Some(Box::new(PgTable {
        server,
        database: database.to_owned(),
        table: table.to_owned(),
    })))
}

/// A table of a database.
struct PgTable {
    server: Server,
    database: String,
    /// As it was typed, perhaps with its schema.
    table: String,
}

/// A table that is there.
struct Found {
    schema: String,
    name: String,
    kind: String,
    bytes: u64,
    rows: String,
    /// Whether it can be changed: not on a standby.
    is_primary: bool,
}

impl PgTable {
    /// A condition on `c` and `n`, pg_class and pg_namespace.
    fn is_meant(&self) -> String {
        match self.table.split_once('.') {
            Some((schema, name)) => format!(
                "n.nspname = {} AND c.relname = {}",
                quoted(schema, '\''),
                quoted(name, '\'')
            ),
            None => format!(
                "c.relname = {} AND pg_catalog.pg_table_is_visible(c.oid)",
                quoted(&self.table, '\'')
            ),
        }
    }

    fn rows(&self, sql: &str, columns: usize) -> Result<Vec<Vec<String>>, String> {
        self.server.rows(&self.database, sql, columns)
    }

    fn found(&self) -> Result<Found, String> {
        let sql = format!(
            "SELECT n.nspname, c.relname, c.relkind, pg_catalog.pg_table_size(c.oid), \
             greatest(c.reltuples, 0)::bigint, pg_catalog.pg_is_in_recovery() \
             FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p', 'm', 'v', 'f') AND {}",
            self.is_meant()
        );
        let rows = self
            .rows(&sql, 6)
            .map_err(|error| self.with_databases(error))?;
        let Some(row) = rows.into_iter().next() else {
            return Err(format!(
                "there is no table {}; there are: {}",
                self.table,
                self.tables()?
            ));
        };
        let [schema, name, kind, bytes, rows, standby] = row.try_into().map_err(|_| OTHER)?;
        Ok(Found {
            schema,
            name,
            kind,
            bytes: bytes.parse().unwrap_or_default(),
            rows,
            is_primary: standby == "f",
        })
    }

    fn tables(&self) -> Result<String, String> {
        let rows = self.rows(
            "SELECT schemaname || '.' || tablename FROM pg_catalog.pg_tables \
             WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
            1,
        )?;
        Ok(rows.concat().join(", "))
    }

    /// What psql reported; where the database does not exist, with those that do.
    fn with_databases(&self, error: String) -> String {
        let sql = "SELECT datname FROM pg_catalog.pg_database WHERE datallowconn ORDER BY 1";
        match self.server.rows("postgres", sql, 1) {
            Ok(rows) if is_gone(&error) => {
                format!("{error}; there are: {}", rows.concat().join(", "))
            }
            _ => error,
        }
    }
}

const OTHER: &str = "psql printed other columns";

/// Whether psql reports that the database does not exist.
fn is_gone(error: &str) -> bool {
    error.contains("database") && error.contains("does not exist")
}

impl Indexed for PgTable {
    fn table(&self) -> Result<Table, String> {
        let found = self.found()?;
        if !["r", "m"].contains(&&*found.kind) {
            let name = &found.name;
            return Err(format!(
                "{name} is partitioned, a view or foreign: CREATE INDEX CONCURRENTLY takes none of these"
            ));
        }
        if !found.is_primary {
            return Err("the cluster is a standby: apply it on its primary".to_owned());
        }
        let (schema, name) = (quoted(&found.schema, '\''), quoted(&found.name, '\''));
        let from = format!(
            "pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             AND n.nspname = {schema} AND c.relname = {name} \
             JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid"
        );
        let columns = self.rows(
            &format!(
                "SELECT a.attname FROM {from} WHERE a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
            ),
            1,
        )?;
        // Those whose definition names their columns, with DESC or without, and nothing else.
        let is_descending = "i.indoption[k.place - 1] & 1 = 1"; // pg_index.h, INDOPTION_DESC
        let rows = self.rows(
            &format!(
                "SELECT x.relname, a.attname, CASE WHEN {is_descending} THEN 'D' END FROM pg_catalog.pg_index i \
                 JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid \
                 JOIN pg_catalog.pg_class c ON c.oid = i.indrelid \
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
                 CROSS JOIN pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY k (number, place) \
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number \
                 WHERE n.nspname = {schema} AND c.relname = {name} AND i.indisvalid \
                 AND pg_catalog.split_part(pg_catalog.pg_get_indexdef(x.oid), ' USING ', 2) = 'btree (' || \
                 (SELECT pg_catalog.string_agg(pg_catalog.quote_ident(a.attname) || \
                 CASE WHEN {is_descending} THEN ' DESC' ELSE '' END, ', ' ORDER BY k.place) \
                 FROM pg_catalog.unnest(i.indkey::int2[]) WITH ORDINALITY k (number, place) \
                 JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number) || ')' \
                 ORDER BY x.relname, k.place"
            ),
            3,
        )?;
        Ok(Table {
            columns: columns.concat(),
            indexes: grouped(rows),
            notes: vec![format!(
                "CREATE INDEX CONCURRENTLY takes SHARE UPDATE EXCLUSIVE: queries and writes go on; VACUUM, \
                     ALTER TABLE and other builds on the table wait. It reads the table twice, and \
                     waits for the transactions that began before it, {LOCK_MIN} min at most for each"
            )],
            bytes: found.bytes,
            rows: Some(found.rows.to_string()),
            dir: self.server.data().into(),
        })
    }

    fn create(&self, name: &str, keys: &[Key], _: bool) -> Result<SchemaEdit, String> {
        let found = self.found()?;
        let args = [name, &found.schema, &found.name].map(|arg| quoted(arg, '\''));
        let idents = keys.iter().map(|key| {
            let (column, order) = (quoted(&key.column, '\''), key.order());
            format!("pg_catalog.quote_ident({column}) || '{order}'")
        });
        let idents: Vec<String> = idents.collect();
        let rows = self.rows(
            &format!(
                "SELECT pg_catalog.format('CREATE INDEX %I ON %I.%I USING btree (%s)', {}, \
                 pg_catalog.concat_ws(', ', {}))",
                args.join(", "),
                idents.join(", ")
            ),
            1,
        )?;
        let definition = rows.concat().concat();
        let [index, schema, table] = [name, &found.schema, &found.name].map(|n| quoted(n, '"'));
        Ok(SchemaEdit {
            index: name.to_owned(),
            apply: format!(
                "CREATE INDEX CONCURRENTLY {index} ON {schema}.{table} ({})",
                list(keys, '"')
            ),
            inverse: format!("DROP INDEX CONCURRENTLY {schema}.{index}"),
            before: None,
            after: Index::usable(definition),
        })
    }
}

impl Database for PgTable {
    /// The name is of all relations of the table's schema.
    fn index(&self, name: &str) -> Result<Option<Index>, String> {
        let asked = self.rows(
            &format!(
                "SELECT coalesce(pg_catalog.pg_get_indexdef(i.indexrelid), 'a relation that is no index'), \
                 coalesce(i.indisvalid AND i.indisready AND i.indislive, true) \
                 FROM pg_catalog.pg_class x LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = x.oid \
                 WHERE x.relname = {} AND x.relnamespace = (SELECT c.relnamespace FROM pg_catalog.pg_class c \
                 JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE {} LIMIT 1)",
                quoted(name, '\''),
                self.is_meant()
            ),
            2,
        );
        let row = match asked {
            Ok(rows) => rows.into_iter().next(),
            Err(error) if is_gone(&error) => None,
            Err(error) => return Err(error),
        };
        Ok(row.map(|row| Index {
            definition: row[0].clone(),
            state: if row[1] == "t" { USABLE } else { INVALID }.to_owned(),
        }))
    }

    fn moved(&self, edit: &SchemaEdit) -> Result<Option<Index>, String> {
        let keys = |definition: &str| {
            let (_, keys) = definition.split_once(" USING ")?;
            Some(keys.to_owned())
        };
        let asked = self.rows(
            &format!(
                "SELECT pg_catalog.pg_get_indexdef(i.indexrelid) FROM pg_catalog.pg_index i \
                 JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid WHERE x.relname = {} AND NOT EXISTS \
                 (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE {}) \
                 ORDER BY 1",
                quoted(&edit.index, '\''),
                self.is_meant()
            ),
            1,
        );
        let rows = match asked {
            Err(error) if is_gone(&error) => return Ok(None),
            rows => rows?,
        };
        let ours = keys(&edit.after.definition);
        let found = rows.concat().into_iter();
        let mut found = found.filter(|definition| keys(definition) == ours);
        Ok(found.next().map(Index::usable))
    }

    /// The answer is durable whatever the cluster, the database or the role has set.
    fn run(&self, sql: &str) -> Result<(), String> {
        let options = format!(
            "-c statement_timeout=0 -c lock_timeout={LOCK_MIN}min -c synchronous_commit=on"
        );
        let variables = [("PGAPPNAME", NAME), ("PGOPTIONS", &options)];
        let run = self.server.psql(&self.database, sql, &variables, STATEMENT);
        run.map(|_| ())
    }

    /// A backend does not notice that its client is gone.
    fn end_leftovers(&self, _: &[SchemaEdit]) -> Result<(), String> {
        end_leftovers(&self.server)
    }
}

/// Ends the statements that a refit left running in a server.
///
/// # Errors
/// What psql reports.
pub fn end_leftovers(server: &Server) -> Result<(), String> {
    let sql = format!(
        "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity \
             WHERE application_name = '{NAME}'"
    );
    let began = Instant::now();
    while !server.rows("postgres", &sql, 1)?.is_empty() {
        if began.elapsed() > ENDS_WITHIN {
            return Err(format!(
                "a statement of `{NAME}` in pg_stat_activity does not end"
            ));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
