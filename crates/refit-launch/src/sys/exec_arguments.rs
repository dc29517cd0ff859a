//! What execve(2) is called with: the files that a name may stand for, arguments, environment.

use std::ffi::{CStr, CString};
use std::io;
use std::ptr;

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|s| s.as_ptr())
        .chain([ptr::null()])
        .collect()
}

/// Where execvp(3) looks when there is no PATH (glibc, `_CS_PATH`).
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// The shell that runs a file whose format the kernel does not know (execvp(3)).
const SHELL: &CStr = c"/bin/sh";

/// What execve(2) needs, made before the clone: between that and the exec
/// memory cannot be allocated, and nothing of refit's, its `environ` least of all,
/// may change under its other threads.
pub(super) struct Arguments {
    /// The files to try, in order, as env(1) would find them: in the PATH that the
    /// program will have.
    pub files: Vec<CString>,
    pub argv: Vec<*const libc::c_char>,
    /// For a script without `#!`: the shell, the file, the other arguments.
    shell_argv: Vec<*const libc::c_char>,
    pub envp: Vec<*const libc::c_char>,
}

impl Arguments {
    /// They point into the words and variables, which have to outlive them. There is at
    /// least one word.
    pub fn of(words: &[CString], variables: &[CString]) -> Arguments {
        let argv = pointers(words);
        let mut shell_argv = vec![SHELL.as_ptr(), ptr::null()];
        shell_argv.extend(&argv[1..]);
        Arguments {
            files: files(&words[0], variables),
            argv,
            shell_argv,
            envp: pointers(variables),
        }
    }

    /// execvpe(3). Returns only on failure. Async-signal-safe.
    ///
    /// # Safety
    /// The words and variables that these arguments were made of still exist.
    pub unsafe fn exec(&mut self) -> io::Error {
        let mut denied = None;
        let mut last = io::Error::from_raw_os_error(libc::ENOENT);
        for file in &self.files {
            // SAFETY: the arrays end with NULL and point to strings that end with
            // NUL, which their owner and `files` hold.
            last = unsafe {
                libc::execve(file.as_ptr(), self.argv.as_ptr(), self.envp.as_ptr());
                let error = io::Error::last_os_error();
                if error.raw_os_error() == Some(libc::ENOEXEC) {
                    self.shell_argv[1] = file.as_ptr();
                    libc::execve(SHELL.as_ptr(), self.shell_argv.as_ptr(), self.envp.as_ptr());
                    io::Error::last_os_error()
                } else {
                    error
                }
            };
            match last.raw_os_error() {
                Some(libc::EACCES) => denied = Some(libc::EACCES),
                Some(
                    libc::ENOENT | libc::ESTALE | libc::ENOTDIR | libc::ENODEV | libc::ETIMEDOUT,
                ) => {}
                _ => return last,
            }
        }
        denied.map_or(last, io::Error::from_raw_os_error)
    }
}

/// The files that a name may stand for.
fn files(name: &CStr, envp: &[CString]) -> Vec<CString> {
    let bytes = name.to_bytes();
    if bytes.is_empty() {
        return Vec::new();
    }
    if bytes.contains(&b'/') {
        return vec![name.to_owned()];
    }
    let path = envp
        .iter()
        .find_map(|entry| entry.to_bytes().strip_prefix(b"PATH="));
    let directories = path.unwrap_or(DEFAULT_PATH).split(|byte| *byte == b':');
    let file = |directory: &[u8]| {
        let separator: &[u8] = if directory.is_empty() { b"" } else { b"/" };
        CString::new([directory, separator, bytes].concat()).ok()
    };
    directories.filter_map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<CString> {
        let string = |word: &&str| CString::new(*word).expect("no NUL in it");
        words.iter().map(string).collect()
    }

    #[test]
    fn a_name_is_looked_for_as_execvp_does() {
        let listed = |name: &str, envp: &[&str]| {
            let name = CString::new(name).expect("no NUL in it");
            let all = files(&name, &strings(envp)).into_iter();
            all.map(|file| file.into_string().expect("text"))
                .collect::<Vec<_>>()
        };
        assert_eq!(listed("a", &["PATH=/x::/y/"]), ["/x/a", "a", "/y//a"]);
        assert_eq!(listed("a", &["LD_PATH=/x"]), ["/bin/a", "/usr/bin/a"]);
        assert_eq!(listed("./a", &["PATH=/x"]), ["./a"]);
        assert_eq!(listed("", &["PATH=/x"]), [""; 0]);
    }
}
