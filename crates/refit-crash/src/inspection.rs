//! Looks into the images of one record, on all cores.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::acknowledgement::{Acknowledgement, Found, Loss};
use crate::check::{Check, CheckedImage};
use crate::disk_server::DiskServer;
use crate::error::{CrashError, io_error, unwritable};
use crate::filesystem::{Filesystem, unmount};
use crate::image::{Cut, image};
use crate::isolated::Isolated;
use crate::mode::State;
use crate::paths::Paths;
use crate::record::Record;
use crate::states::States;
use crate::sys::loopback::{Access, Loop};
use crate::sys::process::kill_all;
use crate::torn_files::tear_files;

/// One record, and how its images are checked.
pub struct Inspection<'a> {
    /// Where everything lies.
    pub paths: &'a Paths,
    /// The record's file.
    pub record: PathBuf,
    /// As it was made.
    pub filesystem: &'a Filesystem,
    /// What is looked for.
    pub check: &'a Check,
    /// A check of one image that takes longer is killed.
    pub check_timeout: Duration,
    /// What was acknowledged.
    pub acknowledgements: &'a [Acknowledgement],
    /// The check starts in the mounted image.
    pub starts_in_image: bool,
    /// Variables for the check.
    pub env: &'a [(String, String)],
    /// Bytes of the block that the medium writes as a whole.
    pub tear: u64,
}

/// What the check finds in an image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Files {
    AsTheyAre,
    /// As by [`tear_files`].
    Torn,
}

/// The image that holds everything that was written: the check has to approve it.
const END: &str = "end";

impl Inspection<'_> {
    /// Looks at the end of the record, after the file system was unmounted:
    /// nothing is cut there.
    ///
    /// # Errors
    /// It does not mount, or the check does not find what was acknowledged.
    pub fn intact(&self) -> Result<(), CrashError> {
        let worker = Worker::start(self, 0, |inspector| {
            let seen = inspector.look(END, Files::AsTheyAre)?;
            Ok(vec![seen.problem(self.acknowledgements)])
        })?;
        let problems: Vec<Option<String>> = worker.answer()?.end()?;
        match problems.into_iter().next().flatten() {
            None => Ok(()),
            Some(problem) => Err(CrashError::Refused(problem)),
        }
    }

    /// Whether the check sees that two blocks of each file in the intact image were written in half.
    /// `None` where the files could not be torn, or there were none.
    ///
    /// # Errors
    /// The image could not be inspected.
    pub fn sees_torn_blocks(&self) -> Result<Option<bool>, CrashError> {
        let worker = Worker::start(self, 0, |inspector| {
            let Ok(found) = inspector.look(END, Files::Torn)?.0 else {
                return Ok(vec![]);
            };
            let loss = Loss::of(self.acknowledgements, u64::MAX, &found);
            let is_seen = loss.lost + loss.damaged + loss.resurrected > 0;
            Ok(vec![found.broken.is_some() || is_seen])
        })?;
        let seen: Vec<bool> = worker.answer()?.end()?;
        Ok(seen.first().copied())
    }

    /// Looks at each of the cuts, `workers` at once.
    ///
    /// # Errors
    /// An image could not be inspected. A damaged image is a result, and not an error.
    pub fn cut(&self, cuts: &[Cut], workers: usize) -> Result<Vec<State>, CrashError> {
        let most = self.filesystem.kind.at_once().min(cuts.len());
        let workers = workers.clamp(1, most.max(1));
        let working = (0..workers)
            .map(|number| {
                // In turns, so that each worker goes forward in time.
                let mine = cuts.iter().skip(number).step_by(workers);
                Worker::start(self, number, |inspector| {
                    mine.map(|cut| inspector.state(*cut)).collect()
                })
            })
            .collect::<Result<Vec<Worker>, CrashError>>()?;
        // All are read before the first is ended: a worker whose result is larger than a pipe has inherited the
        // mounts of those before it, and their servers wait for it.
        let answered = working
            .into_iter()
            .map(Worker::answer)
            .collect::<Result<Vec<Answered>, CrashError>>()?;
        let mut states = Vec::with_capacity(cuts.len());
        for worker in answered {
            let mut some: Vec<State> = worker.end()?;
            states.append(&mut some);
        }
        states.sort_by(|a, b| (a.at_ns, &a.name).cmp(&(b.at_ns, &b.name)));
        Ok(states)
    }
}

/// A process that looks at images, and the server of its disk.
struct Worker {
    work: Isolated,
    server: DiskServer,
}

/// A worker whose result was read.
struct Answered {
    answer: crate::isolated::Answer,
    server: DiskServer,
}

impl Worker {
    fn start<T: serde::Serialize>(
        inspection: &Inspection,
        number: usize,
        work: impl FnOnce(&Inspector) -> Result<Vec<T>, CrashError>,
    ) -> Result<Worker, CrashError> {
        let at = inspection.paths.directory.join(format!("states-{number}"));
        let server = DiskServer::start(&at, || {
            let record = open(&inspection.record)?;
            Ok(States::new(record, inspection.tear))
        })?;
        let work = Isolated::start(|| {
            let inspector = Inspector::new(inspection, &server, number)?;
            work(&inspector)
        })?;
        Ok(Worker { work, server })
    }

    fn answer(self) -> Result<Answered, CrashError> {
        Ok(Answered {
            answer: self.work.answer()?,
            server: self.server,
        })
    }
}

impl Answered {
    /// The worker's result, after its end and its server's.
    fn end<T: serde::de::DeserializeOwned>(self) -> Result<Vec<T>, CrashError> {
        let result = self.answer.take();
        let ended = self.server.end();
        let result = result?;
        ended.map_err(io_error("cannot unmount the disk of the images"))?;
        Ok(result)
    }
}

