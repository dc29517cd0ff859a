//! The records of a ring of samples (perf_event_open(2), "mmap layout").

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::arch::SAMPLED_REGISTERS;
use crate::perf::record::{
    COMM, EXIT, FORK, LOST, LOST_SAMPLES, MISC_COMM_EXEC, MMAP2, Raw, SAMPLE, Words, records,
};
use crate::stacks::MappedCode;

/// PERF_SAMPLE_REGS_ABI_NONE: the thread had no registers of a program.
const NO_REGISTERS: u64 = 0;
/// PERF_SAMPLE_REGS_ABI_64
const REGISTERS_64: u64 = 2;
/// Addresses of a call chain from here on are marks of the kernel's (PERF_CONTEXT_MAX).
const FIRST_MARK: u64 = (-4095_i64).cast_unsigned();
const REGISTERS: usize = SAMPLED_REGISTERS.count_ones() as usize;

/// What happened to a process.
#[derive(Debug)]
pub enum Record {
    /// A new thread; of a new process where `process` is not `parent`.
    Forked {
        process: u32,
        parent: u32,
    },
    /// One of its threads ended.
    Ended {
        process: u32,
    },
    /// It is another program from here on.
    Execed {
        process: u32,
    },
    Mapped {
        process: u32,
        code: MappedCode,
    },
    /// So many records found no room.
    Lost(u64),
    Sampled(CpuSample),
}

/// Registers of a program's code.
#[derive(Debug, PartialEq, Eq)]
pub enum ProgramRegisters {
    /// A thread without a program, as the kernel has them.
    None,
    /// Code of 32 bits has others.
    Narrow,
    /// In the order of their bits.
    Wide([u64; REGISTERS]),
}

/// Where a thread was.
#[derive(Debug)]
pub struct CpuSample {
    pub process: u32,
    /// The kernel's functions, the innermost first.
    pub kernel: Vec<u64>,
    /// Those of the program.
    pub registers: ProgramRegisters,
    /// What lies at its stack pointer and above.
    pub stack: Vec<u8>,
}

/// Each record with its time; what is of another kind is left out. `kernel`: samples have a call chain.
pub fn parse(bytes: &[u8], kernel: bool) -> impl Iterator<Item = (u64, Record)> {
    records(bytes).filter_map(move |raw| match raw.kind {
        SAMPLE => sample(raw.body, kernel),
        _ => other(raw),
    })
}

fn sample(mut body: Words, kernel: bool) -> Option<(u64, Record)> {
    let (process, _thread, time) = (body.u32()?, body.u32()?, body.u64()?);
    let mut chain = Vec::new();
    if kernel {
        let length = body.u64()?;
        for _ in 0..length {
            let address = body.u64()?;
            if address < FIRST_MARK {
                chain.push(address);
            }
        }
    }
    let abi = body.u64()?;
    let mut registers = [0; REGISTERS];
    if abi != NO_REGISTERS {
        for register in &mut registers {
            *register = body.u64()?;
        }
    }
    let size = usize::try_from(body.u64()?).ok()?;
    let mut stack = Vec::new();
    if size > 0 {
        let kept = body.bytes(size)?;
        let written = usize::try_from(body.u64()?).ok()?;
        stack = kept.get(..written)?.to_vec();
    }
    let sample = CpuSample {
        process,
        kernel: chain,
        registers: match abi {
            NO_REGISTERS => ProgramRegisters::None,
            REGISTERS_64 => ProgramRegisters::Wide(registers),
            _ => ProgramRegisters::Narrow,
        },
        stack,
    };
    Some((time, Record::Sampled(sample)))
}

fn other(raw: Raw) -> Option<(u64, Record)> {
    let (kind, misc) = (raw.kind, raw.misc);
    let (time, mut body) = raw.timed()?;
    let record = match kind {
        FORK => Record::Forked {
            process: body.u32()?,
            parent: body.u32()?,
        },
        EXIT => Record::Ended {
            process: body.u32()?,
        },
        COMM if misc & MISC_COMM_EXEC != 0 => Record::Execed {
            process: body.u32()?,
        },
        MMAP2 => mapped(body)?,
        LOST => {
            let _id = body.u64()?;
            Record::Lost(body.u64()?)
        }
        LOST_SAMPLES => Record::Lost(body.u64()?),
        _ => return None,
    };
    Some((time, record))
}

