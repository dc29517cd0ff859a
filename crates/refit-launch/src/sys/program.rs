//! A program, and the moment between clone and exec.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::exec_arguments::Arguments;
use super::filter::Installation;
use super::first_signals::{CLOSED_AT_START, block_signals, restore_start};
use super::spawner::Spawner;
use super::started::{StartError, Started};
use crate::thp::ThpAction;

/// What is exec'ed.
pub struct Program {
    /// At least the name.
    pub argv: Vec<CString>,
    /// `NAME=VALUE`.
    pub envp: Vec<CString>,
    /// Done by the child before its exec.
    pub thp: Option<ThpAction>,
    /// The child may install filters from then on, and gains no privileges.
    pub no_new_privs: bool,
    /// Its peak memory is of interest, also where that is less than refit's own: it
    /// is started from the [`Spawner`].
    pub own_peak: bool,
    /// In place of refit's own 0, 1 and 2, where it is not the user's to talk
    /// to: then it also gets a session of its own.
    pub apart: Option<Apart>,
}

/// A program that runs apart from refit's terminal.
pub struct Apart {
    /// Its standard input, output and error.
    pub files: [File; 3],
    /// Where it runs; `None`: where refit runs.
    pub directory: Option<CString>,
}

impl Program {
    /// Becomes the program. Returns only on failure.
    pub fn replace(&self, filter: Option<&Installation>) -> StartError {
        let mut arguments = Arguments::of(&self.argv, &self.envp);
        // SAFETY: the arguments are this program's.
        unsafe { become_program(self, filter, None, &mut arguments) }.into()
    }
}

/// Only async-signal-safe calls: this runs between clone and exec.
///
/// # Safety
/// The arguments are of this program.
unsafe fn become_program(
    program: &Program,
    filter: Option<&Installation>,
    spawner: Option<&Spawner>,
    arguments: &mut Arguments,
) -> io::Error {
    // SAFETY: all that is passed outlives the calls, which keep nothing.
    unsafe {
        restore_start();
        for fd in 0..3 {
            if CLOSED_AT_START.load(Ordering::Relaxed) & (1 << fd) != 0 {
                libc::close(fd);
            }
        }
        if let Some(apart) = &program.apart {
            for (fd, file) in (0..).zip(&apart.files) {
                // Above 2, so that none is overwritten before its turn.
                libc::dup2(file.as_raw_fd(), fd);
            }
            if let Some(directory) = &apart.directory
                && libc::chdir(directory.as_ptr()) < 0
            {
                return io::Error::last_os_error();
            }
        }
        if let Some(action) = program.thp
            && let Err(error) = super::thp::disable(action == ThpAction::DisableExceptAdvised)
        {
            return error;
        }
        if program.no_new_privs {
            // Refused by no kernel since 3.5; then a filter is.
            let _ = rustix::thread::set_no_new_privs(true);
        }
        // The last thing before the exec: from here on it is the program's.
        if let Some(filter) = filter
            && let Err(error) = filter.install()
        {
            return error;
        }
        if let Some(spawner) = spawner {
            // The program's session is made there.
            spawner.exec(&arguments.envp);
        }
        if program.apart.is_some() {
            // A group of its own, and no terminal: one that reads from a terminal
            // in the background is stopped, and nobody would continue it.
            libc::setsid();
        }
        arguments.exec()
    }
}

/// What the child needs, and where it leaves the errno of a failed exec. Parent
/// and child share their memory until the exec.
struct Start<'a> {
    program: &'a Program,
    filter: Option<&'a Installation>,
    spawner: Option<&'a Spawner>,
    arguments: Arguments,
    mask: libc::sigset_t,
    error: Option<io::Error>,
}

/// Runs in the child, on a stack of its own; ends by exec or _exit.
extern "C" fn child(start: *mut libc::c_void) -> libc::c_int {
    // SAFETY: `start` is what `start()` passed, which waits until we are done
    // with it (CLONE_VFORK). Dispositions and mask are the child's own.
    unsafe {
        let start = &mut *start.cast::<Start>();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const start.mask, ptr::null_mut());
        let error = become_program(
            start.program,
            start.filter,
            start.spawner,
            &mut start.arguments,
        );
        start.error = Some(error);
        libc::_exit(127)
    }
}

