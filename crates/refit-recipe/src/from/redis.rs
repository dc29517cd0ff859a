//! Redis: redis.conf and the files that it includes. The last line of a directive counts.

use std::path::{Path, PathBuf};

use refit_servers::redis::words;

use super::copy::{COMMAND_LINE, Copy, Line, Tables, copy_of};
use super::{FromError, Kind, Parts};

const TABLES: Tables = Tables {
    moved: "appenddirname appendfilename bind bind-source-addr daemonize dir logfile pidfile port supervised \
            tls-port unixsocket unixsocketperm",
    left_out: &[
        ("requirepass masterauth", "a password"),
        ("user aclfile masteruser", "accounts and their passwords"),
        ("tls-", "nobody comes over a network, and no key is copied"),
        (
            "replica-announce- slave-announce- replicaof slaveof min-replicas- min-slaves- cluster-",
            "no other server is asked",
        ),
        ("syslog-", "the system's log is not written to"),
    ],
};

/// Clients that the load has, and one beside them.
const CLIENTS: u64 = 9;

/// Commands of the load and of the check.
const USED: &[&str] = &[
    "incr", "get", "rpush", "lrange", "ping", "shutdown", "config",
];

pub const KIND: Kind = Kind {
    main: main_file,
    make,
};

fn main_file(path: &Path) -> Option<PathBuf> {
    let inside = path.join("redis.conf");
    if inside.is_file() {
        return Some(inside);
    }
    let name = path.file_name()?.to_string_lossy();
    let parent = path.parent()?.file_name().unwrap_or_default();
    let is_named = name.starts_with("redis") || parent == "redis";
    (path.is_file() && name.ends_with(".conf") && is_named).then(|| path.to_owned())
}

/// The values that decide what a power cut takes.
struct Effective {
    appendonly: String,
    appendfsync: String,
    dir: PathBuf,
}

fn make(main: &Path, mut copy: Copy) -> Result<Parts, FromError> {
    let text = Copy::main(main)?;
    let is_sentinel = |line: &str| line.trim_start().starts_with("sentinel ");
    if text.lines().any(is_sentinel) {
        return Err(FromError::Unusable {
            path: main.to_owned(),
            problem: "the configuration of a Sentinel, which holds no data\n  \
                      name that of a server: /etc/redis/redis.conf"
                .to_owned(),
        });
    }
    let mut effective = Effective {
        appendonly: "no".to_owned(),
        appendfsync: "everysec".to_owned(),
        dir: "/".into(),
    };
    file(main, &text, &mut copy, &mut effective);
    let arguments = copy.command_line();
    let command_line = Path::new(COMMAND_LINE);
    file(command_line, &arguments, &mut copy, &mut effective);
    if effective.appendonly == "no" {
        copy.notes.remarks.push(
            "appendonly is no: no write waits for the disk, and a power cut takes what was written after the last \
             snapshot; conf.appendfsync switches it on"
                .to_owned(),
        );
    }
    let now = match &*effective.appendonly {
        "yes" => effective.appendfsync,
        _ => "none".to_owned(),
    };
    let mut replaced = vec![(
        "sh $REFIT_RECIPE/setup.sh",
        "sh $REFIT_RECIPE/configure.sh redis.conf".to_owned(),
    )];
    let added = "\"appendonly yes\\nappendfsync ".to_owned();
    replaced.push(("\"appendfsync ", added));
    if ["none", "no"].contains(&&*now) {
        let new = "settings = \"conf.appendfsync=always+sync=off\"".to_owned();
        replaced.push(("settings = \"sync=off\"", new));
    }
    let more = match &*now {
        "always" => String::new(),
        _ => ALWAYS.to_owned(),
    };
    let private = format!(
        "# The configuration, and after it what makes the instance private: the last line of a directive counts.\n\
         include \"{}\"\ninclude \"{}\"\n\
         dir @DIR@\nunixsocket @DIR@/socket\nport 0\nlogfile \"\"\ndaemonize no\n",
        copy_of(main),
        copy_of(command_line),
    );
    Ok(Parts {
        scripts: "redis-aof",
        server: "Redis",
        files: vec![("redis.conf", private)],
        replaced,
        now: vec![("appendfsync", now)],
        replaces_lines: false,
        more,
        copy,
    })
}

const ALWAYS: &str = r#"[conf.appendfsync.always]
class = "safe"
file = "redis.conf"
to = "appendfsync always"

[[variant]]
settings = "conf.appendfsync=always"
why = "a write is answered when it is on the disk"
"#;

fn file(path: &Path, text: &str, copy: &mut Copy, effective: &mut Effective) {
    copy.rewrite(path, text, |copy, line| directive(line, copy, effective));
}

fn directive(line: &str, copy: &mut Copy, effective: &mut Effective) -> Line {
    let words = words(line);
    let Some(name) = words.first().map(|name| name.to_lowercase()) else {
        return Line::Keep;
    };
    if name.starts_with('#') {
        return Line::Keep;
    }
    let values = words[1..].join(" ");
    match &*name {
        "include" => {
            return copy.include(
                &effective.dir.clone(),
                &values,
                |copy, path, text| file(path, text, copy, effective),
                |path| format!("include \"{path}\""),
            );
        }
        "appendonly" => effective.appendonly = values.to_lowercase(),
        "appendfsync" => effective.appendfsync = values.to_lowercase(),
        // What is included after it lies below it.
        "dir" => effective.dir = effective.dir.join(&values),
        "maxclients" if values.parse().is_ok_and(|most: u64| most < CLIENTS) => {
            return Line::LeftOut(format!("maxclients {values}: the load has more clients"));
        }
        "rename-command" => {
            let command = words.get(1).map(|word| word.to_lowercase());
            if command.is_some_and(|command| USED.contains(&&*command)) {
                return Line::LeftOut(format!("rename-command {}: the load uses it", words[1]));
            }
        }
        _ => {}
    }
    copy.setting(&TABLES, &name, &values)
}
