//! The records of all processors, in order of time.

use super::record::{self, Record};
use super::ring::Rings;
use super::tracepoint::{self, Tracepoint, Which};

/// Reads what the kernel writes.
pub struct Reader {
    pub tracepoints: Vec<Tracepoint>,
    pub rings: Rings,
    /// Records that were read, and may be newer than some that are still in the ring of another processor.
    young: Vec<(u64, Record)>,
}

impl Reader {
    /// Begins to watch the whole machine.
    ///
    /// # Errors
    /// Why it cannot, for people.
    pub fn begin(which: Which) -> Result<Reader, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can ask the kernel".to_owned());
        }
        let (tracepoints, tracefs) = tracepoint::available(which)?;
        let rings = Rings::open(&tracepoints, tracefs)?;
        Ok(Reader {
            tracepoints,
            rings,
            young: Vec::new(),
        })
    }

    /// Hands over the records from before `before_ns` that it has not handed over yet.
    pub fn read_before(&mut self, before_ns: u64, mut take: impl FnMut(u64, Record)) {
        let young = &mut self.young;
        self.rings
            .read(|bytes| young.extend(record::parse(bytes, &self.tracepoints)));
        self.young.sort_by_key(|(time, _)| *time);
        let n = self.young.partition_point(|(time, _)| *time < before_ns);
        for (time, record) in self.young.drain(..n) {
            take(time, record);
        }
    }

    /// Kinds of filesystem that are watched.
    pub fn filesystems(&self) -> Vec<String> {
        let mut filesystems: Vec<String> = Vec::new();
        for tracepoint in &self.tracepoints {
            if filesystems.last().map(String::as_str) != Some(tracepoint.filesystem()) {
                filesystems.push(tracepoint.filesystem().to_owned());
            }
        }
        filesystems
    }
}
