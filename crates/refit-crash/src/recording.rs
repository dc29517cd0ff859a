//! Records one mode: the disk, the file system on it, and the run.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use refit_knobs::Launch;
use refit_run::disk;

use crate::disk_server::DiskServer;
use crate::error::{CrashError, NEXT, io_error, unwritable};
use crate::filesystem::unmount;
use crate::isolated::isolated;
use crate::paths::Paths;
use crate::record::{OVER_CAP, RecordWriter};
use crate::recorded_run::{self, RecordedRun};
use crate::recorder::{FAILED, Recorder};
use crate::request::Request;
use crate::sys::loopback::Access;

/// Records one mode in the directory of its name.
///
/// # Errors
/// A step failed; everything is unmounted and ended.
pub fn record(
    request: &Request,
    launch: &Launch,
    paths: &Paths,
    name: &str,
) -> Result<RecordedRun, CrashError> {
    let directory = paths.mode(name);
    // What a program wrote is not for everybody.
    DirBuilder::new()
        .mode(0o700)
        .create(&directory)
        .map_err(unwritable(&directory))?;
    let latency = match &launch.disk {
        // A journal's commit is two flushes, before and after its last block: one
        // sync call takes as long as disk= says.
        Some(rule) => disk::latencies(&rule.disk)?
            .iter()
            .map(|ns| ns / 2)
            .collect(),
        None => Vec::new(),
    };
    let server = DiskServer::start(&paths.disk(), || {
        let record = paths.record(name);
        let file = File::create_new(&record).map_err(unwritable(&record))?;
        let content =
            tempfile::tempfile_in(&paths.directory).map_err(unwritable(&paths.directory))?;
        RecordWriter::new(file, request.disk_bytes, request.record_cap)
            .and_then(|record| {
                Recorder::new(content, record, request.disk_bytes, latency, request.seed)
            })
            .map_err(unwritable(&record))
    })?;
    let run = on_disk(request, launch, paths, &directory, &server);
    // Where the record failed, that is the cause of any other failure.
    refuse_failed_record(request, &server, &paths.record(name))?;
    let run = run?;
    let finished = server.command("finish");
    refuse_failed_record(request, &server, &paths.record(name))?;
    finished.map_err(io_error("cannot finish the record"))?;
    server
        .end()
        .map_err(io_error("cannot unmount the recorded disk"))?;
    let path = directory.join("recorded_run.json");
    let text = serde_json::to_vec(&run).map_err(|error| unwritable(&path)(error.into()))?;
    fs::write(&path, text).map_err(unwritable(&path))?;
    Ok(run)
}

/// The program only sees that its disk fails, and so does `finish`; the disk's status tells why.
fn refuse_failed_record(
    request: &Request,
    server: &DiskServer,
    record: &Path,
) -> Result<(), CrashError> {
    let status = server.status().unwrap_or_default();
    let Some((written, why)) = status.split_once(FAILED) else {
        return Ok(());
    };
    let next = match why {
        OVER_CAP => format!(
            "at most {} are allowed: take a shorter run (--for), or a larger --record-size",
            request.record_cap
        ),
        _ => NEXT.to_owned(),
    };
    Err(CrashError::Refused(format!(
        "cannot write {} after {written} bytes: {why}\n  {next}",
        record.display()
    )))
}

fn on_disk(
    request: &Request,
    launch: &Launch,
    paths: &Paths,
    directory: &Path,
    server: &DiskServer,
) -> Result<RecordedRun, CrashError> {
    let device = server.attach(Access::Direct)?;
    request.filesystem.make(device.path(), request.disk_bytes)?;
    request
        .filesystem
        .mount(device.path(), &paths.mount)
        .map_err(io_error(format!(
            "cannot mount the new {} with options {:?}",
            request.filesystem.kind.name(),
            request.filesystem.options
        )))?;
    let run =
        isolated(|| recorded_run::record_run(request, launch, device.path(), paths, directory));
    let unmounted = unmount(&paths.mount).and_then(|()| device.wait_until_unmounted());
    let run = run?;
    unmounted.map_err(io_error("cannot unmount what the program wrote"))?;
    Ok(run)
}
