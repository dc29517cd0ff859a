//! Records one mode: the disk, the file system on it, and the run.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use refit_knobs::Launch;
use refit_run::disk;

use crate::disk_server::DiskServer;
use crate::error::{CrashError, io_error};
use crate::filesystem::unmount;
use crate::isolated::isolated;
use crate::paths::Paths;
use crate::record::RecordWriter;
use crate::recorded_run::{self, RecordedRun};
use crate::recorder::Recorder;
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
        .map_err(io_error(format!("cannot make {}", directory.display())))?;
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
        let file =
            File::create_new(paths.record(name)).map_err(io_error("cannot write the record"))?;
        let content = tempfile::tempfile_in(&paths.directory)
            .map_err(io_error("cannot store the disk's content"))?;
        RecordWriter::new(file, request.disk_bytes, request.record_cap)
            .and_then(|record| {
                Recorder::new(content, record, request.disk_bytes, latency, request.seed)
            })
            .map_err(io_error("cannot make the disk"))
    })?;
    let run = on_disk(request, launch, paths, &directory, &server);
    // Where the record failed, that is the cause of any other failure.
    let status = server.status().unwrap_or_default();
    if status.contains("failed") {
        return Err(CrashError::Refused(format!(
            "the record of {name} could not be continued ({status} bytes): at most {} are allowed\n  take a shorter run (--for), or a larger --record-size",
            request.record_cap
        )));
    }
    let run = run?;
    server
        .command("finish")
        .map_err(io_error("cannot finish the record"))?;
    server
        .end()
        .map_err(io_error("cannot unmount the recorded disk"))?;
    let failed = || io_error("cannot store what the run acknowledged");
    let text = serde_json::to_vec(&run).map_err(|error| failed()(error.into()))?;
    fs::write(directory.join("recorded_run.json"), text).map_err(failed())?;
    Ok(run)
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
