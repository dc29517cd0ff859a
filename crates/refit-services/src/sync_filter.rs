//! `sync=off` by a filter of system calls that a service manager, a container runtime or refit's launcher installs:
//! which calls it answers with 0, and what to know of it.

/// What is answered; mirrored in refit-preload/spawn/launcher.c. Not msync: libunwind asks by it whether memory is there.
pub const CALLS: [&str; 5] = ["fsync", "fdatasync", "sync_file_range", "sync", "syncfs"];

/// What to know of it.
pub const NOT_COVERED: &str = "not covered: msync, files opened with O_SYNC or O_DSYNC, io_uring; fsync of an invalid \
                               descriptor returns 0 too";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_answers_the_same_calls() {
        let source = include_str!("../../refit-preload/spawn/launcher.c");
        let lines = source.lines().filter_map(|line| {
            let call = line.trim().strip_prefix("ANSWERED(")?;
            call.strip_suffix("),")
        });
        assert_eq!(lines.collect::<Vec<_>>(), CALLS);
    }
}
