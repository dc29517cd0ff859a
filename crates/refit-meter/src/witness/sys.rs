//! The raw system calls of the witness.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// linux/mount.h
const FSCONFIG_CMD_CREATE: libc::c_uint = 6;

/// The interface of the kernel's tracepoints, mounted for this process alone:
/// no directory shows it, and it goes with the descriptor.
pub struct Tracefs(OwnedFd);

fn checked(result: libc::c_long) -> io::Result<RawFd> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    RawFd::try_from(result).map_err(io::Error::other)
}

/// Takes what a system call returned.
fn owned(result: libc::c_long) -> io::Result<OwnedFd> {
    let fd = checked(result)?;
    // SAFETY: the kernel just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Tracefs {
    pub fn open() -> io::Result<Tracefs> {
        // SAFETY: a NUL-terminated name and a flag.
        let context =
            owned(unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), 1_u32) })?;
        // SAFETY: the descriptor is open; this command takes nothing more.
        checked(unsafe {
            libc::syscall(
                libc::SYS_fsconfig,
                context.as_raw_fd(),
                FSCONFIG_CMD_CREATE,
                ptr::null::<u8>(),
                ptr::null::<u8>(),
                0,
            )
        })?;
        // SAFETY: the descriptor is open; FSMOUNT_CLOEXEC and no attributes.
        owned(unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), 1_u32, 0_u32) })
            .map(Tracefs)
    }

    pub fn read(&self, path: &str) -> io::Result<String> {
        let path = std::ffi::CString::new(path)?;
        // SAFETY: the descriptor is open, the path ends with NUL.
        let file = unsafe {
            libc::openat(
                self.0.as_raw_fd(),
                path.as_ptr(),
                libc::O_RDONLY | libc::O_CLOEXEC,
            )
        };
        // Of a size unknown before; few are longer.
        let mut text = String::with_capacity(4096);
        File::from(owned(file.into())?).read_to_string(&mut text)?;
        Ok(text)
    }
}

/// struct perf_event_attr of linux/perf_event.h, as far as Linux 4.1 knew it.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
    branch_sample_type: u64,
    sample_regs_user: u64,
    sample_stack_user: u32,
    clockid: i32,
}

const TYPE_SOFTWARE: u32 = 1;
const TYPE_TRACEPOINT: u32 = 2;
const COUNT_SW_DUMMY: u64 = 9;
const SAMPLE_TID: u64 = 1 << 1;
const SAMPLE_TIME: u64 = 1 << 2;
const SAMPLE_RAW: u64 = 1 << 10;
const FORMAT_LOST: u64 = 1 << 4;
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const TASK: u64 = 1 << 13;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;
const FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
/// _IO('$', 1) and _IO('$', 5)
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;

fn watch(processor: i32, more: Attributes) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        sample_period: 1,
        sample_type: more.sample_type | SAMPLE_TID | SAMPLE_TIME,
        read_format: FORMAT_LOST,
        flags: more.flags | SAMPLE_ID_ALL | USE_CLOCKID,
        // The same on all processors; `now_ns` reads it as well.
        clockid: libc::CLOCK_MONOTONIC,
        ..more
    };
    // SAFETY: the structure has the size that it says, and outlives the call.
    owned(unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            -1,
            processor,
            -1,
            FLAG_FD_CLOEXEC,
        )
    })
}

/// Forks, execs, names, exits and executable mappings on a processor.
pub fn watch_processes(processor: i32) -> io::Result<OwnedFd> {
    watch(
        processor,
        Attributes {
            kind: TYPE_SOFTWARE,
            config: COUNT_SW_DUMMY,
            flags: MMAP | MMAP2 | COMM | COMM_EXEC | TASK,
            ..Attributes::default()
        },
    )
}

/// Every event of a tracepoint on a processor.
pub fn watch_tracepoint(processor: i32, id: u16) -> io::Result<OwnedFd> {
    watch(
        processor,
        Attributes {
            kind: TYPE_TRACEPOINT,
            config: id.into(),
            sample_type: SAMPLE_RAW,
            ..Attributes::default()
        },
    )
}

/// `event` writes into the ring of `to`.
pub fn redirect(event: &OwnedFd, to: &OwnedFd) -> io::Result<()> {
    // SAFETY: both descriptors are open perf events.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), IOC_SET_OUTPUT, to.as_raw_fd()) };
    checked(done.into()).map(drop)
}

/// Records of this event that found no room. What cannot be read counts as lost.
pub fn lost(event: &OwnedFd) -> u64 {
    let mut values = [0_u64; 2]; // value, lost
    // SAFETY: the buffer has the size that is passed.
    let n = unsafe {
        libc::read(
            event.as_raw_fd(),
            values.as_mut_ptr().cast(),
            size_of_val(&values),
        )
    };
    if n == size_of_val(&values).cast_signed() {
        values[1]
    } else {
        1
    }
}

