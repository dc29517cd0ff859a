//! Whether all that a run of the tests used comes from packages that scripts/setup names, or from what these depend on.
//!
//! A machine that has more by chance would hide what is not named: another machine's tests would fail. So the files
//! below /usr that are opened while the tests run are recorded, and the packages that own them are compared with the
//! closure of those that scripts/setup installs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::sys::{self, opened_files::OpenedFiles};

/// The line that stands for files that the kernel did not tell of.
const LOST: &str = "(lost)";

/// Files that are opened because they are there, by programs that work without them: the beginning of their path, and who
/// opens them.
const OPENED_WHERE_THERE: &[(&str, &str)] = &[
    ("/usr/lib/locale/", "the C library's setlocale(3)"),
    ("/usr/share/locale/", "messages of gettext(3)"),
    ("/usr/share/locale-langpack/", "messages of gettext(3)"),
    (
        "/usr/lib/python3/dist-packages/",
        "python's site, each *.pth; modules of other packages beside ours",
    ),
    ("/usr/share/zsh/", "zsh, each completion"),
    ("/usr/share/fish/", "fish, each completion"),
    ("/usr/share/bash-completion/", "bash, completions"),
    ("/usr/share/man/", "mandb, each page"),
    ("/usr/share/icons/", "none of ours"),
    (
        "/usr/share/applications/",
        "appstreamcli, each program's description",
    ),
    (
        "/usr/lib/x86_64-linux-gnu/libnss_",
        "the C library, as nsswitch.conf(5) says",
    ),
    (
        "/usr/lib/aarch64-linux-gnu/libnss_",
        "the C library, as nsswitch.conf(5) says",
    ),
    (
        "/usr/lib/x86_64-linux-gnu/security/",
        "su and login, as /etc/pam.d says",
    ),
    (
        "/usr/lib/aarch64-linux-gnu/security/",
        "su and login, as /etc/pam.d says",
    ),
    ("/usr/lib/llvm-", "ld and nm, plug-ins of other compilers"),
    ("/usr/lib/systemd/", "refit, which reads every unit"),
    ("/lib/systemd/", "refit, which reads every unit"),
];

/// Programs that apt's hooks start after an update where they are there (postfix-tables fetches a package): they and what
/// they depend on are nothing that the tests need.
const HOOKS: &[&str] = &["/usr/bin/appstreamcli"];

/// `--used-files FILE`: writes each file below /usr that any process opens, one a line, until it is killed.
pub fn record(out: &str) -> ExitCode {
    sys::die_with_parent();
    let Err(error) = record_to(Path::new(out)) else {
        return ExitCode::SUCCESS;
    };
    eprintln!("refit-tests: the files that are opened cannot be recorded: {error:#}");
    ExitCode::FAILURE
}

fn record_to(out: &Path) -> Result<()> {
    let opened = OpenedFiles::below(&[Path::new("/usr")])?;
    let mut file = File::create(out).with_context(|| out.display().to_string())?;
    let (mut seen, mut written) = (BTreeSet::new(), BTreeSet::new());
    loop {
        match opened.read(&mut seen) {
            Ok(true) => (),
            Ok(false) => writeln!(file, "{LOST}")?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        }
        for path in seen.difference(&written) {
            writeln!(file, "{}", path.display())?;
        }
        written.append(&mut seen);
    }
}

