//! The rules: what each asks for, and why.

use serde::{Deserialize, Serialize};

/// A condition of the durability check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A file was renamed over another one while its data was not synced.
    ReplacedUnsynced,
    /// A name was acknowledged while its directory was not synced.
    NameUnsynced,
    /// Something was acknowledged while data was not synced.
    AcknowledgedUnsynced,
    /// What was durable was truncated, to be written again in its place.
    OverwrittenInPlace,
    /// The old file was removed before the new one was durable.
    RemovedTooEarly,
    /// Of two files the second one was synced, and the first one never.
    OrderAssumed,
    /// A sync failed, and the program went on.
    ErrorIgnored,
    /// A sync that does not cover what was written.
    SyncedTheWrongThing,
}

/// What is known of a rule.
struct About {
    rule: Rule,
    name: &'static str,
    /// One sentence.
    asks: &'static str,
    /// The fact that it rests on, with its source.
    because: &'static str,
    /// What to do instead.
    instead: &'static str,
}

const ABOUT: [About; 8] = [
    About {
        rule: Rule::ReplacedUnsynced,
        name: "replaced-unsynced",
        asks: "A file that is renamed over another one is synced before.",
        because: "rename(2) orders names, not data: after a power cut the new name may stand before the data does. \
                  ext4's auto_da_alloc starts to write the data, and does not wait for it (ext4 documentation).",
        instead: "write the new file, fsync it, rename it, fsync its directory",
    },
    About {
        rule: Rule::NameUnsynced,
        name: "name-unsynced",
        asks: "The directory of a name that was made, moved or removed is synced before that is acknowledged.",
        because: "fsync(2): to sync a file does not necessarily write the entry of its directory; \
                  that takes an fsync of the directory.",
        instead: "fsync the directory (after a rename between directories: both)",
    },
    About {
        rule: Rule::AcknowledgedUnsynced,
        name: "acknowledged-unsynced",
        asks: "What was written is synced before it is acknowledged.",
        because: "write(2): a successful return does not promise that data is on the disk; fsync(2) does.",
        instead: "fsync, look at its result, and acknowledge then",
    },
    About {
        rule: Rule::OverwrittenInPlace,
        name: "overwritten-in-place",
        asks: "Durable content is not truncated to be written again in its place.",
        because: "O_TRUNC takes effect at once, the new content later (open(2), write(2)): \
                  a power cut between the two leaves an empty or a partial file.",
        instead: "write a new file beside it, fsync it, rename it over the old one, fsync the directory",
    },
    About {
        rule: Rule::RemovedTooEarly,
        name: "removed-too-early",
        asks: "A file is removed after what replaces it is durable.",
        because: "File systems may write the removal before the data of another file \
                  (fsync(2) is the only order that POSIX gives).",
        instead: "fsync the new file and its directory, and remove the old one then",
    },
    About {
        rule: Rule::OrderAssumed,
        name: "order-assumed",
        asks: "What was written first is synced before what was written after it.",
        because: "Without a sync between them two files may reach the disk in any order (fsync(2)).",
        instead: "fsync the first file before the second one is written",
    },
    About {
        rule: Rule::ErrorIgnored,
        name: "error-ignored",
        asks: "After a failed sync the program does not go on as if the data were there.",
        because: "After an error Linux marks the pages clean: the next fsync succeeds, \
                  and the data is not on the disk (fsync(2), EIO; Rebello et al., ATC 2020).",
        instead: "stop, or write the data again from the program's own copy",
    },
    About {
        rule: Rule::SyncedTheWrongThing,
        name: "synced-the-wrong-thing",
        asks: "The sync covers what was written.",
        because: "sync_file_range(2) writes no metadata and waits for no disk cache; msync(2) with MS_ASYNC waits \
                  for nothing; a stream's buffer is not yet the file's (fflush(3)); \
                  a directory's sync covers names, not data (fsync(2)).",
        instead: "fflush a stream, then fsync that very file; fsync the directory of its name",
    },
];

impl Rule {
    /// All rules, in the order in which they are documented.
    pub fn all() -> impl Iterator<Item = Rule> {
        ABOUT.iter().map(|about| about.rule)
    }

    fn about(self) -> &'static About {
        let found = ABOUT.iter().find(|about| about.rule == self);
        found.expect("each rule has its row, which a test checks")
    }

    /// As it is typed and printed: `replaced-unsynced`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// What it asks for, in one sentence.
    #[must_use]
    pub fn asks(self) -> &'static str {
        self.about().asks
    }

    /// The fact that it rests on, with its source.
    #[must_use]
    pub fn because(self) -> &'static str {
        self.about().because
    }

    /// What a program does instead.
    #[must_use]
    pub fn instead(self) -> &'static str {
        self.about().instead
    }

    /// The rule of a name.
    ///
    /// # Errors
    /// There is none of this name: the names that there are.
    pub fn named(name: &str) -> Result<Rule, String> {
        let found = Rule::all().find(|rule| rule.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = Rule::all().map(Rule::name).collect();
            format!("{name:?} is not a rule; there are {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_is_found_by_its_name() {
        for rule in Rule::all() {
            assert_eq!(Rule::named(rule.name()), Ok(rule));
            let text = serde_json_name(rule);
            assert_eq!(text, rule.name());
        }
        assert!(Rule::named("x").unwrap_err().contains("replaced-unsynced"));
    }

    /// The name that the variant has: kebab case of it.
    fn serde_json_name(rule: Rule) -> String {
        let mut text = String::new();
        for letter in format!("{rule:?}").chars() {
            if letter.is_uppercase() && !text.is_empty() {
                text.push('-');
            }
            text.extend(letter.to_lowercase());
        }
        text
    }
}
