//! The libraries that go beneath a program, the spawner of measured runs, and what
//! starts a service with settings that no variable carries, as bytes. The C sources lie in `sync/`, `heap/`, `heap_new/`, `durability/` and `spawn/`.

/// A shared object for x86-64 glibc and musl.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// The file name under which it is placed.
    pub name: &'static str,
    /// What the file contains.
    pub bytes: &'static [u8],
}

/// Counts, answers and delays durability calls, and follows the program into what it
/// starts.
pub static SYNC: Library = Library {
    name: "librefit-sync.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/librefit-sync.so")),
};

/// Counts what malloc gives out.
pub static HEAP: Library = Library {
    name: "librefit-heap.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/librefit-heap.so")),
};

/// Counts what the C++ operators of an allocator give out, for [`HEAP`].
pub static HEAP_NEW: Library = Library {
    name: "librefit-heap-new.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/librefit-heap-new.so")),
};

/// Tells what is done to files, and which syncs cover it.
pub static DURABILITY: Library = Library {
    name: "librefit-durability.so",
    bytes: include_bytes!(concat!(env!("OUT_DIR"), "/librefit-durability.so")),
};

/// The libraries that are placed where programs can load them.
pub static LIBRARIES: [Library; 4] = [SYNC, HEAP, HEAP_NEW, DURABILITY];

/// A hash of the libraries in 16 hexadecimal digits: names the directory that they
/// are placed in, so that two versions of refit never share one.
pub const LIBRARY_HASH: &str = env!("REFIT_LIBRARY_HASH");

/// A static program of one page, which starts the program of a measured run.
pub static SPAWNER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/spawn"));

/// A static program of one page, which starts another one with settings that no variable carries:
/// `launcher SETTING... FILE ARGUMENT...`, where each setting is `thp=never`, `no-new-privs` or `sync=off`.
pub static LAUNCHER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/launcher"));