/// Process, thread, address, length, offset, device, inode and its generation, protection, flags, path.
fn mapped(mut body: Words) -> Option<Record> {
    let (process, _thread) = (body.u32()?, body.u32()?);
    let (start, length, offset) = (body.u64()?, body.u64()?, body.u64()?);
    let (_device, inode, _generation) = (body.u64()?, body.u64()?, body.u64()?);
    let _protection_and_flags = body.u64()?;
    let code = MappedCode {
        range: start..start.checked_add(length)?,
        offset,
        inode,
        path: OsStr::from_bytes(body.text()).into(),
    };
    Some(Record::Mapped { process, code })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of these words.
    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let size = 8 + 8 * words.len() as u16;
        let mut bytes = [
            &kind.to_ne_bytes()[..],
            &misc.to_ne_bytes(),
            &size.to_ne_bytes(),
        ]
        .concat();
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from_ne_bytes(
            [low.to_ne_bytes(), high.to_ne_bytes()]
                .concat()
                .try_into()
                .unwrap(),
        )
    }

    fn sampled(kernel: bool, words: &[u64]) -> Option<(u64, CpuSample)> {
        let bytes = record(SAMPLE, 0, &[&[pair(10, 11), 7], words].concat());
        parse(&bytes, kernel)
            .next()
            .map(|(time, record)| match record {
                Record::Sampled(sample) => (time, sample),
                other => panic!("{other:?}"),
            })
    }

    #[test]
    fn a_sample_has_the_kernels_part_the_registers_and_the_stack_that_was_written() {
        let registers = [5_u64; REGISTERS];
        // A mark and two addresses; 64 bits; 16 bytes of stack, 8 of them written.
        let mut words = vec![3, FIRST_MARK + 7, 100, 200, REGISTERS_64];
        words.extend(registers);
        words.extend([16, 1, 2, 8]);
        let (time, sample) = sampled(true, &words).unwrap();
        assert_eq!((time, sample.process), (7, 10));
        assert_eq!(sample.kernel, [100, 200]);
        assert_eq!(sample.registers, ProgramRegisters::Wide(registers));
        assert_eq!(sample.stack, 1_u64.to_ne_bytes());
        // One that says more than it has.
        assert!(sampled(true, &words[..words.len() - 1]).is_none());
        assert!(sampled(true, &[u64::MAX, 1]).is_none());
    }

    #[test]
    fn code_of_32_bits_and_none_are_told_apart() {
        let (_, none) = sampled(false, &[NO_REGISTERS, 0]).unwrap();
        assert_eq!(none.registers, ProgramRegisters::None);
        let narrow = [&[1][..], &[5; REGISTERS], &[0]].concat();
        let (_, narrow) = sampled(false, &narrow).unwrap();
        assert_eq!(narrow.registers, ProgramRegisters::Narrow);
    }

    #[test]
    fn what_happens_to_processes_is_read_in_order_and_other_records_are_left_out() {
        let id = [pair(10, 11), 9];
        let all = [
            record(
                FORK,
                0,
                &[&[pair(20, 10), pair(20, 10), 1][..], &id].concat(),
            ),
            record(77, 0, &id),
            record(
                COMM,
                MISC_COMM_EXEC,
                &[&[pair(20, 20), 0][..], &id].concat(),
            ),
            record(COMM, 0, &[&[pair(20, 20), 0][..], &id].concat()),
            record(LOST, 0, &[&[1, 42][..], &id].concat()),
            record(
                EXIT,
                0,
                &[&[pair(20, 10), pair(20, 10), 1][..], &id].concat(),
            ),
        ];
        let found: Vec<String> = parse(&all.concat(), false)
            .map(|(time, record)| format!("{time} {record:?}"))
            .collect();
        assert_eq!(
            found,
            [
                "9 Forked { process: 20, parent: 10 }",
                "9 Execed { process: 20 }",
                "9 Lost(42)",
                "9 Ended { process: 20 }",
            ]
        );
    }

    #[test]
    fn a_mapping_has_its_path_and_place() {
        let path = *b"/bin/a\0\0";
        let words = [
            pair(20, 20),
            4096,
            8192,
            512,
            0,
            33,
            0,
            0,
            u64::from_ne_bytes(path),
        ];
        let bytes = record(MMAP2, 0, &[&words[..], &[pair(20, 20), 9]].concat());
        let Some((9, Record::Mapped { process: 20, code })) = parse(&bytes, false).next() else {
            panic!("no mapping");
        };
        assert_eq!(
            (code.range, code.offset, code.inode),
            (4096..12288, 512, 33)
        );
        assert_eq!(code.path.to_str(), Some("/bin/a"));
    }
}
