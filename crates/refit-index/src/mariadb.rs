//! MariaDB: candidates are columns that its statements filter, join and sort by. It has no hypothetical indexes, so each
//! one is made in the copy, and is proposed where the server then uses it and reads fewer rows.

use std::path::Path;

use crate::Made;
use crate::address::mariadb;
use crate::candidate::Candidate;
use crate::copy::{MariadbFrom, packed};
use crate::error::IndexError;
use crate::instance::Instance;
use crate::queries::{Query, Workload};
use crate::recipe_text::{Parts, Server, made};
use refit_servers::sql::Dialect;

mod catalog;
mod rows_read;
mod screen;
mod source;
mod statement;

const SERVER: Server = Server {
    name: "MariaDB",
    packages: &["mariadb-server", "mariadb-client"],
    commands: &["mariadbd", "mariadb-install-db", "mariadb", "mariadb-admin"],
    files: &[],
    scripts: &[
        ("check.sh", include_str!("../scripts/mariadb/check.sh")),
        ("index.sh", include_str!("../scripts/mariadb/index.sh")),
        ("load.sh", include_str!("../scripts/mariadb/load.sh")),
        ("my.cnf", include_str!("../scripts/mariadb/my.cnf")),
        ("reset.sh", include_str!("../scripts/mariadb/reset.sh")),
        ("restore.sh", include_str!("../scripts/mariadb/restore.sh")),
        ("server.sh", include_str!("../scripts/mariadb/server.sh")),
        ("setup.sh", include_str!("../scripts/mariadb/setup.sh")),
        ("start.sh", include_str!("../scripts/mariadb/start.sh")),
        ("table.sh", include_str!("../scripts/mariadb/table.sh")),
    ],
    service: "user = \"mysql\"\nkeep = true\nsetup = \"sh $REFIT_RECIPE/setup.sh\"\n\
              start = \"exec sh $REFIT_RECIPE/start.sh\"\n\
              ready = { log = \"ready for connections\", file = \"server.log\" }\n",
};

/// The recipe of a MariaDB database.
///
/// # Errors
/// [`IndexError`].
pub fn make(
    from: &Path,
    how: MariadbFrom,
    queries: Option<&Path>,
    name: &str,
) -> Result<Made, IndexError> {
    let typed = from.display().to_string();
    let (typed, database, dump, statements) = match how {
        MariadbFrom::Server => {
            let (address, server) = mariadb(&typed)?;
            let statements = match queries {
                Some(_) => None,
                None => Some(source::statements(&address, &server)?),
            };
            let dump = source::dump(&address, &server)?;
            (address.shown, server.database, dump, statements)
        }
        MariadbFrom::Dump if queries.is_none() => {
            return Err(IndexError::NoQueries { from: typed });
        }
        MariadbFrom::Dump => (typed, source::name_in(from)?, packed(from, from)?, None),
    };
    let file = queries.unwrap_or(Path::new("performance_schema"));
    let workload = match statements {
        None => Workload::read(file, Dialect::Mariadb)?,
        Some(text) => Workload::parse(&text, Dialect::Mariadb).or_none(file)?,
    };
    let mut instance = Instance::new(name, &SERVER)?;
    instance.put("data.sql.gz", &dump)?;
    instance.put("database", format!("{database}\n").as_bytes())?;
    instance.start()?;
    let (workload, seconds) = run_once(&instance, workload)?;
    let workload = workload.or_none(file)?;
    let catalog = catalog::read(&instance)?;
    let screened = screen::screen(&instance, &workload, &catalog, &database)?;
    let mut candidates = screened.proposed;
    candidates.extend(catalog.unused(&screened.used));
    drop(instance);
    let files = vec![
        ("data.sql.gz".to_owned(), dump),
        ("database".to_owned(), format!("{database}\n").into_bytes()),
        ("queries.sql".to_owned(), timed(&workload).into_bytes()),
        ("plans.sql".to_owned(), plans(&workload).into_bytes()),
    ];
    recipe(name, &typed, files, &workload, seconds, &candidates)
}

