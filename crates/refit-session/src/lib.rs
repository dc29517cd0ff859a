//! What refit and the programs that run under it share: the session directory
//! with its policy page and image files ([`Session`], [`Policy`], [`Image`]), the
//! ring of traced calls ([`EventRing`], [`Trace`]), and what the guardian counts.
//!
//! The C side is `sync/session.h`, `heap/heap_page.h` and `durability/file_event.h` of refit-preload.

mod abandoned;
mod calls;
mod collected;
mod collector;
mod directory;
mod event;
pub mod file_events;
#[cfg(test)]
mod fuzz;
mod grouped;
pub mod guardian;
pub mod heap;
mod image;
mod image_files;
mod layout;
mod leader;
mod living;
pub mod names;
mod openers;
mod page;
mod pid_namespace;
mod policy;
mod printable;
mod script_function;
mod sys;
mod trace;

pub use abandoned::remove_abandoned;
#[cfg(feature = "schema")]
pub use calls::calls_by_kind;
pub use calls::{
    Calls, DirectoryReport, ExecutableReport, OPENING, UnreachedProgram, is_zero, sum,
};
pub use collected::{Collected, Executable};
pub use collector::Collector;
pub use directory::{Session, SessionError, base, is_tmpfs};
pub use event::{Event, now_ns};
pub use grouped::grouped;
pub use image::{
    Counter, Directory, IMAGE_DEEPBIND, IMAGE_FILTERED, IMAGE_NO_EVENT_RING, IMAGE_ODIRECT_OFF,
    IMAGE_OWN_SECCOMP, IMAGE_SHARED_SLOT, IMAGE_SIZE, IMAGE_SYNC_OFF, IMAGE_UNFILTERED, Image,
    Slot, Unreached,
};
pub use openers::{open_of, open_own, open_regular};
pub use page::{
    ANSWERS, CALLS, COOKIE, CountedCall, EVENTS, FILTER_IS_THERE, LATENCIES, OTHERS, REASONS,
};
pub use policy::{
    DISK_SIZE, Disk, Knob, POLICY_ANSWERED, POLICY_COUNT, POLICY_DENY_RINGS, POLICY_FLAGS,
    POLICY_FOLLOW, POLICY_GUARDED, POLICY_NOTIFIED, POLICY_SECCOMP_FILTERS, POLICY_TRACE, Policy,
    Rule, TooLong, When,
};
pub use printable::printable;
pub use script_function::ScriptFunction;
// The library and the page are of one version: who places the one writes the other.
pub use refit_preload::{
    DURABILITY, HEAP, HEAP_NEW, LAUNCHER, LIBRARIES, LIBRARY_HASH, Library, SPAWNER, SYNC,
};
pub use sys::event_ring::EventRing;
pub use trace::Trace;