/// Reads a record.
pub(crate) fn open(path: &Path) -> Result<Record, CrashError> {
    Record::open(path).map_err(|error| CrashError::Record {
        path: path.to_owned(),
        error,
    })
}

/// What the check found, or why the image could not be mounted.
struct Seen(Result<Found, String>);

impl Seen {
    /// What is wrong with the intact image, if anything is.
    fn problem(self, acknowledgements: &[Acknowledgement]) -> Option<String> {
        let found = match self.0 {
            Ok(found) => found,
            Err(error) => {
                return Some(format!(
                    "the intact image does not mount: {error}; see dmesg"
                ));
            }
        };
        if let Some(broken) = found.broken {
            return Some(format!("the check rejects the intact image: {broken}"));
        }
        let loss = Loss::of(acknowledgements, u64::MAX, &found);
        if loss.lost == 0 && loss.resurrected == 0 {
            return None;
        }
        let missing = acknowledgements
            .iter()
            .find(|one| !one.id.starts_with('-') && !found.ids.contains(&one.id));
        let printed = found.ids.iter().next();
        Some(format!(
            "the check does not find on the intact image what was acknowledged: {} of {} are missing, {} were removed and are there{}{}\n  the check has to print the same ids as the acknowledgements",
            loss.lost,
            loss.acknowledged,
            loss.resurrected,
            missing.map_or(String::new(), |one| format!("; missing: {:?}", one.id)),
            printed.map_or("; it printed none".to_owned(), |id| format!(
                "; it printed: {id:?}"
            )),
        ))
    }
}

/// Mounts and checks one image after the other, in one worker.
struct Inspector<'a> {
    inspection: &'a Inspection<'a>,
    server: &'a DiskServer,
    record: Record,
    acknowledged: PathBuf,
}

impl<'a> Inspector<'a> {
    fn new(
        inspection: &'a Inspection,
        server: &'a DiskServer,
        number: usize,
    ) -> Result<Inspector<'a>, CrashError> {
        Ok(Inspector {
            inspection,
            server,
            record: open(&inspection.record)?,
            acknowledged: inspection.paths.directory.join(format!("acked-{number}")),
        })
    }

    fn state(&self, cut: Cut) -> Result<State, CrashError> {
        let image = image(&self.record, cut, self.inspection.tear);
        let first = self.record.entries().first().map_or(0, |entry| entry.start);
        let time = first + cut.at;
        self.write_acknowledged(time)?;
        let seen = self.look(&cut.to_string(), Files::AsTheyAre)?;
        let (found, unmountable) = match seen.0 {
            Ok(found) => (found, None),
            Err(error) => (Found::default(), Some(error)),
        };
        Ok(State {
            name: cut.to_string(),
            at_ns: cut.at,
            pending: image.pending,
            image: format!("{:016x}", image.identity),
            loss: Loss::of(self.inspection.acknowledgements, time, &found),
            unmountable,
            broken: found.broken,
        })
    }

    fn write_acknowledged(&self, time: u64) -> Result<(), CrashError> {
        let failed = || unwritable(&self.acknowledged);
        let mut to = BufWriter::new(File::create(&self.acknowledged).map_err(failed())?);
        let before = self.inspection.acknowledgements.iter();
        for one in before.filter(|one| one.at <= time) {
            writeln!(to, "{}", one.id).map_err(failed())?;
        }
        to.flush().map_err(failed())
    }

    /// A device that holds this image. Each image has its own: a device's pages stay in the page cache
    /// while somebody else works with them (BLKFLSBUF leaves these out; mm/truncate.c: mapping_evict_folio),
    /// and the file system of the next image would start from them.
    fn device(&self, name: &str) -> Result<Loop, CrashError> {
        self.server
            .command(name)
            .map_err(io_error(format!("cannot serve the image {name}")))?;
        // Opening the file drops what is cached of it.
        self.server.attach(Access::Cached)
    }

    /// Mounts an image, checks it, unmounts it.
    fn look(&self, name: &str, files: Files) -> Result<Seen, CrashError> {
        if name == END {
            self.write_acknowledged(u64::MAX)?;
        }
        let device = self.device(name)?;
        let mount = &self.inspection.paths.mount;
        if let Err(error) = self.inspection.filesystem.mount(device.path(), mount) {
            return Ok(Seen(Err(error.to_string())));
        }
        let torn = match files {
            Files::AsTheyAre => Ok(1),
            Files::Torn => tear_files(mount),
        };
        let problem = match torn {
            Ok(0) => Some("no file has data".to_owned()),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem {
            self.unmount(&device)?;
            return Ok(Seen(Err(problem)));
        }
        let found = self.inspection.check.find(&CheckedImage {
            mount,
            acknowledged: &self.acknowledged,
            dir: self.inspection.starts_in_image.then_some(&**mount),
            env: self.inspection.env,
            timeout: self.inspection.check_timeout,
        });
        kill_all();
        self.unmount(&device)?;
        let found = found.map_err(io_error("the check cannot run"))?;
        Ok(Seen(Ok(found)))
    }

    fn unmount(&self, device: &Loop) -> Result<(), CrashError> {
        unmount(&self.inspection.paths.mount)
            .and_then(|()| device.wait_until_unmounted())
            .map_err(io_error("cannot unmount an image after its check"))
    }
}

impl Drop for Inspector<'_> {
    fn drop(&mut self) {
        // It is rewritten for each image, and not needed afterwards.
        let _ = fs::remove_file(&self.acknowledged);
    }
}
