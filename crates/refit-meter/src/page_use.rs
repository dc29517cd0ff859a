//! What lies on each page of a heap, from the table of its live blocks.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use refit_session::heap::{LEAF_SPAN, Noted, each_noted};

use crate::pages::PRESENT;
use crate::process_facts::page;
use crate::tree::at;

/// The table is the program's memory, and may claim any blocks: no more spans than this are kept (128 GiB of heap,
/// 384 MiB here). What lies beyond is not told apart.
const MOST_SPANS: usize = 1 << 17;
/// Pages whose entries are read at once.
const PAGES: u64 = 512;

/// Bytes on one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageUse {
    /// Of live blocks, as requested.
    pub requested: u32,
    /// Of live blocks, beyond what was requested.
    pub rounding: u32,
    /// Of the allocator's headers right before live blocks.
    pub headers: u32,
}

impl PageUse {
    pub fn used(&self) -> u32 {
        self.requested + self.rounding + self.headers
    }
}

/// What lies on the pages of a heap.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageUses {
    /// By ascending number of the span.
    spans: Vec<(u64, Vec<PageUse>)>,
    /// Spans in which some block began, now or ever.
    noted: Vec<u64>,
    /// Live blocks that the table has, as requested.
    pub requested_bytes: u64,
}

impl PageUses {
    /// Reads the table at `top` in the memory of a process. `headers`: its allocator writes a header before each block,
    /// as glibc does.
    ///
    /// # Errors
    /// No such process, or no right to read it (ptrace(2), PTRACE_MODE_ATTACH).
    pub fn read(
        proc: &Path,
        pid: u32,
        top: u64,
        most_spans: u64,
        headers: bool,
    ) -> std::io::Result<PageUses> {
        let directory = at(proc, pid);
        let memory = File::open(directory.join("mem"))?;
        let pagemap = File::open(directory.join("pagemap"))?;
        let mut uses = PageUses::default();
        let read = |at: u64, bytes: &mut [u8]| read_present(&memory, &pagemap, at, bytes);
        each_noted(top, most_spans, read, |noted| uses.note(noted, headers));
        Ok(uses)
    }

    fn note(&mut self, noted: Noted, headers: bool) {
        match noted {
            Noted::Span(start) => self.noted.push(start),
            Noted::Block {
                at,
                requested,
                usable,
            } => {
                self.requested_bytes = self.requested_bytes.saturating_add(requested);
                let (end, used) = (at + usable, at + requested);
                self.add(at, used, |page| &mut page.requested);
                self.add(used, end, |page| &mut page.rounding);
                if headers {
                    let header = header_of(at, end);
                    self.add(at.saturating_sub(header), at, |page| &mut page.headers);
                }
            }
        }
    }

    fn add(&mut self, from: u64, to: u64, field: impl Fn(&mut PageUse) -> &mut u32) {
        let mut at = from;
        while at < to {
            let end = to.min((at / page() + 1) * page());
            let Some(span) = self.span(at / LEAF_SPAN) else {
                return;
            };
            let there = &mut span[((at % LEAF_SPAN) / page()) as usize];
            // The program changed the table while it was read: a page is never more than full.
            let room = page().saturating_sub(there.used().into());
            *field(there) += (end - at).min(room) as u32;
            at = end;
        }
    }

    /// Nearly always the last one, or the one after it. `None`: it would be one too many.
    fn span(&mut self, number: u64) -> Option<&mut [PageUse]> {
        let index = match self.spans.last() {
            Some((last, _)) if *last == number => self.spans.len() - 1,
            _ => self.spans.partition_point(|(span, _)| *span < number),
        };
        if self
            .spans
            .get(index)
            .is_none_or(|(span, _)| *span != number)
        {
            if self.spans.len() == MOST_SPANS {
                return None;
            }
            let pages = (LEAF_SPAN / page()) as usize;
            let none = vec![PageUse::default(); pages];
            self.spans.insert(index, (number, none));
        }
        Some(&mut self.spans[index].1)
    }

    /// What lies on the page at this address.
    pub fn of(&self, at: u64) -> PageUse {
        let number = at / LEAF_SPAN;
        let found = self.spans.binary_search_by_key(&number, |(span, _)| *span);
        found.map_or_else(
            |_| PageUse::default(),
            |index| self.spans[index].1[((at % LEAF_SPAN) / page()) as usize],
        )
    }

