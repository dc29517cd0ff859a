//! PostgreSQL: candidates are columns that its plans filter, join and sort by, and of which its
//! planner uses a hypothetical index (hypopg); and indexes that no plan uses.

use std::path::Path;
use std::process::Command;

use crate::Made;
use crate::address::{Address, postgresql};
use crate::candidate::Candidate;
use crate::copy::{PostgresqlFrom, limited};
use crate::error::IndexError;
use crate::instance::Instance;
use crate::queries::{Query, Workload};
use crate::recipe_text::{Parts, Server, made};
use refit_servers::sql::Dialect;

mod catalog;
mod plan;
mod screen;
mod source;
mod statistics;

const SERVER: Server = Server {
    name: "PostgreSQL",
    packages: &["postgresql"],
    commands: &["psql"],
    files: &["/usr/lib/postgresql/*/bin/postgres"],
    scripts: &[
        ("check.sh", include_str!("../scripts/postgresql/check.sh")),
        ("index.sh", include_str!("../scripts/postgresql/index.sh")),
        ("load.sh", include_str!("../scripts/postgresql/load.sh")),
        ("reset.sh", include_str!("../scripts/postgresql/reset.sh")),
        (
            "restore.sh",
            include_str!("../scripts/postgresql/restore.sh"),
        ),
        ("server.sh", include_str!("../scripts/postgresql/server.sh")),
        ("setup.sh", include_str!("../scripts/postgresql/setup.sh")),
        ("start.sh", include_str!("../scripts/postgresql/start.sh")),
        ("table.sh", include_str!("../scripts/postgresql/table.sh")),
    ],
    service: "user = \"postgres\"\nkeep = true\nsetup = \"sh $REFIT_RECIPE/setup.sh\"\n\
              start = \"exec sh $REFIT_RECIPE/start.sh\"\n\
              ready = { log = \"ready to accept connections\", file = \"server.log\" }\n",
};

/// The recipe of a PostgreSQL database.
///
/// # Errors
/// [`IndexError`].
pub fn make(
    from: &Path,
    how: PostgresqlFrom,
    queries: Option<&Path>,
    name: &str,
) -> Result<Made, IndexError> {
    let typed = from.display().to_string();
    let address = match how {
        PostgresqlFrom::Server => postgresql(&typed)?,
        PostgresqlFrom::Dump => Address {
            shown: typed,
            password: None,
        },
    };
    let typed = address.shown.clone();
    let (file, statements) = match (queries, how) {
        (Some(file), _) => (file, None),
        (None, PostgresqlFrom::Server) => (
            Path::new("pg_stat_statements"),
            Some(source::statements(&address)?),
        ),
        (None, PostgresqlFrom::Dump) => return Err(IndexError::NoQueries { from: typed }),
    };
    let workload = match statements {
        Some(_) => Workload::default(),
        None => Workload::read(file, Dialect::Postgresql)?,
    };
    let dump = match how {
        PostgresqlFrom::Server => source::dump(&address)?,
        PostgresqlFrom::Dump => limited(Command::new("cat").arg(from), "cat", &typed)?,
    };
    let mut instance = Instance::new(name, &SERVER)?;
    instance.put("data.pgdump", &dump)?;
    instance.start()?;
    screen::expect_hypopg(&instance)?;
    let workload = match statements {
        None => workload,
        Some(statements) => {
            let filled = statistics::filled(&instance, &statements)?;
            let mut workload = Workload::parse(&filled.text, Dialect::Postgresql);
            workload.left_out.extend(filled.left_out);
            workload.or_none(file)?
        }
    };
    let (workload, seconds) = run_once(&instance, workload)?;
    let workload = workload.or_none(file)?;
    let tables = catalog::tables(&instance)?;
    let screened = screen::screen(&instance, &workload, &tables)?;
    let mut candidates = screened.proposed;
    candidates.extend(catalog::unused(&instance, &screened.used)?);
    drop(instance);
    recipe(name, &typed, dump, &workload, seconds, &candidates)
}

