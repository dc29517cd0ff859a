//! What `refit tune` prints: what to take at each level of risk, the steps that led there, and what to type next.

mod html;

pub use html::html as tuning_html;

use refit_lab::{Answer, EffectRecord, ProofRecord, Risk, Step, Tuning};

use crate::fold::fold;
use crate::format;
use crate::page::Page;
use crate::paint::Style;
use crate::sentence::{NO, NOT_YET, YES};
use crate::table::{self, Column};

/// Of the names of rows.
const NAME: usize = 14;

/// The whole of it. `log`: the directory, as it is typed.
#[must_use]
pub fn tuning(tuning: &Tuning, log: &str, style: &Style) -> String {
    let mut page = Page::default();
    let width = style.width.max(60);
    for line in fold(&answer(tuning), width) {
        page.line(0, line);
    }
    page.line(0, format!("{}: {}", subject(tuning), tuning.main));
    for answer in &tuning.answers {
        row(
            &mut page,
            style,
            &answer.accepted.to_string(),
            &told(answer),
        );
    }
    let mut lines = Vec::new();
    steps(tuning, &mut lines);
    not_tried(tuning, style, &mut lines);
    if !lines.is_empty() {
        page.line(0, "");
        lines.iter().for_each(|line| page.line(0, line));
    }
    page.line(0, "");
    if let Some(observed) = observed(tuning) {
        row(&mut page, style, "observed", &observed);
    }
    match &tuning.proof {
        Some(ProofRecord::Cut { file }) => {
            row(
                &mut page,
                style,
                "proof",
                &format!("refit report {}/{file}", word(log)),
            );
        }
        Some(ProofRecord::NotCut(why)) => {
            row(&mut page, style, "proof", &format!("not made: {why}"));
        }
        None => {}
    }
    row(&mut page, style, "took", &took(tuning));
    row(
        &mut page,
        style,
        "log",
        &format!("refit report --history {}", word(log)),
    );
    // What can be typed stays on its line.
    for next in next(tuning, log) {
        page.line(1, format!("{:<NAME$} {next}", "next"));
    }
    page.text()
}

/// Whether to take something, and on which condition; what it gains; then where nothing is to be taken.
fn answer(tuning: &Tuning) -> String {
    let (mut taken, nothing): (Vec<&Answer>, Vec<&Answer>) =
        (tuning.answers.iter()).partition(|answer| answer.variant.is_some());
    // To accept more changes nothing there.
    taken.dedup_by(|more, less| more.variant == less.variant);
    let Some(first) = taken.first() else {
        return match () {
            () if nothing.is_empty() => format!("{NOT_YET}it did not come to its end"),
            () if nothing.iter().any(|answer| answer.is_open) => {
                format!("{NOT_YET}the budget is too short for a verdict")
            }
            () => format!("{NO}nothing is proven to help"),
        };
    };
    let mut parts: Vec<String> = taken
        .iter()
        .map(|answer| format!("if {} is accepted: {}", answer.accepted, told(answer)))
        .collect();
    parts[0] = match first.risk == Risk::NONE {
        true => format!("{YES}{}", told(first)),
        false => format!("Only {}", parts[0]),
    };
    let levels: Vec<String> = nothing
        .iter()
        .map(|answer| answer.accepted.to_string())
        .collect();
    if !levels.is_empty() {
        parts.push(format!(
            "nothing to take if {} is accepted",
            levels.join(" or ")
        ));
    }
    parts.join("; ")
}

/// After the observed run, for who waits.
#[must_use]
pub fn proposed(tuning: &Tuning) -> String {
    let mut text = observed(tuning).unwrap_or_default();
    for one in tuning.tried() {
        text.push_str(&format!(
            "\n  try {} ({}): {}",
            one.variant, one.risk, one.why
        ));
    }
    if tuning.tried().next().is_none() {
        text.push_str("\n  nothing that is accepted is worth trying");
    }
    text
}

