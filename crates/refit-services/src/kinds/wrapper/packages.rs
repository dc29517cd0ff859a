//! Which package owns a file, by dpkg's own lists.

use crate::{Error, System};

const LISTS: &str = "/var/lib/dpkg/info";
const DIVERSIONS: &str = "/var/lib/dpkg/diversions";

/// Places that no package of a distribution writes to (hier(7)).
const LOCAL: [&str; 2] = ["/usr/local/", "/opt/"];

/// Who owns a path: a package, or why that cannot be told; `None` where nobody does.
///
/// # Errors
/// [`Error::File`].
pub fn owner(system: &System, path: &str) -> Result<Option<String>, Error> {
    let names = names(path);
    let is_listed = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.lines()
            .any(|line| names.iter().any(|name| name == line))
    };
    let files = system.names(LISTS)?;
    let lists: Vec<_> = files
        .iter()
        .filter_map(|file| file.strip_suffix(".list"))
        .collect();
    if lists.is_empty() && !LOCAL.iter().any(|dir| path.starts_with(dir)) {
        return Ok(Some("that cannot be told: there is no dpkg".to_owned()));
    }
    for package in lists {
        let list = system.read(&format!("{LISTS}/{package}.list"))?;
        if list.is_some_and(|list| is_listed(&list)) {
            return Ok(Some(package.to_owned()));
        }
    }
    let diversions = system.read(DIVERSIONS)?.unwrap_or_default();
    Ok(is_listed(&diversions).then(|| "that dpkg-divert names".to_owned()))
}

/// The names that dpkg may know a path by: /bin and the like are links into /usr.
fn names(path: &str) -> [String; 2] {
    let other = match path.strip_prefix("/usr") {
        Some(rest) => rest.to_owned(),
        None => format!("/usr{path}"),
    };
    [path.to_owned(), other]
}
