//! Who allocated what is live: the samples of a heap, with their stacks unwound and their functions named.

use std::collections::BTreeMap;
use std::path::Path;

use refit_session::heap::HeapSamples;
use refit_session::printable;
use serde::{Deserialize, Serialize};

use crate::stacks::{Frame, Gaps, MappedCode, Objects, ProcessCode, Registers, with_script};

/// refit's own, which every allocation goes through.
const OWN_OBJECTS: &str = "librefit-heap";

/// One way from the start of a thread to an allocation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallPath {
    /// Functions, the outermost first.
    pub frames: Vec<Frame>,
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
    let mut objects = Objects::new();
    for image in images
        .iter()
        .filter(|image| !image.samples.is_empty() || image.lost > 0)
    {
        let mut process = process(&image.objects, &mut objects);
        let found = all.entry(&image.executable).or_default();
        found.lost = found.lost.saturating_add(image.lost);
        for sample in &image.samples {
            let [instruction, stack, frame] = sample.registers;
            let registers = Registers {
                instruction,
                stack,
                frame,
                link: 0,
            };
            let trace = process.trace(registers, &sample.stack, &objects);
            let frames = objects.frames(&trace, Some(OWN_OBJECTS), &mut found.gaps);
            let frames = with_script(frames, &sample.script);
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

/// The code of a process, from the lines of /proc/PID/maps that have it.
fn process(maps: &[u8], objects: &mut Objects) -> ProcessCode {
    let mut process = ProcessCode::new();
    MappedCode::of_maps(maps).for_each(|code| process.map(&code, Path::new("/"), objects));
    process
}

#[derive(Default)]
struct Found {
    paths: BTreeMap<Vec<Frame>, (f64, u64)>,
    lost: u64,
    gaps: Gaps,
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
            not_unwound: self.gaps.not_unwound.into_iter().collect(),
            without_names: self.gaps.without_names.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;

    use refit_session::heap::Sample;

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
            script: Vec::new(),
        }
    }

    fn paths(random: &mut Random, objects: &[u8], samples: usize) -> u64 {
        let process = process(objects, &mut Objects::new());
        let code: Vec<_> = process.ranges().collect();
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
            let mut objects = Objects::new();
            unwound += process(line.as_bytes(), &mut objects).unwound(&objects);
        }
        assert!(unwound > 0, "no broken file was unwound");
    }
}
