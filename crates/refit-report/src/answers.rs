//! Exact answers: which variants gave which, and what the note says of it.

use refit_lab::experiment::{AnswerRecord, Experiment, Role, VariantRecord};

use crate::fold::fold;
use crate::paint::Tone;
use crate::table::{self, Column, GAP, INDENT};

/// Whether the answers are the whole result.
pub fn is_exact(experiment: &Experiment) -> bool {
    let recipe = experiment.recipe.as_ref();
    recipe.is_some_and(|recipe| recipe.is_exact)
}

/// One answer to a question, with those who gave it.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// What was asked.
    pub question: String,
    /// What came.
    pub answer: String,
    /// Who gave it: names, or `all`.
    pub variants: String,
    /// What the note says of these; none where it is silent.
    pub then: Option<String>,
    /// The note says something else.
    pub differs: bool,
}

impl Line {
    /// What the note says of it, after a sign that tells whether it is the same.
    pub fn note(&self) -> Option<String> {
        let then = self.then.as_ref()?;
        Some(format!("{} then: {then}", self.sign()))
    }

    fn sign(&self) -> &'static str {
        if self.differs { "≠" } else { "=" }
    }

    /// What differs stands out.
    pub fn tone(&self) -> Tone {
        if self.differs {
            Tone::Unsure
        } else {
            Tone::Plain
        }
    }
}

/// Questions in the order in which they were asked; of each, answers in the order
/// of the variants that gave them first.
pub fn lines(experiment: &Experiment) -> Vec<Line> {
    // The hidden baseline answered as the baseline did.
    let answered =
        |variant: &&VariantRecord| !variant.answers.is_empty() && variant.role != Role::Hidden;
    let variants: Vec<&VariantRecord> = experiment.variants.iter().filter(answered).collect();
    let mut questions: Vec<&str> = Vec::new();
    let asked = variants.iter().flat_map(|variant| &variant.answers);
    for AnswerRecord { question, .. } in asked {
        if !questions.contains(&&**question) {
            questions.push(question);
        }
    }
    let of = |question: &&str| of_question(experiment, &variants, question);
    questions.iter().flat_map(of).collect()
}

fn of_question(experiment: &Experiment, variants: &[&VariantRecord], question: &str) -> Vec<Line> {
    let mut groups: Vec<(&str, Option<&str>, Vec<&str>)> = Vec::new();
    for variant in variants {
        let Some(answer) = find(&variant.answers, question) else {
            continue;
        };
        let then = experiment.recipe.as_ref().and_then(|recipe| {
            let note = recipe.then.get(&variant.name)?;
            find(note, question)
        });
        let same = groups
            .iter_mut()
            .find(|(known, of, _)| *known == answer && *of == then);
        match same {
            Some((_, _, names)) => names.push(&variant.name),
            None => groups.push((answer, then, vec![&variant.name])),
        }
    }
    let all = groups.len() == 1 && groups[0].2.len() == variants.len() && variants.len() > 1;
    let line = |(answer, then, names): (&str, Option<&str>, Vec<&str>)| Line {
        question: question.to_owned(),
        answer: answer.to_owned(),
        variants: if all {
            "all".to_owned()
        } else {
            names.join(", ")
        },
        then: then.map(str::to_owned),
        differs: then.is_some_and(|then| then != answer),
    };
    groups.into_iter().map(line).collect()
}

fn find<'a>(answers: &'a [AnswerRecord], question: &str) -> Option<&'a str> {
    let found = answers.iter().find(|answer| answer.question == question);
    found.map(|answer| &*answer.answer)
}

/// Whose answers the column `then` holds.
pub fn note(experiment: &Experiment) -> Option<String> {
    experiment.recipe.as_ref()?.note.clone()
}

/// The answers as a table, each question at its first one; no columns where nothing was
/// asked.
pub fn columns(experiment: &Experiment) -> Vec<Column> {
    let lines = lines(experiment);
    if lines.is_empty() {
        return Vec::new();
    }
    let cells = |of: fn(&Line) -> &str| lines.iter().map(move |line| of(line).to_owned());
    let mut before = "";
    let questions = lines.iter().map(|line| {
        let known = std::mem::replace(&mut before, &line.question);
        if known == line.question {
            String::new()
        } else {
            line.question.clone()
        }
    });
    let mut columns = vec![
        Column::words("question", questions),
        Column::code("answer", cells(|line| &line.answer)),
        Column::words("given by", cells(|line| &line.variants)),
    ];
    if let Some(note) = note(experiment) {
        let signs = lines.iter().map(|line| {
            let sign = line.then.as_ref().map_or("", |_| line.sign());
            (sign.to_owned(), line.tone())
        });
        columns.push(Column::verdicts("", signs));
        let then = cells(|line| line.then.as_deref().unwrap_or_default());
        columns.push(Column::code(&format!("then: {note}"), then));
    }
    columns
}

/// The text and tone of an answer's note, for the column next to the answer.
fn noted(line: &Line) -> (String, Tone) {
    (line.note().unwrap_or_default(), line.tone())
}

