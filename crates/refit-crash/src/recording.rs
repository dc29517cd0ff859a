//! Records one mode: the disk, the file system on it, and the run.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use refit_knobs::Launch;
use refit_launch::disk;
use rustix::mount::{MountFlags, mount};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::error::{CrashError, io_error};
use crate::filesystem::unmount_patiently;
use crate::fuse::{CONTROL, DISK, Disk, serve};
use crate::record::RecordWriter;
use crate::recorder::Recorder;
use crate::request::Request;
use crate::stage::{self, Played};
use crate::sys::loopback::{Access, Loop};
use crate::sys::process::{Child, fork, leave_mounts, own_mounts, own_pids, serve_io};

/// Where everything lies.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The directory of all records.
    pub directory: PathBuf,
    /// Where the program and the checks find the file system.
    pub mount: PathBuf,
}

impl Paths {
    /// Where the recorded disk is served.
    #[must_use]
    pub fn disk(&self) -> PathBuf {
        self.directory.join("disk")
    }

    /// The directory of one mode.
    #[must_use]
    pub fn mode(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The record of one mode.
    #[must_use]
    pub fn record(&self, name: &str) -> PathBuf {
        self.mode(name).join("record")
    }
}

/// A served disk: its process, until it is unmounted.
pub struct Server {
    child: Child,
    at: PathBuf,
}

impl Server {
    /// Serves what `make` makes, in a process of its own, at `at`.
    ///
    /// # Errors
    /// It could not be made or mounted; what it said.
    pub fn start<D: Disk>(
        at: &Path,
        make: impl FnOnce() -> Result<D, CrashError>,
    ) -> Result<Server, CrashError> {
        fs::create_dir_all(at).map_err(io_error(format!("cannot make {}", at.display())))?;
        let (from, to) = pipe()?;
        let child = fork(|| {
            serve_io();
            let made = make().map_err(|error| error.to_string());
            let served = made.and_then(|disk| {
                let mounted = || {
                    leave_mounts()?;
                    say(&to, "ready");
                    Ok(())
                };
                serve(disk, at, mounted).map_err(|error| error.to_string())
            });
            match served {
                Ok(()) => 0,
                Err(error) => {
                    say(&to, &error);
                    1
                }
            }
        })
        .map_err(io_error("cannot fork"))?;
        drop(to);
        let mut said = [0; 1024];
        let length = File::from(from).read(&mut said).unwrap_or(0);
        match &said[..length] {
            b"ready" => Ok(Server {
                child,
                at: at.to_owned(),
            }),
            words => Err(CrashError::Refused(format!(
                "the disk cannot be served: {}",
                String::from_utf8_lossy(words)
            ))),
        }
    }

    /// The file that is the disk.
    #[must_use]
    pub fn disk(&self) -> PathBuf {
        self.at.join(DISK)
    }

    /// Tells it something.
    ///
    /// # Errors
    /// It refused.
    pub fn tell(&self, words: &str) -> io::Result<()> {
        let path = self.at.join(CONTROL);
        OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(words.as_bytes())
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// It has ended.
    pub fn status(&self) -> io::Result<String> {
        fs::read_to_string(self.at.join(CONTROL))
    }

    /// Unmounts it: nobody uses the disk any more.
    ///
    /// # Errors
    /// Somebody does.
    pub fn end(mut self) -> io::Result<()> {
        unmount_patiently(&self.at)?;
        self.child.wait();
        fs::remove_dir(&self.at)
    }
}

fn say(to: &OwnedFd, words: &str) {
    // The reader is our parent; if it is gone nobody needs to know.
    let _ = rustix::io::write(to, words.as_bytes());
}

fn pipe() -> Result<(OwnedFd, OwnedFd), CrashError> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|error| io_error("cannot make a pipe")(error.into()))
}

