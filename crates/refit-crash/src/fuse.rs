//! A disk as one file of a file system that a process of refit's serves, for a
//! loop device.
//!
//! Loop sends a flush as fsync, a discard as a punched hole and write-zeroes as a
//! zeroed range (drivers/block/loop.c: lo_req_flush, lo_fallocate).

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fuser::{
    FileAttr, FileType, Filesystem, KernelConfig, MountOption, ReplyAttr, ReplyData, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, Session, TimeOrNow,
};
use libc::c_int;

/// What a loop device needs of the file beneath it. One call at a time.
pub trait Disk {
    /// Bytes.
    fn size(&self) -> u64;

    /// Fills the buffer from this offset; the range lies on the disk.
    ///
    /// # Errors
    /// The device reports an I/O error.
    fn read(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// The range lies on the disk.
    ///
    /// # Errors
    /// The device reports an I/O error.
    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Makes everything that was written durable.
    ///
    /// # Errors
    /// The device reports an I/O error.
    fn flush(&mut self) -> io::Result<()>;

    /// The range reads as zeroes from now on; it is no longer needed when
    /// `is_discard`.
    ///
    /// # Errors
    /// The device reports an I/O error.
    fn zero(&mut self, offset: u64, length: u64, is_discard: bool) -> io::Result<()>;

    /// Whether the kernel may cache what was read until the file is opened again.
    /// Otherwise it caches nothing.
    fn may_be_cached(&self) -> bool {
        false
    }

    /// Does what was written to the control file.
    ///
    /// # Errors
    /// The writer gets the error.
    fn control(&mut self, _command: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The content of the control file.
    fn status(&mut self) -> String {
        String::new()
    }
}

/// Name of the disk's file.
pub const DISK: &str = "disk";
/// Name of the file for commands to the server.
pub const CONTROL: &str = "control";

const ROOT_NODE: u64 = 1;
const DISK_NODE: u64 = 2;
const CONTROL_NODE: u64 = 3;
/// The disk's size never changes.
const FOREVER: Duration = Duration::from_secs(1 << 30);
/// A loop device's largest request (drivers/block/loop.c); the kernel takes
/// writes in pages of up to 1 MiB (fs/fuse/inode.c).
const LARGEST_REQUEST: u32 = 1 << 20;

/// Mounts the disk at `mountpoint`, calls `mounted`, and serves it until it is
/// unmounted.
///
/// # Errors
/// It cannot be mounted, `mounted` failed, or the kernel ended the connection.
pub fn serve(
    disk: impl Disk,
    mountpoint: &Path,
    mounted: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let options = [
        MountOption::FSName("refit-crash".to_owned()),
        MountOption::NoDev,
        MountOption::NoSuid,
        MountOption::NoExec,
    ];
    let served = Served {
        disk,
        buffer: Vec::new(),
    };
    let mut session = Session::new(served, mountpoint, &options)?;
    mounted()?;
    session.run()
}

struct Served<D> {
    disk: D,
    buffer: Vec<u8>,
}

fn errno(error: &io::Error) -> c_int {
    match error.kind() {
        io::ErrorKind::StorageFull => libc::ENOSPC,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        _ => error.raw_os_error().unwrap_or(libc::EIO),
    }
}

fn empty(reply: ReplyEmpty, result: io::Result<()>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

impl<D: Disk> Served<D> {
    fn attributes(&self, node: u64) -> FileAttr {
        let size = if node == DISK_NODE {
            self.disk.size()
        } else {
            0
        };
        let is_root = node == ROOT_NODE;
        FileAttr {
            ino: node,
            size,
            blocks: size / 512,
            atime: SystemTime::UNIX_EPOCH,
            mtime: SystemTime::UNIX_EPOCH,
            ctime: SystemTime::UNIX_EPOCH,
            crtime: SystemTime::UNIX_EPOCH,
            kind: if is_root {
                FileType::Directory
            } else {
                FileType::RegularFile
            },
            perm: if is_root { 0o700 } else { 0o600 },
            nlink: if is_root { 2 } else { 1 },
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    /// The offset of a request, if it lies on the disk.
    fn range(&self, offset: i64, length: u64) -> io::Result<u64> {
        let offset = u64::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let end = offset.checked_add(length);
        if end.is_none_or(|end| end > self.disk.size()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(offset)
    }

    fn read_disk(&mut self, offset: i64, length: u32) -> io::Result<()> {
        let left = self
            .disk
            .size()
            .saturating_sub(u64::try_from(offset).unwrap_or(u64::MAX));
        let length = left.min(length.into());
        let offset = self.range(offset, length)?;
        self.buffer.resize(usize::try_from(length).unwrap_or(0), 0);
        self.disk.read(offset, &mut self.buffer)
    }

    fn write_disk(&mut self, offset: i64, data: &[u8]) -> io::Result<()> {
        let offset = self.range(offset, data.len() as u64)?;
        self.disk.write(offset, data)
    }

    fn zero_disk(&mut self, offset: i64, length: i64, mode: i32) -> io::Result<()> {
        let length = u64::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
        let offset = self.range(offset, length)?;
        match mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) {
            libc::FALLOC_FL_PUNCH_HOLE => self.disk.zero(offset, length, true),
            libc::FALLOC_FL_ZERO_RANGE => self.disk.zero(offset, length, false),
            _ => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        }
    }
}

impl<D: Disk> Filesystem for Served<D> {
    fn init(&mut self, _req: &Request<'_>, config: &mut KernelConfig) -> Result<(), c_int> {
        // Smaller requests are only slower.
        let _ = config.set_max_write(LARGEST_REQUEST);
        let _ = config.set_max_readahead(LARGEST_REQUEST);
        Ok(())
    }

    fn lookup(&mut self, _req: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let node = match name.to_str() {
            Some(DISK) => DISK_NODE,
            Some(CONTROL) => CONTROL_NODE,
            _ => return reply.error(libc::ENOENT),
        };
        if parent != ROOT_NODE {
            return reply.error(libc::ENOENT);
        }
        reply.entry(&FOREVER, &self.attributes(node), 0);
    }

    fn getattr(&mut self, _req: &Request<'_>, ino: u64, _fh: Option<u64>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(ino));
    }

    fn setattr(
        &mut self,
        _req: &Request<'_>,
        ino: u64,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<u64>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<u32>,
        reply: ReplyAttr,
    ) {
        reply.attr(&FOREVER, &self.attributes(ino));
    }

    fn open(&mut self, _req: &Request<'_>, ino: u64, _flags: i32, reply: ReplyOpen) {
        let flags = if ino == DISK_NODE && self.disk.may_be_cached() {
            // Without FOPEN_KEEP_CACHE the kernel drops what it had (fs/fuse/file.c: fuse_open).
            0
        } else {
            fuser::consts::FOPEN_DIRECT_IO
        };
        reply.opened(0, flags);
    }

    fn read(
        &mut self,
        _req: &Request<'_>,
        ino: u64,
        _fh: u64,
        offset: i64,
        size: u32,
        _flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyData,
    ) {
        if ino == CONTROL_NODE {
            let text = self.disk.status();
            let from = usize::try_from(offset).unwrap_or(0).min(text.len());
            let rest = &text.as_bytes()[from..];
            // More than was asked for is EIO (fs/fuse/dev.c: copy_out_args).
            let most = usize::try_from(size).unwrap_or(usize::MAX);
            return reply.data(&rest[..rest.len().min(most)]);
        }
        match self.read_disk(offset, size) {
            Ok(()) => reply.data(&self.buffer),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn write(
        &mut self,
        _req: &Request<'_>,
        ino: u64,
        _fh: u64,
        offset: i64,
        data: &[u8],
        _write_flags: u32,
        _flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyWrite,
    ) {
        let result = if ino == CONTROL_NODE {
            std::str::from_utf8(data)
                .map_err(|_| io::ErrorKind::InvalidInput.into())
                .and_then(|command| self.disk.control(command.trim()))
        } else {
            self.write_disk(offset, data)
        };
        match result {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(0)),
            Err(error) => reply.error(errno(&error)),
        }
    }

    fn flush(&mut self, _req: &Request<'_>, _ino: u64, _fh: u64, _owner: u64, reply: ReplyEmpty) {
        // A close, not a flush of the disk.
        reply.ok();
    }

    fn fsync(&mut self, _req: &Request<'_>, _ino: u64, _fh: u64, _data: bool, reply: ReplyEmpty) {
        let result = self.disk.flush();
        empty(reply, result);
    }

    fn fallocate(
        &mut self,
        _req: &Request<'_>,
        _ino: u64,
        _fh: u64,
        offset: i64,
        length: i64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let result = self.zero_disk(offset, length, mode);
        empty(reply, result);
    }
}
