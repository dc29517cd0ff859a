//! Which part of a mapping is the heap of one of glibc's further arenas: told by what is reserved above it.

use crate::mappings::Mapping;

/// glibc maps the heaps of further arenas at multiples of this (malloc/arena.c, HEAP_MAX_SIZE: twice the largest
/// threshold of mmap, 32 MiB).
const ARENA: u64 = 64 << 20;

/// The part of a mapping that is the heap of one of glibc's further arenas. Such a heap begins at a multiple of [`ARENA`]
/// and is reserved to the next one, without access above what is in use (malloc/arena.c, `new_heap`). The kernel joins
/// it with writable memory that lies right below it, so the mapping may begin earlier.
pub fn heap_of_arena(mapping: &Mapping, above: Option<&Mapping>) -> Option<(u64, u64)> {
    let start = (mapping.end - 1) / ARENA * ARENA;
    let is_reserved = |above: &Mapping| {
        !above.is_file()
            && above.permissions == *b"---p"
            && above.start == mapping.end
            && above.end >= start + ARENA
    };
    let is_heap =
        start >= mapping.start && (mapping.end == start + ARENA || above.is_some_and(is_reserved));
    is_heap.then_some((start, mapping.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_of_an_arena_is_told_by_what_is_reserved_above_it() {
        let line = |start: u64, end: u64, permissions: &str| {
            let line = format!("{start:x}-{end:x} {permissions} 00000000 00:00 0");
            Mapping::parse(line.as_bytes()).unwrap()
        };
        let (start, used) = (5 * ARENA, 5 * ARENA + 0x21000);
        let heap = line(start, used, "rw-p");
        let reserved = line(used, start + ARENA, "---p");
        assert_eq!(heap_of_arena(&heap, Some(&reserved)), Some((start, used)));
        // Two heaps in a row: what is reserved for the lower one ends where the upper one begins; that of the upper one
        // may be joined with a guard above it.
        let longer = line(used, start + ARENA + 0x1000, "---p");
        assert_eq!(heap_of_arena(&heap, Some(&longer)), Some((start, used)));
        // Memory right below was joined with it.
        let joined = line(start - 0x5000, used, "rw-p");
        assert_eq!(heap_of_arena(&joined, Some(&reserved)), Some((start, used)));
        // All of it is in use.
        let full = line(start, start + ARENA, "rw-p");
        assert_eq!(heap_of_arena(&full, None), Some((start, start + ARENA)));
        // A mapping of the program's own that happens to begin at such an address.
        assert_eq!(heap_of_arena(&heap, None), None);
        let other = line(used, used + 0x1000, "rw-p");
        assert_eq!(heap_of_arena(&heap, Some(&other)), None);
        let guard = line(used, used + 0x1000, "---p");
        assert_eq!(heap_of_arena(&heap, Some(&guard)), None);
        let elsewhere = line(start + 0x1000, used, "rw-p");
        assert_eq!(heap_of_arena(&elsewhere, Some(&reserved)), None);
    }
}
