//! Where the programs of PostgreSQL lie: each version has a directory of its own, out of the PATH.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files;

/// The directory of a version's programs, as Debian's packages have it.
#[must_use]
pub fn directory(version: &str) -> String {
    format!("/usr/lib/postgresql/{version}/bin")
}

/// The version that made a data directory, such as `15`, or `9.6` before 10; `None`: it holds no data.
#[must_use]
pub fn version_of(data: &Path) -> Option<String> {
    let text = fs::read_to_string(data.join("PG_VERSION")).ok()?;
    Some(text.trim().to_owned())
}

/// A program of a version; of the newest one that has it, where no version is named. `None`: it is not installed.
#[must_use]
pub fn program(name: &str, version: Option<&str>) -> Option<PathBuf> {
    program_in(Path::new("/"), name, version)
}

fn program_in(root: &Path, name: &str, wanted: Option<&str>) -> Option<PathBuf> {
    // Debian's packages, and those of postgresql.org for RPM.
    let places = ["usr/lib/postgresql/*/bin", "usr/pgsql-*/bin"];
    let all = places.map(|place| files(root, &format!("{place}/{name}")));
    let numbered = all.into_iter().flatten().filter_map(|path| {
        let directory = path.iter().nth_back(2)?.to_str()?;
        let version = directory.strip_prefix("pgsql-").unwrap_or(directory);
        let numbers: Result<Vec<u32>, _> = version.split('.').map(str::parse).collect();
        let is_wanted = wanted.is_none_or(|wanted| wanted == version);
        Some((numbers.ok().filter(|_| is_wanted)?, path))
    });
    numbered.max().map(|(_, program)| program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_has_the_program_counts() {
        let root = tempfile::tempdir().expect("a directory");
        for program in [
            "usr/lib/postgresql/9.6/bin/postgres",
            "usr/lib/postgresql/15/bin/postgres",
            "usr/lib/postgresql/17/bin/psql",
            "usr/pgsql-16/bin/postgres",
            "usr/pgsql-old/bin/postgres",
        ] {
            let program = root.path().join(program);
            fs::create_dir_all(program.parent().expect("it has one")).expect("made");
            fs::write(program, "").expect("written");
        }
        for (name, version, meant) in [
            ("postgres", None, Some("usr/pgsql-16/bin/postgres")),
            ("psql", None, Some("usr/lib/postgresql/17/bin/psql")),
            (
                "postgres",
                Some("9.6"),
                Some("usr/lib/postgresql/9.6/bin/postgres"),
            ),
            ("postgres", Some("17"), None),
            ("postgres", Some("old"), None),
            ("initdb", None, None),
        ] {
            let found = program_in(root.path(), name, version);
            let meant = meant.map(|path| root.path().join(path));
            assert_eq!(found, meant, "{name} {version:?}");
        }
        let data = root.path().join("data");
        assert_eq!(version_of(&data), None);
        fs::create_dir(&data).expect("made");
        fs::write(data.join("PG_VERSION"), "15\n").expect("written");
        assert_eq!(version_of(&data).as_deref(), Some("15"));
    }
}
