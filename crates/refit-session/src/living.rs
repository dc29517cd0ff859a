//! Which processes outlive a run.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::image::Image;
use crate::sys::lease::{Holders, is_held};

/// The processes of an image that still map its file. Slots keep the pid of the
/// dead until they are needed again, and of a child that exec'ed. A process whose
/// mappings cannot be read counts. In another pid namespace none may be
/// found here: then all are named.
pub(crate) fn living(image: &Image, file: &File, path: &Path) -> Vec<u32> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let maps_it = |pid: &u32| match fs::read(format!("/proc/{pid}/maps")) {
        Ok(maps) => maps.windows(name.len()).any(|part| part == name),
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
    };
    let all = || {
        image
            .slots
            .iter()
            .map(|slot| slot.pid)
            .filter(|pid| *pid != 0)
    };
    let here: Vec<u32> = all().filter(maps_it).collect();
    // Ended meanwhile, rather than out of sight.
    if here.is_empty() && is_held(file, Holders::Writers) {
        all().collect()
    } else {
        here
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::image::Slot;
    use crate::sys::lease::no_other_starts;

    #[test]
    fn only_the_living_processes_of_an_image_are_named() {
        let _alone = no_other_starts();
        let me = std::process::id();
        // It lives, but maps nothing of ours: it exec'ed, or it could not answer.
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        input.write_all(b".").unwrap();
        output.read_exact(&mut [0]).unwrap();
        let slots = [0, 1 << 30, child.id(), me].map(|pid| Slot {
            pid,
            ..Slot::default()
        });
        let image = |slots: &[Slot]| Image {
            slots: slots.to_vec(),
            ..Image::default()
        };
        let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
        let reader = File::open(file.path()).unwrap();
        // What this process certainly maps.
        let mapped = std::env::current_exe().unwrap();
        assert_eq!(living(&image(&slots), &reader, &mapped), [me]);
        // Of another pid namespace, it may be.
        assert_eq!(living(&image(&slots[..2]), &reader, &mapped), [1 << 30]);
        drop(file);
        assert!(living(&image(&slots[..2]), &reader, &mapped).is_empty());
        drop(input);
        child.wait().unwrap();
    }
}
