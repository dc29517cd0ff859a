//! The library that goes beneath a program, and the spawner of measured runs, as
//! bytes. The C sources lie in `sync/` and `spawn/`.

/// `librefit-sync.so`: a shared object for x86-64 glibc and musl.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/librefit-sync.so"));

/// The file name under which the library is placed.
pub const LIBRARY_NAME: &str = "librefit-sync.so";

/// A hash of the library in 16 hexadecimal digits: names the directory that it
/// is placed in, so that two versions of refit never share one.
pub const LIBRARY_HASH: &str = env!("REFIT_LIBRARY_HASH");

/// A static program of one page, which starts the program of a measured run.
pub static SPAWNER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/refit-spawn"));
