//! The records of what was counted.

use serde::{Deserialize, Serialize};

/// Blocks of the heap.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeapSize {
    /// Bytes that the program asked for.
    pub requested_bytes: u64,
    /// Bytes that it could use: malloc_usable_size(3). An allocator's own header is not
    /// in it.
    pub usable_bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

impl HeapSize {
    pub(crate) fn add(&mut self, more: HeapSize) {
        self.requested_bytes = self.requested_bytes.saturating_add(more.requested_bytes);
        self.usable_bytes = self.usable_bytes.saturating_add(more.usable_bytes);
        self.blocks = self.blocks.saturating_add(more.blocks);
    }

    /// What the allocator's rounding takes, in bytes.
    #[must_use]
    pub fn internal_bytes(&self) -> u64 {
        self.usable_bytes.saturating_sub(self.requested_bytes)
    }
}

/// Requests of similar size.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeClass {
    /// Requests of more bytes than this; requests of 0 bytes are in the first class ...
    pub above_bytes: u64,
    /// ... and of no more than this; `null` in the last class.
    pub up_to_bytes: Option<u64>,
    /// Allocations ever made.
    pub allocations: u64,
    /// What is live.
    pub live: HeapSize,
}

/// Live blocks with one allocator.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeFit {
    /// As in `malloc=`.
    pub allocator: String,
    /// What the blocks of up to 32 KiB would take: usable bytes, and with glibc its headers. Free memory and what the
    /// allocator keeps of its own is not in it. Predicted.
    pub bytes: u64,
}

/// Sure bounds of what was requested at the end.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WithoutTable {
    /// At least.
    pub least_requested_bytes: u64,
    /// At most.
    pub most_requested_bytes: u64,
}

/// The process of an executable with the largest heap.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LargestHeap {
    /// As the process saw it.
    pub pid: u32,
    /// When the most bytes were usable; exact to 4 KiB for each thread, or to 1/128 of it where that is more (32 KiB at
    /// most).
    pub peak: HeapSize,
    /// At its end, or when it was left running.
    pub end: HeapSize,
    /// At its end, by requested size, the smallest first.
    pub classes: Vec<SizeClass>,
    /// The address space was limited: requested bytes at the end are an estimate between these bounds, and at the peak
    /// 0; there are no `classes` (docs/memory.md).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_table: Option<WithoutTable>,
    /// What these blocks would take with each allocator whose rounding is known.
    #[serde(default)]
    pub fit: Vec<SizeFit>,
}

/// All processes of one executable.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExecutableHeap {
    /// Path, as the program saw it.
    pub executable: String,
    /// The object that served malloc.
    pub malloc_object: String,
    /// Processes that were counted, forked ones among them.
    pub processes: u64,
    /// Allocations that they made; a realloc is a free and an allocation.
    pub allocations: u64,
    /// Blocks that they freed.
    pub frees: u64,
    /// Bytes that they requested.
    pub allocated_bytes: u64,
    /// The process with the largest heap.
    pub largest: LargestHeap,
    /// Frees of blocks that another function than malloc gave out.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub unknown_frees: u64,
    /// Blocks that could not be counted: there was no memory for it, or their address is
    /// above 2^48.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub untracked: u64,
    /// Blocks that were freed by a function that is not seen.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub vanished: u64,
    /// What else was not seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
}

/// Processes that were not counted.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UncountedHeap {
    /// Their executable.
    pub executable: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub processes: u64,
}

/// What was counted in the heaps of all processes that were reached.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeapReport {
    /// By executable, the largest heap first.
    pub executables: Vec<ExecutableHeap>,
    /// Processes that the library reached and did not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<UncountedHeap>,
}

impl HeapReport {
    /// Allocations of all processes.
    #[must_use]
    pub fn allocations(&self) -> u64 {
        crate::sum(self.executables.iter().map(|one| one.allocations))
    }

    /// What is not seen of the heap of an executable.
    pub fn add_gap(&mut self, executable: &str, gap: &str) {
        let heaps = self.executables.iter_mut();
        let known = |one: &&mut ExecutableHeap| one.executable == executable;
        heaps
            .filter(known)
            .for_each(|one| one.gaps.push(gap.to_owned()));
    }

    /// Processes whose heap was counted.
    #[must_use]
    pub fn processes(&self) -> u64 {
        crate::sum(self.executables.iter().map(|one| one.processes))
    }
}
