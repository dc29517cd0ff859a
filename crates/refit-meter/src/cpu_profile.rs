//! What a program did on the processors: samples of its time there, with their stacks unwound and their functions named.
//!
//! By the kernel's clock of a task's time on a processor (perf_event_open(2), PERF_COUNT_SW_CPU_CLOCK), which every machine
//! has, virtual ones too: one sample for each millisecond. Where the kernel lets this user see its own part, its functions
//! are named as well.

mod record;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

use refit_session::{now_ns, printable};
use serde::{Deserialize, Serialize};

use crate::arch::{SAMPLED_REGISTERS, sampled};
use crate::perf::sys::{Mapping, ProcessorTime, Sampled, enable, redirect, sample_processor_time};
use crate::perf::{processors, refused};
use crate::stacks::{Frame, Gaps, KernelNames, MappedCode, Objects, ProcessCode, Trace};
use record::{CpuSample, ProgramRegisters, Record};

/// The time from one sample of a task to its next.
const PERIOD_NS: u64 = 1_000_000;
/// Bytes of the program's stack that each sample holds; callers further up the stack are not known.
const STACK_BYTES: u32 = 16 << 10;
/// Different stacks that are kept whole (some 1 KiB each), and functions of those that come later: a recursive program has
/// no end of them.
const MOST_DIFFERENT: usize = 100_000;
const MOST_LATER: usize = 4;
/// For the records of each processor, the first that may be had: room for 250 samples; and, with a page of the kernel's
/// own, what any user may have (kernel.perf_event_mlock_kb), for 31. A sample is there for each millisecond.
const RINGS_BYTES: [usize; 2] = [4 << 20, 512 << 10];

/// Where a program was on the processors.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuProfile {
    /// Nanoseconds on a processor that a sample stands for.
    pub period_ns: u64,
    /// The kernel's part is in it; else only the program's own code was sampled.
    pub kernel: bool,
    /// Records that the kernel had no room for.
    #[serde(default, skip_serializing_if = "refit_session::is_zero")]
    pub lost: u64,
    /// Each function that is in a path, once for each of its lines there. Those of the kernel end with `[kernel]`.
    pub frames: Vec<Frame>,
    /// By executable, that with the most samples first.
    pub executables: Vec<CpuPaths>,
}

impl CpuProfile {
    /// All samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        refit_session::sum(self.executables.iter().map(CpuPaths::samples))
    }

    /// The functions of a path, the outermost first.
    #[must_use]
    pub fn frames_of(&self, path: &CpuPath) -> Vec<&Frame> {
        let frames = path.frames.iter();
        frames.filter_map(|index| self.frames.get(*index)).collect()
    }
}

/// Where the processes of one executable were.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuPaths {
    /// Path of the executable, as the program saw it.
    pub executable: String,
    /// The most samples first.
    pub paths: Vec<CpuPath>,
    /// Objects without .eh_frame, or that could not be read: no path leads through them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_unwound: Vec<String>,
    /// Objects without names for some of their functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_names: Vec<String>,
}

impl CpuPaths {
    /// All samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        refit_session::sum(self.paths.iter().map(|path| path.samples))
    }
}

/// One way from the start of a thread to where it was.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuPath {
    /// Places of its functions in the list of all, the outermost first.
    pub frames: Vec<usize>,
    /// How often it was there.
    pub samples: u64,
}

/// Events that sample a program.
struct Events {
    /// That of each processor has a ring; further ones write into it.
    leading: Vec<OwnedFd>,
    others: Vec<OwnedFd>,
    /// Each is mapped once, and in one process: for a second mapping Linux 6.18 takes pages from what the user may lock and
    /// does not give them back (measured, not traced in the kernel). After some of them `io_uring_setup` answers
    /// ENOMEM to each of the user's programs, for as long as anything of this user is left, a segment of shared memory too.
    rings: Vec<Mapping>,
    kernel: bool,
}

impl Events {
    fn open(of: Sampled) -> io::Result<Events> {
        let processors = processors().map_err(io::Error::other)?;
        let (kernel, leading) = match of_thread(of, &processors, true) {
            Ok(events) => (true, events),
            Err(_) => (false, of_thread(of, &processors, false)?),
        };
        let rings =
            mapped(&leading, RINGS_BYTES[0]).or_else(|_| mapped(&leading, RINGS_BYTES[1]))?;
        Ok(Events {
            leading,
            others: Vec::new(),
            rings,
            kernel,
        })
    }