/// For a terminal: each question, and beneath it its answers.
pub fn terminal(experiment: &Experiment, width: usize, colour: bool) -> Vec<String> {
    let all = lines(experiment);
    let mut shown = Vec::new();
    for group in all.chunk_by(|a, b| a.question == b.question) {
        let questions = fold(&group[0].question, width);
        shown.extend(questions.iter().map(|line| Tone::Head.paint(line, colour)));
        let columns = [
            Column::words("", group.iter().map(|line| line.answer.clone())),
            Column::words("", group.iter().map(|line| line.variants.clone())),
            Column::verdicts("", group.iter().map(noted)),
        ];
        let columns: Vec<&Column> = columns.iter().collect();
        if INDENT.len() + table::width(&columns) <= width {
            let rows = table::rows(&columns, colour);
            shown.extend(rows.iter().map(|row| format!("{INDENT}{row}")));
            continue;
        }
        for line in group {
            let parts = [&line.answer, &line.variants, &noted(line).0];
            let text = format!("{INDENT}{}", parts.map(String::as_str).join(GAP));
            let folded = fold(text.trim_end(), width).into_iter();
            shown.extend(folded.map(|part| line.tone().paint(&part, colour)));
        }
    }
    if let Some(note) = note(experiment) {
        let differing = all.iter().filter(|line| line.differs).count();
        let compared = all.iter().filter(|line| line.then.is_some()).count();
        let text = format!("then: {note}; {differing} of {compared} answers differ today (≠)");
        shown.extend(fold(&text, width));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// `(question, answer)` of each variant in its order, and a note about the first candidate.
    fn answered() -> refit_lab::Comparison {
        let mut comparison = sample::service();
        let of = |answers: [&str; 2]| {
            let both = ["how", "why"].into_iter().zip(answers);
            let record = |(question, answer): (&str, &str)| AnswerRecord {
                question: question.to_owned(),
                answer: answer.to_owned(),
            };
            both.map(record).collect::<Vec<_>>()
        };
        for variant in &mut comparison.experiment.variants {
            variant.answers = of(["slowly", "| it `is`"]);
        }
        comparison.experiment.variants[1].answers = of(["fast", "| it `is`"]);
        let name = comparison.experiment.variants[1].name.clone();
        let recipe = comparison.experiment.recipe.as_mut().unwrap();
        recipe.note = Some("a note (1999)".to_owned());
        recipe.then.insert(name, of(["slowly", "| it `is`"]));
        comparison
    }

    #[test]
    fn who_gave_an_answer_stands_beside_it() {
        let comparison = answered();
        let lines = lines(&comparison.experiment);
        assert_eq!(lines.len(), 4);
        assert_eq!(
            lines[0].variants,
            "baseline, conf.queue=tmpfs, malloc=jemalloc"
        );
        assert_eq!((lines[1].answer.as_str(), lines[1].differs), ("fast", true));
        // An answer that the note gave for one variant stands apart from the others' same one.
        assert_eq!(lines[3].then.as_deref(), Some("| it `is`"));
        assert!(!lines[3].differs);
    }

    #[test]
    fn every_format_shows_them() {
        let mut comparison = answered();
        for exact in [false, true] {
            comparison.experiment.recipe.as_mut().unwrap().is_exact = exact;
            let text = terminal(&comparison.experiment, 100, false).join("\n");
            assert!(
                text.contains(
                    "fast    sync@exe:cleanup=off                         ≠ then: slowly"
                ),
                "{text}"
            );
            assert!(text.contains("1 of 2 answers"), "{text}");
            let page = crate::html(&comparison);
            assert!(page.contains("Exact answers"));
            assert_eq!(page.contains("verdicts\">"), !exact);
            let table = crate::markdown(&comparison);
            assert!(table.contains(r"| `` \| it `is` `` |"), "{table}");
            assert_eq!(table.contains("vs baseline"), !exact);
        }
        assert!(crate::svg(&comparison).contains("≠ then: slowly"));
    }

    #[test]
    fn the_columns_of_the_picture_do_not_touch() {
        let mut comparison = answered();
        let long = "an answer of many digits 0123456789 ".repeat(4);
        comparison.experiment.variants[1].answers[0].answer = long;
        comparison.experiment.recipe.as_mut().unwrap().is_exact = true;
        let picture = crate::svg(&comparison);
        let document = roxmltree::Document::parse(&picture).unwrap();
        let texts = document
            .descendants()
            .filter(|node| node.has_tag_name("text"));
        let texts: Vec<(f64, f64, f64)> = texts
            .map(|node| {
                let number = |name| {
                    node.attribute(name)
                        .map(|value| value.parse::<f64>().unwrap())
                };
                let letters = node.text().unwrap_or_default().chars().count() as f64;
                // A digit of DejaVu Sans, the broadest of the fonts, takes 0.636 of its height.
                let end =
                    number("x").unwrap() + 0.636 * number("font-size").unwrap_or(12.0) * letters;
                (number("y").unwrap(), number("x").unwrap(), end)
            })
            .collect();
        let mut beside = 0;
        for pair in texts.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
            assert!(pair[0].2 < pair[1].1, "{pair:?}");
            assert!(pair[1].2 < 960.0, "{pair:?}");
            beside += 1;
        }
        assert!(beside >= 5, "{texts:?}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [60, 80, 120] {
            for line in terminal(&answered().experiment, width, false) {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}
