//! Who allocated what is live: as lines of the summary, and as a profile.

use refit_run::HeapPaths;

use crate::format::{bytes, file_name, grouped, plural};
use crate::stacks::{Profile, Stacks, Weight, call_chain};

/// Paths of the summary, and functions of each, the innermost first.
const MOST_PATHS: usize = 3;
const MOST_FUNCTIONS: usize = 6;

/// The lines after those of the heap.
pub(crate) fn lines(executable: &HeapPaths, lines: &mut Vec<String>) {
    let name = file_name(&executable.executable);
    let all = executable.bytes();
    if all > 0 {
        lines.push(format!(
            "allocations of {name} still live at its end, by call stack, from {}: about {}",
            plural(executable.samples(), "sample"),
            bytes(all as f64)
        ));
    }
    for path in executable.paths.iter().take(MOST_PATHS) {
        let share = 100.0 * path.bytes as f64 / all.max(1) as f64;
        lines.push(format!(
            "  {share:.0} % {}",
            call_chain(&path.frames.iter().collect::<Vec<_>>(), MOST_FUNCTIONS)
        ));
    }
    for (objects, what) in [
        (&executable.not_unwound, "no path leads through"),
        (&executable.without_names, "no names for all functions of"),
    ] {
        if !objects.is_empty() {
            lines.push(format!("  {what} {}", objects.join(", ")));
        }
    }
    if executable.lost > 0 {
        lines.push(format!(
            "  {} samples lost: there was no room",
            grouped(executable.lost)
        ));
    }
}

/// What is live, by who allocated it.
#[must_use]
pub fn heap_profile(executables: &[HeapPaths]) -> Profile<'_> {
    Profile {
        title: "Live heap by who allocated it",
        weight: Weight::Bytes,
        executables: executables
            .iter()
            .map(|one| Stacks {
                executable: &one.executable,
                stacks: one
                    .paths
                    .iter()
                    .map(|path| (path.frames.iter().collect(), path.bytes))
                    .collect(),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use refit_run::{CallPath, Frame};

    use super::*;

    #[test]
    fn the_summary_names_the_share_and_the_line_of_each_path() {
        let path = |frames: &[(&str, Option<u32>)], bytes| CallPath {
            frames: frames
                .iter()
                .map(|(name, line)| Frame {
                    function: (*name).to_owned(),
                    file: line.map(|_| "/src/app.c".to_owned()),
                    line: *line,
                    ..Frame::default()
                })
                .collect(),
            bytes,
            samples: 3,
        };
        let paths = HeapPaths {
            executable: "/usr/bin/app".to_owned(),
            paths: vec![
                path(
                    &[("main", Some(41)), ("step", None), ("leak", Some(12))],
                    8 << 20,
                ),
                path(&[("main", Some(41)), ("a;b<c>", None)], 2 << 20),
            ],
            not_unwound: vec!["libold.so".to_owned()],
            ..HeapPaths::default()
        };
        let mut all = Vec::new();
        lines(&paths, &mut all);
        assert_eq!(
            all,
            [
                "allocations of app still live at its end, by call stack, from 6 samples: about 10 MiB",
                "  80 % leak (app.c:12) < step < main (app.c:41)",
                "  20 % a;b<c> < main (app.c:41)",
                "  no path leads through libold.so",
            ]
        );
    }
}
