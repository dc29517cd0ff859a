//! Comparisons of a recipe that are killed, and what they leave.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::Killer;
use crate::test_env::expect_code;

impl Killer<'_> {
    /// A comparison of the recipe, killed somewhere between its start and its runs.
    pub fn kill_lab(&mut self) {
        let recipe = self.program.recipe;
        let words = ["compare", recipe, "env.A=1", "--rounds", "6", "--quiet"];
        let mut lab = self.lab(&words).spawn().expect("refit starts");
        // Waits for nothing: it chooses the moment of the kill.
        sleep(Duration::from_millis(50 + self.random.below(3000)));
        if lab.try_wait().expect("it is our child").is_none() {
            lab.kill().expect("it is our child");
            self.count("lab");
        }
        lab.wait().expect("it is our child");
    }

    fn lab(&self, words: &[&str]) -> Command {
        let mut lab = Command::new(&self.refit);
        lab.current_dir(self.env.dir()).args(words);
        lab.args(["--dir", &self.env.path("lab")]);
        lab.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        lab
    }

    /// The next one removes what the killed ones left, and then its own. A directory whose maker was killed before it
    /// locked it may be another's in the making, and stays for a minute.
    pub fn expect_no_lab(&self) {
        let check = ["recipes", "check", self.program.recipe];
        for is_late in [false, true] {
            let left = self.labs();
            let status = self.lab(&check).status().expect("refit starts");
            assert_eq!(status.code(), Some(0), "{}", self.program.recipe);
            assert!(is_late || !left.is_empty(), "nothing was left to remove");
            for path in self.labs() {
                let inside = fs::read_dir(&path).expect("it is ours").flatten();
                let inside: Vec<_> = inside.map(|entry| entry.file_name()).collect();
                assert!(
                    inside.iter().all(|name| name == "unheld"),
                    "{path:?}: {inside:?}"
                );
                expect_code(
                    &self
                        .env
                        .run(&["touch", "-d", "2 minutes ago", path.to_str().expect("text")]),
                    0,
                );
            }
        }
        assert_eq!(self.labs(), Vec::<PathBuf>::new());
    }

    fn labs(&self) -> Vec<PathBuf> {
        let labs = fs::read_dir(self.env.path("lab")).expect("it is ours");
        labs.flatten().map(|entry| entry.path()).collect()
    }
}
