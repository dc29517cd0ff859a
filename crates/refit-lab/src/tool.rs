//! Commands beside the program: setup, load, check, stop. Nothing is swapped
//! beneath them.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use refit_run::{
    doze, interruptions,
    tree::{Part, Tree},
    with_first_signals,
};

use crate::error::LabError;
use refit_recipe::find_user;

/// How long to sleep where nothing wakes refit.
pub const TICK: Duration = Duration::from_millis(10);

/// Where and as whom commands of an instance run.
pub struct Surroundings {
    /// The working directory.
    pub dir: PathBuf,
    /// Variables of refit's own, and the PATH.
    pub env: Vec<(String, String)>,
    /// As root: whom they run as.
    pub user: Option<String>,
}

/// How a tool ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolEnd {
    /// By itself.
    Exited(ExitStatus),
    /// It was killed: its time was over.
    TimedOut,
    /// It was killed: a person wants the end at once.
    Interrupted,
    /// It was killed: `tick` wanted no more.
    Stopped,
}

/// A tool that has ended.
#[derive(Clone, Copy, Debug)]
pub struct ToolRun {
    /// How.
    pub end: ToolEnd,
    /// From its start to its end.
    pub wall: Duration,
}

impl Surroundings {
    /// The words that run a shell command there.
    pub fn words(&self, tree: &Tree, part: Part, command: &str) -> Vec<String> {
        let mut words = tree.entering(part);
        if let Some(user) = &self.user {
            // A group of the user's name need not be there: nobody's is nogroup.
            let group = find_user(user).map_or_else(|| user.clone(), |user| user.gid.to_string());
            words.extend([
                "setpriv".to_owned(),
                format!("--reuid={user}"),
                format!("--regid={group}"),
                "--init-groups".to_owned(),
                "--".to_owned(),
            ]);
        }
        words.extend(["sh", "-c", command].map(str::to_owned));
        words
    }

    /// Runs a tool to its end. `tick` is called about a hundred times a second;
    /// when it answers `false` the tool is killed.
    pub fn run(
        &self,
        tree: &Tree,
        command: &str,
        output: [File; 2],
        timeout: Duration,
        mut tick: impl FnMut() -> bool,
    ) -> Result<ToolRun, LabError> {
        let words = self.words(tree, Part::Tools, command);
        let [stdout, stderr] = output;
        let mut tool = Command::new(&words[0]);
        tool.args(&words[1..])
            .current_dir(&self.dir)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            // The terminal's Ctrl-C is refit's to judge.
            .process_group(0);
        let began = Instant::now();
        let failed = |cause| LabError::Io {
            action: format!("cannot run `{command}`"),
            cause,
        };
        let mut child = with_first_signals(&mut tool).spawn().map_err(failed)?;
        tree.set_tool(Some(child.id()));
        let end = loop {
            if let Some(status) = child.try_wait().map_err(failed)? {
                break ToolEnd::Exited(status);
            }
            let end = if began.elapsed() > timeout {
                ToolEnd::TimedOut
            } else if interruptions() > 1 {
                ToolEnd::Interrupted
            } else if !tick() {
                ToolEnd::Stopped
            } else {
                doze(TICK);
                continue;
            };
            end_now(tree, &mut child);
            break end;
        };
        let wall = began.elapsed();
        tree.set_tool(None);
        Ok(ToolRun { end, wall })
    }
}

/// The tool and all that it started.
fn end_now(tree: &Tree, child: &mut Child) {
    tree.kill(Part::Tools);
    let _ = child.kill();
    let _ = child.wait();
}