/// A ring in memory that the kernel writes and we read.
pub struct Mapping {
    at: *mut u8,
    /// Bytes of the page before the records.
    page: usize,
    /// Of the records, behind the first page.
    size: usize,
    read: Vec<u8>,
}

/// struct perf_event_mmap_page
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
const DATA_OFFSET: usize = 1040;

impl Mapping {
    /// `size`: a power of two pages.
    pub fn new(event: &OwnedFd, size: usize) -> io::Result<Mapping> {
        // SAFETY: takes a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(io::Error::other)?;
        // SAFETY: a new mapping of an open descriptor, at no fixed address.
        let at = unsafe {
            libc::mmap(
                ptr::null_mut(),
                page + size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping {
            at: at.cast(),
            page,
            size,
            read: Vec::new(),
        })
    }

    /// The records since the last time.
    pub fn read(&mut self) -> &[u8] {
        // SAFETY: the three words lie in the first page, aligned; the kernel and
        // we access head and tail atomically (perf_event_open(2)).
        let (head, tail, offset) = unsafe {
            (
                &*self.at.add(DATA_HEAD).cast::<AtomicU64>(),
                &*self.at.add(DATA_TAIL).cast::<AtomicU64>(),
                *self.at.add(DATA_OFFSET).cast::<u64>(),
            )
        };
        let (to, from) = (head.load(Ordering::Acquire), tail.load(Ordering::Relaxed));
        let n = usize::try_from(to.wrapping_sub(from))
            .unwrap_or(0)
            .min(self.size);
        let begin = from as usize & (self.size - 1);
        let first = n.min(self.size - begin);
        self.read.clear();
        self.read.reserve(n);
        // SAFETY: both parts lie within the ring; the kernel writes no byte
        // between tail and head until we have moved the tail.
        unsafe {
            let data = self.at.add(offset as usize);
            ptr::copy_nonoverlapping(data.add(begin), self.read.as_mut_ptr(), first);
            ptr::copy_nonoverlapping(data, self.read.as_mut_ptr().add(first), n - first);
            self.read.set_len(n);
        }
        tail.store(to, Ordering::Release);
        &self.read
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and nothing refers to it.
        unsafe { libc::munmap(self.at.cast(), self.page + self.size) };
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
#[must_use]
pub fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes into the structure that is passed.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Opens a directory of a filesystem by its inode alone. The handle is that of
/// most filesystems (linux/exportfs.h, FILEID_INO32_GEN); generation 0 stands
/// for any on ext4 (`ext4_nfs_get_inode`), elsewhere nothing is found.
pub fn open_inode(mount: &File, inode: u32) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        inode: u32,
        generation: u32,
    }
    let mut handle = Handle {
        bytes: 8,
        kind: 1,
        inode,
        generation: 0,
    };
    // SAFETY: the handle has as many bytes behind its head as it says.
    owned(unsafe {
        libc::syscall(
            libc::SYS_open_by_handle_at,
            mount.as_raw_fd(),
            &raw mut handle,
            libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC,
        )
    })
}

/// Where the kernel tells the path of an open file.
pub fn link_of(file: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Starts a process that holds nothing but these, and ends with them after a
/// while, so that the waiting of the kernel is its own. It is of no process group
/// or terminal of ours, tells nobody of its end, and pins no directory. The events
/// are stopped before.
pub fn close_in_background(events: &[OwnedFd], after: Duration) {
    let mut keep: Vec<RawFd> = events.iter().map(AsRawFd::as_raw_fd).collect();
    keep.sort_unstable();
    let pause = libc::timespec {
        tv_sec: after.as_secs().cast_signed(),
        tv_nsec: after.subsec_nanos().into(),
    };
    // SAFETY: as fork(2), but with no signal at its end. The child allocates
    // nothing and makes system calls only, so other threads do not matter.
    unsafe {
        let flags: libc::c_ulong = 0;
        let null = ptr::null_mut::<u8>();
        if libc::syscall(libc::SYS_clone, flags, null, null, null, null) != 0 {
            return;
        }
        libc::setsid();
        libc::chdir(c"/".as_ptr());
        let mut first = 0;
        for fd in &keep {
            if *fd > first {
                libc::syscall(libc::SYS_close_range, first, *fd - 1, 0);
            }
            libc::ioctl(*fd, IOC_DISABLE, 0);
            first = *fd + 1;
        }
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0);
        libc::nanosleep(&raw const pause, ptr::null_mut());
        libc::_exit(0);
    }
}
