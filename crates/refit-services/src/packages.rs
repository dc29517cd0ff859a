//! Debian's packages, by dpkg's own lists: which one owns a file, and in which version it is installed.

use serde::{Deserialize, Serialize};

use crate::{Error, System};

const LISTS: &str = "/var/lib/dpkg/info";
const DIVERSIONS: &str = "/var/lib/dpkg/diversions";
const STATUS: &str = "/var/lib/dpkg/status";

/// Places that no package of a distribution writes to (hier(7)).
const LOCAL: [&str; 2] = ["/usr/local/", "/opt/"];

/// A package, as it was installed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// With its architecture where dpkg's lists have that.
    pub name: String,
    /// As dpkg prints it.
    pub version: String,
}

/// Who owns a path: a package, or why that cannot be told; `None` where nobody does.
///
/// # Errors
/// [`Error::File`].
pub fn owner(system: &System, path: &str) -> Result<Option<String>, Error> {
    if lists(system)?.is_empty() && !LOCAL.iter().any(|dir| path.starts_with(dir)) {
        return Ok(Some("unknown: dpkg is not installed".to_owned()));
    }
    if let Some(package) = owners(system, &[path.to_owned()])?.pop() {
        return Ok(Some(package));
    }
    let diversions = system.read(DIVERSIONS)?.unwrap_or_default();
    let names = names(path);
    Ok(is_listed(&diversions, &names).then(|| "that dpkg-divert names".to_owned()))
}

/// The packages that own these files, by their names and by what these are links to. None without
/// dpkg.
///
/// # Errors
/// [`Error::File`].
pub fn packages_of(system: &System, mut paths: Vec<String>) -> Result<Vec<Package>, Error> {
    for path in paths.clone() {
        paths.extend(system.resolved(&path)?);
    }
    let status = status(system)?;
    let packages = owners(system, &paths)?.into_iter().filter_map(|name| {
        let (version, _) = entry(&status, &name)?;
        Some(Package { name, version })
    });
    Ok(packages.collect())
}

/// Version and state of a package: dpkg-query(1) has the words.
pub fn entry(status: &str, name: &str) -> Option<(String, String)> {
    let (name, architecture) = match name.split_once(':') {
        Some((name, architecture)) => (name, Some(architecture)),
        None => (name, None),
    };
    let field = |entry: &str, key: &str| {
        let mut lines = entry.lines();
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        value.unwrap_or_default().to_owned()
    };
    let mut entries = status.split("\n\n").filter(|entry| {
        field(entry, "Package") == name
            && architecture.is_none_or(|one| field(entry, "Architecture") == one)
    });
    let entry = entries.next()?;
    let state = field(entry, "Status");
    let state = state.rsplit(' ').next().unwrap_or_default().to_owned();
    Some((field(entry, "Version"), state))
}

/// What dpkg knows of every package: its file `status`, empty without dpkg.
///
/// # Errors
/// [`Error::File`].
pub fn status(system: &System) -> Result<String, Error> {
    let bytes = system.read(STATUS)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn lists(system: &System) -> Result<Vec<String>, Error> {
    let files = system.names(LISTS)?;
    let lists = files.iter().filter_map(|file| file.strip_suffix(".list"));
    Ok(lists.map(str::to_owned).collect())
}

/// The packages whose lists have one of these paths.
fn owners(system: &System, paths: &[String]) -> Result<Vec<String>, Error> {
    let names: Vec<String> = paths.iter().flat_map(|path| names(path)).collect();
    let mut found = Vec::new();
    for package in lists(system)? {
        let list = system.read(&format!("{LISTS}/{package}.list"))?;
        if list.is_some_and(|list| is_listed(&list, &names)) {
            found.push(package);
        }
    }
    found.sort();
    Ok(found)
}

fn is_listed(list: &[u8], names: &[String]) -> bool {
    let text = String::from_utf8_lossy(list);
    text.lines()
        .any(|line| names.iter().any(|name| name == line))
}

/// The names that dpkg may know a path by: /bin and the like are links into /usr.
fn names(path: &str) -> [String; 2] {
    let other = match path.strip_prefix("/usr") {
        Some(rest) => rest.to_owned(),
        None => format!("/usr{path}"),
    };
    [path.to_owned(), other]
}
