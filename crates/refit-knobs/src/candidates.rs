//! What a word that is being typed can become: for completion in a shell.

use crate::knobs::KNOBS;

/// A word to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The whole word, what was typed before a `+` included.
    pub word: String,
    /// What it is.
    pub about: &'static str,
}

/// The names of knobs; after `NAME=` the values that can be listed. What cannot be listed (paths, names, durations) is
/// left to the one who types.
#[must_use]
pub fn candidates(typed: &str) -> Vec<Candidate> {
    let (joined, last) = match typed.rfind('+') {
        Some(at) => typed.split_at(at + 1),
        None => ("", typed),
    };
    let all: Vec<(String, &'static str)> = match last.split_once('=') {
        None => KNOBS
            .iter()
            .map(|knob| {
                let mark = if knob.has_members { '.' } else { '=' };
                (format!("{}{mark}", knob.name), knob.about)
            })
            .collect(),
        Some((head, value)) => {
            let name = head.split(['@', '.']).next().unwrap_or_default();
            let knob = KNOBS.iter().find(|knob| knob.name == name);
            let values = knob.map(|knob| (knob.values)(value)).unwrap_or_default();
            values
                .into_iter()
                .map(|value| (format!("{head}={value}"), ""))
                .collect()
        }
    };
    all.into_iter()
        .filter(|(word, _)| word.starts_with(last))
        .map(|(word, about)| Candidate {
            word: format!("{joined}{word}"),
            about,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Setting, Variant};

    fn words(typed: &str) -> Vec<String> {
        let all = candidates(typed).into_iter();
        all.map(|candidate| candidate.word).collect()
    }

    #[test]
    fn a_word_is_completed_from_the_tables_that_it_is_parsed_with() {
        for (typed, expected) in [
            ("sy", &["sync="][..]),
            ("sync=", &["sync=off", "sync=on"]),
            (
                "sync@exe:cleanup=o",
                &["sync@exe:cleanup=off", "sync@exe:cleanup=on"],
            ),
            ("thp=a", &["thp=always"]),
            ("malloc=m", &["malloc=mimalloc"]),
            ("sync=off+malloc=j", &["sync=off+malloc=jemalloc"]),
            ("malloc=jemalloc:nar", &["malloc=jemalloc:narenas:"]),
            (
                "malloc=jemalloc:narenas:2,tcache:",
                &[
                    "malloc=jemalloc:narenas:2,tcache:true",
                    "malloc=jemalloc:narenas:2,tcache:false",
                ],
            ),
            ("malloc=glibc:arena_m", &["malloc=glibc:arena_max="]),
            ("en", &["env."]),
            ("env.A=", &[]),
            ("nothing=", &[]),
        ] {
            assert_eq!(words(typed), expected, "{typed}");
        }
        assert!(words("").len() == KNOBS.len());
    }

    #[test]
    fn each_whole_candidate_is_a_setting() {
        for knob in KNOBS {
            for word in words(&format!("{}=", knob.name)) {
                assert!(word.parse::<Setting>().is_ok(), "{word}");
                assert!(Variant::parse(&format!("{word}+tz=UTC")).is_ok(), "{word}");
            }
        }
    }
}
