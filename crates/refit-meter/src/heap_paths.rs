//! Who allocated what is live: the samples of a heap, unwound and named, outside of the program that took them.
//!
//! Stacks are unwound by the .eh_frame of the objects, which compilers write for all code on x86-64: frame pointers are
//! not needed. An object that was replaced or removed since, or that has no such section, ends a path, and is named.

mod object_file;

use std::collections::{BTreeMap, BTreeSet};

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Unwinder};
use refit_session::heap::{HeapSamples, Sample};
use refit_session::printable;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use object_file::ObjectFile;

/// A stack deeper than this is cut off at its outer end.
const MOST_FRAMES: usize = 256;
/// refit's own, which every allocation goes through.
const OWN_OBJECTS: &str = "librefit-heap";

/// One way from the start of a thread to an allocation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq, JsonSchema)]
pub struct CallPath {
    /// Functions, the outermost first. One without a name is `object+0x…`; what ends a path before its start stands in
    /// brackets.
    pub frames: Vec<String>,
    /// Live bytes that it allocated, estimated.
    pub bytes: u64,
    /// Samples that this rests on.
    pub samples: u64,
}

/// Who allocated what is live in the processes of one executable.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq, JsonSchema)]
pub struct HeapPaths {
    /// Path of the executable, as the program saw it.
    pub executable: String,
    /// The most bytes first.
    pub paths: Vec<CallPath>,
    /// Allocations for which there was no room.
    #[serde(default, skip_serializing_if = "refit_session::is_zero")]
    pub lost: u64,
    /// Objects without .eh_frame, or that could not be read: no path leads through them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_unwound: Vec<String>,
    /// Objects without names for some of their functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_names: Vec<String>,
}

impl HeapPaths {
    /// All live bytes, estimated.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        refit_session::sum(self.paths.iter().map(|path| path.bytes))
    }

    /// All samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        refit_session::sum(self.paths.iter().map(|path| path.samples))
    }
}

/// The paths of all samples, by executable, that with the most bytes first.
#[must_use]
pub fn heap_paths(images: &[HeapSamples]) -> Vec<HeapPaths> {
    let mut all: BTreeMap<&str, Found> = BTreeMap::new();
    for image in images
        .iter()
        .filter(|image| !image.samples.is_empty() || image.lost > 0)
    {
        let mut process = Process::of(&image.objects);
        let found = all.entry(&image.executable).or_default();
        found.lost = found.lost.saturating_add(image.lost);
        for sample in &image.samples {
            let frames = process.frames(sample, found);
            let (bytes, samples) = found.paths.entry(frames).or_default();
            *bytes += sample.bytes();
            *samples += 1;
        }
    }
    let mut all: Vec<HeapPaths> = all
        .into_iter()
        .map(|(name, found)| found.record(name))
        .collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.bytes()));
    all
}

#[derive(Default)]
struct Found {
    paths: BTreeMap<Vec<String>, (f64, u64)>,
    lost: u64,
    not_unwound: BTreeSet<String>,
    without_names: BTreeSet<String>,
}

impl Found {
    fn record(self, executable: &str) -> HeapPaths {
        let paths = self.paths.into_iter();
        let mut paths: Vec<CallPath> = paths
            .map(|(frames, (bytes, samples))| CallPath {
                frames,
                bytes: bytes as u64,
                samples,
            })
            .collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.bytes));
        HeapPaths {
            executable: printable(executable),
            paths,
            lost: self.lost,
            not_unwound: self.not_unwound.into_iter().collect(),
            without_names: self.without_names.into_iter().collect(),
        }
    }
}

/// The objects of a process, for the unwinder.
struct Process {
    objects: Vec<ObjectFile>,
    unwinder: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
}

impl Process {
    fn of(maps: &[u8]) -> Process {
        let mut objects: Vec<ObjectFile> = maps
            .split(|byte| *byte == b'\n')
            .filter_map(ObjectFile::of_line)
            .collect();
        let mut unwinder = UnwinderX86_64::new();
        for module in objects.iter_mut().filter_map(ObjectFile::take_module) {
            unwinder.add_module(module);
        }
        Process {
            objects,
            unwinder,
            cache: CacheX86_64::new(),
        }
    }

    fn object(&self, address: u64) -> Option<&ObjectFile> {
        self.objects
            .iter()
            .find(|object| object.range.contains(&address))
    }

    /// The functions of a sample, the outermost first.
    fn frames(&mut self, sample: &Sample, found: &mut Found) -> Vec<String> {
        let addresses = self.addresses(sample);
        let mut frames = Vec::new();
        let mut ending = addresses.1;
        for address in addresses.0 {
            let Some(object) = self.object(address) else {
                ending = Some("[unknown code]".to_owned());
                break;
            };
            if frames.is_empty() && object.name.starts_with(OWN_OBJECTS) {
                continue;
            }
            let (function, is_named) = object.function(address);
            if !is_named {
                found.without_names.insert(object.name.clone());
            }
            frames.push(function);
            if !object.is_unwound {
                found.not_unwound.insert(object.name.clone());
                ending = Some(format!("[{} cannot be unwound]", object.name));
                break;
            }
        }
        frames.extend(ending);
        frames.reverse();
        frames
    }

    /// Addresses of code, the innermost first, and why there are no more.
    fn addresses(&mut self, sample: &Sample) -> (Vec<u64>, Option<String>) {
        let [instruction, stack_pointer, frame_pointer] = sample.registers;
        let mut read = |address: u64| -> Result<u64, ()> {
            let at =
                usize::try_from(address.checked_sub(stack_pointer).ok_or(())?).map_err(|_| ())?;
            let word = sample
                .stack
                .get(at..at.checked_add(8).ok_or(())?)
                .ok_or(())?;
            Ok(u64::from_ne_bytes(word.try_into().map_err(|_| ())?))
        };
        let registers = UnwindRegsX86_64::new(instruction, stack_pointer, frame_pointer);
        let mut walk =
            self.unwinder
                .iter_frames(instruction, registers, &mut self.cache, &mut read);
        let mut addresses = Vec::new();
        while addresses.len() < MOST_FRAMES {
            match walk.next() {
                Ok(Some(frame)) => addresses.push(FrameAddress::address_for_lookup(frame)),
                Ok(None) => return (addresses, None),
                Err(_) => return (addresses, Some("[deeper]".to_owned())),
            }
        }
        (addresses, Some("[deeper]".to_owned()))
    }
}
