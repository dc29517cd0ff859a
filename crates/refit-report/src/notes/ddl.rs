//! What the winner is in SQL: to be pasted where a schema is kept.

use refit_lab::Comparison;

use crate::notes::note::{Note, note};
use crate::paint::Tone;

/// The statements of the candidate that gains most, and those that take them back.
pub fn ddl(comparison: &Comparison) -> Vec<Note> {
    let experiment = &comparison.experiment;
    let (Some(winner), Some(recipe)) = (comparison.winner(), &experiment.recipe) else {
        return Vec::new();
    };
    let settings = experiment.variants[winner].name.split('+');
    let all: Vec<_> = settings
        .filter_map(|setting| recipe.ddl.get(setting))
        .collect();
    if all.is_empty() {
        return Vec::new();
    }
    let joined = |statements: Vec<&str>| statements.join(" ");
    let apply = joined(all.iter().map(|ddl| &*ddl.apply).collect());
    let inverse = joined(all.iter().rev().map(|ddl| &*ddl.inverse).collect());
    vec![
        note("to have it:", Tone::Good, apply),
        note("to take it back:", Tone::Plain, inverse),
    ]
}

#[cfg(test)]
mod tests {
    use refit_lab::experiment::DdlRecord;

    use crate::notes::tests::texts;
    use crate::sample;

    #[test]
    fn the_statements_of_the_winner_alone_are_told() {
        let mut comparison = sample::service();
        let winner = comparison.winner().unwrap();
        let told = |comparison: &refit_lab::Comparison| {
            let mut lines = texts(comparison);
            lines.retain(|line| line.starts_with("to "));
            lines
        };
        assert!(told(&comparison).is_empty());
        let record = |table: &str| DdlRecord {
            apply: format!("CREATE INDEX i ON {table} (a);"),
            inverse: format!("DROP INDEX i_{table};"),
        };
        comparison.experiment.variants[winner].name = "conf.index=a+conf.drop=b".to_owned();
        let recipe = comparison.experiment.recipe.as_mut().unwrap();
        for (setting, table) in [
            ("conf.index=a", "t"),
            ("conf.drop=b", "u"),
            ("conf.index=c", "v"),
        ] {
            recipe.ddl.insert(setting.to_owned(), record(table));
        }
        assert_eq!(
            told(&comparison),
            [
                "to have it: CREATE INDEX i ON t (a); CREATE INDEX i ON u (a);",
                "to take it back: DROP INDEX i_u; DROP INDEX i_t;",
            ]
        );
    }
}
