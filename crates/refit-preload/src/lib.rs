//! The library that goes beneath a program, as bytes, and the Rust half of the
//! page that it shares with refit.
//!
//! The C sources lie in `sync/`; [`session`] mirrors `sync/session.h`.

pub mod session;

/// `librefit-sync.so`: a shared object for x86-64 glibc and musl.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/librefit-sync.so"));

/// The file name under which the library is placed.
pub const LIBRARY_NAME: &str = "librefit-sync.so";

/// FNV-1a (64 bits) of the library: names the directory that it is placed in,
/// so that two versions of refit never share one.
#[must_use]
pub fn library_hash() -> u64 {
    LIBRARY.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
