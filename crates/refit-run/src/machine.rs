//! What this machine allows: which parts can be swapped beneath a program here.

use std::fs;
use std::path::{Path, PathBuf};

use refit_knobs::{ALLOCATORS, NamedAllocator};
use refit_launch::allocator::{find, here};
use refit_launch::emulator;
use refit_launch::library::{is_noexec, place_libraries, test_load};
use refit_launch::seccomp::{Right, kernel_suffices, kernel_version, right};
pub use refit_launch::thp::SystemMode;
use refit_launch::thp::system_mode;
use refit_meter::{Cgroups, Pressure, Witness};
use refit_packages::owners;
use refit_session::{LIBRARIES, SYNC, base, is_tmpfs};

/// What was found.
#[derive(Debug)]
pub struct Machine {
    /// Name and release of the kernel.
    pub kernel: String,
    /// Nothing is out of reach for want of rights.
    pub is_root: bool,
    /// Where refit's library lies, or why it cannot.
    pub library: Result<PathBuf, String>,
    /// Whether a dynamic program loads it, or why not.
    pub loads: Option<Result<(), String>>,
    /// Where session pages lie.
    pub session: PathBuf,
    /// Session pages would be written to a disk.
    pub session_is_on_disk: bool,
    /// /proc/sys/kernel/io_uring_disabled.
    pub io_uring_disabled: Option<String>,
    /// By which right a filter can be installed; `None`: this kernel is too old, or not asked.
    pub filter: Option<Right>,
    /// The emulator of single programs beneath refit, which has no seccomp.
    pub emulator: Option<String>,
    /// The allocators that refit knows by name.
    pub allocators: Vec<Installed>,
    /// What the witness counts, or why there is none.
    pub witness: Result<Witnessing, String>,
    /// The first two numbers of the kernel's release.
    pub kernel_version: (u32, u32),
    /// Versions of control groups that are mounted.
    pub cgroups: Vec<u8>,
    /// The kernel tells the most memory that was charged to a service.
    pub tells_peaks: bool,
    /// The kernel tells how long tasks waited (PSI).
    pub tells_pressure: bool,
    /// The system's mode of transparent huge pages.
    pub thp: SystemMode,
    /// Of the directories that refit or its users might use, those from which no
    /// library can be loaded.
    pub noexec: Vec<PathBuf>,
}

/// What a witness counts.
#[derive(Debug)]
pub struct Witnessing {
    /// The kinds of filesystem whose durable calls it counts.
    pub filesystems: Vec<String>,
    /// Whether it counts the records that it missed.
    pub counts_losses: bool,
}

/// An allocator, as far as it is installed.
#[derive(Debug)]
pub struct Installed {
    /// Which one.
    pub known: &'static NamedAllocator,
    /// Where it lies; `None`: it is not installed.
    pub path: Option<PathBuf>,
    /// The package that it came with, and its version.
    pub package: Option<(String, String)>,
    /// How to install it, as a line; empty where it is installed.
    pub install: String,
}

impl Machine {
    /// Looks; `allocator_dir` is searched first.
    #[must_use]
    pub fn look(allocator_dir: Option<&Path>) -> Machine {
        let uname = rustix::system::uname();
        let directory = place_libraries(&LIBRARIES);
        let library = directory.map(|directory| directory.join(SYNC.name));
        let loads = library.as_ref().ok().map(|library| {
            let directory = library.parent().expect("it lies in one");
            test_load(directory, std::slice::from_ref(library)).map_err(|error| error.to_string())
        });
        let session = base();
        // Root's may not be there yet; what it lies in is.
        let session_is_on_disk = !session
            .ancestors()
            .find(|path| path.exists())
            .is_none_or(is_tmpfs);
        let others = ALLOCATORS.iter().filter(|one| !one.is_c_librarys());
        let allocators = others.map(|known| {
            let (path, install) = match find(known, allocator_dir, here) {
                Ok(path) => (Some(path), String::new()),
                Err(missing) => (None, missing.install),
            };
            let package = owners(path.clone()).pop_first();
            Installed {
                known,
                path,
                package,
                install,
            }
        });
        let cgroups = Cgroups::of(Path::new("/proc"));
        Machine {
            kernel: format!(
                "{} {}",
                uname.sysname().to_string_lossy(),
                uname.release().to_string_lossy()
            ),
            is_root: rustix::process::geteuid().is_root(),
            loads,
            library: library.map_err(|error| error.to_string()),
            session_is_on_disk,
            session,
            io_uring_disabled: read("/proc/sys/kernel/io_uring_disabled"),
            filter: kernel_suffices().then(right),
            emulator: emulator(),
            allocators: allocators.collect(),
            witness: witness(),
            kernel_version: kernel_version(),
            cgroups: cgroups.versions(),
            tells_peaks: cgroups.tell_peaks(),
            tells_pressure: Pressure::now().is_some(),
            thp: system_mode(),
            noexec: noexec(),
        }
    }
}

fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// It is only asked.
fn witness() -> Result<Witnessing, String> {
    let witness = Witness::begin()?;
    let found = Witnessing {
        filesystems: witness.filesystems(),
        counts_losses: witness.counts_losses(),
    };
    witness.close_in_background();
    Ok(found)
}

fn noexec() -> Vec<PathBuf> {
    let own = ["XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME"]
        .iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from);
    let usual = ["/tmp", "/var/tmp", "/var/lib", "/run", "/dev/shm"];
    let mut directories: Vec<PathBuf> = usual
        .iter()
        .map(PathBuf::from)
        .chain(own)
        .filter(|path| is_noexec(path).unwrap_or(false))
        .collect();
    directories.dedup();
    directories
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_the_one_of_proc() {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("/proc is mounted");
        assert!(Machine::look(None).kernel.ends_with(release.trim()));
    }

    #[test]
    fn an_allocators_version_is_that_of_its_package() {
        let directory = tempfile::tempdir().expect("a directory");
        let own = directory.path().join("libjemalloc.so.2");
        // The header of a shared object (elf(5)).
        let mut header = [0; 64];
        header[..6].copy_from_slice(b"\x7fELF\x02\x01");
        header[16] = 3;
        header[18..20].copy_from_slice(&refit_launch::arch::ELF_MACHINE.to_le_bytes());
        fs::write(&own, header).expect("a file");
        let machine = Machine::look(Some(directory.path()));
        let jemalloc = machine
            .allocators
            .iter()
            .find(|one| one.known.name == "jemalloc");
        let jemalloc = jemalloc.expect("it is known by name");
        assert_eq!(jemalloc.path.as_deref(), Some(own.as_path()));
        assert_eq!(jemalloc.package, None, "it belongs to no package");
    }
}
