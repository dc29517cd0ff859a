//! A private server with the copy, made and ended by the scripts of the recipe that is being written.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use refit_recipe::{User, find_user, path};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::copy::write;
use crate::error::{IndexError, at};

/// Between two looks whether the server answers, and for how long it may not.
const PAUSE: Duration = Duration::from_millis(20);
const READY_WITHIN: Duration = Duration::from_secs(60);

/// What differs from one server to another.
#[derive(Clone, Copy)]
pub struct Server {
    /// Its scripts, by name.
    pub scripts: &'static [(&'static str, &'static str)],
    /// Who runs it where refit runs as root.
    pub user: &'static str,
    /// Debian's package.
    pub package: &'static str,
    /// A shell command that succeeds when it answers.
    pub ready: &'static str,
    /// How it is ended: nothing of it is used afterwards.
    pub end: Signal,
}

/// A server with the copy, and its directory, which goes with it.
pub struct Instance {
    server: Server,
    user: Option<User>,
    child: Option<Child>,
    scratch: tempfile::TempDir,
}

impl Instance {
    /// Lays out the recipe's files; nothing runs.
    pub fn new(server: Server) -> Result<Instance, IndexError> {
        let user = match geteuid().is_root() {
            false => None,
            true => Some(find_user(server.user).ok_or_else(|| IndexError::Missing {
                program: format!("the server of the user {}", server.user),
                package: server.package.to_owned(),
            })?),
        };
        let scratch = tempfile::Builder::new()
            .prefix("refit-index-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir();
        let scratch = scratch.map_err(at(std::env::temp_dir()))?;
        let instance = Instance {
            server,
            user,
            child: None,
            scratch,
        };
        instance.own(instance.scratch.path())?;
        for dir in [instance.recipe(), instance.dir()] {
            fs::create_dir(&dir).map_err(at(&dir))?;
            instance.own(&dir)?;
        }
        for (name, text) in server.scripts {
            instance.put(name, text.as_bytes())?;
        }
        Ok(instance)
    }

    fn own(&self, path: &Path) -> Result<(), IndexError> {
        match self.user {
            Some(user) => chown(path, Some(user.uid), Some(user.gid)).map_err(at(path)),
            None => Ok(()),
        }
    }

    fn recipe(&self) -> PathBuf {
        self.scratch.path().join("recipe")
    }

    fn dir(&self) -> PathBuf {
        self.scratch.path().join("run")
    }

    /// Writes a file of the recipe.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<(), IndexError> {
        let path = self.recipe().join(name);
        write(&path, bytes)?;
        self.own(&path)
    }

    fn command(&self, command: &str) -> Command {
        // It does not outlive refit.
        let mut words = Command::new("setpriv");
        if let Some(user) = self.user {
            words.arg(format!("--reuid={}", user.uid));
            words.arg(format!("--regid={}", user.gid));
            words.arg("--init-groups");
        }
        words
            .args(["--pdeathsig", "TERM", "--", "sh", "-c", command])
            .current_dir(self.dir())
            .env("PATH", path())
            .env("REFIT_RECIPE", self.recipe())
            .env("REFIT_DIR", self.dir())
            .stdin(Stdio::null());
        words
    }

    /// Runs a shell command as the recipe would; what it printed.
    pub fn run(&self, command: &str, what: &str) -> Result<String, IndexError> {
        let output = self.command(command).output().map_err(at("setpriv"))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(IndexError::Failed {
                what: what.to_owned(),
                output: match &*errors {
                    "" => output.status.to_string(),
                    _ => errors,
                },
            });
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Makes the copy and starts the server.
    pub fn start(&mut self) -> Result<(), IndexError> {
        self.run("sh $REFIT_RECIPE/setup.sh", "the copy in a private server")?;
        let mut command = self.command("exec sh $REFIT_RECIPE/start.sh");
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = self.child.insert(child.map_err(at("setpriv"))?);
        let began = Instant::now();
        loop {
            let end = match child.try_wait().map_err(at("setpriv"))? {
                Some(status) => Some(status.to_string()),
                None => (began.elapsed() > READY_WITHIN)
                    .then(|| format!("it does not answer within {} s", READY_WITHIN.as_secs())),
            };
            if let Some(end) = end {
                let log = fs::read_to_string(self.scratch.path().join("run/server.log"));
                return Err(IndexError::Failed {
                    what: "the start of a private server".to_owned(),
                    output: format!("{end}\n{}", log.unwrap_or_default().trim()),
                });
            }
            let words = ["-c", self.server.ready];
            let mut ready = Command::new("sh");
            let ready = ready
                .args(words)
                .current_dir(self.scratch.path().join("run"));
            ready.env("REFIT_RECIPE", self.scratch.path().join("recipe"));
            ready
                .env("REFIT_DIR", self.scratch.path().join("run"))
                .env("PATH", path());
            ready
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if ready.status().map_err(at("sh"))?.success() {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else {
            return;
        };
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let (Ok(None), Some(pid)) = (child.try_wait(), pid) {
            let _ = kill_process(pid, self.server.end);
        }
        let _ = child.wait();
    }
}
