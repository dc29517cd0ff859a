//! The service of an instance: started, waited for, stopped.
//!
//! What is swapped beneath it is the caller's: the program comes prepared. So is what looks at it
//! while it runs: each wait calls `tick`.

use std::fs::{self, File};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use refit_run::tree::{self, PROC, Part};
use refit_run::{End, Ended, Prepared, Running, doze, interruptions, process_name, top_of};

use crate::error::InstanceError;
use crate::hook::Hook;
use crate::instance::Instance;
use crate::output::last_lines;
use crate::ports::is_listening;
use crate::running_hook::TICK;
use crate::start::Ready;

/// Between two looks whether a service is ready: its time to be ready is known this well.
const READY_TICK: Duration = Duration::from_millis(2);

/// The longest that a service that closed its connections takes to end.
const DYING: Duration = Duration::from_millis(100);

/// The longest that a service that failed may take to end before it is killed.
const ABORT_TIMEOUT: Duration = Duration::from_secs(3);

/// A service that was started.
pub struct Service {
    running: Running,
    began: Instant,
}

impl Service {
    /// Starts a program that was prepared with the words of [`Instance::program`] and the
    /// variables of [`Instance::env`]. It is not ready yet.
    ///
    /// # Errors
    /// [`InstanceError::Start`].
    pub fn start(
        instance: &Instance,
        prepared: &mut Prepared,
        files: [File; 3],
    ) -> Result<Service, InstanceError> {
        let began = Instant::now();
        let running = prepared.start(files, Some(&instance.dir));
        let running = running.map_err(|error| InstanceError::Start {
            command: instance.program().pop().unwrap_or_default(),
            cause: error.0,
        })?;
        instance.tree.set_leader(Some(running.pid()));
        Ok(Service { running, began })
    }

    /// The process that was started; it may have left a daemon and ended.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// How the process that was started ended, if it has.
    pub fn poll(&mut self) -> Option<Ended> {
        self.running.poll()
    }

    /// Whether the process that was started, or one that it left, still runs.
    pub fn is_alive(&mut self, instance: &Instance) -> bool {
        self.running.poll().is_none() || !instance.tree.is_empty(Part::Service)
    }

    /// Waits until the service is ready; the time since its start.
    ///
    /// # Errors
    /// [`InstanceError::NotReady`], [`InstanceError::EndedBeforeReady`],
    /// [`InstanceError::Interrupted`].
    pub fn wait_ready(
        &mut self,
        instance: &Instance,
        mut tick: impl FnMut(),
    ) -> Result<Duration, InstanceError> {
        let Some(start) = &instance.recipe.service else {
            return Ok(Duration::ZERO);
        };
        loop {
            tick();
            if self.is_ready(instance, &start.ready)? {
                return Ok(self.began.elapsed());
            }
            let output = || last_lines(&instance.service_log);
            if let Some(ended) = self.running.poll()
                && instance.tree.is_empty(Part::Service)
            {
                return Err(InstanceError::EndedBeforeReady {
                    end: how_it_ended(&ended),
                    output: output(),
                });
            }
            if interruptions() > 1 {
                return Err(InstanceError::Interrupted);
            }
            if self.began.elapsed() > start.ready_timeout {
                return Err(InstanceError::NotReady {
                    timeout: start.ready_timeout,
                    missing: missing(&start.ready),
                    output: output(),
                });
            }
            doze(READY_TICK);
        }
    }

    fn is_ready(&self, instance: &Instance, ready: &Ready) -> Result<bool, InstanceError> {
        Ok(match ready {
            Ready::Tcp(name) => is_listening(instance.port(name).unwrap_or(0)),
            Ready::Unix(path) => listens(&instance.dir.join(path)),
            Ready::Log(regex, file) => {
                let log = match file {
                    Some(file) => instance.dir.join(file),
                    None => instance.service_log.clone(),
                };
                let text = fs::read(log).unwrap_or_default();
                regex.is_match(&String::from_utf8_lossy(&text))
            }
            Ready::Command(command) => {
                let timeout = instance.recipe.service.as_ref().map(|s| s.ready_timeout);
                let left = timeout
                    .unwrap_or_default()
                    .saturating_sub(self.began.elapsed());
                let key = Hook::Ready.key();
                match instance.run_command(key, command, left, || true) {
                    Ok(_) => true,
                    Err(error) if error.is_refits_own() => return Err(error),
                    Err(_) => false,
                }
            }
        })
    }

    /// Runs a hook while the service has to live. Where the service ends, that and its last lines
    /// are the error: they tell more than what the hook noticed of it.
    ///
    /// # Errors
    /// [`InstanceError::ServiceEnded`], and those of [`Instance::run_hook`].
    pub fn run_hook(
        &mut self,
        instance: &Instance,
        hook: Hook,
        mut tick: impl FnMut(),
    ) -> Result<Duration, InstanceError> {
        let result = instance.run_hook(hook, || {
            tick();
            self.is_alive(instance)
        });
        self.or_ended(instance, hook.key(), result)
    }

    /// As [`Service::run_hook`], for a command that is not a hook.
    ///
    /// # Errors
    /// The command fails, or takes too long.
    pub fn run_command(
        &mut self,
        instance: &Instance,
        key: &str,
        command: &str,
        mut tick: impl FnMut(),
    ) -> Result<Duration, InstanceError> {
        let timeout = instance.recipe.load_timeout;
        let result = instance.run_command(key, command, timeout, || {
            tick();
            self.is_alive(instance)
        });
        self.or_ended(instance, key, result)
    }

