//! `refit recipes`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::{InstancesArgs, SETTINGS, complete};

/// List, show, copy, write and check recipes: services under load, described by folders
///
/// Without a command, list them. `refit compare NAME` measures the variants of one
/// of them; `refit crash NAME` cuts its power, if it has a [promise].
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct RecipesArgs {
    #[command(subcommand)]
    pub verb: Option<RecipesVerb>,
}

#[derive(Subcommand)]
pub enum RecipesVerb {
    /// List the recipes, and what each lacks on this machine
    List,
    Show(RecipeNameArgs),
    Copy(RecipeCopyArgs),
    New(RecipeNewArgs),
    Check(RecipeCheckArgs),
}

/// Print a recipe: question, answer, variants, and every command that it runs
#[derive(Args)]
pub struct RecipeNameArgs {
    /// A name, or a folder (./NAME)
    #[arg(value_name = "RECIPE", add = ArgValueCompleter::new(complete::recipe))]
    pub name: String,
}

/// Write a recipe into a folder of your own, to be changed
#[derive(Args)]
pub struct RecipeCopyArgs {
    /// A name from `refit recipes list`
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete::shipped_recipe))]
    pub name: String,

    /// The new folder; it must not exist yet [default: ./NAME]
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

/// Write a recipe of your own into the folder ./NAME: from a template, or from a service as it is configured
///
/// A template is a shipped recipe under another name, commented, which runs at once and
/// is changed from there: command, an own log that is synced after each line; daemon, a
/// Redis; database, a PostgreSQL; mail, a Postfix.
///
/// --from CONFIGURATION copies it, and moves ports, sockets and directories into a
/// private instance. What could not be moved is named. The load is that of the shipped
/// recipe for this server. The service itself is not touched, its data is not read, and
/// no passwords or keys are copied. --from-unit UNIT finds the configuration by the
/// command line of the unit, and copies that command line's settings too.
///
/// --from DATABASE --queries FILE copies a database, which is only read, and runs the
/// queries on the copy. What is compared are the indexes that the database itself
/// proposes for them, and those that no query uses. For PostgreSQL it needs hypopg;
/// without --queries it takes those of pg_stat_statements, with values from the copy,
/// of MariaDB those of performance_schema. A password belongs in ~/.pgpass or
/// ~/.my.cnf; one of an address is neither shown nor written.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct RecipeNewArgs {
    /// The new folder, in the current directory: lower case, digits and `-`
    #[arg(value_name = "NAME")]
    pub name: String,

    /// What it measures
    #[arg(long, value_name = "KIND", required_unless_present_any = ["from", "from_unit"], conflicts_with_all = ["from", "from_unit"], value_parser = PossibleValuesParser::new(refit_recipe::template_names()))]
    pub template: Option<String>,

    /// A configuration: /etc/redis/redis.conf, /etc/postgresql/15/main, /etc/mysql,
    /// /etc/postfix, or a copy of one; or a database: an SQLite file, what
    /// `sqlite3 FILE .dump` printed, postgresql://HOST/DATABASE, "host=… dbname=…", what
    /// `pg_dump -Fc` printed, mariadb://HOST/DATABASE, or what `mariadb-dump` printed
    #[arg(long, value_name = "PATH")]
    pub from: Option<PathBuf>,

    /// A systemd unit whose configuration is copied: redis-server, postgresql@15-main,
    /// mariadb, postfix
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["from", "queries"])]
    pub from_unit: Option<String>,

    /// Statements of SQL, each ended by `;`, for a database; of MariaDB a slow query log too
    #[arg(long, value_name = "FILE", conflicts_with = "template")]
    pub queries: Option<PathBuf>,
}

/// Run each variant once, briefly, to see whether it works on this machine
///
/// Exit codes: 0; 1 when a variant failed; 2 when something is missing.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct RecipeCheckArgs {
    /// Names, or folders (./NAME); the default is all recipes that refit carries
    #[arg(value_name = "RECIPE", add = ArgValueCompleter::new(complete::recipe))]
    pub names: Vec<String>,

    #[command(flatten)]
    pub instances: InstancesArgs,

    /// Look for allocators in DIR first
    #[arg(long, value_name = "DIR", help_heading = SETTINGS)]
    pub allocator_dir: Option<PathBuf>,
}
