//! Which seccomp filter goes beneath a program, and whether it may.
//!
//! A filter reaches what no preload can: static programs, Go, 32-bit and setgid
//! ones, and calls by number. It needs a right (seccomp(2)): CAP_SYS_ADMIN, or
//! no_new_privs, which takes their privilege from setuid and setgid programs and
//! is therefore never set unless the user requested it. A refusal is reported, and
//! the program starts without a filter.

mod wanted_filter;

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use refit_session::guardian::GuardianCounts;
use refit_session::{EventRing, Policy};
use rustix::thread::{CapabilitySet, SecureComputingMode, capabilities, secure_computing_mode};

use crate::emulator;
use crate::filter::{Filter, Syncs};
use crate::guardian::{Configuration, Guardian};
use crate::sys::filter::{Amendment, Installation, Installed, Listened};
use crate::sys::notify;
pub(crate) use wanted_filter::at_exec;
pub use wanted_filter::{Backend, Reach, ground, wanted};

/// Why there is no filter, though one was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Neither CAP_SYS_ADMIN nor no_new_privs.
    NoPermission,
    /// Another listener is there already, as under another refit.
    ListenerTaken,
    /// The kernel lacks something that a guardian needs.
    OldKernel,
    /// This emulator of single programs has no seccomp.
    Emulated(String),
    /// A seccomp filter around refit refuses the guardian's ioctls.
    IoctlRefused,
    /// errno of seccomp(2).
    Kernel(i32),
    /// The guardian could not be started.
    NoGuardian(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NoPermission => {
                f.write_str("no permission for seccomp; --no-new-privs would allow it")
            }
            Refusal::ListenerTaken => {
                f.write_str("a seccomp listener is there already, and the kernel allows but one")
            }
            Refusal::OldKernel => f.write_str("seccomp's notifications need Linux 5.19"),
            Refusal::Emulated(emulator) => {
                write!(f, "{emulator}, which emulates this program, has no seccomp")
            }
            Refusal::IoctlRefused => f.write_str(
                "a seccomp filter around refit refuses the ioctl calls that answer notifications",
            ),
            Refusal::Kernel(errno) => {
                write!(f, "seccomp: {}", io::Error::from_raw_os_error(*errno))
            }
            Refusal::NoGuardian(error) => write!(f, "no guardian could be started: {error}"),
        }
    }
}

/// What lies beneath a program that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Beneath {
    /// No filter, as no setting needs one.
    Nothing,
    /// A filter.
    Filter {
        /// How fsync and the like are answered.
        syncs: Syncs,
        /// The guardian receives what the filter does not answer.
        listened: bool,
    },
    /// None beneath the program itself; the preload puts one, which the kernel
    /// answers by itself, beneath each program that it cannot reach, at its exec.
    AtExec,
    /// A filter was wanted and is not there.
    Refused(Refusal),
}

/// What permits this process to install a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// CAP_SYS_ADMIN.
    Capability,
    /// no_new_privs is set already: it was inherited.
    NoNewPrivs,
    /// None; only no_new_privs would give it.
    None,
}

/// What permits this process to install a filter, as the kernel reports it.
#[must_use]
pub fn right() -> Right {
    let can = |set: CapabilitySet| set.contains(CapabilitySet::SYS_ADMIN);
    if capabilities(None).is_ok_and(|sets| can(sets.effective)) {
        Right::Capability
    } else if rustix::thread::no_new_privs().unwrap_or(false) {
        Right::NoNewPrivs
    } else {
        Right::None
    }
}

