//! `malloc=glibc` preloads nothing: it takes no other allocator away, and is in effect only where the C library serves
//! malloc already.

use std::path::Path;

use refit_knobs::{AllocatorKind, Setting, Settings};
use refit_run::reachability::{Malloc, Reachability};
use refit_run::{is_allocator, server_of};

use crate::systemd::Unit;
use crate::{Error, library};

/// Whether these settings ask for the C library's allocator as it is, and for nothing else.
pub fn asks_nothing(settings: &Settings) -> bool {
    let is_plain = |setting: &Setting| {
        let malloc = Settings(vec![setting.clone()]).launch().malloc;
        malloc.is_some_and(|malloc| malloc.kind == AllocatorKind::GLIBC && malloc.env.is_empty())
    };
    settings.0.iter().all(is_plain)
}

/// Refuses `malloc=glibc` where something else serves malloc in the unit's main process, or would in its program.
///
/// # Errors
/// [`Error::OtherAllocator`].
pub fn refuse_other(service: &str, settings: &Settings, unit: &Unit) -> Result<(), Error> {
    if !is_meant(settings) {
        return Ok(());
    }
    let Ok(server) = server_of(unit.main_pid) else {
        let program = unit.command().into_iter().next();
        return program.map_or(Ok(()), |program| {
            refuse_program(service, settings, &program)
        });
    };
    let server = server.to_string_lossy();
    if is_allocator(&AllocatorKind::GLIBC, &server) {
        return Ok(());
    }
    let preloaded = unit.declared.variable("LD_PRELOAD").unwrap_or_default();
    let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let mut preloaded = preloaded.split([':', ' ']).filter(|path| !path.is_empty());
    // What is mapped has the name that a link leads to.
    let is_preloaded = preloaded.any(|path| file(&server).starts_with(&file(path)));
    let next = match () {
        () if server.starts_with(library::PLACE) => {
            format!("refit preloads it; take that back first: refit revert {service}")
        }
        () if is_preloaded => {
            format!("LD_PRELOAD of the unit names it; take it out there: systemctl cat {service}")
        }
        () => WITHOUT.to_owned(),
    };
    let pid = unit.main_pid;
    let who = format!("{server} serves malloc in its main process ({pid})");
    Err(other(service, who, next))
}

/// Refuses `malloc=glibc` of a program that exports a malloc, or links another allocator.
///
/// # Errors
/// [`Error::OtherAllocator`].
pub fn refuse_program(service: &str, settings: &Settings, program: &str) -> Result<(), Error> {
    let who = match Reachability::of(Path::new(program)).malloc {
        _ if !is_meant(settings) => return Ok(()),
        Malloc::OwnExport => format!("{program} has a malloc of its own"),
        Malloc::Linked(library) => format!("{program} links {}", library.display()),
        Malloc::Musl => format!("{program} is built for musl"),
        Malloc::Swapped | Malloc::Unreached => return Ok(()),
    };
    Err(other(service, who, WITHOUT.to_owned()))
}

const WITHOUT: &str = "only a build of the program without that uses glibc's malloc";

fn is_meant(settings: &Settings) -> bool {
    let malloc = settings.launch().malloc;
    malloc.is_some_and(|malloc| malloc.kind == AllocatorKind::GLIBC)
}

fn other(service: &str, who: String, next: String) -> Error {
    Error::OtherAllocator {
        service: service.to_owned(),
        who,
        next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effective::tests::{Running, library};

    fn settings(word: &str) -> Settings {
        Settings(vec![word.parse().unwrap()])
    }

    #[test]
    fn another_allocator_that_serves_is_not_taken_away() {
        let jemalloc = library("jemalloc");
        let program = Running::with(std::slice::from_ref(&jemalloc));
        let unit = Unit {
            main_pid: program.pid(),
            ..Unit::default()
        };
        let refused = |word, unit: &Unit| {
            let answer = refuse_other("x.service", &settings(word), unit);
            answer.err().map(|error| error.to_string())
        };
        let expected = format!(
            "x.service: malloc=glibc takes no other allocator away: {jemalloc} serves malloc in its main process ({})\n  \
             only a build of the program without that uses glibc's malloc",
            program.pid()
        );
        assert_eq!(refused("malloc=glibc", &unit), Some(expected.clone()));
        assert_eq!(refused("malloc=glibc:arena_max=2", &unit), Some(expected));
        assert_eq!(refused("malloc=mimalloc", &unit), None);
        let declared = Unit::with(&["Environment=LD_PRELOAD=libjemalloc.so.2"]).declared;
        let preloading = Unit {
            declared,
            ..unit.clone()
        };
        let found = refused("malloc=glibc", &preloading).unwrap();
        assert!(found.contains("LD_PRELOAD of the unit names it"), "{found}");
        let plain = Running::with(&[]);
        let main_pid = plain.pid();
        let unit = Unit { main_pid, ..unit };
        assert_eq!(refused("malloc=glibc:arena_max=2", &unit), None);
        // It does not run.
        let unit = Unit::with(&["ExecStart=/usr/bin/redis-server /etc/redis/redis.conf"]);
        if Path::new("/usr/bin/redis-server").exists() {
            let refused = refused("malloc=glibc", &unit).unwrap();
            assert!(
                refused.contains("/usr/bin/redis-server links /"),
                "{refused}"
            );
        }
    }

    #[test]
    fn the_c_librarys_allocator_as_it_is_asks_for_nothing() {
        for (word, expected) in [
            ("malloc=glibc", true),
            ("malloc=glibc:arena_max=2", false),
            ("malloc=jemalloc", false),
            ("tz=UTC", false),
        ] {
            assert_eq!(asks_nothing(&settings(word)), expected, "{word}");
        }
    }
}
