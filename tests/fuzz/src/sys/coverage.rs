//! Which branches an input reached, where the compiler counts them (`-C passes=sancov-module` with
//! `-sanitizer-coverage-inline-8bit-counters`, as scripts/fuzz asks for). Without the counters nothing is ever new.

use std::sync::Mutex;

/// Addresses of the counters: the first, and the one after the last.
static COUNTERS: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Called before main for each object with counters (clang's SanitizerCoverage documentation).
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_8bit_counters_init(start: *mut u8, end: *mut u8) {
    if let Ok(mut counters) = COUNTERS.lock() {
        counters.push((start.expose_provenance(), end.expose_provenance()));
    }
}

/// The same for the addresses of the branches, which are not needed.
#[unsafe(no_mangle)]
extern "C" fn __sanitizer_cov_pcs_init(_: *const usize, _: *const usize) {}

/// What was reached so far.
#[derive(Default)]
pub struct Coverage {
    /// Of each counter a bit for each order of magnitude.
    seen: Vec<u8>,
}

impl Coverage {
    /// Before an input.
    pub fn reset(&mut self) {
        each(|_, counter| {
            // SAFETY: in a region that the compiler reserved for counters of one byte; they have no other meaning.
            unsafe { counter.write_volatile(0) };
        });
    }

    /// Whether the input since then reached something that none had, or a branch more often than any.
    pub fn is_new(&mut self) -> bool {
        let mut is_new = false;
        let seen = &mut self.seen;
        each(|index, counter| {
            // SAFETY: as above.
            let count = unsafe { counter.read_volatile() };
            let bit = 1_u8 << (count.max(1).ilog2());
            if seen.len() <= index {
                seen.resize(index + 1, 0);
            }
            is_new |= seen[index] & bit == 0;
            seen[index] |= bit;
        });
        is_new
    }

    /// How many branches.
    pub fn reached(&self) -> usize {
        self.seen.iter().filter(|seen| **seen != 0).count()
    }
}

/// Each counter that is not zero, with its number.
fn each(mut of: impl FnMut(usize, *mut u8)) {
    let Ok(counters) = COUNTERS.lock() else {
        return;
    };
    let mut before = 0;
    for &(start, end) in counters.iter() {
        let mut at = start;
        while at < end {
            let word: *const u64 = std::ptr::with_exposed_provenance(at);
            // SAFETY: eight counters of the region, aligned; a program of one thread counts in them at this moment.
            if at % 8 == 0 && at + 8 <= end && unsafe { word.read_volatile() } == 0 {
                at += 8;
                continue;
            }
            let counter: *mut u8 = std::ptr::with_exposed_provenance_mut(at);
            // SAFETY: in the region.
            if unsafe { counter.read_volatile() } != 0 {
                of(before + (at - start), counter);
            }
            at += 1;
        }
        before += end - start;
    }
}
