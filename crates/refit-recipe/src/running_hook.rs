//! Hooks and other commands of an instance, run to their end or next to something else.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use refit_run::tree::Part;
use refit_run::{Tree, doze, interruptions, with_first_signals};

use crate::error::InstanceError;
use crate::hook::Hook;
use crate::instance::Instance;
use crate::output::last_lines;

/// How long to sleep where nothing wakes refit.
pub const TICK: Duration = Duration::from_millis(10);

/// A command of an instance that was started. It is killed, with all that it started, when this
/// is dropped before its end.
pub struct RunningHook {
    child: Child,
    tree: Rc<Tree>,
    began: Instant,
    command: String,
    has_ended: bool,
}

impl RunningHook {
    /// How it ended, if it has.
    ///
    /// # Errors
    /// [`InstanceError::Io`].
    pub fn poll(&mut self) -> Result<Option<ExitStatus>, InstanceError> {
        let status = self.child.try_wait().map_err(InstanceError::io(format!(
            "cannot wait for `{}`",
            self.command
        )))?;
        self.has_ended |= status.is_some();
        Ok(status)
    }

    /// The time since its start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

impl Drop for RunningHook {
    fn drop(&mut self) {
        if !self.has_ended {
            self.tree.kill(Part::Hooks);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        self.tree.set_hook(None);
    }
}

impl Instance {
    /// Starts a command in the instance, with the variables and as the user of the recipe, and
    /// with nothing swapped. `output`: its standard output and error.
    ///
    /// # Errors
    /// [`InstanceError::Io`].
    pub fn start_command(
        &self,
        command: &str,
        output: [File; 2],
    ) -> Result<RunningHook, InstanceError> {
        let words = self.words(Part::Hooks, command);
        let [stdout, stderr] = output;
        let mut process = Command::new(&words[0]);
        process
            .args(&words[1..])
            .current_dir(&self.dir)
            .envs(self.env().iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            // What the terminal's Ctrl-C ends is refit's to decide.
            .process_group(0);
        let began = Instant::now();
        let child = with_first_signals(&mut process)
            .spawn()
            .map_err(InstanceError::io(format!("cannot run `{command}`")))?;
        self.tree.set_hook(Some(child.id()));
        Ok(RunningHook {
            child,
            tree: Rc::clone(&self.tree),
            began,
            command: command.to_owned(),
            has_ended: false,
        })
    }

    /// Runs a hook to its end, which has to be a success; how long it took. A recipe without the
    /// hook takes no time. Its output is in [`Instance::hook_output`]. `tick` is called about a
    /// hundred times a second; when it answers `false` the hook is killed, because the service
    /// has ended.
    ///
    /// # Errors
    /// [`InstanceError`]: the hook failed, took longer than its timeout, or could not be started.
    pub fn run_hook(
        &self,
        hook: Hook,
        tick: impl FnMut() -> bool,
    ) -> Result<Duration, InstanceError> {
        let timeout = match (hook, &self.recipe.service) {
            (Hook::Stop, Some(service)) => service.stop_timeout,
            (Hook::Ready, Some(service)) => service.ready_timeout,
            _ => self.recipe.load_timeout,
        };
        match hook.command(&self.recipe.file) {
            Some(command) => self.run_command(hook.key(), command, timeout, tick),
            None => Ok(Duration::ZERO),
        }
    }

    /// As [`Instance::run_hook`], for a command that is not a hook; messages name it `key`.
    ///
    /// # Errors
    /// The command fails, or takes too long.
    pub fn run_command(
        &self,
        key: &str,
        command: &str,
        timeout: Duration,
        mut tick: impl FnMut() -> bool,
    ) -> Result<Duration, InstanceError> {
        let mut running = self.start_command(command, self.hook_files()?)?;
        let key = key.to_owned();
        loop {
            if let Some(status) = running.poll()? {
                let took = running.elapsed();
                return if status.success() {
                    Ok(took)
                } else {
                    let output = self.hook_tail();
                    Err(InstanceError::HookFailed {
                        key,
                        status,
                        output,
                    })
                };
            }
            if running.elapsed() > timeout {
                drop(running);
                let output = self.hook_tail();
                return Err(InstanceError::HookTimeout {
                    key,
                    timeout,
                    output,
                });
            }
            if interruptions() > 1 {
                return Err(InstanceError::Interrupted);
            }
            if !tick() {
                return Err(InstanceError::ServiceEnded {
                    key,
                    end: String::new(),
                    output: String::new(),
                });
            }
            doze(TICK);
        }
    }

    /// The last lines of a hook that failed, for a message.
    fn hook_tail(&self) -> String {
        // On a full disk its own message could not be written either.
        if let Some(base) = self.full_disk() {
            return format!(": no space is left in {}", base.display());
        }
        let errors = last_lines(&self.hook_errors());
        if errors.is_empty() {
            last_lines(&self.hook_output)
        } else {
            errors
        }
    }
}