/// Starts the child as vfork does, but on a stack of its own: no page tables
/// are copied, and an exec error comes back through memory.
fn start(
    program: &Program,
    filter: Option<&Installation>,
    mask: libc::sigset_t,
) -> Result<Started, StartError> {
    const STACK: usize = 64 * 1024;
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let arguments = Arguments::of(&program.argv, &program.envp);
    let spawner = match program.own_peak {
        true => {
            let apart = program.apart.as_ref();
            let directory = apart.and_then(|apart| apart.directory.as_deref());
            Spawner::of(&arguments.files, directory, &arguments.argv)
        }
        false => None,
    };
    let thp = program.thp.map(|_| super::thp::before());
    let began = Instant::now();
    let mut start = Start {
        program,
        filter,
        spawner: spawner.as_ref(),
        arguments,
        mask,
        error: None,
    };
    // SAFETY: the stack is ours, aligned, and grows down from its end; stack
    // and `start` outlive the child's use of them, because CLONE_VFORK holds us
    // until it has exec'ed or ended. Other threads of refit go on meanwhile: the
    // child changes nothing of theirs.
    let pid = unsafe {
        libc::clone(
            child,
            stack.as_mut_ptr_range().end.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            (&raw mut start).cast(),
        )
    };
    if pid < 0 {
        return Err(io::Error::last_os_error().into());
    }
    if let Some(thp) = thp {
        thp.restore();
    }
    if let Some(error) = start.error {
        // SAFETY: reaps the child that has just reported that it ends.
        unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
        return Err(error.into());
    }
    match spawner.and_then(|spawner| spawner.started(pid)) {
        Some(started) => started,
        None => Ok(Started {
            pid,
            began,
            spawned: false,
        }),
    }
}

/// Starts the program.
pub(super) fn launch(
    program: &Program,
    filter: Option<&Installation>,
) -> Result<Started, StartError> {
    let mask = block_signals();
    match start(program, filter, mask) {
        // The guardian was killed meanwhile: then without.
        Err(_) if filter.is_some_and(Installation::is_not_taken) => start(program, None, mask),
        started => started,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    use std::sync::atomic::AtomicBool;

    use super::*;

    fn strings(words: &[&str]) -> Vec<CString> {
        let string = |word: &&str| CString::new(*word).expect("no NUL in it");
        words.iter().map(string).collect()
    }

    fn program(argv: &[&str], envp: &[&str]) -> Program {
        Program {
            argv: strings(argv),
            envp: strings(envp),
            thp: None,
            no_new_privs: false,
            own_peak: false,
            apart: None,
        }
    }

    /// Its exit code.
    fn run(program: &Program) -> Result<i32, StartError> {
        let pid = launch(program, None)?.pid;
        let mut status = 0;
        // SAFETY: our child, and a place for its status.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        Ok(libc::WEXITSTATUS(status))
    }

    #[test]
    fn the_errors_are_those_of_execvp() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = dir.path().display();
        let path = format!("PATH=/nowhere:{at}:/bin");
        let write = |name: &str, mode| {
            use std::os::unix::fs::PermissionsExt;
            let file = dir.path().join(name);
            std::fs::write(&file, "exit 7\n").expect("a file");
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).expect("ours");
        };
        write("script", 0o755);
        write("closed", 0o644);
        let code = |name: &str| run(&program(&[name], &[&path])).map_err(|error| error.0.kind());
        // Without `#!`, a shell's.
        assert_eq!(code("script"), Ok(7));
        assert_eq!(code("true"), Ok(0));
        assert_eq!(code("closed"), Err(io::ErrorKind::PermissionDenied));
        assert_eq!(code("nothing-of-that-name"), Err(io::ErrorKind::NotFound));
        assert_eq!(code(""), Err(io::ErrorKind::NotFound));
    }

    #[test]
    fn the_environment_of_other_threads_stays_theirs() {
        let own = std::env::var_os("PATH");
        let program = program(&["true"], &["PATH=/bin:/usr/bin:/of-the-program"]);
        let done = AtomicBool::new(false);
        let looked = AtomicUsize::new(0);
        thread::scope(|scope| {
            let look = || {
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(std::env::var_os("PATH"), own);
                    looked.fetch_add(1, Ordering::Relaxed);
                }
            };
            let threads = [scope.spawn(look), scope.spawn(look)];
            let mut runs = 0;
            while runs < 100 || looked.load(Ordering::Relaxed) < 10_000 {
                if threads.iter().any(thread::ScopedJoinHandle::is_finished) {
                    break;
                }
                assert_eq!(run(&program).expect("it starts"), 0);
                runs += 1;
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
