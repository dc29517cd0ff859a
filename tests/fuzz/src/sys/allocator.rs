//! How much a thread has allocated: the allocator of every test binary that has a target.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// Bytes that this thread has allocated and not freed, since `begin`; less than 0 where it freed older ones.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// Counting begins anew.
pub fn begin() {
    LIVE.set(0);
    MOST.set(0);
}

/// The most that was live at a time.
pub fn most() -> usize {
    usize::try_from(MOST.get()).unwrap_or(0)
}

fn add(bytes: isize) {
    // A thread that ends frees its own variables.
    let _ = LIVE.try_with(|live| {
        live.set(live.get().wrapping_add(bytes));
        let _ = MOST.try_with(|most| most.set(most.get().max(live.get())));
    });
}

// SAFETY: all is the system's allocator; the counters are plain cells of the thread, which allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        add(-layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size.cast_signed().wrapping_sub(layout.size().cast_signed()));
        // SAFETY: as the caller promised.
        unsafe { System.realloc(at, layout, size) }
    }
}