/// After a step, for who waits.
#[must_use]
pub fn step_ended(step: &Step) -> String {
    let outcomes = step.outcomes.iter().map(|one| {
        let fate = one.dropped.as_deref().unwrap_or("kept");
        format!(
            "\n  {}: {} {fate}",
            one.variant,
            numbers(one.effect.as_ref())
        )
    });
    let outcomes: String = outcomes.collect();
    format!(
        "{} after {}:{outcomes}",
        step.kind.word(),
        format::plural(step.pairs, "round pair")
    )
}

fn subject(tuning: &Tuning) -> String {
    format::command_line(&tuning.command)
}

/// `−58.5 % [−59.9 %, −57.2 %]`.
fn numbers(effect: Option<&EffectRecord>) -> String {
    effect.map_or_else(String::new, |effect| {
        format!(
            "{} {}",
            format::percent(effect.change),
            format::interval(effect.interval)
        )
    })
}

fn told(answer: &Answer) -> String {
    let (Some(variant), Some(effect)) = (&answer.variant, &answer.effect) else {
        let reason = answer.reason.as_deref().unwrap_or_default();
        return format!("nothing: {reason}");
    };
    let verdict = effect.verdict.map_or("", |verdict| verdict.word());
    let how = match format::factor(effect.change) {
        Some(factor) => format!("{factor} {verdict}"),
        None => verdict.to_owned(),
    };
    let class = if answer.risk == answer.accepted {
        String::new()
    } else {
        format!("; {}", answer.risk)
    };
    let proof = answer.proof.as_ref();
    let proof = proof.map_or_else(String::new, |proof| format!("; cuts: {proof}"));
    format!("{variant}: {how}, {}{class}{proof}", numbers(Some(effect)))
}

fn observed(tuning: &Tuning) -> Option<String> {
    let seen = tuning.evidence.as_ref()?;
    let mut parts = vec![format!(
        "{} of one run",
        format::duration(seen.window_s * 1e9)
    )];
    parts.push(match (seen.syncs, seen.wait_share) {
        (Some(syncs), Some(share)) => {
            format!(
                "{} waited {}",
                format::plural(syncs, "sync call"),
                share_of(share)
            )
        }
        _ => "its sync calls are not known".to_owned(),
    });
    parts.extend(
        seen.witnessed
            .map(|calls| format!("the kernel saw {}", format::plural(calls, "durable call"))),
    );
    if seen.direct_opens > 0 {
        parts.push(format!(
            "{} with O_DIRECT",
            format::plural(seen.direct_opens, "file")
        ));
    }
    parts.extend(
        seen.blocks
            .map(|blocks| format!("{} of the heap", format::plural(blocks, "block"))),
    );
    parts.extend(
        seen.heap_share
            .map(|share| format!("the heap {} of memory", share_of(share))),
    );
    parts.extend(
        seen.threads
            .map(|threads| format::plural(threads, "thread")),
    );
    Some(parts.join(" · "))
}

