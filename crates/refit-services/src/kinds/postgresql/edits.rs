//! The edits of a cluster's files.

use std::fmt::Write;

use refit_servers::postgresql::conf::{Meaning, Sources, meaning, quoted};

use super::cluster::{Cluster, sources};
use crate::environment::Environment;
use crate::{ConfValue, Error, FileEdit, System};

const FILE: &str = "conf.d/90-refit.conf";
pub const AUTO: &str = "postgresql.auto.conf";

/// What the cluster's `environment` holds, or the one for all clusters.
pub fn environment_file(system: &System, cluster: &Cluster) -> Result<Vec<u8>, Error> {
    for path in [
        cluster.file("environment"),
        "/etc/postgresql-common/environment".to_owned(),
    ] {
        if let Some(bytes) = system.read(&path)? {
            return Ok(bytes);
        }
    }
    Ok(Vec::new())
}

/// The value of a variable in it.
pub fn variable(file: &[u8], name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(file);
    let mut found = text.lines().filter_map(|line| match meaning(line) {
        Meaning::Sets(key, value) if key == name => Some(value),
        _ => None,
    });
    found.next_back()
}

/// The edit that adds variables.
///
/// # Errors
/// [`Error::NotOneLine`], [`Error::File`].
pub fn environment_edit(
    system: &System,
    cluster: &Cluster,
    base: &[u8],
    head: &str,
    environment: &Environment,
) -> Result<FileEdit, Error> {
    let path = cluster.file("environment");
    let mut text = head.to_owned();
    for (name, value) in &environment.variables {
        one_line(&path, name, value)?;
        let _ = writeln!(text, "{name} = {}", quoted(value));
    }
    edit(system, path, base, &text)
}

/// A file with text after what it holds; where it is not there, after `base`.
fn edit(system: &System, path: String, base: &[u8], text: &str) -> Result<FileEdit, Error> {
    let mut bytes = base.to_vec();
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    bytes.extend(text.as_bytes());
    FileEdit::of(system, &path, base, bytes)
}

fn one_line(path: &str, name: &str, value: &str) -> Result<(), Error> {
    if value.contains(char::is_control) {
        return Err(Error::NotOneLine {
            name: name.to_owned(),
            path: path.to_owned(),
        });
    }
    Ok(())
}

/// The edit that adds settings: of a file of refit's in conf.d, or of postgresql.auto.conf.
///
/// # Errors
/// [`Error::Overridden`], [`Error::NoPlace`], [`Error::InTheWay`], [`Error::NotOneLine`].
pub fn conf_edit(
    system: &System,
    cluster: &Cluster,
    head: &str,
    conf: &[ConfValue],
) -> Result<FileEdit, Error> {
    let ours = cluster.file(FILE);
    let all = sources(system, &cluster.file("postgresql.conf"), &ours)?;
    let data = all.last("data_directory").map(|line| line.value.clone());
    let auto = data.map(|data| format!("{data}/{AUTO}"));
    let mut text = head.to_owned();
    for ConfValue { name, value, .. } in conf {
        one_line(&ours, name, value)?;
        let _ = writeln!(text, "{name} = {}", quoted(value));
    }
    let Some(at) = all.before_ours else {
        let no_place = || Error::NoPlace {
            service: cluster.service(),
            file: cluster.file("postgresql.conf"),
        };
        let auto = auto.ok_or_else(no_place)?;
        let base = system.read(&auto)?.ok_or_else(no_place)?;
        return edit(system, auto, &base, &text);
    };
    system.refuse_there(&ours)?;
    let later = auto.map_or(Ok(Sources::default()), |auto| sources(system, &auto, ""))?;
    for ConfValue { name, .. } in conf {
        let mut after = all.lines[at..].iter().chain(&later.lines);
        if let Some(line) = after.rfind(|line| line.name == *name) {
            let mend = if later.last(name).is_some() {
                format!("ALTER SYSTEM RESET {name}, by psql")
            } else {
                "take that line out".to_owned()
            };
            return Err(Error::Overridden {
                name: name.clone(),
                value: line.value.clone(),
                place: line.place.clone(),
                ours,
                mend,
            });
        }
    }
    edit(system, ours, b"", &text)
}