    /// Whether a live block lies between these addresses.
    pub fn has_blocks(&self, start: u64, end: u64) -> bool {
        let Some((first, last)) = self.reach(start, end) else {
            return false;
        };
        let mut pages = (first.max(start)..last.min(end)).step_by(page() as usize);
        pages.any(|at| self.of(at).used() > 0)
    }

    /// From the first to the last span between these addresses in which some block began.
    pub fn reach(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let first = self.noted.partition_point(|span| span + LEAF_SPAN <= start);
        let last = self.noted.partition_point(|span| *span < end);
        let noted = self.noted.get(first..last)?;
        Some((*noted.first()?, noted.last()? + LEAF_SPAN))
    }
}

/// Bytes of glibc's header before a block: the size, and of a block with a mapping of its own also where that begins
/// (malloc/malloc.c: MALLOC_ALIGNMENT, SIZE_SZ, chunk_is_mmapped).
fn header_of(at: u64, end: u64) -> u64 {
    let is_mapped = at % page() == 16 && end.is_multiple_of(page());
    if is_mapped { 16 } else { 8 }
}

/// Fills `bytes` from an address, without bringing anything into memory: pages that are not there are left as zeros.
fn read_present(memory: &File, pagemap: &File, at: u64, bytes: &mut [u8]) {
    let end = at.saturating_add(bytes.len() as u64);
    let mut entries = vec![0; (PAGES * 8) as usize];
    let mut from = at;
    while from < end {
        let first = from / page();
        let Ok(read) = pagemap.read_at(&mut entries, first * 8) else {
            return;
        };
        if read < 8 {
            return;
        }
        for (entry, number) in entries[..read - read % 8].chunks_exact(8).zip(first..) {
            let to = end.min((number + 1) * page());
            if from >= to {
                return;
            }
            let entry = u64::from_ne_bytes(entry.try_into().expect("eight bytes"));
            if entry & PRESENT != 0 {
                let part = &mut bytes[(from - at) as usize..(to - at) as usize];
                if memory.read_exact_at(part, from).is_err() {
                    part.fill(0);
                }
            }
            from = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_lies_on_all_its_pages_with_its_header() {
        let mut uses = PageUses::default();
        let at = 5 * LEAF_SPAN - 2 * page();
        uses.note(Noted::Span(4 * LEAF_SPAN), true);
        uses.note(
            Noted::Block {
                at,
                requested: 3 * page() - 100,
                usable: 3 * page(),
            },
            true,
        );
        let on = |at| {
            let PageUse {
                requested,
                rounding,
                headers,
            } = uses.of(at);
            (requested, rounding, headers)
        };
        let whole = page() as u32;
        assert_eq!(on(at - 1), (0, 0, 8));
        assert_eq!(on(at), (whole, 0, 0));
        assert_eq!(on(5 * LEAF_SPAN), (whole - 100, 100, 0));
        assert_eq!(on(5 * LEAF_SPAN + page()), (0, 0, 0));
        assert_eq!(uses.requested_bytes, 3 * page() - 100);
        assert_eq!(uses.reach(0, at), Some((4 * LEAF_SPAN, 5 * LEAF_SPAN)));
        assert_eq!(uses.reach(5 * LEAF_SPAN, 6 * LEAF_SPAN), None);
        assert_eq!(header_of(page() + 16, 3 * page()), 16);
    }

    #[test]
    fn a_forged_block_takes_no_more_memory_than_a_large_heap() {
        let mut uses = PageUses::default();
        let block = Noted::Block {
            at: 0,
            requested: 1 << 46,
            usable: 1 << 46,
        };
        uses.note(block, false);
        assert_eq!(uses.spans.len(), MOST_SPANS);
        assert_eq!(uses.of(page()).requested, page() as u32);
        assert_eq!(uses.requested_bytes, 1 << 46);
    }

    #[test]
    fn a_page_is_never_more_than_full() {
        let mut uses = PageUses::default();
        for _ in 0..2 {
            let block = Noted::Block {
                at: 0,
                requested: page() - 8,
                usable: page(),
            };
            uses.note(block, false);
        }
        assert_eq!(uses.of(0).used(), page() as u32);
    }
}
