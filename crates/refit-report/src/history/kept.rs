//! What was decided of changes: kept, or not.

use std::collections::BTreeMap;
use std::path::Path;

use refit_run::printable;

const KEPT: &str = "kept";
const NOT_KEPT: &str = "not kept";

/// The decisions that are stored beside the results, a line each: the fate, the name of the result's file, the
/// variant, parted by tabs. The last line on a variant counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept(BTreeMap<(String, String), &'static str>);

impl Kept {
    /// Lines of another form are passed over: a person may have edited the file.
    #[must_use]
    pub fn parse(text: &str) -> Kept {
        let mut kept = Kept::default();
        for line in text.lines() {
            let mut parts = line.splitn(3, '\t');
            let fate = match parts.next() {
                Some(KEPT) => KEPT,
                Some(NOT_KEPT) => NOT_KEPT,
                _ => continue,
            };
            if let (Some(file), Some(variant)) = (parts.next(), parts.next()) {
                kept.0.insert((file.to_owned(), variant.to_owned()), fate);
            }
        }
        kept
    }

    /// Of one variant of one result.
    pub fn decide(&mut self, file: &Path, variant: &str, is_kept: bool) {
        let fate = if is_kept { KEPT } else { NOT_KEPT };
        self.0.insert((name(file), printable(variant)), fate);
    }

    /// As it is stored.
    #[must_use]
    pub fn text(&self) -> String {
        let lines = self.0.iter();
        lines
            .map(|((file, variant), fate)| format!("{fate}\t{file}\t{variant}\n"))
            .collect()
    }

    /// What was decided.
    pub(super) fn decision(&self, file: &Path, variant: &str) -> Option<&'static str> {
        self.0.get(&(name(file), printable(variant))).copied()
    }
}

/// A directory may be named in many ways.
fn name(file: &Path) -> String {
    let name = file.file_name().unwrap_or(file.as_os_str());
    printable(&name.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_comes_back_whatever_its_name_and_the_last_one_counts() {
        let mut kept = Kept::default();
        let file = Path::new("log/a\tb\n.json");
        kept.decide(file, "sync=off", true);
        kept.decide(file, "env.A=x\ty", true);
        kept.decide(file, "sync=off", false);
        let read = Kept::parse(&format!("# a note\n{}kept\tc.json\n", kept.text()));
        assert_eq!(read, kept);
        assert_eq!(read.decision(file, "sync=off"), Some("not kept"));
        assert_eq!(read.decision(file, "env.A=x\ty"), Some("kept"));
        assert_eq!(read.decision(Path::new("c.json"), "sync=off"), None);
    }
}
