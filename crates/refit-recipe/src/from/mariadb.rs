//! MariaDB: my.cnf and the files that it includes. The last line of an option counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use refit_knobs::Class;
use refit_servers::mariadb::{Meaning, in_sql, is_read, meaning};
use refit_servers::risk::{MARIADB, class};

use super::copy::{COMMAND_LINE, Copy, Line, Tables, copy_of};
use super::{FromError, Kind, Parts};

/// Options with `-`; the server takes `_` too.
const TABLES: Tables = Tables {
    moved: "datadir socket pid-file tmpdir log-error port extra-port bind-address user skip-networking chroot \
            skip-grant-tables slow-query-log-file log-slow-query-file general-log-file innodb-data-home-dir \
            innodb-log-group-home-dir innodb-undo-directory innodb-tmpdir innodb-buffer-pool-filename \
            innodb-use-native-aio aria-log-dir-path relay-log relay-log-index relay-log-info-file log-bin-index \
            secure-file-priv slave-load-tmpdir silent-startup",
    left_out: &[
        (
            "ssl ssl- require-secure-transport file-key-management file-key-management- innodb-encrypt- \
             aria-encrypt- encrypt-",
            "no key is copied",
        ),
        (
            "wsrep wsrep- master- report- replicate- init-slave feedback feedback- rpl-semi-sync-",
            "no other server is asked",
        ),
        (
            "init-file init-connect",
            "its statements are for the real server",
        ),
        (
            "read-only innodb-read-only innodb-force-recovery super-read-only transaction-read-only tx-read-only",
            "the load writes",
        ),
        ("autocommit", "the load commits each row"),
    ],
};

/// Plugins that ask another server, or need a key.
const PLUGINS: &[&str] = &[
    "feedback",
    "file_key_management",
    "key_management",
    "spider",
];

pub const KIND: Kind = Kind {
    main: main_file,
    make,
};

fn main_file(path: &Path) -> Option<PathBuf> {
    let inside = ["my.cnf", "mariadb.cnf"].map(|name| path.join(name));
    if let Some(inside) = inside.into_iter().find(|path| path.is_file()) {
        return Some(inside);
    }
    let is_one = path.is_file() && path.extension()? == "cnf";
    is_one.then(|| path.to_owned())
}

#[derive(Default)]
struct Effective {
    /// Names with `_`, as in the recipe.
    values: BTreeMap<String, String>,
    group: String,
}

fn make(main: &Path, mut copy: Copy) -> Result<Parts, FromError> {
    let text = Copy::main(main)?;
    let mut effective = Effective::default();
    file(main, &text, &mut copy, &mut effective);
    let mut arguments = "[mariadbd]\n".to_owned();
    arguments += &copy.command_line();
    let command_line = Path::new(COMMAND_LINE);
    file(command_line, &arguments, &mut copy, &mut effective);
    let values = effective.values;
    copy.notes.remarks.push(
        "groups of other programs ([client], [mysqldump], …) are not copied; accounts lie with the data, and are not \
         read: only the user that the server runs as may come in; native AIO is off, so that refit sees every write"
            .to_owned(),
    );
    let private = format!(
        "# The configuration, and after it what makes the instance private: the last line of an option counts.\n\
         !include {}\n!include {}\n\n[client]\nsocket = @DIR@/socket\nuser = @USER@\n\n[mariadbd]\ndatadir = @DIR@/data\n\
         socket = @DIR@/socket\npid-file = @DIR@/pid\ntmpdir = @DIR@\nlog-error = @DIR@/server.log\n\
         skip-networking\ninnodb-use-native-aio = 0\n",
        copy_of(main),
        copy_of(command_line),
    );
    let mut now = Vec::new();
    for name in [
        "innodb_flush_log_at_trx_commit",
        "innodb_flush_method",
        "innodb_log_file_buffering",
    ] {
        now.extend(values.get(name).map(|value| (name, value.clone())));
    }
    let name = "innodb_flush_log_at_trx_commit";
    let commit = values.get(name).map_or("1", |value| value);
    let is_safe = class(MARIADB, name, commit) == Some(Class::Safe);
    if !is_safe {
        copy.notes.remarks.push(
            "innodb_flush_log_at_trx_commit is 0 or 2: a commit does not wait for the disk; \
             conf.innodb_flush_log_at_trx_commit=1 makes it wait"
                .to_owned(),
        );
    }
    let timeout = values.get("innodb_flush_log_at_timeout");
    let timeout: u64 = timeout.and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut replaced = vec![
        // As in the shipped recipe: the timer's time, and what the flush waits and takes.
        ("bound = \"2s\"", format!("bound = \"{}s\"", timeout + 1)),
        (
            "also = [\"conf.innodb_flush_method=fsync+conf.innodb_log_file_buffering=on\"]\n",
            String::new(),
        ),
        (
            "sh $REFIT_RECIPE/setup.sh",
            "sh $REFIT_RECIPE/configure.sh my.cnf && sh $REFIT_RECIPE/install.sh".to_owned(),
        ),
    ];
    if !is_safe {
        let with = "settings = \"conf.innodb_flush_log_at_trx_commit=1+sync=off\"".to_owned();
        replaced.push(("settings = \"sync=off\"", with));
    }
    Ok(Parts {
        scripts: "mariadb-commits",
        server: "MariaDB",
        files: vec![("my.cnf", private)],
        replaced,
        now,
        replaces_lines: false,
        more: if is_safe { "" } else { AT_COMMIT }.to_owned(),
        copy,
    })
}