    fn or_ended<T>(
        &mut self,
        instance: &Instance,
        key: &str,
        result: Result<T, InstanceError>,
    ) -> Result<T, InstanceError> {
        if let Err(error) = &result {
            if error.is_refits_own() {
                return result;
            }
            // A load may see the connection's end before the process has ended.
            let began = Instant::now();
            while self.is_alive(instance) && began.elapsed() < DYING {
                doze(READY_TICK);
            }
        }
        if interruptions() > 1 || self.is_alive(instance) {
            return result;
        }
        let end = self.running.poll();
        Err(InstanceError::ServiceEnded {
            key: key.to_owned(),
            end: end.map_or_else(String::new, |end| format!(", {}", how_it_ended(&end))),
            output: last_lines(&instance.service_log),
        })
    }

    /// Ends the service as the recipe describes it. Whatever comes of that, none of the
    /// instance's processes is left.
    ///
    /// # Errors
    /// `service.stop` failed, or processes did not end by themselves.
    pub fn stop(
        &mut self,
        instance: &Instance,
        mut tick: impl FnMut(),
    ) -> Result<(), InstanceError> {
        let Some(start) = &instance.recipe.service else {
            return Ok(());
        };
        let asked = if start.stop.is_some() {
            instance.run_hook(Hook::Stop, || true).map(drop)
        } else {
            self.terminate(instance);
            Ok(())
        };
        let left = self.wait_for_end(instance, start.stop_timeout, &mut tick);
        let names = names(&left);
        let is_running = self.running.poll().is_none();
        self.kill(instance);
        asked?;
        if !left.is_empty() && interruptions() < 2 {
            let what = if is_running {
                "did not end"
            } else {
                "left processes behind"
            };
            return Err(InstanceError::NotStopped {
                what,
                timeout: start.stop_timeout,
                names,
                output: last_lines(&instance.service_log),
            });
        }
        instance.expect_no_processes()
    }

    /// Ends a service that has failed: what matters is that nothing is left.
    pub fn abort(&mut self, instance: &Instance, mut tick: impl FnMut()) {
        self.terminate(instance);
        self.wait_for_end(instance, ABORT_TIMEOUT, &mut tick);
        self.kill(instance);
    }

    /// The processes that are left after the timeout, or none.
    fn wait_for_end(
        &mut self,
        instance: &Instance,
        timeout: Duration,
        tick: &mut impl FnMut(),
    ) -> Vec<u32> {
        let tree = &instance.tree;
        let began = Instant::now();
        loop {
            tick();
            tree.reap();
            let has_ended = self.running.poll().is_some();
            let left = tree.members(Part::Service);
            let nobody = has_ended && left.is_empty() && tree.is_empty(Part::Service);
            if nobody || began.elapsed() > timeout || interruptions() > 1 {
                return left;
            }
            doze(TICK);
        }
    }

    /// Asks what was started to end, or the daemon that it left.
    fn terminate(&mut self, instance: &Instance) {
        if self.running.poll().is_none() {
            self.running.terminate();
        } else if let Some(daemon) =
            top_of(Path::new(PROC), &instance.tree.members(Part::Service), 0)
        {
            tree::terminate(daemon);
        }
    }

    fn kill(&mut self, instance: &Instance) {
        instance.tree.kill(Part::Service);
        self.running.kill();
        while self.running.poll().is_none() {
            doze(TICK);
        }
        instance.tree.set_leader(None);
    }
}

impl Instance {
    /// Whether what the service and hooks started in the background has ended; what has not is
    /// killed.
    ///
    /// # Errors
    /// [`InstanceError::Outlived`].
    pub fn expect_no_processes(&self) -> Result<(), InstanceError> {
        let left = [Part::Hooks, Part::Service].map(|part| self.tree.members(part));
        let left = left.concat();
        if left.is_empty() {
            return Ok(());
        }
        let names = names(&left);
        self.tree.kill(Part::Hooks);
        self.tree.kill(Part::Service);
        Err(InstanceError::Outlived { names })
    }
}

/// A process accepts connections on the socket, or reads datagrams from it.
fn listens(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
        || UnixDatagram::unbound().is_ok_and(|socket| socket.connect(path).is_ok())
}

fn missing(ready: &Ready) -> String {
    match ready {
        Ready::Tcp(name) => format!("nobody listens on port {name}"),
        Ready::Unix(path) => format!("nobody listens on {path}"),
        Ready::Log(regex, file) => format!(
            "no line of {} matches `{}`",
            file.as_deref().unwrap_or("its output"),
            regex.as_str().trim_start_matches("(?m)")
        ),
        Ready::Command(command) => format!("`{command}` fails"),
    }
}

/// How a program ended, for a message.
#[must_use]
pub fn how_it_ended(ended: &Ended) -> String {
    match ended.end {
        End::Exited(code) => format!("exit code {code}"),
        End::Signaled(signal) => format!("signal {signal}"),
    }
}

/// Some processes, for a message.
#[must_use]
pub fn names(pids: &[u32]) -> String {
    let name = |pid: &u32| process_name(Path::new(PROC), *pid).unwrap_or_default();
    let named = pids
        .iter()
        .take(5)
        .map(|pid| format!("{} (pid {pid})", name(pid)));
    named.collect::<Vec<_>>().join(", ")
}
