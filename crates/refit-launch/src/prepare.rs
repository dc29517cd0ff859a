//! Everything that is checked and made before the program starts.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use refit_knobs::{Assignment, Launch, Preload, SwitchRule};
use refit_session::file_events::FileRing;
use refit_session::{
    DURABILITY, EventRing, HEAP, HEAP_NEW, Knob, Library, POLICY_ANSWERED, POLICY_COUNT,
    POLICY_DENY_RINGS, POLICY_FOLLOW, POLICY_TRACE, Policy, SYNC, Session, SessionError,
};

use crate::environment::Environment;
use crate::filter::Rings;
use crate::options::Options;
use crate::planned_filter::PlannedFilter;
use crate::policy_rules::{rules, scopes};
use crate::seccomp::{Backend, Seccomp, inherited_filters};
use crate::sys::ended::Ended;
use crate::sys::filter::Amendment;
use crate::sys::program::{Apart, Program};
use crate::sys::running::{Running, measure};
use crate::sys::started::StartError;
use crate::sys::supervise::supervise;
use crate::target::{Kind, Target, find_in_path};
use crate::{LaunchError, allocator, allocator_options, disk, library, thp, zone};

/// A program that is ready to start.
pub struct Prepared {
    program: Program,
    /// The session directory.
    pub session: Session,
    /// What the command is; `None` when there is no such file.
    pub target: Option<Target>,
    /// The memory that all processes write: traced calls, the emulated disk's queues.
    /// `None` when nothing needs it.
    pub event_ring: Option<EventRing>,
    /// What each rule of the policy is for, as a setting's scope is written.
    pub scopes: Vec<Option<String>>,
    /// What processes do to files, where they tell it.
    pub file_ring: Option<FileRing>,
    /// refit's library is among what reaches the program.
    pub preloads: bool,
    /// The heap library is among it, too.
    pub heap: bool,
    /// The filter beneath it.
    pub seccomp: Seccomp,
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
    if let Some((name, value)) = launch.load.first() {
        return Err(LaunchError::LoadOfNobody {
            setting: format!("load.{name}={value}"),
        });
    }
    if let Some(file) = &launch.schema {
        return Err(LaunchError::SchemaOfNobody { file: file.clone() });
    }
    let command = replaced(command, launch, options)?;
    let thp = thp::action(launch.thp)?;
    launch.tz.iter().try_for_each(|zone| zone::check(zone))?;
    let (mut policy, event_ring) = policy(launch, options)?;
    let (flags, inherited_filters) = (policy.flags, policy.seccomp_filters);
    let mut env = Environment::inherited();
    env.assign(launch.variables());
    let target = find_in_path(&command[0], env.get("PATH")).map(|path| Target::look(&path));
    // First of all, as it takes the longest, and by itself.
    let planned = PlannedFilter::of(launch, options, target.as_ref());
    let begun = planned.begin(options, &mut policy, event_ring.as_ref());
    let libraries = Libraries::place(launch, options)?;
    if !options.bare {
        env.forget_outer();
        env.assign(Assignment::preload(texts(
            &libraries.preloaded(target.as_ref()),
        )?));
    }
    policy.library = texts(&libraries.own)?;
    policy.preloads = texts(&libraries.further)?;
    // What is put back at exec as well.
    let of_malloc = launch.malloc.iter().flat_map(|malloc| &malloc.env);
    policy.env = of_malloc
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let scopes = scopes(launch);

    let session = Session::create(options.count || options.heap)?;
    if libraries.with_own && !options.bare {
        env.set("REFIT_SESSION", session.path.as_os_str());
    }
    let file = match write_policy(&session, &mut policy) {
        Ok(file) => file,
        Err(error) => {
            session.remove();
            return Err(error.into());
        }
    };
    let file_ring = match file_ring(&session, options) {
        Ok(ring) => ring,
        Err(error) => {
            session.remove();
            return Err(error);
        }
    };
    // Where there is no listener in the end, the program must not ask.
    let page = Amendment {
        file: file.into(),
        flags,
        of_filter: policy.flags & POLICY_ANSWERED,
        inherited_filters,
    };
    let seccomp = begun.map_or_else(|| planned.without_guardian(), |begun| begun.finish(page));
    if let Some(bytes) = options.environment_bytes {
        env.fill_up_to(bytes);
    }
    let words = command.iter().map(|word| c_string(word.as_bytes()));
    let program = Program {
        argv: words.collect(),
        envp: env.entries().map(|entry| c_string(&entry)).collect(),
        thp,
        no_new_privs: planned.sets_no_new_privs(options),
        own_peak: false,
        apart: None,
    };
    Ok(Prepared {
        program,
        session,
        target,
        event_ring,
        file_ring,
        scopes,
        preloads: libraries.with_own,
        heap: options.heap && !options.bare,
        seccomp: Seccomp::new(seccomp),
    })
}

/// The command with the program of the settings.
fn replaced(
    command: &[OsString],
    launch: &Launch,
    options: &Options,
) -> Result<Vec<OsString>, LaunchError> {
    let mut command = command.to_vec();
    if let (Some(program), Some(first)) = (&launch.program, command.first_mut()) {
        if options.of_recipe {
            return Err(LaunchError::ProgramOfRecipe {
                program: program.clone(),
            });
        }
        *first = program.into();
    }
    Ok(command)
}