/// `--used-packages FILE`: names the packages of such a list that no package of standard input (scripts/setup names
/// them, one a line) brings, each with a file; ends with 1 where there is one.
pub fn judge(list: &str) -> ExitCode {
    match unnamed(Path::new(list)) {
        Ok(unnamed) if unnamed.is_empty() => ExitCode::SUCCESS,
        Ok(unnamed) => {
            for (package, file) in unnamed {
                println!("{package} is not named in scripts/setup, and the tests use it: {file}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("refit-tests: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn unnamed(list: &Path) -> Result<BTreeMap<String, String>> {
    let used = fs::read_to_string(list).with_context(|| list.display().to_string())?;
    ensure!(
        used.lines().all(|line| line != LOST),
        "the kernel lost some of the files that were opened"
    );
    let is_judged = |path: &&str| {
        !OPENED_WHERE_THERE
            .iter()
            .any(|(start, _)| path.starts_with(start))
    };
    let used: Vec<&str> = used.lines().filter(is_judged).collect();
    let owners = owners(&used)?;
    let named = io::read_to_string(io::stdin())?;
    let installed = Installed::read()?;
    let hooks = self::owners(HOOKS)?;
    let named = named.split_whitespace();
    let brought = installed.closure(named.chain(hooks.keys().map(String::as_str)));
    // Two empty lists would agree too.
    ensure!(
        owners.len() > 20 && brought.len() > 50,
        "{} packages were used, {} are brought: this is no run of the tests",
        owners.len(),
        brought.len()
    );
    println!(
        "{} packages were used, of {} that scripts/setup brings",
        owners.len(),
        brought.len()
    );
    let is_foreign = |(package, _): &(String, String)| !brought.contains(package);
    Ok(owners.into_iter().filter(is_foreign).collect())
}

/// Packages that own these files, each with one of them. Files of no package are left out.
fn owners(files: &[&str]) -> Result<BTreeMap<String, String>> {
    let wanted: BTreeSet<&str> = files.iter().copied().collect();
    let mut owners = BTreeMap::new();
    for entry in fs::read_dir("/var/lib/dpkg/info").context("/var/lib/dpkg/info")? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "list") {
            continue;
        }
        let package = path.file_stem().unwrap_or_default().to_string_lossy();
        let package = package.split(':').next().unwrap_or_default().to_owned();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        // /bin, /lib and /sbin are links into /usr, and packages of Debian 12 have files by these names.
        let used = text.lines().find_map(|line| {
            let merged = format!("/usr{line}");
            [line, &merged]
                .into_iter()
                .find_map(|name| wanted.get(name).map(ToString::to_string))
        });
        if let Some(file) = used {
            owners.insert(package, file);
        }
    }
    Ok(owners)
}

/// The packages of this machine.
struct Installed {
    /// What each depends on: groups, of which one package is enough.
    depends: BTreeMap<String, Vec<Vec<String>>>,
    /// The packages that provide a name.
    providers: BTreeMap<String, Vec<String>>,
    /// What every Debian has, and what was there before scripts/setup ran.
    base: Vec<String>,
}

impl Installed {
    fn read() -> Result<Installed> {
        let format = "${Package}\t${db:Status-Status}\t${Essential}\t${Priority}\t${Provides}\t${Pre-Depends}, ${Depends}\n";
        let output = Command::new("dpkg-query")
            .args(["-W", "-f", format])
            .stdin(Stdio::null())
            .output()
            .context("dpkg-query")?;
        let mut installed = Installed {
            depends: BTreeMap::new(),
            providers: BTreeMap::new(),
            base: ["make", "ca-certificates", "apt"].map(str::to_owned).into(),
        };
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let [package, "installed", essential, priority, provides, depends] = cells[..] else {
                continue;
            };
            if essential == "yes" || priority == "required" {
                installed.base.push(package.to_owned());
            }
            for name in groups(provides).into_iter().flatten() {
                let providers = installed.providers.entry(name).or_default();
                providers.push(package.to_owned());
            }
            let depends = groups(depends);
            installed.depends.insert(package.to_owned(), depends);
        }
        Ok(installed)
    }

    /// These packages and those of the base, and all that they depend on.
    fn closure<'a>(&self, named: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
        let mut left: Vec<String> = named.map(str::to_owned).collect();
        left.extend(self.base.iter().cloned());
        let mut brought = BTreeSet::new();
        while let Some(name) = left.pop() {
            let Some(depends) = self.depends.get(&name) else {
                // A name that others provide.
                let providers = self.providers.get(&name).into_iter().flatten();
                left.extend(providers.filter(|one| !brought.contains(*one)).cloned());
                continue;
            };
            if brought.insert(name) {
                left.extend(depends.iter().flatten().cloned());
            }
        }
        brought
    }
}

/// `a (>= 1) | b, c:any` as [[a, b], [c]].
fn groups(field: &str) -> Vec<Vec<String>> {
    let names = |group: &str| -> Vec<String> {
        let names = group
            .split('|')
            .filter_map(|name| name.split_whitespace().next());
        names
            .map(|name| name.split(':').next().unwrap_or_default().to_owned())
            .collect()
    };
    let groups = field.split(',').map(names);
    groups.filter(|group| !group.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_that_nothing_names_or_needs_is_not_brought() {
        let mut installed = Installed {
            depends: BTreeMap::new(),
            providers: BTreeMap::new(),
            base: vec!["dpkg".to_owned()],
        };
        for (package, depends) in [
            ("dpkg", ""),
            ("gcc", "gcc-12 (>= 12.2.0-1~), cpp:any"),
            ("gcc-12", "libc-dev | libc6-dev"),
            ("libc6-dev", ""),
            ("cpp", ""),
            ("g++", "gcc"),
        ] {
            installed
                .depends
                .insert(package.to_owned(), groups(depends));
        }
        let libc = installed.providers.entry("libc-dev".to_owned());
        libc.or_default().push("libc6-dev".to_owned());
        let brought = installed.closure(["gcc"].into_iter());
        let expected = ["cpp", "dpkg", "gcc", "gcc-12", "libc6-dev"].map(str::to_owned);
        assert_eq!(brought, BTreeSet::from(expected));
    }
}
