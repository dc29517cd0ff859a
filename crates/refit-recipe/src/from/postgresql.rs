//! PostgreSQL: postgresql.conf and the files that it includes. The last line of a setting counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use refit_servers::postgresql::conf::{Meaning, meaning, quoted};
use refit_servers::postgresql::program;

use super::copy::{COMMAND_LINE, Copy, Line, Tables, copy_of};
use super::{FromError, Kind, Parts};

const TABLES: Tables = Tables {
    moved: "data_directory hba_file ident_file external_pid_file listen_addresses port unix_socket_directories \
            unix_socket_group unix_socket_permissions logging_collector log_destination log_directory log_filename \
            stats_temp_directory lc_messages",
    left_out: &[
        (
            "archive_ restore_command",
            "the archive is that of the real server",
        ),
        (
            "recovery_ primary_ promote_trigger_file",
            "no other server is asked",
        ),
        (
            "synchronous_standby_names",
            "a commit would wait for servers that are not there",
        ),
        (
            "ssl ssl_ krb_ gss_ bonjour bonjour_",
            "nobody comes over a network, and no key is copied",
        ),
        ("syslog_", "the system's log is not written to"),
    ],
};

pub const KIND: Kind = Kind {
    main: main_file,
    make,
};

fn main_file(path: &Path) -> Option<PathBuf> {
    let inside = path.join("postgresql.conf");
    if inside.is_file() {
        return Some(inside);
    }
    (path.is_file() && path.file_name()? == "postgresql.conf").then(|| path.to_owned())
}

fn make(main: &Path, mut copy: Copy) -> Result<Parts, FromError> {
    let text = Copy::main(main)?;
    let mut effective = BTreeMap::new();
    file(main, &text, &mut copy, &mut effective);
    let arguments = copy.command_line();
    let command_line = Path::new(COMMAND_LINE);
    file(command_line, &arguments, &mut copy, &mut effective);
    copy.notes.remarks.push(
        "settings by ALTER SYSTEM, ALTER DATABASE and ALTER ROLE lie with the data, and are not read; pg_hba.conf is not \
         copied: everybody who reaches the socket may come in"
            .to_owned(),
    );
    let mut private = "# What makes the instance private: the last line of a setting counts.\n\
         data_directory = '@DIR@/data'\nhba_file = '@DIR@/data/pg_hba.conf'\n\
         ident_file = '@DIR@/data/pg_ident.conf'\nexternal_pid_file = ''\nlisten_addresses = ''\nport = 5432\n\
         unix_socket_directories = '@DIR@'\nunix_socket_group = ''\nlogging_collector = off\n\
         log_destination = 'stderr'\nlc_messages = 'C'\n"
        .to_owned();
    let level = effective
        .get("log_min_messages")
        .cloned()
        .unwrap_or_default();
    if ["fatal", "panic", "log"].contains(&&*level) {
        let why = "the check reads errors in the log";
        copy.notes
            .moved
            .push(format!("log_min_messages {level}: {why}"));
        private += "log_min_messages = warning\n";
    }
    // /etc/postgresql/15/main/postgresql.conf
    let version = main
        .components()
        .rev()
        .nth(2)
        .and_then(|part| part.as_os_str().to_str());
    let server = version.and_then(|version| program("postgres", Some(version)));
    let mut files = vec![("server.conf", private), ("setup.sh", setup(main))];
    if let Some(directory) = server.as_deref().and_then(Path::parent) {
        files.push((
            "path.sh",
            format!(
                "# The version that the configuration is of.\nPATH={}:$PATH\n\
                 # A socket in the instance's directory is the only way in.\n\
                 export PGHOST=\"$REFIT_DIR\" PGUSER=refit PGDATABASE=postgres\n",
                directory.display()
            ),
        ));
    }
    let delay = effective.get("wal_writer_delay");
    let delay = delay.map_or(Ok(200), |text| milliseconds(text).ok_or(text));
    let delay = delay.map_err(|text| FromError::Unusable {
        path: main.to_owned(),
        problem: format!("invalid wal_writer_delay `{text}`\n  write a time as 200ms"),
    })?;
    Ok(Parts {
        scripts: "postgres-pgbench",
        server: "PostgreSQL",
        files,
        // The manual's bound: three times wal_writer_delay.
        replaced: vec![("600ms", format!("{}ms", 3 * delay))],
        now: [
            "synchronous_commit",
            "commit_delay",
            "commit_siblings",
            "wal_sync_method",
            "fsync",
        ]
        .into_iter()
        .filter_map(|name| Some((name, effective.get(name)?.clone())))
        .collect(),
        replaces_lines: false,
        more: String::new(),
        copy,
    })
}

fn setup(main: &Path) -> String {
    format!(
        "#!/bin/sh\n\
         # A PostgreSQL of its own in $REFIT_DIR with the configuration that was copied, and pgbench's tables.\n\
         set -eu\n\
         . \"$REFIT_RECIPE/path.sh\"\n\
         initdb --no-sync --auth=peer --username=\"$PGUSER\" --encoding=UTF8 --locale=C data >setup.log\n\
         # The server takes the user who runs these scripts, and nobody else.\n\
         echo 'local all all peer map=own' >data/pg_hba.conf\n\
         echo \"own \\\"$(id -un)\\\" $PGUSER\" >data/pg_ident.conf\n\
         sh \"$REFIT_RECIPE/configure.sh\" server.conf\n\
         cat >data/postgresql.conf <<END\n\
         include '$REFIT_DIR{}'\n\
         include '$REFIT_DIR/root{COMMAND_LINE}'\n\
         include '$REFIT_DIR/server.conf'\n\
         END\n\
         exec sh \"$REFIT_RECIPE/fill.sh\"\n",
        copy_of(main)
            .trim_start_matches("@DIR@")
            .replace('\'', "''")
    )
}

fn file(path: &Path, text: &str, copy: &mut Copy, effective: &mut BTreeMap<String, String>) {
    let directory = path.parent().unwrap_or(Path::new("/")).to_owned();
    copy.rewrite(path, text, |copy, line| {
        setting(line, &directory, copy, effective)
    });
}

fn setting(
    line: &str,
    directory: &Path,
    copy: &mut Copy,
    effective: &mut BTreeMap<String, String>,
) -> Line {
    match meaning(line) {
        Meaning::Nothing => Line::Keep,
        Meaning::Unclear => Line::LeftOut("a line that PostgreSQL does not read".to_owned()),
        Meaning::Includes(pattern) => copy.include(
            directory,
            &pattern,
            |copy, path, text| file(path, text, copy, effective),
            |path| format!("include {}", quoted(path)),
        ),
        Meaning::Sets(name, value) => {
            let name = name.to_lowercase();
            let line = copy.setting(&TABLES, &name, &value);
            let value = match &*value.to_lowercase() {
                "false" | "no" | "0" if name == "fsync" || name == "synchronous_commit" => "off",
                other => other,
            }
            .to_owned();
            effective.insert(name, value);
            line
        }
    }
}

/// A time in milliseconds, which is also the unit where there is none.
fn milliseconds(value: &str) -> Option<u64> {
    let end = value
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(value.len());
    let number: u64 = value[..end].parse().ok()?;
    match value[end..].trim() {
        "" | "ms" => Some(number),
        "s" => number.checked_mul(1000),
        _ => None,
    }
}
