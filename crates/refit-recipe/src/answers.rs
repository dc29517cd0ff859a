//! Exact answers: lines `QUESTION<TAB>ANSWER`, the same in every run of a variant.

use std::collections::{BTreeMap, BTreeSet};

use crate::records::AnswerRecord;

/// Reads what a command printed.
pub fn read(text: &str) -> Result<Vec<AnswerRecord>, String> {
    let mut seen = BTreeSet::new();
    let mut answers = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let Some((question, answer)) = line.split_once('\t') else {
            return Err(format!("`{line}` is not QUESTION<TAB>ANSWER"));
        };
        if !seen.insert(question) {
            return Err(format!("`{question}` is answered twice"));
        }
        answers.push(AnswerRecord {
            question: question.to_owned(),
            answer: answer.to_owned(),
        });
    }
    if answers.is_empty() {
        return Err("it answered nothing".to_owned());
    }
    Ok(answers)
}

/// Reads the answers of a note, by variant: lines `VARIANT<TAB>QUESTION<TAB>ANSWER`.
pub fn read_note(text: &str) -> Result<BTreeMap<String, Vec<AnswerRecord>>, String> {
    let mut lines: BTreeMap<&str, String> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let Some((variant, rest)) = line.split_once('\t').filter(|(_, r)| r.contains('\t')) else {
            return Err(format!("`{line}` is not VARIANT<TAB>QUESTION<TAB>ANSWER"));
        };
        let of = lines.entry(variant).or_default();
        of.push_str(rest);
        of.push('\n');
    }
    let read = |(variant, text): (&str, String)| Ok((variant.to_owned(), read(&text)?));
    lines.into_iter().map(read).collect()
}

/// Where two runs of one variant differ.
pub fn difference(first: &[AnswerRecord], now: &[AnswerRecord]) -> Option<String> {
    let of = |all: &[AnswerRecord], question: &str| {
        let found = all.iter().find(|answer| answer.question == question);
        found.map_or("nothing".to_owned(), |found| format!("`{}`", found.answer))
    };
    let both = first.iter().chain(now);
    let mut questions = both.map(|answer| &*answer.question);
    questions
        .find(|question| of(first, question) != of(now, question))
        .map(|question| {
            let (before, now) = (of(first, question), of(now, question));
            format!("`{question}` was answered {now}, and {before} in an earlier run")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_question_and_its_answer() {
        let answers = read("a b\tc d\n\nempty\t\n").unwrap();
        assert_eq!(answers.len(), 2);
        assert_eq!((&*answers[0].question, &*answers[0].answer), ("a b", "c d"));
        assert_eq!(answers[1].answer, "");
        for (text, problem) in [("a b", "`a b`"), ("a\t1\na\t2", "twice"), ("\n", "nothing")] {
            assert!(read(text).unwrap_err().contains(problem), "{text}");
        }
    }

    #[test]
    fn a_note_answers_by_variant() {
        let note = read_note("baseline\tq\t1\ntz=x\tq\t2\nbaseline\tr\t3\n").unwrap();
        assert_eq!(note["baseline"].len(), 2);
        assert_eq!(note["tz=x"][0].answer, "2");
        assert!(read_note("a\tb\n").is_err());
        assert!(read_note("a\tb\t1\na\tb\t2\n").is_err());
    }

    #[test]
    fn one_difference_is_enough() {
        let first = read("a\t1\nb\t2").unwrap();
        assert_eq!(difference(&first, &first), None);
        let now = read("a\t1\nb\t3").unwrap();
        let problem = difference(&first, &now).unwrap();
        assert_eq!(problem, "`b` was answered `3`, and `2` in an earlier run");
        let problem = difference(&first, &now[..1]).unwrap();
        assert!(problem.contains("answered nothing, and `2`"), "{problem}");
    }
}
