//! Cuts a record and looks what is left, on all cores.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};

use crate::check::{Check, Place};
use crate::error::{CrashError, io_error};
use crate::filesystem::{Filesystem, unmount_patiently};
use crate::image::{Cut, image};
use crate::promise::{Found, Promise, judge};
use crate::record::Record;
use crate::recording::{NO_LOOP, Paths, Server, answer, own_proc};
use crate::report::State;
use crate::stage::read_all;
use crate::states::States;
use crate::sys::loopback::{Access, Loop};
use crate::sys::process::{Child, fork, kill_all, own_mounts, own_pids};

/// One record and how its states are looked at.
pub struct Trial<'a> {
    /// Where everything lies.
    pub paths: &'a Paths,
    /// The record's file.
    pub record: PathBuf,
    /// As it was made.
    pub filesystem: &'a Filesystem,
    /// What is looked for.
    pub check: &'a Check,
    /// A check of one state that takes longer is killed.
    pub check_timeout: Duration,
    /// What was promised.
    pub promises: &'a [Promise],
    /// Bytes of the block that the medium writes as a whole.
    pub tear: u64,
}

/// Everything that was written is there: a state of which the check must think well.
const END: &str = "end";

impl Trial<'_> {
    /// Looks at the end of the record, when the file system had been unmounted:
    /// nothing is cut there.
    ///
    /// # Errors
    /// It does not mount, or the check does not find what was promised.
    pub fn intact(&self) -> Result<(), CrashError> {
        let mut worker = Worker::start(self, 0, |bench| {
            bench
                .look(END)
                .map(|looked| vec![looked.into_words(self.promises)])
        })?;
        let said = worker.hear()?;
        let said: Vec<Option<String>> = worker.end(&said)?;
        match said.into_iter().next().flatten() {
            None => Ok(()),
            Some(problem) => Err(CrashError::Refused(problem)),
        }
    }

    /// Looks at each of the cuts, `workers` at once.
    ///
    /// # Errors
    /// The lab failed; a bad state is no error.
    pub fn cut(&self, cuts: &[Cut], workers: usize) -> Result<Vec<State>, CrashError> {
        let most = self.filesystem.kind.at_once().min(cuts.len());
        let workers = workers.clamp(1, most.max(1));
        let mut working = (0..workers)
            .map(|number| {
                // In turns, so that each of them goes forward in time.
                let mine = cuts.iter().skip(number).step_by(workers);
                Worker::start(self, number, |bench| {
                    mine.map(|cut| bench.state(*cut)).collect()
                })
            })
            .collect::<Result<Vec<Worker>, CrashError>>()?;
        // All are heard before the first is ended: a worker that has more to say than a pipe holds still has the
        // mounts of those before it, and their servers wait for it.
        let heard: Vec<Vec<u8>> = working
            .iter_mut()
            .map(Worker::hear)
            .collect::<Result<_, _>>()?;
        let mut states = Vec::with_capacity(cuts.len());
        for (worker, said) in working.into_iter().zip(heard) {
            let mut some: Vec<State> = worker.end(&said)?;
            states.append(&mut some);
        }
        states.sort_by(|a, b| (a.at_ns, &a.name).cmp(&(b.at_ns, &b.name)));
        Ok(states)
    }
}

/// A process that looks at states.
struct Worker {
    /// Serves them; ends after the one that looks.
    server: Option<Server>,
    child: Child,
    from: Option<OwnedFd>,
}

impl Worker {
    fn start<T: serde::Serialize>(
        trial: &Trial,
        number: usize,
        work: impl FnOnce(&Bench) -> Result<Vec<T>, CrashError>,
    ) -> Result<Worker, CrashError> {
        let at = trial.paths.directory.join(format!("states-{number}"));
        let server = Server::start(&at, || {
            let record = open(&trial.record)?;
            Ok(States::new(record, trial.tear))
        })?;
        let (from, to) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| io_error("cannot make a pipe")(error.into()))?;
        let child = fork(|| {
            // What a check leaves behind ends with it.
            let looked = own_pids().and_then(|()| {
                fork(|| {
                    let bench = own_mounts()
                        .and_then(|()| own_proc())
                        .map_err(io_error("cannot enter namespaces"))
                        .and_then(|()| Bench::new(trial, &server, number));
                    let result = bench.and_then(|bench| work(&bench));
                    i32::from(answer(&to, result).is_err())
                })
            });
            looked.map_or(1, |mut first| first.wait())
        })
        .map_err(io_error("cannot fork"))?;
        Ok(Worker {
            server: Some(server),
            child,
            from: Some(from),
        })
    }

    /// Everything that it has to say.
    fn hear(&mut self) -> Result<Vec<u8>, CrashError> {
        let from = self.from.take().expect("heard once");
        read_all(from).map_err(io_error("cannot hear of the states"))
    }

    /// Waits for its end; takes apart what it said.
    fn end<T: serde::de::DeserializeOwned>(mut self, said: &[u8]) -> Result<Vec<T>, CrashError> {
        let code = self.child.wait();
        let ended = self.server.take().map_or(Ok(()), Server::end);
        let result: Result<Vec<T>, String> = serde_json::from_slice(said).map_err(|_| {
            CrashError::Refused(format!("a worker ended with {code} and said nothing"))
        })?;
        let states = result.map_err(CrashError::Refused)?;
        ended.map_err(io_error("cannot unmount the states"))?;
        Ok(states)
    }
}

