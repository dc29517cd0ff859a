//! What became of packages and libraries since a change was applied.

use serde::Serialize;

use crate::library::hash;
use crate::packages::{entry, status};
use crate::{Change, Error, LibraryFile, Package, System};

const NOT_INSTALLED: &str = "not-installed";

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

/// The packages of a service that are not as they were when it was changed.
///
/// # Errors
/// [`Error::File`].
pub fn packages_since(system: &System, change: &Change) -> Result<Vec<PackageSince>, Error> {
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
    let since = packages_since(system, change)?;
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
        if hash(&content) != *sha256 {
            found.push(LibrarySince {
                path: path.clone(),
                from: from.clone(),
                package: package.as_ref().and_then(|was| became(&status, was)),
            });
        }
    }
    Ok(found)
}

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
