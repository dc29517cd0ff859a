//! The files that make up a unit, and the order in which systemd reads them.

use std::fs;
use std::path::{Path, PathBuf};

/// Where unit files lie, the strongest first (systemd.unit(5)). `/lib` is a directory of its own on a machine whose `/usr`
/// is not merged.
const DIRECTORIES: [&str; 11] = [
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// The files of a unit, as the unit knows them: without the directory of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The name with `.service`, and `mariadb.service` where `mysql.service` is a link to it.
    pub name: String,
    /// The unit's own file.
    pub fragment: String,
    /// What is added to it, in the order in which it is read: the last line of a key counts.
    pub drop_ins: Vec<String>,
    /// Its own file is empty or a link to /dev/null: it cannot be started.
    pub is_masked: bool,
}

/// Whether a word can be the name of one service, with or without `.service`; a template (`name@`) is none.
#[must_use]
pub fn is_name(word: &str) -> bool {
    let name = word.strip_suffix(".service").unwrap_or(word);
    let allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    !name.is_empty()
        && name.len() < 240
        && !name.starts_with(['.', '-', '@'])
        && !name.ends_with('@')
        && name.chars().all(allowed)
}

impl Files {
    /// The files of a service; `None` where there is none of this name. `place` is where a path of the unit's lies here.
    ///
    /// # Errors
    /// Those of `place`.
    pub fn find<E>(
        place: impl Fn(&str) -> Result<PathBuf, E>,
        word: &str,
    ) -> Result<Option<Files>, E> {
        if !is_name(word) {
            return Ok(None);
        }
        let name = format!("{}.service", word.strip_suffix(".service").unwrap_or(word));
        let Some(mut fragment) = fragment(&place, &name)? else {
            return Ok(None);
        };
        // A link to a file of another name is an alias; both names have drop-ins.
        let mut names = vec![name];
        let mut seen = 0;
        while let Some(target) = target(&place(&fragment)?, &fragment) {
            seen += 1;
            if target == "/dev/null" || seen > 8 {
                break;
            }
            let file = target.rsplit('/').next().unwrap_or_default().to_owned();
            if is_name(&file) && !names.contains(&file) {
                names.push(match (instance(&names[0]), file.split_once('@')) {
                    // An instance of an alias is one of what the alias leads to.
                    (Some(instance), Some((family, ".service"))) => {
                        format!("{family}@{instance}.service")
                    }
                    _ => file,
                });
            }
            fragment = target;
        }
        let drop_ins = drop_ins(&place, &names)?;
        let is_masked = is_null(&place(&fragment)?);
        Ok(Some(Files {
            name: names.pop().expect("it has one"),
            fragment,
            drop_ins,
            is_masked,
        }))
    }
}

/// What follows the `@` of a service's name.
fn instance(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once('@')?;
    rest.strip_suffix(".service")
        .filter(|rest| !rest.is_empty())
}

/// The template of an instance.
fn template(name: &str) -> Option<String> {
    instance(name)?;
    let (family, _) = name.split_once('@')?;
    Some(format!("{family}@.service"))
}

/// The strongest file of a name; of an instance that has none, that of its template.
fn fragment<E>(
    place: &impl Fn(&str) -> Result<PathBuf, E>,
    name: &str,
) -> Result<Option<String>, E> {
    for name in std::iter::once(name.to_owned()).chain(template(name)) {
        for directory in DIRECTORIES {
            let path = format!("{directory}/{name}");
            let meta = place(&path)?.symlink_metadata();
            if meta.is_ok_and(|meta| meta.is_file() || meta.is_symlink()) {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

/// Where a link leads, as the unit knows it.
fn target(file: &Path, path: &str) -> Option<String> {
    let to = fs::read_link(file).ok()?;
    let directory = Path::new(path).parent()?;
    let mut found = PathBuf::new();
    for part in directory.join(to).components() {
        match part {
            std::path::Component::ParentDir => {
                found.pop();
            }
            part => found.push(part),
        }
    }
    found.to_str().map(str::to_owned)
}

/// Whether a unit file masks the unit: it is empty, or not a regular file, as a link to /dev/null is not.
fn is_null(file: &Path) -> bool {
    let meta = fs::metadata(file);
    meta.is_ok_and(|meta| !meta.is_file() || meta.len() == 0)
}

/// The directories of a name, the most special first: `a-b@c.service.d`, `a-b@.service.d`, `a-@.service.d`.
fn directories(name: &str) -> Vec<String> {
    let stem = name.strip_suffix(".service").unwrap_or(name);
    let (family, is_template) = match stem.split_once('@') {
        Some((family, _)) => (family, true),
        None => (stem, false),
    };
    let at = if is_template { "@" } else { "" };
    let mut all = vec![name.to_owned()];
    all.extend(template(name));
    // `-` at the end of a name is a prefix by itself.
    let mut rest = family;
    while let Some((before, _)) = rest.trim_end_matches('-').rsplit_once('-') {
        all.push(format!("{before}-{at}.service"));
        rest = before;
    }
    all
}

/// The drop-ins of a unit with these names, sorted by their file names; of a file name the strongest counts, and one that
/// is masked hides the others.
fn drop_ins<E>(
    place: &impl Fn(&str) -> Result<PathBuf, E>,
    names: &[String],
) -> Result<Vec<String>, E> {
    let of_names = || names.iter().flat_map(|name| directories(name));
    let of_all = std::iter::once("service".to_owned());
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |directory: &str, name: &str| -> Result<(), E> {
        let directory = format!("{directory}/{name}.d");
        let entries = fs::read_dir(place(&directory)?);
        for entry in entries.into_iter().flatten().flatten() {
            let Ok(file) = entry.file_name().into_string() else {
                continue;
            };
            if file.ends_with(".conf") && !found.iter().any(|(known, _)| *known == file) {
                let path = format!("{directory}/{file}");
                found.push((file, path));
            }
        }
        Ok(())
    };
    for directory in DIRECTORIES {
        of_names().try_for_each(|name| add(directory, &name))?;
    }
    // Of every service; a file of a unit's own of the same name is stronger.
    for name in of_all {
        DIRECTORIES
            .iter()
            .try_for_each(|directory| add(directory, &name))?;
    }
    found.sort();
    let mut paths = Vec::new();
    for (_, path) in found {
        if !is_null(&place(&path)?) {
            paths.push(path);
        }
    }
    Ok(paths)
}
