//! The tracepoints of durable calls: which there are, and where their fields lie.

use std::fs;
use std::io;

use super::sys::Tracefs;
use crate::perf::shortage::shortage;

/// Which of a tracepoint's events are durable calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// Each.
    All,
    /// Those whose field `wait` is set. sync(2) and syncfs(2) come to each
    /// filesystem twice, first without waiting (fs/sync.c, `sync_filesystem`).
    Waiting,
    /// Every second, for the same reason where no field tells them apart.
    Half,
    /// None: it is the end of a call that another tracepoint of its filesystem counts.
    End,
}

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Durable calls.
    Calls,
    /// Their ends as well, where the filesystem has such a tracepoint: how long they took.
    CallsAndEnds,
}

/// Filesystem, tracepoint, what counts. The events of one filesystem stand
/// together.
const TABLE: &[(&str, &str, Counts)] = &[
    ("ext4", "ext4_sync_file_enter", Counts::All),
    ("ext4", "ext4_sync_file_exit", Counts::End),
    ("ext4", "ext4_sync_fs", Counts::Waiting),
    ("xfs", "xfs_file_fsync", Counts::All),
    ("xfs", "xfs_dir_fsync", Counts::All),
    ("xfs", "xfs_fs_sync_fs", Counts::Half),
    ("btrfs", "btrfs_sync_file", Counts::All),
    ("btrfs", "btrfs_sync_fs", Counts::Waiting),
];

/// Entries of /sys/fs/NAME that are not a mounted filesystem.
const NO_INSTANCE: [&str; 3] = ["features", "stats", "debug"];

/// A field of an event: offset and size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
}

/// A tracepoint of this kernel.
#[derive(Clone, Debug)]
pub struct Tracepoint {
    row: usize,
    /// What perf_event_open(2) and the events themselves call it.
    pub id: u16,
    wait: Option<Field>,
    device: Option<Field>,
    directory: Option<Field>,
}

/// The contents of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Index of its tracepoint.
    pub tracepoint: usize,
    /// The kernel's `dev_t` of the filesystem, where the tracepoint tells it.
    pub device: Option<u32>,
    /// The kernel's `dev_t` and the inode of the directory that holds the file.
    pub directory: Option<(u32, u64)>,
}

impl Tracepoint {
    pub fn filesystem(&self) -> &'static str {
        TABLE[self.row].0
    }

    pub fn name(&self) -> &'static str {
        TABLE[self.row].1
    }

    /// The durable calls that so many events stand for.
    pub fn calls(&self, events: u64) -> u64 {
        match TABLE[self.row].2 {
            Counts::Half => events.div_ceil(2),
            Counts::All | Counts::Waiting => events,
            Counts::End => 0,
        }
    }

    /// Whether its calls write back a whole filesystem, as sync(2) and syncfs(2) do.
    pub fn is_of_filesystem(&self) -> bool {
        self.name().ends_with("_sync_fs")
    }

    /// Whether its events are the ends of calls.
    pub fn is_end(&self) -> bool {
        TABLE[self.row].2 == Counts::End
    }

    /// Whether the ends of its calls are among the events of `all`.
    pub fn is_timed(&self, all: &[Tracepoint]) -> bool {
        let has_end =
            |other: &Tracepoint| other.is_end() && other.filesystem() == self.filesystem();
        TABLE[self.row].2 == Counts::All && all.iter().any(has_end)
    }

    /// From the event's `format` file.
    fn new(row: usize, format: &str) -> Option<Tracepoint> {
        let id = format.lines().find_map(|line| line.strip_prefix("ID:"))?;
        Some(Tracepoint {
            row,
            id: id.trim().parse().ok()?,
            wait: field(format, "wait"),
            device: field(format, "dev"),
            directory: field(format, "parent"),
        })
        .filter(|made| TABLE[row].2 != Counts::Waiting || made.wait.is_some())
    }

    /// Its event, if that is a durable call. `raw`: as the tracepoint wrote it.
    fn event(&self, index: usize, raw: &[u8]) -> Option<Event> {
        let waits = self
            .wait
            .is_none_or(|field| number(raw, field).is_some_and(|wait| wait != 0));
        let value = |field: Option<Field>| number(raw, field?);
        let device = value(self.device).and_then(|device| u32::try_from(device).ok());
        waits.then_some(Event {
            tracepoint: index,
            device,
            directory: device.zip(value(self.directory)),
        })
    }
}

/// The event that `raw` is, if it is one of a durable call.
pub fn event(raw: &[u8], tracepoints: &[Tracepoint]) -> Option<Event> {
    // The first field of every event (include/linux/trace_events.h).
    let id = u16::from_ne_bytes(raw.get(..2)?.try_into().ok()?);
    let index = tracepoints.iter().position(|one| one.id == id)?;
    tracepoints[index].event(index, raw)
}

fn number(raw: &[u8], field: Field) -> Option<u64> {
    let bytes = raw.get(field.offset..field.offset.checked_add(field.size)?)?;
    match field.size {
        4 => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
        8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// A field in an event's `format` file:
/// `field:ino_t parent; offset:24; size:8; signed:0;`
fn field(format: &str, name: &str) -> Option<Field> {
    format.lines().find_map(|line| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';');
        let declared = parts.next()?.rsplit(' ').next()?;
        let mut value = |key: &str| {
            let part = parts.next()?.trim();
            part.strip_prefix(key)?.parse().ok()
        };
        let field = Field {
            offset: value("offset:")?,
            size: value("size:")?,
        };
        (declared == name).then_some(field)
    })
}

/// sysfs(5); linux/magic.h
const SYSFS_MAGIC: i64 = 0x6265_6572;

