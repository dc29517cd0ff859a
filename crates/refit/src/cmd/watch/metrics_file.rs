//! `--openmetrics FILE`: rewritten by a thread of its own, because a watch that looks at who waits for a disk must not
//! wait for one itself. What a slow disk leaves no time for is left out: the newest text counts.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};

use crate::cmd::result_file::replace;

/// What the thread is to do.
#[derive(Default)]
struct Task {
    text: Option<String>,
    is_last: bool,
}

#[derive(Default)]
struct Shared {
    task: Mutex<Task>,
    changed: Condvar,
}

impl Shared {
    /// Nothing that is done with the lock panics halfway.
    fn lock(&self) -> MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file. The thread starts with the first text: a command has been started then, and only a process with one thread
/// can be forked.
pub struct MetricsFile {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl MetricsFile {
    pub fn new(path: &Path) -> MetricsFile {
        MetricsFile {
            path: path.to_owned(),
            shared: Arc::default(),
            thread: None,
        }
    }

    /// Has it written, some time soon. Where no thread can be started, that is at the end.
    pub fn set(&mut self, text: String) {
        self.shared.lock().text = Some(text);
        self.shared.changed.notify_one();
        if self.thread.is_none() {
            let (path, shared) = (self.path.clone(), Arc::clone(&self.shared));
            let thread = thread::Builder::new().name("refit-metrics".to_owned());
            self.thread = thread.spawn(move || write(&path, &shared)).ok();
        }
    }

    /// Waits until the last text is written.
    ///
    /// # Errors
    /// It could not be.
    pub fn finish(self) -> Result<()> {
        self.shared.lock().is_last = true;
        self.shared.changed.notify_one();
        match self.thread.map(JoinHandle::join) {
            None => write(&self.path, &self.shared),
            Some(ended) => ended.unwrap_or_else(|_| Err(anyhow!("the writer of metrics panicked"))),
        }
    }
}

/// Writes each text until the last; how that went.
fn write(path: &Path, shared: &Shared) -> Result<()> {
    let mut written = Ok(());
    loop {
        let mut task = shared.lock();
        while task.text.is_none() && !task.is_last {
            task = shared
                .changed
                .wait(task)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let Some(text) = task.text.take() else {
            return written;
        };
        drop(task);
        written = replace(path, text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_text_is_in_the_file_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("refit.prom");
        let mut file = MetricsFile::new(&path);
        for n in 0..100 {
            file.set(format!("{n}\n"));
        }
        file.finish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "99\n");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        MetricsFile::new(&path).finish().unwrap();
    }

    #[test]
    fn a_failure_that_lasts_is_told_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = MetricsFile::new(&dir.path().join("none/refit.prom"));
        file.set("x".to_owned());
        let error = file.finish().unwrap_err();
        assert!(format!("{error:#}").contains("there is no directory"));
    }
}
