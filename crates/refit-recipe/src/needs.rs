//! What a recipe needs of the machine: programs, files, a user; and what of it is missing.

use std::collections::BTreeMap;
use std::process::Command;

use refit_packages::{how_to_install, owners};
use refit_run::printable;
use rustix::process::geteuid;

use crate::command_path::find_command;
use crate::file::Needs;
use crate::recipe::Recipe;
use crate::user::find_user;

impl Recipe {
    fn lacks(&self, needs: &Needs, packages: &[String]) -> Option<String> {
        let is_file = |pattern: &&String| {
            let mut found = glob::glob(pattern).into_iter().flatten();
            !found.any(|path| path.is_ok())
        };
        let mut missing: Vec<&str> = needs
            .commands
            .iter()
            .filter(|name| find_command(name).is_none())
            .map(|n| &**n)
            .collect();
        missing.extend(needs.files.iter().filter(is_file).map(|n| &**n));
        if !missing.is_empty() {
            return Some(format!(
                "the recipe {} needs {}\n  {}",
                self.name(),
                printable(&missing.join(", ")),
                printable(&how_to_install(packages)),
            ));
        }
        None
    }

    /// The packages of the programs and files that it needs, each with its version; none without dpkg.
    pub(crate) fn packages(&self) -> BTreeMap<String, String> {
        let needs = &self.file.needs;
        let commands = needs.commands.iter();
        let commands = commands.filter_map(|name| find_command(name));
        let files = needs.files.iter();
        let files = files.flat_map(|pattern| glob::glob(pattern).into_iter().flatten().flatten());
        owners(commands.chain(files))
    }

    /// Why its promise cannot be tested here, with what to do about it; `None`: it can.
    #[must_use]
    pub fn promise_missing(&self) -> Option<String> {
        let promise = self.file.promise.as_ref()?;
        self.lacks(&promise.needs, &promise.packages)
            .or_else(|| self.missing("crash"))
    }

    /// Why it cannot run here, with what to do about it; `None`: it can. `verb`: the
    /// command of refit that was typed.
    #[must_use]
    pub fn missing(&self, verb: &str) -> Option<String> {
        let needs = &self.file.needs;
        if let Some(missing) = self.lacks(needs, &self.file.packages) {
            return Some(missing);
        }
        if needs.root && !geteuid().is_root() {
            return Some(format!(
                "the recipe {} needs root: its server starts as root\n  in a virtual machine or container of your own: sudo refit {verb} {}",
                self.name(),
                self.typed(),
            ));
        }
        if let Some(why) = needs.mounts.then(no_mounts).flatten() {
            return Some(format!(
                "the recipe {} mounts, in a mount namespace of its own, and none can be made here: {}\n  {}",
                self.name(),
                printable(&why),
                if geteuid().is_root() {
                    "in a container: docker run --privileged, podman run --privileged".to_owned()
                } else {
                    format!("root may: sudo refit {verb} {}", self.typed())
                },
            ));
        }
        let user = self
            .file
            .service
            .user
            .as_deref()
            .filter(|_| geteuid().is_root());
        let unknown = user.filter(|user| find_user(user).is_none());
        unknown.map(|user| {
            format!(
                "the recipe {} runs as the user {}, whom its package creates\n  {}",
                self.name(),
                printable(user),
                printable(&how_to_install(&self.file.packages))
            )
        })
    }
}

/// Why this user can make no mount namespace; `None`: he can.
fn no_mounts() -> Option<String> {
    let mut unshare = Command::new(find_command("unshare")?);
    // In a chroot unshare(1) can change no propagation.
    unshare.args(["--mount", "--propagation", "unchanged"]);
    if !geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    let output = match unshare.arg("true").output() {
        Ok(output) => output,
        Err(error) => return Some(format!("unshare: {error}")),
    };
    let told = String::from_utf8_lossy(&output.stderr);
    (!output.status.success()).then(|| match told.trim() {
        "" => output.status.to_string(),
        told => told.to_owned(),
    })
}
