//! What the shipped recipes try of a service's own settings, on a Debian that systemd boots: its kind knows the name
//! and the value, or docs/apply.md tells that it is refused.

use std::fs;

use toml::Table;

use crate::apply_booted::{booted, files, inside, up};
use crate::locations::source_dir;
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described};

pub const TESTS: &[Test] = &[test!(settings_of_recipes_are_those_of_their_service)
    .alone()
    .when_named()
    .limit_seconds(300)];

/// Each recipe with `applies-to`: its name, the service, and its own settings.
fn recipes() -> Vec<(String, String, Vec<String>)> {
    let folders = fs::read_dir(source_dir().join("recipes")).expect("they are shipped");
    let mut found = Vec::new();
    for folder in folders {
        let file = folder.expect("readable").path().join("recipe.toml");
        let text = fs::read_to_string(&file).expect("each has one");
        let recipe: Table = text.parse().expect("TOML");
        let Some(service) = recipe.get("applies-to").and_then(|word| word.as_str()) else {
            continue;
        };
        let conf = recipe.get("conf").and_then(|conf| conf.as_table());
        let values = conf.into_iter().flatten().flat_map(|(name, values)| {
            let values = values.as_table().into_iter().flatten();
            let values = values.filter(|(_, value)| value.is_table());
            values.map(move |(value, _)| format!("conf.{name}={value}"))
        });
        let name = recipe["name"].as_str().expect("a word").to_owned();
        found.push((name, service.to_owned(), values.collect()));
    }
    found.sort();
    found
}

fn settings_of_recipes_are_those_of_their_service(env: &TestEnv) -> Outcome {
    let docs = fs::read_to_string(source_dir().join("docs/apply.md")).expect("there");
    up(env);
    let before = files(env);
    let (mut known, mut refused) = (0, 0);
    let recipes = recipes();
    for (recipe, service, settings) in &recipes {
        assert!(!settings.is_empty(), "{recipe} has no setting of {service}");
        for setting in settings {
            let planned = booted(env, &["x", "refit", "plan", service, setting]);
            let text = described(&planned);
            let waits = planned.status.code() == Some(2) && text.contains("--accept");
            if planned.status.success() || waits {
                known += 1;
                continue;
            }
            assert!(text.contains("cannot be applied to"), "{setting}: {text}");
            let row = format!("| {recipe} | `{setting}` |");
            assert!(docs.contains(&row), "docs/apply.md has no {row}: {text}");
            refused += 1;
        }
    }
    // A name of nobody is refused, so the checks above can fail.
    for service in ["postgresql", "mariadb", "redis-server", "rsyslog"] {
        inside(env, 2, &["refit", "plan", service, "conf.flush_log=0"]);
    }
    assert_eq!(files(env), before);
    println!(
        "counted: {known} settings of {} recipes can be applied, {refused} are refused",
        recipes.len()
    );
    assert!(known > 0 && refused > 0);
    Outcome::Pass
}