fn share_of(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A table with a line for each candidate of each step.
fn steps(tuning: &Tuning, lines: &mut Vec<String>) {
    if let Some(columns) = step_columns(tuning) {
        lines.extend(table::lines(&columns.each_ref(), false));
    }
}

fn step_columns(tuning: &Tuning) -> Option<[Column; 7]> {
    let all: Vec<_> = tuning
        .steps
        .iter()
        .flat_map(|step| step.outcomes.iter().map(move |outcome| (step, outcome)))
        .collect();
    if all.is_empty() {
        return None;
    }
    let effect = |of: fn(&EffectRecord) -> String| {
        let cells = all.iter().map(move |(_, one)| one.effect.as_ref().map(of));
        cells
            .map(Option::unwrap_or_default)
            .collect::<Vec<_>>()
            .into_iter()
    };
    Some([
        Column::words(
            "step",
            all.iter().map(|(step, _)| step.kind.word().to_owned()),
        ),
        Column::numbers(
            "round pairs",
            all.iter().map(|(step, _)| step.pairs.to_string()),
        ),
        Column::code("variant", all.iter().map(|(_, one)| one.variant.clone())),
        Column::numbers("effect", effect(|effect| format::percent(effect.change))),
        Column::numbers(
            "interval",
            effect(|effect| format::interval(effect.interval)),
        ),
        Column::words(
            "kept",
            all.iter()
                .map(|(_, one)| one.dropped.clone().unwrap_or_else(|| "kept".to_owned())),
        ),
        Column::words("class", all.iter().map(|(_, one)| one.risk.to_string())),
    ])
}

/// Variants that were left out, under each reason.
fn not_tried(tuning: &Tuning, style: &Style, lines: &mut Vec<String>) {
    let reasons = reasons(tuning);
    if reasons.is_empty() {
        return;
    }
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push("not tried".to_owned());
    for (reason, variants) in reasons {
        let text = format!("{}: {reason}", variants.join(", "));
        let folded = fold(&text, style.width.saturating_sub(2));
        lines.extend(folded.iter().map(|line| format!("  {line}")));
    }
}

fn reasons(tuning: &Tuning) -> Vec<(&str, Vec<&str>)> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in &tuning.proposals {
        let Some(reason) = one.left_out.as_deref() else {
            continue;
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, variants)) => variants.push(&one.variant),
            None => reasons.push((reason, vec![&one.variant])),
        }
    }
    reasons
}

fn took(tuning: &Tuning) -> String {
    let [took, budget] = [tuning.took_s, tuning.budget_s].map(format::about);
    format!("{took} of {budget}; seed {}", format::seed(tuning.seed))
}

/// What to type next.
fn next(tuning: &Tuning, log: &str) -> Vec<String> {
    if !tuning.is_over() {
        return vec![format!("refit tune --resume {}", word(log))];
    }
    let answers = tuning.answers.iter().rev();
    let mut next: Vec<String> = Vec::new();
    for variant in answers.filter_map(|answer| answer.variant.as_deref()) {
        let line = take(tuning, variant, log);
        if !next.contains(&line) {
            next.insert(0, line);
        }
    }
    next.extend(prove(tuning));
    next.extend(accept(tuning));
    next
}

/// How a variant is taken.
fn take(tuning: &Tuning, variant: &str, log: &str) -> String {
    let Some(recipe) = &tuning.recipe else {
        return format!("refit run {} -- {}", word(variant), subject(tuning));
    };
    let name = recipe.folder.as_ref().unwrap_or(&recipe.name);
    if variant.contains("conf.") {
        return format!(
            "refit recipes show {}    (what {variant} edits)",
            word(name)
        );
    }
    // `--from` takes the answer that risks least.
    let least = tuning
        .answers
        .iter()
        .find_map(|answer| answer.variant.as_deref());
    let from = word(&format!("{log}/tune.json"));
    match (&recipe.applies_to, least == Some(variant)) {
        (Some(_), true) => format!("refit plan --from {from}"),
        (None, true) => format!("refit plan --from {from} SERVICE"),
        (Some(service), false) => format!("refit plan {service} {}", word(variant)),
        (None, false) => format!("refit plan SERVICE {}", word(variant)),
    }
}

/// Where an answer risks data and was not cut.
fn prove(tuning: &Tuning) -> Option<String> {
    let recipe = tuning.recipe.as_ref()?;
    let risky = |answer: &&Answer| answer.risk.loss.risks_data() && answer.proof.is_none();
    let variant = tuning.answers.iter().find(risky)?.variant.as_ref()?;
    let name = recipe.folder.as_ref().unwrap_or(&recipe.name);
    Some(format!(
        "refit crash {} {}    (what a power cut takes)",
        word(name),
        word(variant)
    ))
}

