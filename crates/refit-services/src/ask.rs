//! Asking a program of somebody else's, which may never answer.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// How long one that only tells something may take.
pub const QUESTION: Duration = Duration::from_secs(60);

/// How long systemd may take to stop and start a service: longer than the units of Debian allow, of which MariaDB's
/// has the longest time, 15 min (TimeoutStartSec=).
pub const JOB: Duration = Duration::from_secs(30 * 60);

/// A statement that makes or drops an index takes as long as the table is large; its locks have a limit of their own.
pub const STATEMENT: Duration = Duration::MAX;

/// A command that is asked.
pub trait Ask {
    /// Runs it to its end, or ends it after `within`; what it printed. What it started and left may keep its output
    /// open: that is not waited for.
    ///
    /// # Errors
    /// As the system reports; [`io::ErrorKind::TimedOut`], in words, where it did not end.
    fn answer(&mut self, within: Duration) -> io::Result<Output>;
}

impl Ask for Command {
    fn answer(&mut self, within: Duration) -> io::Result<Output> {
        self.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.spawn()?;
        let output = read_to_end(&mut child, within);
        if output.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        output
    }
}

/// Bytes as the standard input of a program: a file, which no pipe's limit stops.
///
/// # Errors
/// As the system reports.
pub fn input(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("refit", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn read_to_end(child: &mut Child, within: Duration) -> io::Result<Output> {
    let began = Instant::now();
    let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let process = pidfd_open(id.ok_or(io::ErrorKind::NotFound)?, PidfdFlags::empty())?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (stdout.expect("it is piped"), stderr.expect("it is piped"));
    fcntl_setfl(&stdout, OFlags::NONBLOCK)?;
    fcntl_setfl(&stderr, OFlags::NONBLOCK)?;
    let (mut printed, mut errors) = (Vec::new(), Vec::new());
    let (mut reads_printed, mut reads_errors) = (true, true);
    loop {
        let left = within.saturating_sub(began.elapsed());
        let mut waited = vec![PollFd::new(&process, PollFlags::IN)];
        waited.extend(reads_printed.then(|| PollFd::new(&stdout, PollFlags::IN)));
        waited.extend(reads_errors.then(|| PollFd::new(&stderr, PollFlags::IN)));
        // None where that is beyond all time: poll(2) waits without a limit then.
        match poll(&mut waited, Timespec::try_from(left).ok().as_ref()) {
            Ok(0) => {
                let words = format!(
                    "it did not end within {} s, and was killed",
                    within.as_secs()
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let has_ended = waited[0].revents().contains(PollFlags::IN);
        reads_printed &= read_what_is_there(&mut stdout, &mut printed)?;
        reads_errors &= read_what_is_there(&mut stderr, &mut errors)?;
        if has_ended {
            return Ok(Output {
                status: child.wait()?,
                stdout: printed,
                stderr: errors,
            });
        }
    }
}

/// Reads all that a pipe holds now; returns whether more may come, which is so until its last writer has closed it.
fn read_what_is_there(from: &mut impl Read, to: &mut Vec<u8>) -> io::Result<bool> {
    match from.read_to_end(to) {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(script: &str, within: Duration) -> io::Result<Output> {
        Command::new("/bin/sh").args(["-c", script]).answer(within)
    }

    #[test]
    fn what_it_prints_comes_whole() {
        // More than a pipe holds, of both at once.
        let script = "head -c 300000 /dev/zero & head -c 200000 /dev/zero >&2; wait; exit 3";
        let output = asked(script, QUESTION).unwrap();
        assert_eq!(
            (output.stdout.len(), output.stderr.len()),
            (300_000, 200_000)
        );
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn who_does_not_answer_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = format!("echo $$ >{}; exec sleep 1000", file.display());
        let error = asked(&script, Duration::from_secs(1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it did not end within 1 s, and was killed"
        );
        let pid = std::fs::read_to_string(file).unwrap();
        assert!(!std::fs::exists(format!("/proc/{}", pid.trim())).unwrap());
    }

    #[test]
    fn what_it_left_is_not_waited_for() {
        let began = Instant::now();
        let output = asked("sleep 1000 & echo $!", QUESTION).unwrap();
        assert!(began.elapsed() < QUESTION);
        let left = String::from_utf8(output.stdout).unwrap();
        let killed = Command::new("kill").arg(left.trim()).status().unwrap();
        assert!(killed.success(), "it still ran");
    }
}
