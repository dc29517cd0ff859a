//! What is worth trying where a service waits for its sync calls.

use std::collections::BTreeMap;

use refit_run::printable;
use refit_run::series::Series;

use super::summary::{lasted, total};
use crate::format::command_line;

/// A service that waits for less than one in so many parts of the time gains nothing that
/// could be told from noise.
const WORTH: u64 = 20;
/// Groups with fewer calls are ignored.
const LEAST: u64 = 20;

/// Words in names of recipes that are no program's.
const COMMON: [&str; 2] = ["loop", "log"];

/// Whether a group waited for a good part of the time.
fn waits(series: &Series, group: usize) -> bool {
    let (calls, busy_us) = total(series, group);
    calls >= LEAST && busy_us > 0 && busy_us >= lasted(series) / WORTH
}

/// The line for a command that was watched: it can be compared itself, and no recipe is about it.
#[must_use]
pub fn advice_of_command(series: &Series, command: &[String]) -> String {
    match (0..series.groups.len()).any(|group| waits(series, group)) {
        true => format!(
            "refit: try   refit compare sync=off -- {}    (loses-on-crash)\n",
            command_line(command)
        ),
        false => String::new(),
    }
}

/// Lines for stderr: of each service that waited for a good part of the time, the
/// recipes that compare such a service, by their names.
#[must_use]
pub fn advice(series: &Series, recipes: &[&str]) -> String {
    let mut out = String::new();
    for (group, of) in series.groups.iter().enumerate() {
        if !waits(series, group) {
            continue;
        }
        let names = [of.name.clone()]
            .into_iter()
            .chain(most_waiting(series, group));
        let names: Vec<String> = names.collect();
        let fitting = fitting(recipes, &names);
        if let [first, more @ ..] = &fitting[..] {
            let more: String = more
                .iter()
                .map(|name| format!("   or   refit compare {name}"))
                .collect();
            out += &format!(
                "refit: {}: try   refit compare {first}{more}\n",
                printable(&of.name)
            );
        }
    }
    out
}

/// The executable that waited longest.
fn most_waiting(series: &Series, group: usize) -> Option<String> {
    let mut waits = BTreeMap::<&str, u64>::new();
    let of_group = series.samples.iter().flat_map(|sample| &sample.groups);
    let syncs = of_group
        .filter(|one| one.group == group)
        .filter_map(|one| one.syncs.as_ref());
    for caller in syncs.flat_map(|syncs| &syncs.callers) {
        *waits.entry(&caller.executable).or_default() += caller.waited_us;
    }
    let most = waits.into_iter().max_by_key(|(_, waited)| *waited)?;
    Some(most.0.to_owned())
}

/// A recipe's name is made of words, the first of which is the program's: `postfix-cleanup`
/// fits a service `postfix`, `mariadb-commits` an executable `mariadbd`. Those that fit
/// best, three at most.
fn fitting<'a>(recipes: &[&'a str], names: &[String]) -> Vec<&'a str> {
    let score = |recipe: &str| {
        let words: Vec<&str> = recipe.split('-').collect();
        let fits = |name: &String| {
            let rest = words.first().and_then(|first| name.strip_prefix(first));
            let is_program =
                rest.is_some_and(|rest| rest.chars().all(|c| c == 'd' || c.is_ascii_digit()));
            is_program || words.contains(&&**name) && !COMMON.contains(&&**name)
        };
        names.iter().filter(|name| fits(name)).count()
    };
    let best = recipes
        .iter()
        .map(|recipe| score(recipe))
        .max()
        .unwrap_or(0);
    let fitting = recipes
        .iter()
        .filter(|recipe| best > 0 && score(recipe) == best);
    fitting.copied().take(3).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const RECIPES: &[&str] = &[
        "fsync-loop",
        "mariadb-commits",
        "postfix-cleanup",
        "postfix-tables",
        "rsyslog-lease",
        "rsyslog-sync",
    ];

    #[test]
    fn the_recipe_of_who_waits_is_named() {
        let series = sample::machine();
        let expected = "refit: postfix: try   refit compare postfix-cleanup\n";
        assert_eq!(advice(&series, RECIPES), expected);
        let mut quiet = sample::machine();
        for one in quiet
            .samples
            .iter_mut()
            .flat_map(|sample| &mut sample.groups)
        {
            one.syncs.as_mut().unwrap().busy_us = 10_000;
        }
        assert_eq!(advice(&quiet, RECIPES), "");
        // Of a command no recipe is named, but itself.
        let command = ["sh", "-c", "a | b"].map(str::to_owned);
        let expected = "refit: try   refit compare sync=off -- sh -c 'a | b'    (loses-on-crash)\n";
        assert_eq!(advice_of_command(&series, &command), expected);
        assert_eq!(advice_of_command(&quiet, &command), "");
    }

    #[test]
    fn a_recipe_fits_by_the_program_s_name() {
        let fitting = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            fitting(RECIPES, &names)
        };
        assert_eq!(fitting(&["mysqld", "mariadbd"]), ["mariadb-commits"]);
        assert_eq!(
            fitting(&["rsyslogd", "rsyslogd"]),
            ["rsyslog-lease", "rsyslog-sync"]
        );
        assert_eq!(fitting(&["master", "cleanup"]), ["postfix-cleanup"]);
        assert!(fitting(&["sh", "write_fsync"]).is_empty());
        assert!(fitting(&["sh", "loop"]).is_empty());
        assert!(fitting(&[]).is_empty());
    }
}
