//! Stacks of calls: each is unwound once, and gets a number.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::path::Path;

use refit_meter::{Frame, Gaps, MappedCode, Objects, ProcessCode, Registers, Trace, with_script};
use refit_session::ScriptFunction;
use refit_session::file_events::FileEvent;

/// Stacks beyond this number are not kept.
const MOST: usize = 20_000;
/// refit's own, which every call goes through.
const OWN_OBJECTS: &str = "librefit-";

/// Functions of glibc that call main.
const START: &str = "__libc_start_";

/// Number of a stack.
pub type StackId = u32;

/// An exec'ed image: its code, as it was listed last.
struct Image {
    executable: String,
    listing: Vec<u8>,
    code: ProcessCode,
    /// Addresses of all its code, in their order.
    ranges: Vec<Range<u64>>,
}

/// All stacks of a run.
pub struct StackTable {
    images: HashMap<u64, Image>,
    objects: Objects,
    known: HashMap<u64, StackId>,
    traces: Vec<(Trace, Vec<ScriptFunction>)>,
}

impl StackTable {
    /// An empty one.
    pub fn new() -> StackTable {
        StackTable {
            images: HashMap::new(),
            objects: Objects::new(),
            known: HashMap::new(),
            traces: Vec::new(),
        }
    }

    /// Takes what an image says of its code.
    pub fn image(&mut self, event: &FileEvent) {
        let before = self.images.get(&event.image);
        if before.is_some_and(|image| image.listing == event.stack) {
            return;
        }
        let mut code = ProcessCode::new();
        let mapped: Vec<MappedCode> = MappedCode::of_maps(&event.stack).collect();
        for one in &mapped {
            code.map(one, Path::new("/"), &mut self.objects);
        }
        let image = Image {
            executable: event.path.clone(),
            listing: event.stack.clone(),
            code,
            ranges: sorted(mapped.into_iter().map(|one| one.range)),
        };
        self.images.insert(event.image, image);
    }

    /// Path of an image's executable; empty where it is not known.
    pub fn executable(&self, image: u64) -> &str {
        self.images
            .get(&image)
            .map_or("", |image| &image.executable)
    }

    /// The number of the event's stack; `None` where there is none, or no more are kept.
    pub fn of(&mut self, event: &FileEvent) -> Option<StackId> {
        let [instruction, stack, frame] = event.registers;
        let image = self.images.get_mut(&event.image)?;
        if instruction == 0 {
            return None;
        }
        let signature = signature(event, &image.ranges);
        if let Some(known) = self.known.get(&signature) {
            return Some(*known);
        }
        if self.traces.len() >= MOST {
            return None;
        }
        let registers = Registers {
            instruction,
            stack,
            frame,
            link: 0,
        };
        let trace = image.code.trace(registers, &event.stack, &self.objects);
        let id = StackId::try_from(self.traces.len()).ok()?;
        self.traces.push((trace, event.script.clone()));
        self.known.insert(signature, id);
        Some(id)
    }

    /// Its functions, the outermost first.
    pub fn frames(&mut self, id: Option<StackId>) -> Vec<Frame> {
        let trace = id.and_then(|id| self.traces.get(id as usize));
        let mut gaps = Gaps::default();
        let mut frames = trace.map_or_else(Vec::new, |(trace, script)| {
            let native = self.objects.frames(trace, Some(OWN_OBJECTS), &mut gaps);
            with_script(native, script)
        });
        // What calls main, where that has no name.
        let start = frames
            .iter()
            .rposition(|frame| frame.function.starts_with(START));
        frames.drain(..start.map_or(0, |at| at + 1));
        frames
    }
}

fn sorted(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = ranges.collect();
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// A hash of all that points into code, and of the functions of an interpreter: two stacks with the same return addresses and
/// the same such functions have the same one, whatever else lies on them.
fn signature(event: &FileEvent, ranges: &[Range<u64>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    event.image.hash(&mut hasher);
    event.registers[0].hash(&mut hasher);
    event.script.hash(&mut hasher);
    let low = ranges.first().map_or(0, |range| range.start);
    let high = ranges.last().map_or(0, |range| range.end);
    for word in event.stack.chunks_exact(8) {
        let word = u64::from_ne_bytes(word.try_into().expect("eight bytes"));
        if (low..high).contains(&word) {
            let at = ranges.partition_point(|range| range.end <= word);
            if ranges.get(at).is_some_and(|range| range.start <= word) {
                word.hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}