/// Where something that was not accepted is worth a try.
fn accept(tuning: &Tuning) -> Option<String> {
    let not_accepted = tuning.proposals.iter().filter(|one| {
        let why = one.left_out.as_deref();
        !one.risk.is_within(tuning.accepted)
            && why.is_some_and(|why| why.starts_with("not accepted"))
    });
    let least = not_accepted.min_by_key(|one| (one.risk.changes_behaviour, one.risk.loss))?;
    let accepted = Risk {
        loss: least.risk.loss.max(tuning.accepted.loss),
        changes_behaviour: least.risk.changes_behaviour || tuning.accepted.changes_behaviour,
    };
    let what = match &tuning.recipe {
        Some(recipe) => word(recipe.folder.as_ref().unwrap_or(&recipe.name)),
        None => format!("… -- {}", subject(tuning)),
    };
    Some(format!("refit tune {} {what}", accepted.options()))
}

fn word(text: &str) -> String {
    format::command_line(&[text.to_owned()])
}

/// A name, and a text in as many lines as it takes.
fn row(page: &mut Page, style: &Style, name: &str, text: &str) {
    let width = style.width.saturating_sub(NAME + 3).max(40);
    for (at, line) in fold(text, width).iter().enumerate() {
        let name = if at == 0 { name } else { "" };
        page.line(1, format!("{name:<NAME$} {}", line.trim_start()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_tells_whether_to_take_it_and_on_which_condition() {
        let mut tuning: Tuning = serde_json::from_str(include_str!("../fuzz/tuning.json")).unwrap();
        // The seed accepts all: nothing of the class safe, and sync=off where a crash may lose.
        let first = |tuning: &Tuning| answer(tuning);
        let taken = tuning.answers.pop().unwrap();
        assert_eq!(taken.variant.as_deref(), Some("sync=off"));
        let nothing = tuning.answers[0].clone();
        tuning.answers = vec![nothing.clone(), taken.clone()];
        let start = "Only if loses-on-crash is accepted: sync=off: ";
        assert!(first(&tuning).starts_with(start), "{}", first(&tuning));
        let end = "; nothing to take if safe is accepted";
        assert!(first(&tuning).ends_with(end), "{}", first(&tuning));

        let mut safe = taken.clone();
        (safe.accepted, safe.risk) = (Risk::NONE, Risk::NONE);
        safe.variant = Some("malloc=jemalloc".to_owned());
        tuning.answers = vec![safe.clone(), safe.clone()];
        assert_eq!(first(&tuning).matches("malloc=jemalloc").count(), 1);
        tuning.answers = vec![safe, taken];
        assert!(first(&tuning).starts_with("Yes: malloc=jemalloc: "));
        assert!(first(&tuning).contains("; if loses-on-crash is accepted: sync=off: "));

        tuning.answers = vec![nothing];
        assert_eq!(first(&tuning), "No: nothing is proven to help");
        tuning.answers[0].is_open = true;
        assert!(first(&tuning).starts_with("Not yet: "));
        tuning.answers.clear();
        assert!(first(&tuning).starts_with("Not yet: "));
    }

    #[test]
    fn the_page_has_the_command_that_was_typed() {
        let mut tuning: Tuning = serde_json::from_str(include_str!("../fuzz/tuning.json")).unwrap();
        assert!(!tuning_html(&tuning, "log").contains("To repeat it"));
        tuning.seed = 0x5eed;
        tuning.options = Some(["--accept", "loses-on-crash"].map(str::to_owned).into());
        let page = tuning_html(&tuning, "log");
        let (_, after) = page.split_once("To repeat it").unwrap();
        let command = after
            .replace("<span class=\"option\">", "")
            .replace("</span>", "");
        let typed = "refit tune --seed 0x5eed --accept loses-on-crash -- dd ";
        assert!(command.contains(typed), "{after}");
    }
}