    fn of_processes(pids: &[u32]) -> Result<Events, String> {
        let processors = processors()?;
        let mut all: Option<Events> = None;
        let mut refusal = None;
        let mut known = BTreeSet::new();
        // Threads that are started by one that is followed are followed too.
        loop {
            let threads: Vec<u32> = pids.iter().flat_map(|pid| threads_of(*pid)).collect();
            let new: Vec<u32> = threads
                .into_iter()
                .filter(|one| known.insert(*one))
                .collect();
            if new.is_empty() {
                break;
            }
            for thread in new {
                let of = Sampled::Thread(thread);
                let opened = match &mut all {
                    None => Events::open(of).map(|events| all = Some(events)),
                    Some(all) => all.add(of, &processors),
                };
                match opened {
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => refusal = Some(refused(&error)),
                    Ok(()) => {}
                }
            }
        }
        // Some that may be looked at do not stand for those that may not.
        match refusal {
            Some(refusal) => Err(refusal),
            None => all.ok_or_else(|| "the processes have ended".to_owned()),
        }
    }

    fn add(&mut self, of: Sampled, processors: &[i32]) -> io::Result<()> {
        let events = of_thread(of, processors, self.kernel)?;
        for (event, leading) in events.iter().zip(&self.leading) {
            redirect(event, leading)?;
        }
        self.others.extend(events);
        Ok(())
    }
}

/// One event for each processor.
fn of_thread(of: Sampled, processors: &[i32], kernel: bool) -> io::Result<Vec<OwnedFd>> {
    let wanted = ProcessorTime {
        period_ns: PERIOD_NS,
        registers: SAMPLED_REGISTERS,
        stack_bytes: STACK_BYTES,
        kernel,
    };
    let processors = processors.iter();
    processors
        .map(|processor| sample_processor_time(of, *processor, wanted))
        .collect()
}

