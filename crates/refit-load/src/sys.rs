//! The scheduling class of a thread.

/// Lets this thread run before all ordinary ones when it has something to do; whether the kernel allows it. It sleeps
/// between requests, so the others get what it leaves.
pub fn run_first() -> bool {
    let priority = libc::sched_param { sched_priority: 1 };
    let class = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread, and the kernel only reads the structure, which lives until the call has returned.
    unsafe { libc::sched_setscheduler(0, class, &raw const priority) == 0 }
}