fn recipe(
    name: &str,
    typed: &str,
    dump: Vec<u8>,
    workload: &Workload,
    seconds: f64,
    candidates: &[Candidate],
) -> Result<Made, IndexError> {
    let files = vec![
        ("data.pgdump".to_owned(), dump),
        ("queries.sql".to_owned(), timed(workload).into_bytes()),
        ("plans.sql".to_owned(), plans(workload).into_bytes()),
    ];
    let parts = Parts {
        name,
        typed,
        server: &SERVER,
        load: "warmup = \"sh $REFIT_RECIPE/reset.sh\"\ncommand = \"sh $REFIT_RECIPE/load.sh\"\n",
        table: "sh $REFIT_RECIPE/table.sh",
        size: "all tables and their indexes (pg_total_relation_size)",
        seconds,
        workload,
        candidates,
    };
    made(&parts, files)
}

/// queries.sql: what load.sh runs.
fn timed(workload: &Workload) -> String {
    let queries = workload.queries.iter().map(|query| {
        let (group, text) = (query.group, &query.text);
        let run = format!("\\echo q{group}\n{text}\n;\n\\echo rows :ROW_COUNT\n");
        match query.writes {
            true => format!("BEGIN;\n{run}ROLLBACK;\n"),
            false => run,
        }
    });
    queries.collect()
}

/// plans.sql: what table.sh asks.
fn plans(workload: &Workload) -> String {
    let plan = |(group, query): (usize, &Query)| {
        let text = &query.text;
        format!("\\echo plan of q{group}\nEXPLAIN (COSTS off)\n{text}\n;\n")
    };
    workload.firsts().map(plan).collect()
}

/// Those that can be run, and the seconds of all of them.
fn run_once(instance: &Instance, workload: Workload) -> Result<(Workload, f64), IndexError> {
    let tries = workload.queries.iter().map(|query| {
        let text = &query.text;
        format!(
            "BEGIN;\n\\echo try\n{text}\n;\n\\echo error :ERROR :LAST_ERROR_MESSAGE\nROLLBACK;\n"
        )
    });
    let script = "\\o /dev/null\n\\timing on\n".to_owned() + &tries.collect::<String>();
    let printed = psql(instance, &script, "a run of the queries on the copy")?;
    let (mut failed, mut seconds, mut number) = (Vec::new(), 0.0, 0);
    let mut lines = printed.lines();
    while let Some(line) = lines.next() {
        if line != "try" {
            continue;
        }
        for line in lines.by_ref() {
            if let Some(time) = line.strip_prefix("Time: ") {
                let time = time.split(' ').next().and_then(|ms| ms.parse::<f64>().ok());
                seconds += time.unwrap_or_default() / 1000.0;
            } else if let Some(error) = line.strip_prefix("error ") {
                if let Some(error) = error.strip_prefix("true ") {
                    failed.push((number, error.to_owned()));
                }
                break;
            }
        }
        number += 1;
    }
    if number != workload.queries.len() {
        return Err(IndexError::Failed {
            what: "a run of the queries on the copy".to_owned(),
            output: format!("psql ended after {number} statements"),
        });
    }
    Ok((workload.without(&failed), seconds))
}

/// Runs a script as the copy's owner; what it printed. Statements may fail.
fn psql(instance: &Instance, script: &str, what: &str) -> Result<String, IndexError> {
    instance.put("script.sql", script.as_bytes())?;
    let command =
        ". \"$REFIT_RECIPE/server.sh\" && psql -XqAt -U copy -f \"$REFIT_RECIPE/script.sql\"";
    instance.run(command, what)
}

/// The rows that a query of the catalogs gives, as JSON.
fn rows<T: serde::de::DeserializeOwned>(
    instance: &Instance,
    query: &str,
) -> Result<Vec<T>, IndexError> {
    let script = format!("SELECT coalesce(json_agg(r), '[]') FROM ({query}) r;\n");
    let printed = psql(instance, &script, "a look into the catalogs of the copy")?;
    serde_json::from_str(&printed).map_err(|error| IndexError::Failed {
        what: "a look into the catalogs of the copy".to_owned(),
        output: error.to_string(),
    })
}
