//! Tables and indexes of the copy.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::rows;
use crate::candidate::{Candidate, Unused, dropped};
use crate::error::IndexError;
use crate::instance::Instance;

/// A table.
#[derive(Deserialize)]
pub struct Table {
    pub schema: String,
    pub name: String,
    /// As it is named in a statement.
    pub written: String,
    /// Its schema and a dot where a statement has to name it.
    pub prefix: String,
    /// Columns of its indexes, as written; each in the order of the index.
    pub indexes: Vec<Vec<String>>,
}

/// All tables that rows are read from.
pub fn tables(instance: &Instance) -> Result<Vec<Table>, IndexError> {
    rows(
        instance,
        "SELECT n.nspname AS schema, c.relname AS name, c.oid::regclass::text AS written,
            CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE quote_ident(n.nspname) || '.' END AS prefix,
            (SELECT coalesce(json_agg(columns), '[]') FROM (
                SELECT (SELECT json_agg(pg_get_indexdef(i.indexrelid, k, true) ORDER BY k)
                    FROM generate_series(1, i.indnkeyatts::int) k) AS columns
                FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid JOIN pg_am a ON a.oid = ic.relam
                WHERE i.indrelid = c.oid AND i.indpred IS NULL AND a.amname = 'btree') x) AS indexes
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')",
    )
}

/// All names that an index could get in the way of.
pub fn names(instance: &Instance) -> Result<BTreeSet<String>, IndexError> {
    #[derive(Deserialize)]
    struct Name {
        name: String,
    }
    let all: Vec<Name> = rows(instance, "SELECT relname AS name FROM pg_class")?;
    Ok(all.into_iter().map(|row| row.name).collect())
}

/// Indexes that no plan uses, that keep nothing unique, that begin with no foreign key, and by which
/// neither rows are ordered nor replicas find them.
pub fn unused(instance: &Instance, used: &BTreeSet<String>) -> Result<Vec<Candidate>, IndexError> {
    #[derive(Deserialize)]
    struct Known {
        name: String,
        written: String,
        table: String,
        sql: String,
    }
    let known: Vec<Known> = rows(
        instance,
        "SELECT c.relname AS name, c.oid::regclass::text AS written, t.relname AS table, pg_get_indexdef(c.oid) AS sql
        FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
            JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind = 'i' AND NOT c.relispartition AND n.nspname NOT IN ('pg_catalog', 'information_schema')
            AND n.nspname !~ '^pg_toast' AND NOT (i.indisunique OR i.indisexclusion OR i.indisclustered OR i.indisreplident)
            AND NOT EXISTS (SELECT 1 FROM pg_constraint f
                WHERE f.contype = 'f' AND f.conrelid = i.indrelid AND i.indkey[0] = ANY (f.conkey))
        ORDER BY 1, 2",
    )?;
    let unused = known
        .into_iter()
        .filter(|index| !used.contains(&index.name))
        .map(|index| Unused {
            apply: format!("DROP INDEX {};", index.written),
            inverse: format!("{};", index.sql),
            name: index.name,
            table: index.table,
        });
    Ok(dropped(unused))
}
