//! Starts a measured program from an image of a few pages, so that its peak memory is
//! its own. What that program does stands in refit-preload/spawn/spawn.c.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use refit_session::{SPAWNER, now_ns};
use rustix::fs::{Access, MemfdFlags, access, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};

use super::started::{StartError, Started};

/// The most memory that the spawner has at its exec, in KiB: one page of code, those of
/// the stack, and what the kernel's counters may be off by (a test measures it).
pub(super) const SPAWNER_PEAK_KIB: libc::c_long = 64;

/// The spawner's image in memory; `None` where the kernel refuses one. It is not on a
/// disk, so no mount option can forbid its exec.
fn image() -> Option<&'static OwnedFd> {
    static IMAGE: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let make = || {
        // Linux 6.3 wants to know that it is to be exec'ed (vm.memfd_noexec); earlier
        // kernels refuse the flag.
        let flags = MemfdFlags::CLOEXEC;
        let image = memfd_create(c"refit-spawn", flags | MemfdFlags::EXEC)
            .or_else(|_| memfd_create(c"refit-spawn", flags))
            .ok()?;
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&image, SPAWNER));
        (written == Ok(SPAWNER.len())).then_some(image)
    };
    IMAGE.get_or_init(make).as_ref()
}

/// One start by the spawner.
pub(super) struct Spawner {
    image: &'static OwnedFd,
    /// What it is told before the program's own arguments.
    _words: [CString; 2],
    argv: Vec<*const libc::c_char>,
    /// It reports here.
    reader: File,
    writer: OwnedFd,
}

impl Spawner {
    /// For a program that is one of `files`, as seen from `directory`, with these
    /// arguments, which end with NULL and have to outlive this. `None` where the program
    /// has to be started directly: there is no spawner, or the exec needs what execvp(3)
    /// does besides.
    pub fn of(
        files: &[CString],
        directory: Option<&CStr>,
        argv: &[*const libc::c_char],
    ) -> Option<Spawner> {
        let directory = Path::new(OsStr::from_bytes(directory.map_or(b".", CStr::to_bytes)));
        let from_there = |file: &CString| directory.join(OsStr::from_bytes(file.to_bytes()));
        let file = files.iter().find(|file| is_executable(&from_there(file)))?;
        let image = image()?;
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        let words = [
            file.clone(),
            CString::new(writer.as_raw_fd().to_string()).ok()?,
        ];
        let own = words.iter().map(|word| word.as_ptr());
        Some(Spawner {
            image,
            argv: own.chain(argv.iter().copied()).collect(),
            _words: words,
            reader: reader.into(),
            writer,
        })
    }

    /// Becomes the spawner. Returns only where the kernel refuses to exec it.
    /// Async-signal-safe.
    ///
    /// # Safety
    /// `envp` ends with NULL, and its strings and those of the arguments are there.
    pub unsafe fn exec(&self, envp: &[*const libc::c_char]) {
        let fd = self.writer.as_raw_fd();
        // SAFETY: plain integers; arrays of strings as the caller promises.
        unsafe {
            libc::fcntl(fd, libc::F_SETFD, 0);
            libc::syscall(
                libc::SYS_execveat,
                self.image.as_raw_fd(),
                c"".as_ptr(),
                self.argv.as_ptr(),
                envp.as_ptr(),
                libc::AT_EMPTY_PATH,
            );
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }

    /// The program's process, after `pid`, the spawner's own, has exec'ed. `None`: that
    /// was not the spawner, and `pid` is the program's.
    pub fn started(self, pid: libc::pid_t) -> Option<Result<Started, StartError>> {
        drop(self.writer);
        let mut reader = self.reader;
        // As in spawn.c: began_ns, pid, error.
        let mut report = [0; 16];
        reader.read_exact(&mut report).ok()?;
        let reap = |pid| {
            // SAFETY: a child of refit's that ends by itself.
            unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
        };
        reap(pid);
        let began_ns = u64::from_ne_bytes(part(&report, 0));
        let program = i32::from_ne_bytes(part(&report, 8));
        let error = i32::from_ne_bytes(part(&report, 12));
        if program < 0 {
            return Some(Err(io::Error::from_raw_os_error(-program).into()));
        }
        if error != 0 {
            reap(program);
            return Some(Err(io::Error::from_raw_os_error(error).into()));
        }
        let age = Duration::from_nanos(now_ns().saturating_sub(began_ns));
        let now = Instant::now();
        Some(Ok(Started {
            pid: program,
            began: now.checked_sub(age).unwrap_or(now),
            spawned: true,
        }))
    }
}

fn part<const N: usize>(report: &[u8; 16], at: usize) -> [u8; N] {
    report[at..at + N].try_into().expect("it is within")
}

/// Whether execve(2) alone can run the file: an ELF file, or a script that names its
/// interpreter.
fn is_executable(file: &Path) -> bool {
    let mut magic = [0; 4];
    access(file, Access::EXEC_OK).is_ok()
        && file.is_file()
        && File::open(file).is_ok_and(|mut file| file.read_exact(&mut magic).is_ok())
        && (magic == *b"\x7fELF" || magic.starts_with(b"#!"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::sys::program::Program;
    use crate::sys::running::Running;

    /// Started from itself it has as little as any program: what is known of one is its own.
    #[test]
    fn the_spawner_has_less_memory_than_what_counts_as_unknown() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("refit-spawn");
        std::fs::write(&file, SPAWNER).expect("a file");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("ours");
        let peak = |words: &[&str]| {
            let string = |word: &&str| CString::new(*word).expect("no NUL in it");
            let program = Program {
                argv: words.iter().map(string).collect(),
                envp: Vec::new(),
                thp: None,
                no_new_privs: false,
                own_peak: true,
                apart: None,
            };
            let mut running = Running::start(&program, None).expect("it starts");
            // A signal may reach another thread of the tests.
            loop {
                match running.poll() {
                    Some(ended) => return ended.usage.max_rss_bytes,
                    None => std::thread::sleep(Duration::from_millis(1)),
                }
            }
        };
        let file = file.to_str().expect("text");
        // Descriptors that are not open, and in the end a file that is not there.
        for _ in 0..20 {
            assert_eq!(peak(&[file, "1000", "/nowhere", "1000"]), None);
            assert!(peak(&["/bin/true"]).is_some_and(|bytes| bytes > 200 << 10));
        }
    }
}