/// Whether a filesystem of this kind is mounted, in whatever namespace. Where
/// the kernel does not say, it may be: a sandbox may have other files at /sys.
fn is_mounted(filesystem: &str) -> bool {
    if rustix::fs::statfs("/sys").is_ok_and(|sys| sys.f_type != SYSFS_MAGIC) {
        return true;
    }
    match fs::read_dir(format!("/sys/fs/{filesystem}")) {
        Ok(mut entries) => entries.any(|entry| {
            entry.is_ok_and(|entry| {
                !NO_INSTANCE
                    .iter()
                    .any(|name| entry.file_name().to_str() == Some(name))
            })
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            !std::path::Path::new("/sys/fs").exists()
        }
        Err(_) => true,
    }
}

/// Those of the filesystems that are mounted somewhere: each tracepoint costs
/// some time to watch. And where they were read: see [`Tracefs`].
pub fn available(which: Which) -> Result<(Vec<Tracepoint>, Tracefs), String> {
    let mut mounted: Vec<&str> = TABLE.iter().map(|row| row.0).collect();
    mounted.dedup();
    mounted.retain(|filesystem| is_mounted(filesystem));
    if mounted.is_empty() {
        return Err("neither ext4 nor xfs nor btrfs is mounted".to_owned());
    }
    let tracefs = Tracefs::open()
        .map_err(|error| shortage(&error).unwrap_or_else(|| format!("no tracefs: {error}")))?;
    let mut found = Vec::new();
    for (row, (system, event, counts)) in TABLE.iter().enumerate() {
        let is_wanted = which == Which::CallsAndEnds || *counts != Counts::End;
        if !mounted.contains(system) || !is_wanted {
            continue;
        }
        match tracefs.read(&format!("events/{system}/{event}/format")) {
            Ok(format) => found.extend(Tracepoint::new(row, &format)),
            Err(error) => match shortage(&error) {
                Some(reason) => return Err(reason),
                // Another version of the kernel.
                None => continue,
            },
        }
    }
    if found.is_empty() {
        return Err("this kernel has no tracepoints of its filesystems".to_owned());
    }
    Ok((found, tracefs))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const EXT4: &str = "\
name: ext4_sync_file_enter
ID: 1012
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:ino_t ino;\toffset:16;\tsize:8;\tsigned:0;
\tfield:ino_t parent;\toffset:24;\tsize:8;\tsigned:0;
\tfield:int datasync;\toffset:32;\tsize:4;\tsigned:1;

print fmt: \"dev %d,%d ino %lu parent %lu\", REC->dev
";
    const SYNC_FS: &str = "\
name: ext4_sync_fs
ID: 1013
format:
\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:int wait;\toffset:12;\tsize:4;\tsigned:1;
";

    const EXIT: &str = "\
name: ext4_sync_file_exit
ID: 1014
format:
\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:ino_t ino;\toffset:16;\tsize:8;\tsigned:0;
\tfield:int ret;\toffset:24;\tsize:4;\tsigned:1;
";

    pub fn ext4() -> Vec<Tracepoint> {
        vec![
            Tracepoint::new(0, EXT4).unwrap(),
            Tracepoint::new(2, SYNC_FS).unwrap(),
        ]
    }

    /// With the ends of the calls.
    pub fn ext4_with_ends() -> Vec<Tracepoint> {
        let mut all = ext4();
        all.push(Tracepoint::new(1, EXIT).unwrap());
        all
    }

    pub fn sync_file_end() -> Vec<u8> {
        let mut raw = vec![0; 28];
        raw[..2].copy_from_slice(&1014_u16.to_ne_bytes());
        raw
    }

    pub fn sync_file(device: u32, parent: u64) -> Vec<u8> {
        let mut raw = vec![0; 36];
        raw[..2].copy_from_slice(&1012_u16.to_ne_bytes());
        raw[8..12].copy_from_slice(&device.to_ne_bytes());
        raw[24..32].copy_from_slice(&parent.to_ne_bytes());
        raw
    }

    #[test]
    fn fields_are_found_by_name_and_read_where_they_lie() {
        let tracepoints = ext4();
        let expected = Event {
            tracepoint: 0,
            device: Some(0xfe_0000),
            directory: Some((0xfe_0000, 7)),
        };
        assert_eq!(
            event(&sync_file(0xfe_0000, 7), &tracepoints),
            Some(expected)
        );
        // Too short for its directory: still a call.
        let cut = &sync_file(1, 7)[..28];
        assert_eq!(event(cut, &tracepoints).unwrap().directory, None);
        assert_eq!(event(&[0], &tracepoints), None);
        assert_eq!(event(&[9; 40], &tracepoints), None);
    }

    #[test]
    fn only_the_waiting_pass_of_a_sync_counts() {
        let tracepoints = ext4();
        let mut raw = [0; 16];
        raw[..2].copy_from_slice(&1013_u16.to_ne_bytes());
        assert_eq!(event(&raw, &tracepoints), None);
        raw[12] = 1;
        assert_eq!(event(&raw, &tracepoints).unwrap().tracepoint, 1);
        assert!(Tracepoint::new(2, EXT4).is_none(), "no such field here");
        assert!(Tracepoint::new(5, "").is_none(), "no number");
        let xfs = Tracepoint::new(5, "ID: 1").unwrap();
        assert_eq!([0, 1, 2, 5].map(|n| xfs.calls(n)), [0, 1, 1, 3]);
        let all = ext4_with_ends();
        assert_eq!(all[2].calls(7), 0);
        let timed = |one: &Tracepoint| one.is_timed(&all);
        assert!(timed(&all[0]) && !timed(&all[1]) && !timed(&xfs));
        assert!(!ext4()[0].is_timed(&ext4()));
    }
}