/// What the program is told, without its paths, and the memory that its processes
/// share where they need some.
fn policy(launch: &Launch, options: &Options) -> Result<(Policy, Option<EventRing>), LaunchError> {
    let disk = match &launch.disk {
        Some(rule) => Some(disk::emulated(&rule.disk)?),
        None => None,
    };
    let shared = |cause| LaunchError::SharedMemory { cause };
    let event_ring = if disk.is_some() || options.trace {
        Some(EventRing::create().map_err(shared)?)
    } else {
        None
    };
    let disk_rules = launch.disk.iter().map(|rule| SwitchRule {
        scope: rule.scope.clone(),
        on: false,
    });
    let disk_rules: Vec<SwitchRule> = disk_rules.collect();
    let root = std::fs::metadata("/").map_err(|cause| LaunchError::Root { cause })?;
    let flags = [
        (options.count, POLICY_COUNT),
        (options.follow_env, POLICY_FOLLOW),
        (options.trace, POLICY_TRACE),
        (options.reach.rings == Rings::Deny, POLICY_DENY_RINGS),
    ];
    let set = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag);
    let policy = Policy {
        flags: set.sum(),
        rules: rules(Knob::Sync, &launch.sync)
            .chain(rules(Knob::Odirect, &launch.odirect))
            .chain(rules(Knob::Disk, &disk_rules))
            .collect(),
        library: String::new(),
        preloads: String::new(),
        session: String::new(),
        env: Vec::new(),
        seccomp_filters: inherited_filters(),
        filter: Vec::new(),
        root: (root.dev(), root.ino()),
        disk,
        seed: options.seed,
        event_ring: event_ring.as_ref().map(EventRing::id),
    };
    Ok((policy, event_ring))
}

/// The policy with its session's path, in the session.
fn write_policy(session: &Session, policy: &mut Policy) -> Result<File, SessionError> {
    policy.session = text(&session.path)?;
    session.write_policy(policy)
}

/// The ring of events about files, where they are wanted.
fn file_ring(session: &Session, options: &Options) -> Result<Option<FileRing>, LaunchError> {
    let create = |acknowledges| {
        let ring = FileRing::create(&session.path, acknowledges);
        ring.map_err(|cause| LaunchError::SharedMemory { cause })
    };
    options.durability.map(create).transpose()
}

/// What is preloaded.
struct Libraries {
    /// refit's own.
    own: Vec<PathBuf>,
    /// Whether they are among them.
    with_own: bool,
    /// The allocator's, and those that the user named.
    further: Vec<PathBuf>,
}

impl Libraries {
    /// Places refit's own, finds the others, and loads all of them once.
    fn place(launch: &Launch, options: &Options) -> Result<Libraries, LaunchError> {
        let with_own = options.reach.backend != Backend::Seccomp;
        if options.heap && !with_own {
            return Err(LaunchError::HeapWithoutPreload);
        }
        if options.durability.is_some() && !with_own {
            return Err(LaunchError::DurabilityWithoutPreload);
        }
        // What tells of files sees each call first, and the sync library makes it.
        let durability = options.durability.map(|_| DURABILITY);
        let heap = options.heap.then_some(HEAP);
        let own: Vec<Library> = durability.into_iter().chain([SYNC]).chain(heap).collect();
        let of_operators = options.heap.then_some(HEAP_NEW);
        let placed: Vec<Library> = own.iter().copied().chain(of_operators).collect();
        let directory = library::place_libraries(&placed)?;
        let mut further = Vec::new();
        for preload in launch.preloads() {
            match preload {
                Preload::Allocator(malloc) => {
                    let directory = options.allocator_dir.as_deref();
                    let library = allocator::library(malloc, directory)?;
                    allocator_options::check(malloc, library.as_deref())?;
                    further.extend(library);
                }
                Preload::File(path) => further.push(path.to_owned()),
            }
        }
        if options.heap && further.iter().any(|path| names_operator_new(path)) {
            further.insert(0, directory.join(HEAP_NEW.name));
        }
        let libraries = Libraries {
            own: own
                .iter()
                .map(|library| directory.join(library.name))
                .collect(),
            with_own,
            further,
        };
        library::test_load(&directory, &libraries.all())?;
        Ok(libraries)
    }

    /// refit's own, where they reach the program.
    fn own(&self) -> &[PathBuf] {
        match self.with_own {
            true => &self.own,
            false => &[],
        }
    }

    fn all(&self) -> Vec<PathBuf> {
        [self.own(), &self.further].concat()
    }

    /// What the first program takes of them.
    fn preloaded(&self, target: Option<&Target>) -> Vec<PathBuf> {
        match target {
            Some(target) if target.rejects_library() => Vec::new(),
            // What else there is was made for glibc: musl's ld.so would refuse it.
            Some(target) if target.kind == Kind::Musl => self.own().to_vec(),
            _ => self.all(),
        }
    }
}

/// Whether a library defines, or uses, the C++ operator new (its mangled name in the
/// Itanium C++ ABI).
fn names_operator_new(path: &Path) -> bool {
    const NAME: &[u8] = b"_Znwm\0";
    std::fs::read(path).is_ok_and(|bytes| bytes.windows(NAME.len()).any(|part| part == NAME))
}

/// Paths as the policy holds them.
fn texts(paths: &[PathBuf]) -> Result<String, SessionError> {
    let texts = paths.iter().map(|path| text(path));
    Ok(texts.collect::<Result<Vec<_>, _>>()?.join(":"))
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
    /// input, output and error, in a process group of its own. With `own_peak` it is
    /// started so that a small peak memory is known too; the kernel's witness does not
    /// know such a program as refit's child.
    ///
    /// # Errors
    /// The exec failed; the session is still there.
    pub fn measure(
        &mut self,
        files: [File; 3],
        directory: Option<&Path>,
        timeout: Option<Duration>,
        own_peak: bool,
        tick: impl FnMut(),
    ) -> Result<Ended, StartError> {
        self.set_apart(files, directory);
        self.program.own_peak = own_peak;
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
