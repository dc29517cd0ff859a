//! What the heap library counts: one file for each exec'ed image, beside the image
//! files of the sync library and told apart from them by its size.

mod counted;
pub(crate) mod file;
pub(crate) mod layout;
mod purge;
mod report;
mod samples;
mod shadow;
mod size_fit;

pub use counted::CountedHeap;
pub use file::{HeapImage, HeapProcess, Region};
pub use purge::{PurgeRequest, PurgeState};
pub use report::{
    ExecutableHeap, HeapReport, HeapSize, LargestHeap, SizeClass, SizeFit, UncountedHeap,
    WithoutTable,
};
pub use samples::{HeapSamples, Sample};
pub use shadow::{LEAF_SPAN, Noted, each_noted};
