//! Who allocated what is live: the samples of a heap, unwound and named, outside of the program that took them.
//!
//! Stacks are unwound by the .eh_frame of the objects, which compilers write for all code: frame pointers are not needed. An object that was replaced or removed since, or that has no such section, ends a path, and is named.

pub(crate) mod function_name;
mod object_file;

use std::collections::{BTreeMap, BTreeSet};

use framehop::{FrameAddress, Unwinder};
use refit_session::heap::{HeapSamples, Sample};
use refit_session::printable;
use serde::{Deserialize, Serialize};

use crate::arch::{self, Cache, StackUnwinder};
use object_file::ObjectFile;

/// A stack deeper than this is cut off at its outer end.
const MOST_FRAMES: usize = 256;
/// refit's own, which every allocation goes through.
const OWN_OBJECTS: &str = "librefit-heap";

/// One way from the start of a thread to an allocation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    unwinder: StackUnwinder<Vec<u8>>,
    cache: Cache,
}

impl Process {
    fn of(maps: &[u8]) -> Process {
        let mut budget = object_file::MOST_BYTES;
        let mut objects: Vec<ObjectFile> = maps
            .split(|byte| *byte == b'\n')
            .filter_map(|line| ObjectFile::of_line(line, &mut budget))
            .collect();
        let mut unwinder = StackUnwinder::new();
        for module in objects.iter_mut().filter_map(ObjectFile::take_module) {
            unwinder.add_module(module);
        }
        Process {
            objects,
            unwinder,
            cache: Cache::new(),
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
        let [instruction, stack_pointer, _] = sample.registers;
        let mut read = |address: u64| -> Result<u64, ()> {
            let at =
                usize::try_from(address.checked_sub(stack_pointer).ok_or(())?).map_err(|_| ())?;
            let word = sample
                .stack
                .get(at..at.checked_add(8).ok_or(())?)
                .ok_or(())?;
            Ok(u64::from_ne_bytes(word.try_into().map_err(|_| ())?))
        };
        let registers = arch::registers(sample.registers);
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

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;

    use super::*;

    /// splitmix64.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z ^ (z >> 27)
        }

        fn below(&mut self, end: u64) -> u64 {
            self.next() % end
        }
    }

    /// Registers and a stack that point anywhere, mostly into code.
    fn sample(random: &mut Random, code: &[std::ops::Range<u64>]) -> Sample {
        let somewhere = |random: &mut Random| match random.below(8) {
            0 => random.next(),
            1 => u64::MAX - random.below(64),
            _ => {
                let range = &code[random.below(code.len() as u64) as usize];
                range.start + random.below(range.end - range.start)
            }
        };
        let words = (0..random.below(64))
            .map(|_| somewhere(random))
            .collect::<Vec<u64>>();
        Sample {
            process: 1,
            requested_bytes: random.next(),
            usable_bytes: random.next(),
            interval_bytes: random.next(),
            registers: [0; 3].map(|_| somewhere(random)),
            stack: words.iter().flat_map(|word| word.to_ne_bytes()).collect(),
        }
    }

    fn paths(random: &mut Random, objects: &[u8], samples: usize) -> u64 {
        let process = Process::of(objects);
        let code: Vec<_> = process.objects.iter().map(|o| o.range.clone()).collect();
        let image = HeapSamples {
            objects: objects.to_vec(),
            samples: (0..samples).map(|_| sample(random, &code)).collect(),
            ..HeapSamples::default()
        };
        heap_paths(&[image]).iter().map(HeapPaths::samples).sum()
    }

    #[test]
    fn whatever_a_program_wrote_as_its_samples_is_read() {
        let mut maps = Command::new("sh");
        maps.args(["-c", "cat /proc/$$/maps"]);
        let maps = maps.output().unwrap().stdout;
        let maps = String::from_utf8(maps).unwrap();
        let has_code = |line: &&str| line.contains(" r-xp ") && line.contains(" /");
        let objects: Vec<&str> = maps.lines().filter(has_code).collect();
        let random = &mut Random(7);
        assert_eq!(paths(random, objects.join("\n").as_bytes(), 3000), 3000);

        // Files that no compiler wrote.
        let fields: Vec<&str> = objects[0].split_whitespace().collect();
        let [range, permissions, offset, device, _, path] = fields[..] else {
            panic!("{fields:?}");
        };
        let good = fs::read(path).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("broken.so");
        let mut unwound = 0;
        for round in 0..100 {
            let mut content = good.clone();
            for _ in 0..1 << random.below(16) {
                let at = match random.below(4) {
                    0 => random.below(4096),
                    _ => random.below(good.len() as u64),
                };
                content[at as usize] = random.next() as u8;
            }
            content.truncate(match round % 8 {
                7 => random.below(good.len() as u64) as usize,
                _ => good.len(),
            });
            // Its beginning is that of an ELF file.
            let kept = content.len().min(64);
            content[..kept].copy_from_slice(&good[..kept]);
            fs::write(&path, &content).unwrap();
            let inode = File::open(&path).unwrap().metadata().unwrap().ino();
            let path = path.display();
            let line = format!("{range} {permissions} {offset} {device} {inode} {path}");
            assert_eq!(paths(random, line.as_bytes(), 50), 50);
            let object =
                ObjectFile::of_line(line.as_bytes(), &mut good.len().try_into().unwrap()).unwrap();
            unwound += usize::from(object.is_unwound);
        }
        assert!(unwound > 0, "no broken file was unwound");
    }
}
