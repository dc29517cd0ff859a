//! Live blocks of which the place of their allocation was kept.

use std::fs::File;
use std::mem::{offset_of, size_of};
use std::os::unix::fs::FileExt;

use super::file::SAMPLES_AT;
use super::layout::{CHeader, CSample, CSamples, MAGIC, OBJECTS, PAGE, SAMPLES, SCRIPT, STACK};
use crate::ScriptFunction;
use crate::layout::{field_size, get_text, get_u32, get_u64};

/// A live block, and the thread that allocated it as it then was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which process of the image, from 1 on.
    pub process: u32,
    /// What was asked for.
    pub requested_bytes: u64,
    /// What malloc_usable_size(3) gives for it.
    pub usable_bytes: u64,
    /// One in so many bytes became a sample.
    pub interval_bytes: u64,
    /// The registers rip, rsp and rbp.
    pub registers: [u64; 3],
    /// The stack from rsp on, as much of it as was kept.
    pub stack: Vec<u8>,
    /// Functions of an interpreter that allocated it, the innermost first.
    pub script: Vec<ScriptFunction>,
}

impl Sample {
    /// How many live bytes it stands for: a block of n usable bytes becomes a sample with
    /// the probability 1 - exp(-n / interval).
    #[must_use]
    pub fn bytes(&self) -> f64 {
        let usable = self.usable_bytes.max(self.requested_bytes);
        let share = usable as f64 / self.interval_bytes.max(1) as f64;
        match self.requested_bytes {
            0 => 0.0,
            bytes => bytes as f64 / -(-share).exp_m1(),
        }
    }
}

/// The samples of one image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapSamples {
    /// Path of the executable, empty when unknown.
    pub executable: String,
    /// The lines of /proc/PID/maps that have code, of one of its processes.
    pub objects: Vec<u8>,
    /// Allocations for which there was no room.
    pub lost: u64,
    /// What is live.
    pub samples: Vec<Sample>,
}

impl HeapSamples {
    /// Reads them from a heap file, and trusts nothing in it. `None`: none were taken.
    #[must_use]
    pub fn read(file: &File) -> Option<HeapSamples> {
        let header = bytes(file, 0, PAGE)?;
        let table = bytes(file, SAMPLES_AT, offset_of!(CSamples, objects))?;
        let is_taken = get_u64(&table, offset_of!(CSamples, interval)) > 0;
        if get_u64(&header, offset_of!(CHeader, magic)) != MAGIC || !is_taken {
            return None;
        }
        let known = get_u64(&table, offset_of!(CSamples, objects_bytes));
        let known = usize::try_from(known).map_or(OBJECTS, |known| known.min(OBJECTS));
        let owner = |i: usize| get_u32(&table, offset_of!(CSamples, owner) + i * 4);
        let samples = (0..SAMPLES).filter(|i| owner(*i) > 0);
        Some(HeapSamples {
            executable: get_text(
                &header,
                offset_of!(CHeader, executable),
                field_size(|header: &CHeader| &header.executable),
            ),
            objects: bytes(file, SAMPLES_AT + offset_of!(CSamples, objects), known)?,
            lost: get_u64(&table, offset_of!(CSamples, lost)),
            samples: samples
                .filter_map(|i| Sample::read(file, i, owner(i)))
                .collect(),
        })
    }
}

impl Sample {
    fn read(file: &File, index: usize, process: u32) -> Option<Sample> {
        let at = SAMPLES_AT + offset_of!(CSamples, sample) + index * size_of::<CSample>();
        let record = bytes(file, at, size_of::<CSample>())?;
        let field = |at| get_u64(&record, at);
        let kept = |at, most| usize::try_from(field(at)).map_or(most, |kept| kept.min(most));
        let stack = &record[offset_of!(CSample, stack)..];
        let script = &record[offset_of!(CSample, script)..];
        let sample = Sample {
            process,
            requested_bytes: field(offset_of!(CSample, requested)),
            usable_bytes: field(offset_of!(CSample, usable)),
            interval_bytes: field(offset_of!(CSample, interval)),
            registers: [
                offset_of!(CSample, instruction),
                offset_of!(CSample, stack_pointer),
                offset_of!(CSample, frame_pointer),
            ]
            .map(field),
            stack: stack[..kept(offset_of!(CSample, stack_bytes), STACK)].to_vec(),
            script: ScriptFunction::parse(
                &script[..kept(offset_of!(CSample, script_bytes), SCRIPT)],
            ),
        };
        (field(offset_of!(CSample, is_complete)) != 0).then_some(sample)
    }
}

fn bytes(file: &File, at: usize, size: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, at as u64).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(requested_bytes: u64) -> Sample {
        Sample {
            process: 1,
            requested_bytes,
            usable_bytes: requested_bytes,
            interval_bytes: 512 << 10,
            registers: [0; 3],
            stack: Vec::new(),
            script: Vec::new(),
        }
    }

    #[test]
    fn a_small_block_stands_for_the_interval_and_a_large_one_for_itself() {
        let small = sample(16).bytes();
        assert!((small / f64::from(512 << 10) - 1.0).abs() < 1e-4, "{small}");
        let large = sample(64 << 20).bytes();
        assert!((large / f64::from(64 << 20) - 1.0).abs() < 1e-9, "{large}");
        assert_eq!(sample(0).bytes(), 0.0);
    }
}
