//! Was a signal meant for refit alone, or sent to its whole process group?
//!
//! The kernel does not say (sigaction(2): si_code and si_pid are the same for
//! kill(PID) and kill(-PGID)). What was sent to the group has reached the
//! program already and must not reach it twice. So a process that does nothing
//! waits in the group with every signal blocked: what went to the group is
//! pending there too.

use std::fs;
use std::ptr;
use std::thread::sleep;
use std::time::Duration;

/// The waiting process. It shares refit's memory and ends with refit.
pub struct GroupMember {
    pid: libc::pid_t,
    stack: Vec<u128>,
}

/// It holds no descriptor of refit's, and ends when refit, `parent`, does.
extern "C" fn wait_forever(parent: *mut libc::c_void) -> libc::c_int {
    // SAFETY: plain system calls on integers; nothing of the shared memory is
    // touched, but for the thread's errno, which refit never reads across a
    // call of its own.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // A parent that ended before that call sends no signal (prctl(2)), and
        // all others are blocked here.
        if libc::getppid() as usize != parent.addr() {
            libc::_exit(0);
        }
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        loop {
            libc::pause();
        }
    }
}

impl GroupMember {
    /// Call with all signals blocked. `None` when no process can be made: then
    /// signals are taken to be for refit alone.
    pub fn start() -> Option<GroupMember> {
        GroupMember::of(std::process::id())
    }

    fn of(parent: u32) -> Option<GroupMember> {
        let mut stack = vec![0_u128; 1024];
        // SAFETY: the stack is ours, aligned, grows down from its end, and
        // lives as long as the process (see drop). No signal at its end.
        let pid = unsafe {
            libc::clone(
                wait_forever,
                stack.as_mut_ptr_range().end.cast(),
                libc::CLONE_VM,
                ptr::without_provenance_mut(parent as usize),
            )
        };
        (pid > 0).then_some(GroupMember { pid, stack })
    }

    /// Whether the signal that refit just received went to the whole group.
    pub fn saw(&mut self, signal: i32) -> bool {
        // kill(2) goes from one member of the group to the next: refit can be
        // here before it has come to the end.
        for _ in 0..3 {
            if self.has_pending(signal) {
                // What is pending stays so: the next signal needs a new one.
                if let Some(fresh) = GroupMember::start() {
                    *self = fresh;
                }
                return true;
            }
            sleep(Duration::from_millis(1));
        }
        false
    }

    fn has_pending(&self, signal: i32) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let pending = status
            .lines()
            .find_map(|line| line.strip_prefix("ShdPnd:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        pending.is_some_and(|mask| mask >> (signal - 1) & 1 != 0)
    }
}

impl Drop for GroupMember {
    fn drop(&mut self) {
        // SAFETY: the process is our child and not yet reaped; when it has
        // ended nothing uses its stack any more.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, ptr::null_mut(), libc::__WALL);
        }
        self.stack.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Waits for what has to come.
    fn wait_for(what: impl Fn() -> bool) {
        let began = Instant::now();
        while !what() {
            assert!(began.elapsed() < Duration::from_secs(20));
            sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn it_ends_where_refit_ended_before_it_could_ask_for_a_signal() {
        // Another process's child, as it is once refit has ended.
        let member = GroupMember::of(1).expect("a process");
        // SAFETY: a child that is not reaped, whose status nobody wants.
        let ended = || unsafe {
            let options = libc::__WALL | libc::WNOHANG | libc::WNOWAIT | libc::WEXITED;
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(
                libc::P_PID,
                member.pid.unsigned_abs(),
                &raw mut info,
                options,
            ) == 0
                && info.si_pid() == member.pid
        };
        wait_for(ended);
    }

    #[test]
    fn it_holds_no_descriptor() {
        let member = GroupMember::start().expect("a process");
        let open = || fs::read_dir(format!("/proc/{}/fd", member.pid)).map(Iterator::count);
        wait_for(|| open().is_ok_and(|open| open == 0));
    }
}
