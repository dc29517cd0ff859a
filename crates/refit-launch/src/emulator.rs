//! An emulator of single programs (qemu-user) beneath refit: it has no seccomp, whatever the kernel has.

use std::fs;

/// Its name; `None`: refit runs on a processor, or in a whole machine that is emulated.
#[must_use]
pub fn emulator() -> Option<String> {
    // It answers for /proc/self by itself, and lets the kernel answer for the thread.
    let executable = |who: &str| fs::read_link(format!("/proc/{who}/exe"));
    let (process, thread) = (executable("self").ok()?, executable("thread-self").ok()?);
    let name = thread.file_name()?.to_string_lossy().into_owned();
    (process != thread).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_no_emulator() {
        assert_eq!(emulator(), None);
    }
}