fn recipe(
    name: &str,
    typed: &str,
    files: Vec<(String, Vec<u8>)>,
    workload: &Workload,
    seconds: f64,
    candidates: &[Candidate],
) -> Result<Made, IndexError> {
    let parts = Parts {
        name,
        typed,
        server: &SERVER,
        load: "warmup = \"sh $REFIT_RECIPE/reset.sh\"\ncommand = \"sh $REFIT_RECIPE/load.sh\"\n",
        table: "sh $REFIT_RECIPE/table.sh",
        size: "all tables and their indexes (innodb_index_stats)",
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
        let (rows, begin, end) = match query.writes {
            true => ("ROW_COUNT()", "BEGIN;\n", "ROLLBACK;\n"),
            false => ("FOUND_ROWS()", "", ""),
        };
        format!(
            "{begin}SET @t = SYSDATE(6);\n{text}\n;\n\
             SELECT 'refit:took', @pass, 'q{group}', TIMESTAMPDIFF(MICROSECOND, @t, SYSDATE(6)), {rows};\n{end}"
        )
    });
    queries.collect()
}

/// plans.sql: what table.sh asks.
fn plans(workload: &Workload) -> String {
    let plan = |(group, query): (usize, &Query)| {
        let text = &query.text;
        format!("SELECT 'refit:plan of q{group}';\nEXPLAIN\n{text}\n;\n")
    };
    workload.firsts().map(plan).collect()
}

/// Those that can be run, and the seconds of all of them.
fn run_once(instance: &Instance, workload: Workload) -> Result<(Workload, f64), IndexError> {
    let (mut script, mut lines) = (String::new(), Vec::new());
    for query in &workload.queries {
        script += "BEGIN;\nSET @t = SYSDATE(6);\n";
        let first = 1 + script.matches('\n').count();
        script += &query.text;
        lines.push(first..=1 + script.matches('\n').count());
        script +=
            "\n;\nSELECT 'refit:took', TIMESTAMPDIFF(MICROSECOND, @t, SYSDATE(6));\nROLLBACK;\n";
    }
    let what = "a run of the queries on the copy";
    let printed = run(instance, &script, what, "copy --force")?;
    let (mut failed, mut took) = (Vec::new(), Vec::new());
    for line in printed.lines() {
        if let Some(time) = line.strip_prefix("refit:took\t") {
            took.push(time.parse::<f64>().unwrap_or_default() / 1e6);
        } else if let Some((line, error)) = error(line)
            && let Some(at) = lines.iter().position(|lines| lines.contains(&line))
        {
            failed.push((at, error.to_owned()));
        }
    }
    if took.len() != lines.len() {
        return Err(IndexError::Failed {
            what: what.to_owned(),
            output: format!("mariadb ended after {} statements", took.len()),
        });
    }
    Ok((workload.without(&failed), took.iter().sum()))
}

/// `ERROR 1146 (42S02) at line 12: Table 'a.b' doesn't exist`: the line, and what is wrong.
fn error(line: &str) -> Option<(usize, &str)> {
    let (_, rest) = line.strip_prefix("ERROR ")?.split_once(" at line ")?;
    let (line, error) = rest.split_once(": ")?;
    Some((line.parse().ok()?, error))
}

/// Runs a script; its lines that begin with `refit:` and `ERROR`, and those after `refit:all` up to the next `refit:`. What
/// statements read is not kept.
fn run(instance: &Instance, script: &str, what: &str, client: &str) -> Result<String, IndexError> {
    instance.put("script.sql", script.as_bytes())?;
    let command = format!(
        ". \"$REFIT_RECIPE/server.sh\"; {client} <\"$REFIT_RECIPE/script.sql\" 2>errors | \
         awk '/^refit:/ {{ all = /^refit:all/; print; next }} all'; cat errors"
    );
    instance.run(&command, what)
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_error_is_of_a_line() {
        let line = "ERROR 1146 (42S02) at line 12: Table 'shop.x' doesn't exist";
        assert_eq!(
            super::error(line),
            Some((12, "Table 'shop.x' doesn't exist"))
        );
        assert_eq!(super::error("ERROR 2002 (HY000): Can't connect"), None);
    }
}