/// The threads of a process.
fn threads_of(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"));
    let entries = entries.into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn mapped(events: &[OwnedFd], bytes: usize) -> io::Result<Vec<Mapping>> {
    let rings = events.iter().map(|event| Mapping::new(event, bytes));
    rings.collect()
}

/// A program's process.
#[derive(Default)]
struct Process {
    /// Path of its executable; `None` from an exec to its first mapping of code.
    executable: Option<Rc<str>>,
    code: Vec<Rc<MappedCode>>,
    /// Made of `code` where a sample needs it.
    unwinds: Option<ProcessCode>,
    /// Beside its first.
    more_threads: u32,
}

impl Process {
    /// One that is there already.
    fn running(pid: u32) -> Process {
        let executable = fs::read_link(format!("/proc/{pid}/exe"));
        let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        Process {
            executable: executable.ok().map(|path| path.to_string_lossy().into()),
            code: MappedCode::of_maps(&maps).map(Rc::new).collect(),
            unwinds: None,
            more_threads: threads_of(pid).len().saturating_sub(1) as u32,
        }
    }

    /// What fork(2) makes of it.
    fn forked(&self) -> Process {
        Process {
            executable: self.executable.clone(),
            code: self.code.clone(),
            ..Process::default()
        }
    }
}

/// How often it was where: the kernel's part, the innermost first, and the program's.
type Found = BTreeMap<(Vec<u64>, Option<Trace>), u64>;

/// Samples a program and unwinds the stacks. These are what the program says: it decides how long that takes.
pub struct CpuReader {
    events: Events,
    /// Records that were read, and may be newer than some that are still in the ring of another processor.
    young: Vec<(u64, Record)>,
    processes: HashMap<u32, Process>,
    objects: Objects,
    kernel_names: Option<KernelNames>,
    /// By executable.
    found: BTreeMap<Rc<str>, Found>,
    /// How many of them there are.
    different: usize,
    lost: u64,
}

impl CpuReader {
    /// Samples what this thread of refit starts from now on, each from its first exec.
    ///
    /// # Errors
    /// Why there can be no samples here, for people.
    pub fn of_started_by(thread: u32) -> Result<CpuReader, String> {
        let events = Events::open(Sampled::StartedBy(thread));
        Ok(CpuReader::new(
            events.map_err(|error| refused(&error))?,
            HashMap::new(),
        ))
    }

    /// Samples processes that run, and what they start from now on. It needs a descriptor for each thread and processor.
    ///
    /// # Errors
    /// As [`CpuReader::of_started_by`]: none of the processes is there any more, or may be looked at.
    pub fn of_processes(pids: &[u32]) -> Result<CpuReader, String> {
        let events = Events::of_processes(pids)?;
        let processes = pids.iter().map(|pid| (*pid, Process::running(*pid)));
        let processes = processes.collect();
        for event in events.leading.iter().chain(&events.others) {
            enable(event).map_err(|error| refused(&error))?;
        }
        Ok(CpuReader::new(events, processes))
    }

    fn new(events: Events, processes: HashMap<u32, Process>) -> CpuReader {
        CpuReader {
            kernel_names: events.kernel.then(KernelNames::new),
            events,
            young: Vec::new(),
            processes,
            objects: Objects::new(),
            found: BTreeMap::new(),
            different: 0,
            lost: 0,
        }
    }

    /// Takes what the kernel has written. Call it every few milliseconds.
    pub fn tick(&mut self) {
        // A record is written a moment after its time was taken, and the rings are read one after the other.
        self.take_before(now_ns());
    }

    fn take_before(&mut self, before_ns: u64) {
        let kernel = self.events.kernel;
        for ring in &mut self.events.rings {
            self.young.extend(record::parse(ring.read(), kernel));
        }
        self.young.sort_by_key(|(time, _)| *time);
        let ready = self.young.partition_point(|(time, _)| *time < before_ns);
        let ready: Vec<_> = self.young.drain(..ready).collect();
        for (_, record) in ready {
            self.take(record);
        }
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Forked { process, parent } if process == parent => {
                self.processes.entry(process).or_default().more_threads += 1;
            }
            Record::Forked { process, parent } => {
                let forked = self.processes.get(&parent).map(Process::forked);
                self.processes.insert(process, forked.unwrap_or_default());
            }
            Record::Ended { process } => match self.processes.get_mut(&process) {
                Some(of) if of.more_threads > 0 => of.more_threads -= 1,
                _ => drop(self.processes.remove(&process)),
            },
            Record::Execed { process } => {
                self.processes.insert(process, Process::default());
            }
            Record::Mapped { process, code } => {
                let of = self.processes.entry(process).or_default();
                if of.executable.is_none() {
                    of.executable = Some(code.path.to_string_lossy().into());
                }
                if let Some(unwinds) = &mut of.unwinds {
                    unwinds.map(&code, &root_of(process), &mut self.objects);
                }
                of.code.push(Rc::new(code));
            }
            Record::Lost(records) => self.lost = self.lost.saturating_add(records),
            Record::Sampled(sample) => self.sampled(&sample),
        }
    }

    fn sampled(&mut self, sample: &CpuSample) {
        let of = self.processes.entry(sample.process).or_default();
        let objects = &mut self.objects;
        let unwinds = of.unwinds.get_or_insert_with(|| {
            let mut unwinds = ProcessCode::new();
            let root = root_of(sample.process);
            of.code
                .iter()
                .for_each(|code| unwinds.map(code, &root, objects));
            unwinds
        });
        let trace = match sample.registers {
            ProgramRegisters::None => None,
            ProgramRegisters::Narrow => Some(Trace::narrow()),
            ProgramRegisters::Wide(registers) => {
                let trace = unwinds.trace(sampled(registers), &sample.stack, objects);
                Some(match self.different < MOST_DIFFERENT {
                    true => trace,
                    false => trace.shortened(MOST_LATER),
                })
            }
        };
        let executable = of.executable.clone().unwrap_or_else(|| "[unknown]".into());
        let found = self.found.entry(executable).or_default();
        let samples = found.entry((sample.kernel.clone(), trace)).or_default();
        self.different += usize::from(*samples == 0);
        *samples += 1;
    }

    /// What was found until now. Call it when the program has ended.
    #[must_use]
    pub fn finish(mut self) -> CpuProfile {
        self.take_before(u64::MAX);
        let mut frames = Frames::default();
        let mut executables: Vec<CpuPaths> = std::mem::take(&mut self.found)
            .into_iter()
            .map(|(executable, found)| self.paths(&executable, found, &mut frames))
            .collect();
        executables.sort_by_key(|one| std::cmp::Reverse(one.samples()));
        CpuProfile {
            period_ns: PERIOD_NS,
            kernel: self.events.kernel,
            lost: self.lost,
            frames: frames.all,
            executables,
        }
    }

    fn paths(&mut self, executable: &str, found: Found, all: &mut Frames) -> CpuPaths {
        let mut gaps = Gaps::default();
        let mut paths: BTreeMap<Vec<usize>, u64> = BTreeMap::new();
        for ((kernel, trace), samples) in found {
            let mut frames = trace.map_or_else(Vec::new, |trace| {
                self.objects.frames(&trace, None, &mut gaps)
            });
            if let Some(names) = &mut self.kernel_names {
                frames.extend(kernel.iter().rev().map(|address| names.frame(*address)));
            }
            let frames = frames.into_iter().map(|frame| all.place(frame)).collect();
            *paths.entry(frames).or_default() += samples;
        }
        let paths = paths.into_iter();
        let mut paths: Vec<CpuPath> = paths
            .map(|(frames, samples)| CpuPath { frames, samples })
            .collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.samples));
        CpuPaths {
            executable: printable(executable),
            paths,
            not_unwound: gaps.not_unwound.into_iter().collect(),
            without_names: gaps.without_names.into_iter().collect(),
        }
    }
}

/// Each of the functions once.
#[derive(Default)]
struct Frames {
    all: Vec<Frame>,
    places: BTreeMap<Frame, usize>,
}

impl Frames {
    fn place(&mut self, frame: Frame) -> usize {
        if let Some(place) = self.places.get(&frame) {
            return *place;
        }
        self.all.push(frame.clone());
        self.places.insert(frame, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// Where the paths of a process begin.
fn root_of(process: u32) -> PathBuf {
    format!("/proc/{process}/root").into()
}
