//! Installing a filter, between clone and exec.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_int, c_ulong, sock_filter, sock_fprog};
use refit_session::{POLICY_FLAGS, POLICY_SECCOMP_FILTERS};
use rustix::io::{IoSlice, pwrite, retry_on_intr};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// A filter that a child installs on itself, and where it leaves what became of
/// that: parent and child share their memory until the exec.
pub struct Installation {
    /// Sends to a listener what it does not decide; `None`: this kernel has no listener.
    pub listened: Option<Listened>,
    /// The same where nobody may listen; `None`: then there is none.
    pub without_listener: Option<Vec<sock_filter>>,
    /// Gives up the privileges of setuid programs for the right to a filter.
    pub no_new_privs: bool,
    /// What the program reads, should the filter not be there as planned.
    pub policy: Amendment,
    state: AtomicI32,
}

/// A filter with a listener.
pub struct Listened {
    /// Its instructions.
    pub filter: Vec<sock_filter>,
    /// To the guardian's two processes.
    pub guardians: [OwnedFd; 2],
}

/// What the `policy` file has to say where nobody listens.
pub struct Amendment {
    /// The file, open for writing.
    pub file: OwnedFd,
    /// The flags without a filter.
    pub flags: u32,
    /// Those that a filter without a listener adds.
    pub of_filter: u32,
    /// How many filters there are without refit's.
    pub inherited_filters: u32,
}

impl Amendment {
    /// Makes it; async-signal-safe. `is_installed`: the filter is there all the
    /// same.
    pub fn make(&self, is_installed: bool) {
        let filters = self.inherited_filters + u32::from(is_installed);
        let of_filter = if is_installed { self.of_filter } else { 0 };
        for (at, value) in [
            (POLICY_FLAGS, self.flags | of_filter),
            (POLICY_SECCOMP_FILTERS, filters),
        ] {
            // Where that fails, what the program asks is real.
            let _ = pwrite(&self.file, &value.to_ne_bytes(), at as u64);
        }
    }
}

/// What became of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// It is there, and the guardian listens.
    WithListener,
    /// It is there, without a listener: there is one already, or the kernel has none.
    WithoutListener,
    /// The kernel refused it; errno.
    Refused(i32),
}

const NOT_TRIED: i32 = 0;
const WITH_LISTENER: i32 = 1;
const WITHOUT_LISTENER: i32 = 2;
/// The filter is there and nobody took its listener: nothing may be exec'ed.
const NOT_TAKEN: i32 = 3;

impl Installation {
    /// A filter, and the guardian's processes that get its listener.
    pub fn new(
        listened: Option<Listened>,
        without_listener: Option<Vec<sock_filter>>,
        no_new_privs: bool,
        policy: Amendment,
    ) -> Installation {
        Installation {
            listened,
            without_listener,
            no_new_privs,
            policy,
            state: AtomicI32::new(NOT_TRIED),
        }
    }

    /// Whether a program's process has a filter, and nobody to ask.
    pub(super) fn is_not_taken(&self) -> bool {
        self.state.load(Ordering::Relaxed) == NOT_TAKEN
    }

    /// `None` before a program was started with it.
    pub fn installed(&self) -> Option<Installed> {
        match self.state.load(Ordering::Relaxed) {
            NOT_TRIED | NOT_TAKEN => None,
            WITH_LISTENER => Some(Installed::WithListener),
            WITHOUT_LISTENER => Some(Installed::WithoutListener),
            refused => Some(Installed::Refused(-refused)),
        }
    }

    /// Installs it. Only system calls on memory that is there already: async-
    /// signal-safe. An error means that the program must not be exec'ed.
    pub(super) fn install(&self) -> io::Result<()> {
        let state = self.try_install();
        self.state.store(state, Ordering::Relaxed);
        if state == NOT_TAKEN {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        if state != WITH_LISTENER {
            self.policy.make(state == WITHOUT_LISTENER);
        }
        Ok(())
    }

    fn try_install(&self) -> i32 {
        if self.no_new_privs {
            // Refused by no kernel since 3.5; then the filter is.
            let _ = rustix::thread::set_no_new_privs(true);
        }
        // Without SPEC_ALLOW kernels before 5.16 slow the program down.
        let allow = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
        let listen = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        // Once received, a call is not interrupted by a handler.
        let killable = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
        let refused = match &self.listened {
            Some(listened) => match set_filter(allow | listen | killable, &listened.filter) {
                listener @ 0.. => return hand_over(listener, &listened.guardians),
                refused => refused,
            },
            None => -libc::EBUSY,
        };
        match &self.without_listener {
            Some(filter) if refused == -libc::EBUSY => match set_filter(allow, filter) {
                0 => WITHOUT_LISTENER,
                refused => refused,
            },
            _ => refused,
        }
    }
}

fn hand_over(listener: RawFd, guardians: &[OwnedFd; 2]) -> i32 {
    // SAFETY: seccomp(2) made it just now, and nobody else knows it.
    let listener = unsafe { OwnedFd::from_raw_fd(listener) };
    let taken = [&guardians[0], &guardians[1]]
        .map(|socket| send_descriptor(socket.as_fd(), listener.as_fd()));
    if taken.contains(&true) {
        WITH_LISTENER
    } else {
        NOT_TAKEN
    }
}

/// seccomp(2): 0 or a descriptor, or -errno.
fn set_filter(flags: c_ulong, filter: &[sock_filter]) -> c_int {
    let program = sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program, which outlives the call; errno is
    // the calling thread's own.
    unsafe {
        let result = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        );
        if result < 0 {
            -*libc::__errno_location()
        } else {
            result as c_int
        }
    }
}

fn send_descriptor(socket: BorrowedFd<'_>, descriptor: BorrowedFd<'_>) -> bool {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let byte = [IoSlice::new(&[0])];
    retry_on_intr(|| sendmsg(socket, &byte, &mut control, SendFlags::NOSIGNAL)).is_ok()
}
