//! `sync=off` by a filter of system calls that a service manager or a container runtime installs: which calls
//! it answers with 0, and what to know of it.

/// What is answered. Not msync: libunwind asks by it whether memory is there.
pub const CALLS: [&str; 5] = ["fsync", "fdatasync", "sync_file_range", "sync", "syncfs"];

/// What to know of it.
pub const NOT_COVERED: &str = "not covered: msync, files opened with O_SYNC or O_DSYNC, io_uring; fsync of an invalid \
                               descriptor returns 0 too";