/// Records one mode in the directory of its name.
///
/// # Errors
/// Something failed; everything is unmounted and ended.
pub fn record(
    request: &Request,
    launch: &Launch,
    paths: &Paths,
    name: &str,
) -> Result<Played, CrashError> {
    let directory = paths.mode(name);
    // What a program wrote is not for everybody.
    DirBuilder::new()
        .mode(0o700)
        .create(&directory)
        .map_err(io_error(format!("cannot make {}", directory.display())))?;
    let latency = match &launch.disk {
        // A journal's commit is two flushes, before and after its last block: one
        // sync call waits as long as disk= says.
        Some(rule) => disk::latencies(&rule.disk)?
            .iter()
            .map(|ns| ns / 2)
            .collect(),
        None => Vec::new(),
    };
    let server = Server::start(&paths.disk(), || {
        let file =
            File::create_new(paths.record(name)).map_err(io_error("cannot write the record"))?;
        let content = tempfile::tempfile_in(&paths.directory)
            .map_err(io_error("cannot keep the disk's content"))?;
        RecordWriter::new(file, request.disk_bytes, request.record_cap)
            .and_then(|record| {
                Recorder::new(content, record, request.disk_bytes, latency, request.seed)
            })
            .map_err(io_error("cannot make the disk"))
    })?;
    let played = on_disk(request, launch, paths, &directory, &server);
    // If something failed before, the record's own failure is the cause.
    let full = server.status().unwrap_or_default();
    if full.contains("failed") {
        return Err(CrashError::Refused(format!(
            "the record of {name} could not be continued ({full} bytes): at most {} are allowed\n  take a shorter run (--for), or --record-size",
            request.record_cap
        )));
    }
    let played = played?;
    server
        .tell("finish")
        .map_err(io_error("cannot finish the record"))?;
    server
        .end()
        .map_err(io_error("cannot unmount the recorded disk"))?;
    let text = serde_json::to_vec(&played)
        .map_err(|error| io_error("cannot write what was played")(error.into()))?;
    fs::write(directory.join("played.json"), text)
        .map_err(io_error("cannot write what was played"))?;
    Ok(played)
}

fn on_disk(
    request: &Request,
    launch: &Launch,
    paths: &Paths,
    directory: &Path,
    server: &Server,
) -> Result<Played, CrashError> {
    let device = Loop::attach(&server.disk(), Access::Direct).map_err(io_error(NO_LOOP))?;
    request.filesystem.make(device.path())?;
    request
        .filesystem
        .mount(device.path(), &paths.mount)
        .map_err(io_error(format!(
            "cannot mount the new {} with options {:?}",
            request.filesystem.kind.name(),
            request.filesystem.options
        )))?;
    let played =
        in_own_namespace(|| stage::play(request, launch, device.path(), &paths.mount, directory));
    let unmounted = unmount_patiently(&paths.mount);
    let played = played?;
    unmounted.map_err(io_error("cannot unmount what the program wrote"))?;
    Ok(played)
}

pub(crate) const NO_LOOP: &str = "cannot attach a loop device (losetup -a lists those in use; in a container the nodes /dev/loop* may be missing)";

/// Runs `work` as the first process of a new pid namespace: with it ends
/// everything that it started.
///
/// # Errors
/// What `work` said.
fn in_own_namespace(
    work: impl FnOnce() -> Result<Played, CrashError>,
) -> Result<Played, CrashError> {
    let (from, to) = pipe()?;
    let mut outer = fork(move || {
        let entered = own_pids().and_then(|()| {
            fork(move || {
                let result = own_mounts()
                    .and_then(|()| own_proc())
                    .map_err(io_error("cannot enter namespaces"))
                    .and_then(|()| work());
                i32::from(answer(&to, result).is_err())
            })
        });
        entered.map_or(1, |mut first| first.wait())
    })
    .map_err(io_error("cannot fork"))?;
    let bytes = stage::read_all(from).map_err(io_error("cannot hear of the run"))?;
    let code = outer.wait();
    let result: Result<Played, String> = serde_json::from_slice(&bytes).map_err(|_| {
        CrashError::Refused(format!(
            "the run's own process ended with {code} and said nothing"
        ))
    })?;
    result.map_err(CrashError::Refused)
}

/// Sends a result to the parent, over a pipe.
pub(crate) fn answer<T: serde::Serialize>(
    to: &OwnedFd,
    result: Result<T, CrashError>,
) -> io::Result<()> {
    let result = result.map_err(|error| error.to_string());
    let bytes = serde_json::to_vec(&result)?;
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let written = rustix::io::write(to, rest)?;
        rest = &rest[written..];
    }
    Ok(())
}

/// /proc shows the processes of this namespace.
///
/// # Errors
/// It cannot be mounted.
pub(crate) fn own_proc() -> io::Result<()> {
    let flags = MountFlags::NODEV | MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)?;
    Ok(())
}