/// Reads a record.
pub(crate) fn open(path: &Path) -> Result<Record, CrashError> {
    Record::open(path).map_err(|error| CrashError::Record {
        path: path.to_owned(),
        error,
    })
}

/// What was there, or why it could not be mounted.
struct Looked(Result<Found, String>);

impl Looked {
    /// What is wrong with the intact image, if anything is.
    fn into_words(self, promises: &[Promise]) -> Option<String> {
        let found = match self.0 {
            Ok(found) => found,
            Err(error) => {
                return Some(format!(
                    "the intact image does not mount: {error}; see dmesg"
                ));
            }
        };
        if let Some(broken) = found.broken {
            return Some(format!(
                "--check does not approve the intact image: {broken}"
            ));
        }
        let loss = judge(promises, u64::MAX, &found);
        if loss.lost == 0 && loss.resurrected == 0 {
            return None;
        }
        let missing = promises
            .iter()
            .find(|promise| !promise.id.starts_with('-') && !found.ids.contains(&promise.id));
        let printed = found.ids.iter().next();
        Some(format!(
            "--check does not find on the intact image what was acknowledged: {} of {} are missing, {} were removed and are there{}{}\n  it has to print the same ids as the acknowledgements have",
            loss.lost,
            loss.acknowledged,
            loss.resurrected,
            missing.map_or(String::new(), |promise| format!(
                "; missing: {:?}",
                promise.id
            )),
            printed.map_or("; it printed none".to_owned(), |id| format!(
                "; it printed: {id:?}"
            )),
        ))
    }
}

/// Where one worker looks at states.
struct Bench<'a> {
    trial: &'a Trial<'a>,
    server: &'a Server,
    device: Loop,
    record: Record,
    acked: PathBuf,
}

impl<'a> Bench<'a> {
    fn new(trial: &'a Trial, server: &'a Server, number: usize) -> Result<Bench<'a>, CrashError> {
        Ok(Bench {
            trial,
            server,
            device: Loop::attach(&server.disk(), Access::Cached).map_err(io_error(NO_LOOP))?,
            record: open(&trial.record)?,
            acked: trial.paths.directory.join(format!("acked-{number}")),
        })
    }

    fn state(&self, cut: Cut) -> Result<State, CrashError> {
        let image = image(&self.record, cut, self.trial.tear);
        let first = self.record.entries().first().map_or(0, |entry| entry.start);
        let time = first + cut.at;
        self.write_acked(time)?;
        let looked = self.look(&cut.to_string())?;
        let (found, unmountable) = match looked.0 {
            Ok(found) => (found, None),
            Err(error) => (Found::default(), Some(error)),
        };
        Ok(State {
            name: cut.to_string(),
            at_ns: cut.at,
            pending: image.pending,
            image: format!("{:016x}", image.identity),
            loss: judge(self.trial.promises, time, &found),
            unmountable,
            broken: found.broken,
        })
    }

    fn write_acked(&self, time: u64) -> Result<(), CrashError> {
        let failed = || io_error(format!("cannot write {}", self.acked.display()));
        let mut to = BufWriter::new(File::create(&self.acked).map_err(failed())?);
        for promise in self
            .trial
            .promises
            .iter()
            .filter(|promise| promise.at <= time)
        {
            writeln!(to, "{}", promise.id).map_err(failed())?;
        }
        to.flush().map_err(failed())
    }

    /// The device holds this state, and nothing of the last one is left in a cache.
    fn show(&self, name: &str) -> io::Result<()> {
        // What is dirty belongs to the last one.
        self.device.forget()?;
        self.server.tell(name)?;
        // Opening drops the file's pages; the device's own go last, for they are read from those.
        File::open(self.server.disk())?;
        self.device.forget()
    }

    /// Mounts a state, checks it, unmounts it.
    fn look(&self, name: &str) -> Result<Looked, CrashError> {
        if name == END {
            self.write_acked(u64::MAX)?;
        }
        self.show(name)
            .map_err(io_error(format!("cannot show the state {name}")))?;
        let mount = &self.trial.paths.mount;
        if let Err(error) = self.trial.filesystem.mount(self.device.path(), mount) {
            return Ok(Looked(Err(error.to_string())));
        }
        let found = self.trial.check.find(&Place {
            mount,
            acked: &self.acked,
            timeout: self.trial.check_timeout,
        });
        kill_all();
        unmount_patiently(mount).map_err(io_error("a check's state cannot be unmounted"))?;
        let found = found.map_err(io_error("--check cannot run"))?;
        Ok(Looked(Ok(found)))
    }
}

impl Drop for Bench<'_> {
    fn drop(&mut self) {
        // It is rewritten for each state and needed for none.
        let _ = fs::remove_file(&self.acked);
    }
}
