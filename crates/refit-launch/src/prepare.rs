//! Everything that is checked and made before the program starts.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use refit_knobs::{Launch, Scope, SwitchRule};
use refit_session::{
    EventRing, Knob, POLICY_COUNT, POLICY_DENY_RINGS, POLICY_FOLLOW, POLICY_NOTIFIED, POLICY_TRACE,
    Policy, Rule, Session, SessionError,
};

use crate::environment::Environment;
use crate::filter::Rings;
use crate::seccomp::{Backend, Begun, Plan, Reach, Seccomp, inherited_filters, wanted};
use crate::sys::ended::{Ended, StartError};
use crate::sys::filter::Amendment;
use crate::sys::program::{Apart, Program};
use crate::sys::running::{Running, measure};
use crate::sys::supervise::supervise;
use crate::target::{Kind, Target, find_in_path};
use crate::{LaunchError, allocator, disk, place, scope, thp};

/// How to launch, beside the settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Processes count their calls for refit.
    pub count: bool,
    /// Variables that a parent scrubbed are put back at exec.
    pub follow_env: bool,
    /// Looked at first for allocators.
    pub allocator_dir: Option<PathBuf>,
    /// Nothing of refit goes beneath the program.
    pub bare: bool,
    /// The environment is filled up to this many bytes: its size moves the
    /// stack, and that alone can make a program faster or slower (Mytkowicz et
    /// al., ASPLOS 2009).
    pub environment_bytes: Option<usize>,
    /// Each sync call is written to the board.
    pub trace: bool,
    /// Seed of the emulated disk's draws.
    pub seed: u64,
    /// By what the program's calls are reached.
    pub reach: Reach,
}

impl Default for Options {
    /// Counting, following, and nothing special.
    fn default() -> Options {
        Options {
            count: true,
            follow_env: true,
            allocator_dir: None,
            bare: false,
            environment_bytes: None,
            trace: false,
            seed: 0,
            reach: Reach::default(),
        }
    }
}

/// A program that is ready to start.
pub struct Prepared {
    program: Program,
    /// The session directory.
    pub session: Session,
    /// What the command is; `None` when there is no such file.
    pub target: Option<Target>,
    /// What all processes write together; `None` when nothing needs it.
    pub board: Option<EventRing>,
    /// What each rule of the policy is for, as a setting's scope is written.
    pub scopes: Vec<Option<String>>,
    /// refit's library is among what reaches the program.
    pub preloads: bool,
    /// The filter beneath it.
    pub seccomp: Seccomp,
}

fn rules(knob: Knob, switches: &[SwitchRule]) -> impl Iterator<Item = Rule> {
    switches.iter().map(move |switch| {
        let (exe, path) = match &switch.scope {
            None => (None, None),
            Some(Scope::Exe(name)) => (Some(name.to_string()), None),
            Some(Scope::Path(pattern)) => (None, Some(scope::resolved(pattern))),
        };
        Rule {
            knob,
            exe,
            path,
            on: switch.on,
        }
    })
}

fn scope_text(rule: &Rule) -> Option<String> {
    let knob = match rule.knob {
        Knob::Sync => "sync",
        Knob::Odirect => "odirect",
        Knob::Disk => "disk",
    };
    match (&rule.exe, &rule.path) {
        (Some(name), _) => Some(format!("{knob}@exe:{name}")),
        (None, Some(pattern)) => Some(format!("{knob}@{pattern}")),
        (None, None) => None,
    }
}

fn text(path: &Path) -> Result<String, SessionError> {
    path.to_str()
        .map(str::to_owned)
        .ok_or(SessionError::TooManySettings)
}

fn c_string(bytes: &[u8]) -> CString {
    CString::new(bytes).expect("arguments and variables cannot hold a NUL")
}

