//! What a setting risks with the library that it names. The setting's word tells a path only; one that defines the sync
//! calls itself, as libeatmydata does, can drop them.

use std::path::Path;

use refit_knobs::{AllocatorKind, Class, Explanation, Setting, Settings};
use refit_meter::ElfFacts;

/// What a setting risks on this machine: its own class, but `loses-on-crash` of a library that takes the place of sync
/// calls or of what opens files, until it is shown otherwise.
#[must_use]
pub fn class_of(setting: &Setting) -> Class {
    match replaced_syncs(setting, |path| ElfFacts::of(path).ok()) {
        Some(_) => Class::LosesOnCrash,
        None => setting.class(),
    }
}

/// What a setting does, with its class as [`class_of`] tells it.
#[must_use]
pub fn explain(setting: &Setting) -> Explanation {
    let mut explanation = setting.explain();
    if let Some(risk) = replaced_syncs(setting, |path| ElfFacts::of(path).ok()) {
        explanation.class = Class::LosesOnCrash;
        explanation.risk = risk;
    }
    explanation
}

/// That the library which a setting names takes the place of sync calls, as a sentence; `None`: it does not, or names
/// none. `facts`: those of its file.
pub fn replaced_syncs(
    setting: &Setting,
    facts: impl FnOnce(&Path) -> Option<ElfFacts>,
) -> Option<String> {
    let launch = Settings(vec![setting.clone()]).launch();
    let of_malloc = launch.malloc.and_then(|malloc| match malloc.kind {
        AllocatorKind::Path(path) => Some(path),
        AllocatorKind::Named(_) => None,
    });
    let path = launch.preload.into_iter().chain(of_malloc).next()?;
    let defined = facts(&path)?.sync_exports;
    (!defined.is_empty()).then(|| {
        format!(
            "{} defines {}: what it does in their place is not known, so it is taken to lose data at a power cut",
            path.display(),
            defined.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use refit_launch::allocator::{find, here};

    use super::*;

    #[test]
    fn a_library_that_defines_a_sync_call_loses_on_crash() {
        let directory = tempfile::tempdir().expect("a directory");
        let built = |name: &str, text: &str| {
            let source = directory.path().join("source.c");
            let library = directory.path().join(name);
            std::fs::write(&source, text).expect("a file");
            let mut compiler = Command::new("cc");
            let status = compiler
                .args(["-shared", "-fPIC", "-o"])
                .args([&library, &source]);
            assert!(status.status().expect("it runs").success());
            library.display().to_string()
        };
        let drops = built("drops.so", "int fdatasync(int fd) { return fd < 0; }");
        let opens = built("opens.so", "int open64(const char *path) { return !path; }");
        let calls = built(
            "calls.so",
            "int fsync(int); int own(int fd) { return fsync(fd); }",
        );
        let libc = find(refit_knobs::ALLOCATORS[0], None, here).expect("glibc is installed");
        let table = [
            (format!("preload={drops}"), Class::LosesOnCrash),
            (format!("malloc={drops}"), Class::LosesOnCrash),
            (format!("preload={opens}"), Class::LosesOnCrash),
            (format!("preload={calls}"), Class::ChangesBehaviour),
            (format!("malloc={calls}"), Class::Safe),
            // Its calls are the real ones.
            (format!("malloc={}", libc.display()), Class::Safe),
            ("preload=/none.so".to_owned(), Class::ChangesBehaviour),
            ("tz=UTC".to_owned(), Class::ChangesBehaviour),
            ("malloc=glibc".to_owned(), Class::Safe),
        ];
        for (word, class) in table {
            let setting: Setting = word.parse().expect("a setting");
            assert_eq!(class_of(&setting), class, "{word}");
            assert_eq!(explain(&setting).class, class, "{word}");
        }
    }
}