const AT_COMMIT: &str = r#"[conf.innodb_flush_log_at_trx_commit.1]
class = "safe"
file = "my.cnf"
to = "innodb-flush-log-at-trx-commit = 1"

[[variant]]
settings = "conf.innodb_flush_log_at_trx_commit=1"
why = "a commit is answered when it is on the disk"
"#;

fn file(path: &Path, text: &str, copy: &mut Copy, effective: &mut Effective) {
    // An included file begins without a group, and the file that includes it goes on with its own.
    let before = std::mem::take(&mut effective.group);
    copy.rewrite(path, text, |copy, line| option(line, copy, effective));
    effective.group = before;
}

fn option(line: &str, copy: &mut Copy, effective: &mut Effective) -> Line {
    match meaning(line) {
        Meaning::Nothing => Line::Keep,
        Meaning::Group(group) => {
            effective.group = group;
            Line::Keep
        }
        Meaning::Option(name, value) => set(&name, &value, copy, effective),
        Meaning::Includes(pattern) => copy.include(
            Path::new("."),
            &pattern,
            |copy, path, text| file(path, text, copy, effective),
            |path| format!("!include {path}"),
        ),
        Meaning::Unclear => Line::LeftOut("a line that MariaDB does not read".to_owned()),
    }
}

fn set(name: &str, value: &str, copy: &mut Copy, effective: &mut Effective) -> Line {
    if !is_read(&effective.group) {
        return Line::Replaced("# refit: of another program".to_owned());
    }
    let name = name.to_lowercase().replace('_', "-");
    let name = name.strip_prefix("loose-").unwrap_or(&name);
    let now = match value.to_lowercase() {
        now if name.ends_with("buffering") => match &*now {
            "" | "1" | "true" => "on".to_owned(),
            _ => now,
        },
        now => now,
    };
    effective.values.insert(in_sql(name), now);
    let is_plugin = name.starts_with("plugin-load");
    if is_plugin && PLUGINS.iter().any(|plugin| value.contains(plugin)) {
        return Line::LeftOut(format!(
            "{name} {value}: it asks another server, or needs a key"
        ));
    }
    // The binary log is a part of what a commit costs: it stays, in the data directory.
    if ["log-bin", "log-basename"].contains(&name) && value.contains('/') {
        let file = value.rsplit('/').next().unwrap_or_default();
        copy.notes.moved.push(format!("{name} {value}"));
        return Line::Replaced(format!("{name} = {file}"));
    }
    copy.setting(&TABLES, name, value)
}
