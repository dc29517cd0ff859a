//! Debian's packages, by dpkg's own lists: which one owns a file, and what became of it since.

use serde::{Deserialize, Serialize};

use crate::{Change, Error, LibraryFile, System};

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

/// What became of a package since a change was applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackageSince {
    /// As it was.
    #[serde(flatten)]
    pub was: Package,
    /// The version now; `None` where it is not installed any more.
    pub now: Option<String>,
    /// dpkg's word for its state: `installed`, `half-configured`, `config-files` where it was
    /// removed, `not-installed` where it was purged.
    pub state: String,
}

/// A library whose copy is not what is installed now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LibrarySince {
    /// The copy.
    pub path: String,
    /// What was copied, of which the content differs now.
    pub from: String,
    /// What became of its package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<PackageSince>,
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

/// The packages of a service that are not as they were when it was changed.
///
/// # Errors
/// [`Error::File`].
pub fn since(system: &System, change: &Change) -> Result<Vec<PackageSince>, Error> {
    let status = status(system)?;
    if status.is_empty() {
        return Ok(Vec::new());
    }
    let all = change.packages.iter();
    Ok(all.filter_map(|was| became(&status, was)).collect())
}

/// Whether a package of the service was purged, and took its configuration with it.
///
/// # Errors
/// [`Error::File`].
pub fn is_purged(system: &System, change: &Change) -> Result<bool, Error> {
    let since = since(system, change)?;
    Ok(since.iter().any(|one| one.state == NOT_INSTALLED))
}

/// The libraries of a change of which the file that was copied has another content now.
///
/// # Errors
/// [`Error::File`].
pub fn libraries_since(system: &System, change: &Change) -> Result<Vec<LibrarySince>, Error> {
    let status = status(system)?;
    let mut found = Vec::new();
    for LibraryFile {
        path,
        from,
        sha256,
        package,
    } in &change.libraries
    {
        let Some(content) = system.read(from)? else {
            continue;
        };
        if crate::library::hash(&content) != *sha256 {
            found.push(LibrarySince {
                path: path.clone(),
                from: from.clone(),
                package: package.as_ref().and_then(|was| became(&status, was)),
            });
        }
    }
    Ok(found)
}

const NOT_INSTALLED: &str = "not-installed";

/// `None` where it is as it was.
fn became(status: &str, was: &Package) -> Option<PackageSince> {
    let (version, state) = entry(status, &was.name).unwrap_or_default();
    let (now, state) = match &*state {
        "" | NOT_INSTALLED => (None, NOT_INSTALLED.to_owned()),
        "config-files" => (None, state),
        _ => (Some(version), state),
    };
    let is_same = now.as_ref() == Some(&was.version) && state == "installed";
    let was = was.clone();
    (!is_same).then_some(PackageSince { was, now, state })
}

/// Version and state of a package: dpkg-query(1) has the words.
fn entry(status: &str, name: &str) -> Option<(String, String)> {
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

fn status(system: &System) -> Result<String, Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Package: a\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1-2\n\n\
                          Package: b\nStatus: deinstall ok config-files\nArchitecture: all\nVersion: 3\n\n\
                          Package: c\nStatus: install ok half-configured\nConfig-Version: 1\nVersion: 2\n\
                          Architecture: amd64\n\n\
                          Package: c\nStatus: install ok installed\nArchitecture: i386\nVersion: 1\n";

    #[test]
    fn a_package_is_as_it_was_or_something_else() {
        for (name, version, meant) in [
            ("a", "1-2", None),
            ("a:amd64", "1-1", Some((Some("1-2"), "installed"))),
            ("a:arm64", "1-2", Some((None, "not-installed"))),
            ("b", "3", Some((None, "config-files"))),
            ("c:amd64", "2", Some((Some("2"), "half-configured"))),
            ("c:i386", "1", None),
            ("d", "1", Some((None, "not-installed"))),
        ] {
            let was = Package {
                name: name.to_owned(),
                version: version.to_owned(),
            };
            let found = became(STATUS, &was);
            let found = found.as_ref().map(|one| (one.now.as_deref(), &*one.state));
            assert_eq!(found, meant, "{name} {version}");
        }
    }
}