/// Places the library, makes the session and the environment.
///
/// # Errors
/// [`LaunchError`]; nothing was started, and no session is left behind.
pub fn prepare(
    launch: &Launch,
    options: &Options,
    command: &[OsString],
) -> Result<Prepared, LaunchError> {
    if let Some((name, value)) = launch.conf.first() {
        return Err(LaunchError::ConfOfNobody {
            setting: format!("conf.{name}={value}"),
        });
    }
    let thp = thp::action(launch.thp)?;
    let preloads = options.reach.backend != Backend::Seccomp;
    let disk = match &launch.disk {
        Some(rule) => Some(disk::emulated(&rule.disk)?),
        None => None,
    };
    let board = if disk.is_some() || options.trace {
        Some(EventRing::create().map_err(|cause| LaunchError::Board { cause })?)
    } else {
        None
    };
    let disk_rule = launch.disk.iter().map(|rule| SwitchRule {
        scope: rule.scope.clone(),
        on: false,
    });
    let disk_rule: Vec<SwitchRule> = disk_rule.collect();
    let rules: Vec<Rule> = rules(Knob::Sync, &launch.sync)
        .chain(rules(Knob::Odirect, &launch.odirect))
        .chain(rules(Knob::Disk, &disk_rule))
        .collect();
    let root = std::fs::metadata("/").map_err(|cause| LaunchError::Board { cause })?;
    let filter = wanted(launch, &options.reach).filter(|_| !options.bare);
    let flags = [
        (options.count, POLICY_COUNT),
        (options.follow_env, POLICY_FOLLOW),
        (options.trace, POLICY_TRACE),
        (options.reach.rings == Rings::Deny, POLICY_DENY_RINGS),
    ];
    let unheard = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag);
    let unheard: u32 = unheard.sum();
    let inherited_filters = inherited_filters();
    let mut policy = Policy {
        flags: unheard,
        rules,
        library: String::new(),
        preloads: String::new(),
        session: String::new(),
        env: Vec::new(),
        seccomp_filters: inherited_filters + u32::from(filter.is_some()),
        root: (root.dev(), root.ino()),
        disk,
        seed: options.seed,
        event_ring: board.as_ref().map(EventRing::id),
    };
    // First of all, as it takes the longest, and by itself.
    let begun = filter
        .map(|filter| Begun::begin(filter, options.reach.no_new_privs, &policy, board.as_ref()));

    let library = place::place_library()?;
    let mut more = Vec::new();
    if let Some(malloc) = &launch.malloc {
        more.extend(allocator::library(
            malloc,
            options.allocator_dir.as_deref(),
        )?);
    }
    more.extend(launch.preload.iter().cloned());
    let all: Vec<PathBuf> = preloads
        .then(|| library.clone())
        .into_iter()
        .chain(more.iter().cloned())
        .collect();
    place::test_load(&library, &all)?;

    let mut env = Environment::inherited();
    for (name, value) in &launch.env {
        env.set(name, value);
    }
    let mut put_back = Vec::new();
    for (name, value) in launch.malloc.iter().flat_map(|malloc| &malloc.env) {
        env.set_allocator_variable(name, value);
        put_back.push(format!("{name}={value}"));
    }
    let path = env.get("PATH").map(std::ffi::OsStr::to_owned);
    let target = find_in_path(&command[0], path.as_deref()).map(|path| Target::look(&path));
    match &target {
        _ if options.bare => {}
        Some(target) if target.rejects_library() => env.preload(&[]),
        // What else there is was made for glibc: musl's ld.so would refuse it.
        Some(target) if target.kind == Kind::Musl => env.preload(&all[..usize::from(preloads)]),
        _ => env.preload(&all),
    }

    policy.library = text(&library)?;
    policy.preloads = more
        .iter()
        .map(|path| text(path))
        .collect::<Result<Vec<_>, _>>()?
        .join(":");
    policy.env = put_back;
    let session = Session::create()?;
    if preloads && !options.bare {
        env.set("REFIT_SESSION", session.path.as_os_str());
    }
    let scopes = policy.rules.iter().map(scope_text).collect();
    if begun.is_some() {
        policy.flags |= POLICY_NOTIFIED;
    }
    let written = text(&session.path).and_then(|path| {
        policy.session = path;
        session.write_policy(&policy)
    });
    let file = match written {
        Ok(file) => file,
        Err(error) => {
            session.remove();
            return Err(error.into());
        }
    };
    // Where there is no listener in the end, the program must not ask.
    let page = Amendment {
        file: file.into(),
        flags: unheard,
        inherited_filters,
    };
    let seccomp = begun.map_or(Plan::Nothing, |begun| begun.finish(page));
    if let Some(bytes) = options.environment_bytes {
        env.fill_up_to(bytes);
    }
    let program = Program {
        argv: command
            .iter()
            .map(|word| c_string(word.as_bytes()))
            .collect(),
        envp: env.entries().map(|entry| c_string(&entry)).collect(),
        thp,
        apart: None,
    };
    Ok(Prepared {
        program,
        session,
        target,
        board,
        scopes,
        preloads,
        seccomp: Seccomp::new(seccomp),
    })
}

impl Prepared {
    /// Runs the program to its end. `tick` is called this often meanwhile.
    ///
    /// # Errors
    /// The exec failed; the session is still there.
    pub fn run(&self, every: Duration, tick: impl FnMut()) -> Result<Ended, StartError> {
        let started = |pid| self.session.note_leader(pid);
        supervise(
            &self.program,
            self.seccomp.installation(),
            started,
            every,
            tick,
        )
    }

    /// Runs the program to its end or to the timeout, with these as standard
    /// input, output and error, in a process group of its own.
    ///
    /// # Errors
    /// The exec failed; the session is still there.
    pub fn measure(
        &mut self,
        files: [File; 3],
        directory: Option<&Path>,
        timeout: Option<Duration>,
        tick: impl FnMut(),
    ) -> Result<Ended, StartError> {
        self.set_apart(files, directory);
        measure(
            &self.program,
            self.seccomp.installation(),
            timeout,
            |pid| self.session.note_leader(pid),
            tick,
        )
    }

    /// Starts the program as [`Prepared::measure`] does, and returns at once.
    ///
    /// # Errors
    /// The exec failed; the session is still there.
    pub fn start(
        &mut self,
        files: [File; 3],
        directory: Option<&Path>,
    ) -> Result<Running, StartError> {
        self.set_apart(files, directory);
        let running = Running::start(&self.program, self.seccomp.installation())?;
        self.session.note_leader(running.pid());
        Ok(running)
    }

    fn set_apart(&mut self, files: [File; 3], directory: Option<&Path>) {
        self.program.apart = Some(Apart {
            files,
            directory: directory.map(|path| c_string(path.as_os_str().as_bytes())),
        });
    }

    /// Size of the program's environment in bytes.
    #[must_use]
    pub fn environment_bytes(&self) -> usize {
        let entries = self.program.envp.iter();
        entries.map(|entry| entry.as_bytes_with_nul().len()).sum()
    }

    /// Becomes the program: the same pid, no supervisor, nothing counted.
    /// Returns only when the exec failed. The session is removed by a later
    /// run, when no process uses it any more.
    pub fn replace(&self) -> StartError {
        self.session.note_leader(std::process::id());
        self.program.replace(self.seccomp.installation())
    }
}