/// Seccomp filters that this process has, and a program that it starts inherits: a
/// container's, for one. 0 where the kernel does not tell (before Linux 5.9).
#[must_use]
pub(crate) fn inherited_filters() -> u32 {
    // Usually there is none, and /proc takes its time (20 us).
    if matches!(secure_computing_mode(), Ok(SecureComputingMode::Disabled)) {
        return 0;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    lines
        .find_map(|line| line.strip_prefix("Seccomp_filters:"))
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

/// Whether this kernel has all that a guardian needs; the latest is
/// SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, of Linux 5.19: without it every signal
/// handler aborts a call that is being answered.
#[must_use]
pub fn kernel_suffices() -> bool {
    kernel_version() >= (5, 19) && notify::fits()
}

/// The first two numbers of the kernel's release, 0 for what is none.
#[must_use]
pub fn kernel_version() -> (u32, u32) {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    let mut numbers = release.split(['.', '-']).map_while(|n| n.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// A filter that is to be installed, or why there is none.
pub(crate) enum Plan {
    /// No setting needs one.
    Nothing,
    /// The preload installs it where it is needed.
    AtExec,
    /// It is ready.
    Ready {
        /// What it does.
        filter: Filter,
        /// Done by the program's process before its exec.
        installation: Box<Installation>,
        /// refit's side of the guardian; `None`: the kernel answers by itself.
        guardian: Option<Guardian>,
    },
    /// It cannot be installed.
    Refused(Refusal),
}

/// A filter whose guardian is starting, so that what remains to be done is done
/// meanwhile.
pub(crate) struct Begun {
    filter: Filter,
    right: Right,
    /// `None`: this kernel has no notifications, and this filter can do without.
    guardian: Result<Option<(Guardian, [OwnedFd; 2])>, Refusal>,
}

impl Begun {
    /// Starts a guardian for this filter, where that can be installed. Of the
    /// policy it needs no path and no variable.
    pub fn begin(
        filter: Filter,
        no_new_privs: bool,
        policy: &Policy,
        ring: Option<&EventRing>,
    ) -> Begun {
        let right = right();
        let guardian = if right == Right::None && !no_new_privs {
            Err(Refusal::NoPermission)
        } else if !kernel_suffices() {
            match emulator() {
                Some(emulator) => Err(Refusal::Emulated(emulator)),
                None if filter.syncs == Syncs::Ask => Err(Refusal::OldKernel),
                None => Ok(None),
            }
        } else if !notify::is_allowed() {
            Err(Refusal::IoctlRefused)
        } else {
            Guardian::start(Configuration { policy, ring })
                .map(Some)
                .map_err(|error| Refusal::NoGuardian(error.to_string()))
        };
        Begun {
            filter,
            right,
            guardian,
        }
    }

    /// `page` tells the program that there is a guardian.
    pub fn finish(self, page: Amendment) -> Plan {
        let filter = self.filter;
        let (guardian, sockets) = match self.guardian {
            Ok(started) => started.unzip(),
            Err(refusal) => {
                page.make(false);
                return Plan::Refused(refusal);
            }
        };
        let alone = Filter {
            listened: false,
            ..filter
        };
        let without_listener = (filter.syncs != Syncs::Ask).then(|| alone.instructions());
        Plan::Ready {
            filter,
            installation: Box::new(Installation::new(
                sockets.map(|guardians| Listened {
                    filter: filter.instructions(),
                    guardians,
                }),
                without_listener,
                self.right == Right::None,
                page,
            )),
            guardian,
        }
    }
}

impl Plan {
    /// To be done before the exec, which is next.
    pub fn installation(&self) -> Option<&Installation> {
        match self {
            Plan::Ready {
                installation,
                guardian,
                ..
            } => {
                if guardian.as_ref().is_none_or(Guardian::await_fork) {
                    return Some(installation);
                }
                installation.policy.make(false);
                None
            }
            Plan::Nothing | Plan::AtExec | Plan::Refused(_) => None,
        }
    }
}

/// The filter beneath a program, and who answers.
#[derive(Clone)]
pub struct Seccomp(Rc<Plan>);

impl Seccomp {
    /// With this plan.
    pub(crate) fn new(plan: Plan) -> Seccomp {
        Seccomp(Rc::new(plan))
    }

    /// To be done before the exec.
    pub(crate) fn installation(&self) -> Option<&Installation> {
        self.0.installation()
    }

    /// What the guardian has counted so far; nothing without one.
    #[must_use]
    pub fn guardian_counts(&self) -> GuardianCounts {
        match &*self.0 {
            Plan::Ready {
                guardian: Some(guardian),
                ..
            } => guardian.counts(),
            Plan::Ready { guardian: None, .. }
            | Plan::Nothing
            | Plan::AtExec
            | Plan::Refused(_) => GuardianCounts::default(),
        }
    }

    /// Whether it was installed, once the program was started.
    #[must_use]
    pub fn beneath(&self) -> Beneath {
        match &*self.0 {
            Plan::Nothing => Beneath::Nothing,
            Plan::AtExec => Beneath::AtExec,
            Plan::Refused(refusal) => Beneath::Refused(refusal.clone()),
            Plan::Ready {
                filter,
                installation,
                ..
            } => match installation.installed() {
                // It is there for its price alone.
                _ if filter.syncs == Syncs::Leave => Beneath::Nothing,
                Some(Installed::WithListener) => Beneath::Filter {
                    syncs: filter.syncs,
                    listened: true,
                },
                Some(Installed::WithoutListener) => Beneath::Filter {
                    syncs: filter.syncs,
                    listened: false,
                },
                Some(Installed::Refused(libc::EBUSY)) => Beneath::Refused(Refusal::ListenerTaken),
                Some(Installed::Refused(errno)) => Beneath::Refused(Refusal::Kernel(errno)),
                None => Beneath::Refused(Refusal::NoGuardian("it ended".to_owned())),
            },
        }
    }
}
