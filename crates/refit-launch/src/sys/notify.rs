//! The listener of a filter (seccomp_unotify(2)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::shared_memory::shared;

/// Room for a struct seccomp_notif, which may grow (SECCOMP_GET_NOTIF_SIZES).
const NOTIFICATION: usize = 256;

shared! {
    /// One call that waits for its answer.
    pub struct Slot {
        /// As the kernel wrote it, all zeros when the slot is free: SECCOMP_IOCTL_
        /// NOTIF_RECV writes here, so that an id that was received is on record
        /// whatever happens to the receiver.
        pub notification: [AtomicU64; NOTIFICATION / 8],
        /// CLOCK_MONOTONIC, ns, when it came.
        pub since_ns: AtomicU64,
        /// The pid of who opens a file for it, 0: nobody (`guardian/opener.rs`).
        pub opener: AtomicU32,
        /// The pid of who goes on where the opener is killed, 0: nobody.
        pub standby: AtomicU32,
        /// 1 + the index of its executable, 0: it was not counted yet.
        pub executable: AtomicU32,
        /// The program's descriptor of the file that was opened for it.
        pub descriptor: AtomicI32,
    }
}

/// One call of a program.
#[derive(Clone, Copy, Debug)]
pub struct Notification {
    /// Names it towards the kernel; never 0.
    pub id: u64,
    /// The thread, as refit's pid namespace names it; 0: it is not in there.
    pub tid: u32,
    /// System call number.
    pub number: u32,
    /// AUDIT_ARCH_*.
    pub arch: u32,
    /// Its arguments.
    pub args: [u64; 6],
}

/// What the program gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The kernel does the call.
    Continue,
    /// It returns this.
    Value(i32),
    /// It fails with this errno.
    Error(i32),
}

/// Whether this kernel's structs fit into ours.
pub fn fits() -> bool {
    let mut sizes = [0_u16; 3];
    // SAFETY: the kernel writes three u16, as many as there are.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_NOTIF_SIZES,
            0_u32,
            sizes.as_mut_ptr(),
        )
    };
    result == 0 && sizes.iter().all(|size| usize::from(*size) <= NOTIFICATION)
}

/// Whether this process may make the ioctls of a listener. A seccomp filter around
/// refit can refuse them: then calls would come, and nobody could receive them.
pub fn is_allowed() -> bool {
    const NO_DESCRIPTOR: i32 = -1;
    let of_a_listener = [
        libc::SECCOMP_IOCTL_NOTIF_RECV,
        libc::SECCOMP_IOCTL_NOTIF_SEND,
        libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
    ];
    of_a_listener.iter().all(|request| {
        // SAFETY: the kernel refuses the descriptor before it looks at the argument.
        unsafe { libc::ioctl(NO_DESCRIPTOR, *request, 0) };
        io::Error::last_os_error().raw_os_error() == Some(libc::EBADF)
    })
}

impl Slot {
    /// Takes the next call into this slot, which must be free. `None`: its
    /// program was killed, or a signal handler interrupted it.
    pub fn receive(&self, listener: BorrowedFd<'_>) -> Option<Notification> {
        let buffer = self.notification.as_ptr().cast_mut();
        // SAFETY: the slot is free, so all zeros as the kernel wants it, and has
        // room for what `fits` checked; atomics may be written from outside.
        let result =
            unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, buffer) };
        if result < 0 {
            self.clear();
            return None;
        }
        self.read()
    }

    /// What lies in the slot.
    pub fn read(&self) -> Option<Notification> {
        let word = |at: usize| self.notification[at].load(Relaxed);
        let halves = |at: usize| (word(at) as u32, (word(at) >> 32) as u32);
        let (tid, _flags) = halves(1);
        let (number, arch) = halves(2);
        (word(0) != 0).then(|| Notification {
            id: word(0),
            tid,
            number,
            arch,
            args: std::array::from_fn(|i| word(4 + i)),
        })
    }

    /// Makes the slot free.
    pub fn clear(&self) {
        self.opener.store(0, Relaxed);
        self.standby.store(0, Relaxed);
        self.executable.store(0, Relaxed);
        self.descriptor.store(0, Relaxed);
        for word in self.notification.iter().rev() {
            word.store(0, Relaxed);
        }
    }
}

/// Answers a call, unless it does not wait any more.
pub fn answer(listener: BorrowedFd<'_>, id: u64, answer: Answer) {
    let mut response = [0_u64; NOTIFICATION / 8];
    response[0] = id;
    let (value, error, flags) = match answer {
        Answer::Continue => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE),
        Answer::Value(value) => (i64::from(value), 0, 0),
        Answer::Error(errno) => (0, -errno, 0),
    };
    response[1] = value.cast_unsigned();
    response[2] = u64::from(error.cast_unsigned()) | flags << 32;
    // SAFETY: a struct seccomp_notif_resp (id, val, error, flags) with zeros
    // after it, as large as `fits` checked.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SEND,
            response.as_ptr(),
        );
    }
}

/// Whether the call still waits for its answer: its thread lives, and its id is
/// that thread's.
pub fn still_waits(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the kernel reads eight bytes.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
            &raw const id,
        ) == 0
    }
}

/// Gives the program a descriptor of this file; the answer is still to be sent.
///
/// SECCOMP_ADDFD_FLAG_SEND would do both, but where the caller is killed in it
/// the program gets 0 for an answer, and no descriptor (kernel/seccomp.c,
/// seccomp_notify_addfd: the state is set before, and stays).
pub fn add_descriptor(
    listener: BorrowedFd<'_>,
    id: u64,
    file: BorrowedFd<'_>,
    close_on_exec: bool,
) -> io::Result<i32> {
    let add = libc::seccomp_notif_addfd {
        id,
        flags: 0,
        srcfd: file.as_raw_fd().cast_unsigned(),
        newfd: 0,
        newfd_flags: if close_on_exec {
            libc::O_CLOEXEC.cast_unsigned()
        } else {
            0
        },
    };
    // SAFETY: the kernel reads the struct, which outlives the call.
    let result = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ADDFD,
            &raw const add,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Since Linux 6.6: the asking thread and the answering one share a processor
/// instead of waking each other across two. Elsewhere nothing changes.
pub fn wake_on_same_processor(listener: BorrowedFd<'_>) {
    const SYNC_WAKE_UP: u64 = 1; // SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
    // SAFETY: the argument is a plain integer.
    unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS,
            SYNC_WAKE_UP,
        )
    };
}
