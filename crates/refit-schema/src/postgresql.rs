//! PostgreSQL: what can be one transaction is one, and no statement waits long for a lock.

mod columns;
mod names;
mod parts;
mod read;
mod text;
mod views;
mod walk;
mod way;

use std::time::Duration;

use crate::{Catalog, Client, Kind, Mode, SchemaError, Server, Step, Way};

/// The server.
pub static POSTGRESQL: Postgresql = Postgresql;

/// See [`POSTGRESQL`].
#[derive(Debug)]
pub struct Postgresql;

/// Who waits for a lock makes all wait who come later: a short wait, and many tries.
const LOCK: &str = "200ms";
/// What runs beside readers and writers waits for older transactions.
const LOCK_ALONE: &str = "10min";
const TRIES: u32 = 120;
const PAUSE: Duration = Duration::from_millis(500);

/// Functions are made before the tables that their bodies name.
const BEGIN: &str =
    "SET check_function_bodies = off;\nSET search_path = '';\nSET client_min_messages = warning;\n";

/// The role that owns the tables, or else the database; whether it owns all, and may make more.
const OWNER: &str = "WITH spaces AS (SELECT n.oid FROM pg_catalog.pg_namespace n WHERE n.nspname !~ '^pg_' AND n.nspname <> \
    'information_schema'), members AS (SELECT classid, objid FROM pg_catalog.pg_depend WHERE deptype = 'e'), owned AS (SELECT \
    c.relowner AS of FROM pg_catalog.pg_class c JOIN spaces s ON s.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S') \
    AND ('pg_catalog.pg_class'::regclass, c.oid) NOT IN (SELECT * FROM members) UNION ALL SELECT t.typowner FROM pg_catalog.pg_type \
    t JOIN spaces s ON s.oid = t.typnamespace WHERE ('pg_catalog.pg_type'::regclass, t.oid) NOT IN (SELECT * FROM members) UNION \
    ALL SELECT p.proowner FROM pg_catalog.pg_proc p JOIN spaces s ON s.oid = p.pronamespace WHERE ('pg_catalog.pg_proc'::regclass, \
    p.oid) NOT IN (SELECT * FROM members)), best AS (SELECT coalesce((SELECT of FROM owned GROUP BY of ORDER BY \
    pg_catalog.count(*) DESC, of LIMIT 1), (SELECT datdba FROM pg_catalog.pg_database WHERE datname = \
    pg_catalog.current_database())) AS of) SELECT pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(b.of)), NOT EXISTS (SELECT \
    FROM owned o WHERE o.of <> b.of) AND NOT EXISTS (SELECT FROM spaces s WHERE NOT pg_catalog.has_schema_privilege(b.of, s.oid, \
    'CREATE')) AND pg_catalog.has_database_privilege(b.of, pg_catalog.current_database(), 'CREATE'), \
    pg_catalog.pg_get_userbyid(b.of) = current_user FROM best b";

impl Postgresql {
    /// The role that owns the tables of a database, in quotes where it needs them.
    ///
    /// # Errors
    /// What the database reports.
    pub fn owner(&self, client: &dyn Client) -> Result<String, String> {
        let row = client.rows(OWNER, 3)?.concat();
        row.into_iter().next().ok_or_else(|| "no owner".to_owned())
    }
}

impl Server for Postgresql {
    fn read(&self, client: &dyn Client) -> Result<Catalog, String> {
        read::read(client)
    }

    fn way(&self, from: &Catalog, to: &Catalog) -> Result<Way, SchemaError> {
        way::way(from, to)
    }

    fn prints_otherwise(&self) -> bool {
        true
    }

    fn export(&self, catalog: &Catalog) -> String {
        let mut known = catalog.clone();
        known.0.retain(|key, _| key.kind != Kind::Other);
        // From nothing there is always a way.
        let way = way::way(&Catalog::default(), &known).unwrap_or_default();
        let (spaces, steps): (Vec<&Step>, Vec<&Step>) = way
            .steps
            .iter()
            .partition(|step| step.sql.starts_with("CREATE SCHEMA "));
        let ended = |steps: Vec<&Step>| -> String {
            steps
                .iter()
                .map(|step| format!("{};\n", step.sql))
                .collect()
        };
        let mut text = format!("SET check_function_bodies = off;\n{}", ended(spaces));
        for (key, object) in catalog.of_kind(Kind::Other) {
            text += &match &*object.text {
                "" => {
                    format!("-- refit knows this by its name only, and has not written it: {key}\n")
                }
                sql => format!("{sql};\n"),
            };
        }
        text + &ended(steps)
    }

    fn go(&self, client: &dyn Client, way: &Way) -> Result<(), String> {
        let owner = client.rows(OWNER, 3)?.concat();
        let [role, can_all, is_own] =
            <[String; 3]>::try_from(owner).map_err(|_| "other columns".to_owned())?;
        let (can_all, is_own) = (can_all == "t", is_own == "t");
        let as_role = match can_all && !is_own {
            true => format!("SET ROLE {role};\n"),
            false => String::new(),
        };
        let mut owners: String = match can_all || is_own {
            true => String::new(),
            false => {
                let made = way.made.iter();
                made.map(|what| format!("ALTER {what} OWNER TO {role};\n"))
                    .collect()
            }
        };
        for group in way
            .steps
            .chunk_by(|one, next| (one.mode, next.mode) == (Mode::Together, Mode::Together))
        {
            if let [
                Step {
                    sql,
                    mode: Mode::Alone,
                },
            ] = group
            {
                let locks = format!("SET lock_timeout = '{LOCK_ALONE}';\n");
                client.script(&format!("{BEGIN}{locks}{as_role}{sql};\n"))?;
                continue;
            }
            let steps: String = group
                .iter()
                .map(|step| format!("{};\n", step.sql))
                .collect();
            let owned = std::mem::take(&mut owners);
            let sql = format!(
                "{BEGIN}SET lock_timeout = '{LOCK}';\n{as_role}BEGIN;\n{steps}{owned}COMMIT;\n"
            );
            for rest in (0..TRIES).rev() {
                match client.script(&sql) {
                    Err(error) if rest > 0 && error.contains("lock timeout") => {
                        std::thread::sleep(PAUSE)
                    }
                    done => {
                        done?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}
