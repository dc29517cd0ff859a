//! What a part of a program's memory is called.

use refit_stats::Part;

/// In a line with its size.
pub fn name(part: Part) -> &'static str {
    match part {
        Part::Live => "live",
        Part::Internal => "rounding and headers",
        Part::External => "fragments",
        Part::Retained => "retained",
        Part::Heap => "heap",
        Part::Anonymous => "mappings",
        Part::Stacks => "stacks",
        Part::File => "files",
        Part::Shared => "shared",
        Part::Copied => "copied",
        Part::Untouched => "huge, unused",
    }
}

/// Where it is what grows.
pub fn verdict(part: Part) -> &'static str {
    match part {
        Part::Live => "a leak, or data that the program still needs",
        Part::Internal => "internal fragmentation",
        Part::External => "external fragmentation",
        Part::Retained => "memory that the allocator keeps",
        Part::Heap => "the heap (leak, needed data, or fragmentation)",
        Part::Anonymous => "private mappings (mmap, or an allocator's)",
        Part::Stacks => "stacks of threads",
        Part::File => "pages of mapped files",
        Part::Shared => "shared memory",
        Part::Copied => "pages copied after a fork",
        Part::Untouched => "untouched parts of huge pages",
    }
}

/// What it consists of.
pub fn content(part: Part) -> &'static str {
    match part {
        Part::Live => "blocks that are not freed",
        Part::Internal => "rounding and headers of live blocks",
        Part::External => "free bytes on pages with a live block",
        Part::Retained => "free pages that the allocator does not give back",
        Part::Heap => "live and free blocks",
        Part::Anonymous => "private memory that is not malloc's",
        Part::Stacks => "stacks of threads",
        Part::File => "pages of mapped files",
        Part::Shared => "shared memory, and private copies of files' pages",
        Part::Copied => "copies of pages that processes shared after a fork",
        Part::Untouched => "parts of huge pages that nothing ever touched",
    }
}
