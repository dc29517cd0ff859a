//! The pages that are about something else than a command.

use crate::document::Document;
use crate::{recipe_keys, roff, settings, text};

/// One page.
#[derive(Debug)]
pub struct Topic {
    /// What is typed after `refit help`.
    pub name: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// The section of its manual page: 5 for formats of files, 7 for all else.
    pub section: u8,
    /// Its file in docs/; "": none.
    file: &'static str,
    markdown: &'static str,
    /// What is made of tables, and follows.
    made: fn() -> String,
}

macro_rules! page {
    ($name:literal, $about:literal, $file:literal) => {
        page!($name, $about, 7, $file, String::new)
    };
    ($name:literal, $about:literal, $section:literal, $file:literal, $made:expr) => {
        Topic {
            name: $name,
            about: $about,
            section: $section,
            file: $file,
            markdown: include_str!(concat!("../../../docs/", $file)),
            made: $made,
        }
    };
}

/// All of them.
pub static TOPICS: &[Topic] = &[
    page!(
        "settings",
        "what can be swapped, and what each setting covers and risks",
        7,
        "settings.md",
        settings::markdown
    ),
    page!(
        "recipe",
        "a service under load as a folder, and the keys of recipe.toml",
        5,
        "recipes.md",
        recipe_keys::markdown
    ),
    page!(
        "packages",
        "what refit and its recipes need, and what distributions call it",
        "packages.md"
    ),
    page!(
        "safety",
        "what is risked, what differs from the kernel, what refit leaves on the machine",
        "safety.md"
    ),
    page!("tasks", "\"I want to …\": the command for it", "tasks.md"),
    page!("words", "what refit's own words mean", "words.md"),
    page!(
        "coming-from",
        "the options of hyperfine, eatmydata, strace and others, and where they are here",
        "coming-from.md"
    ),
    page!(
        "swapping",
        "how a program is reached: the preload, seccomp, a whole tree",
        "how-it-swaps.md"
    ),
    page!(
        "measuring",
        "how it is measured: rounds, intervals, verdicts",
        "how-it-measures.md"
    ),
    page!(
        "applying",
        "settings made permanent on a service, and taken back",
        "apply.md"
    ),
    page!(
        "schema",
        "the schema of a database, declared by a file",
        "schema.md"
    ),
    page!(
        "memory",
        "who serves malloc, how large a heap is, why it grows",
        "memory.md"
    ),
    page!(
        "time",
        "where the time of a command goes: processors, network, locks, files",
        "time.md"
    ),
    page!(
        "watching",
        "who waits for the disk and where memory is, live",
        "watch.md"
    ),
    page!("tuning", "what to swap, found by trying", "tune.md"),
    page!(
        "crash-lab",
        "simulated power cuts: the disk, the states, checks of your own",
        "crash-lab.md"
    ),
    page!(
        "durability",
        "writes, renames and removals that no sync covers",
        "durability.md"
    ),
    page!("metrics", "metrics for Prometheus", "metrics.md"),
    page!(
        "pooling",
        "comparisons of several machines as one",
        "pool.md"
    ),
    page!("ci", "limits that fail a CI job", "ci.md"),
    page!(
        "containers",
        "refit in containers and image builds",
        "containers.md"
    ),
    page!(
        "kubernetes",
        "comparisons on many nodes, and settings for a workload",
        "kubernetes.md"
    ),
];

/// The page of this name.
#[must_use]
pub fn topic(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

/// The name of the page that was made of a file of docs/.
pub(crate) fn topic_of_file(file: &str) -> Option<&'static str> {
    let topic = TOPICS.iter().find(|topic| topic.file == file);
    topic.map(|topic| topic.name)
}

impl Topic {
    fn document(&self) -> Document {
        let made = (self.made)();
        Document::read(&format!("{}\n{made}", self.markdown), topic_of_file)
    }

    /// As plain text in lines of at most so many columns, where words allow it.
    #[must_use]
    pub fn text(&self, columns: usize) -> String {
        text::write(&self.document(), columns)
    }

    /// The name of its manual page's file: `refit-settings.7`.
    #[must_use]
    pub fn page_name(&self) -> String {
        format!("refit-{}.{}", self.name, self.section)
    }

    /// Its manual page.
    #[must_use]
    pub fn page(&self, version: &str) -> String {
        let name = format!("refit-{}", self.name);
        let mut page = roff::head(&name, self.section, version);
        page.push_str(&roff::body(&name, self.about, &self.document()));
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_text_that_is_no_markdown_any_more() {
        for topic in TOPICS {
            let text = topic.text(80);
            let body: Vec<&str> = text.lines().collect();
            assert!(body.len() > 20, "{}", topic.name);
            for line in body {
                assert!(!line.starts_with('#'), "{}: {line}", topic.name);
                assert!(!line.contains("]("), "{}: {line}", topic.name);
                assert!(!line.contains("|---"), "{}: {line}", topic.name);
            }
        }
    }

    #[test]
    fn names_are_found_once() {
        for one in TOPICS {
            let all = TOPICS.iter().filter(|other| other.name == one.name);
            assert_eq!(all.count(), 1, "{}", one.name);
        }
    }
}
