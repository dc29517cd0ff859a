//! recipe.toml and the folder around it.

use refit_recipe::{Folder, FolderFile, Recipe, quoted};
use refit_run::printable;

use crate::Made;
use crate::candidate::{Candidate, Change};
use crate::error::IndexError;
use crate::queries::Workload;

/// Kinds of statements that have a metric of their own.
const MOST_METRICS: usize = 20;

/// What a window lasts about, where no index helps.
const WINDOW_SECONDS: f64 = 1.0;

/// What the recipes of one database server have in common.
pub struct Server {
    /// As a person calls it.
    pub name: &'static str,
    pub packages: &'static [&'static str],
    pub commands: &'static [&'static str],
    pub files: &'static [&'static str],
    /// The files that are the same for every database, by name.
    pub scripts: &'static [(&'static str, &'static str)],
    /// Lines of [service].
    pub service: &'static str,
}

impl Server {
    /// The keys of recipe.toml that every recipe has.
    pub fn keys(&self) -> String {
        format!(
            "packages = {}\n\n[needs]\ncommands = {}\nfiles = {}\n\n[service]\n{}",
            list(self.packages),
            list(self.commands),
            list(self.files),
            self.service
        )
    }
}

/// What differs from one database to another.
pub struct Parts<'a> {
    pub name: &'a str,
    /// The database as typed, without a password.
    pub typed: &'a str,
    pub server: &'static Server,
    /// Lines of [load]: its commands.
    pub load: &'a str,
    /// The command of [table].
    pub table: &'a str,
    /// What the metric `size` is.
    pub size: &'a str,
    /// What all queries took once.
    pub seconds: f64,
    pub workload: &'a Workload,
    pub candidates: &'a [Candidate],
}

/// The recipe, with these files beside recipe.toml and the statements of the indexes.
///
/// # Errors
/// [`IndexError::NothingToTry`], [`IndexError::Recipe`].
pub fn made(parts: &Parts, mut files: Vec<(String, Vec<u8>)>) -> Result<Made, IndexError> {
    let Workload {
        queries, left_out, ..
    } = parts.workload;
    if parts.candidates.is_empty() {
        return Err(IndexError::NothingToTry {
            from: parts.typed.to_owned(),
            queries: queries.len(),
            left_out: left_out.clone(),
        });
    }
    let scripts = parts.server.scripts.iter();
    files.extend(scripts.map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())));
    files.push(("recipe.toml".to_owned(), text(parts).into_bytes()));
    for candidate in parts.candidates {
        for (path, text) in [
            (apply(candidate), &candidate.apply),
            (inverse(candidate), &candidate.inverse),
        ] {
            files.push((format!("indexes/{path}"), format!("{text}\n").into_bytes()));
        }
    }
    files.sort();
    let file = |(path, bytes): (String, Vec<u8>)| FolderFile {
        path: path.into(),
        bytes,
        executable: false,
    };
    let folder = Folder {
        origin: None,
        files: files.into_iter().map(file).collect(),
    };
    Recipe::new(folder.clone())?;
    Ok(Made {
        folder,
        candidates: parts.candidates.to_vec(),
        queries: parts.workload.described(),
        left_out: left_out.clone(),
    })
}

fn apply(candidate: &Candidate) -> String {
    format!("{}-{}.sql", candidate.change.knob(), candidate.name)
}

fn inverse(candidate: &Candidate) -> String {
    format!("{}-{}.inverse.sql", candidate.change.knob(), candidate.name)
}

/// 1, 3, 10, 30 …: a round number, so that another look at the same database gives the same recipe.
fn passes(seconds: f64) -> u64 {
    let wanted = WINDOW_SECONDS / seconds.max(1e-6);
    let mut rounds = (0..4).flat_map(|power| [10_u64.pow(power), 3 * 10_u64.pow(power)]);
    rounds.rfind(|passes| *passes as f64 <= wanted).unwrap_or(1)
}

fn text(parts: &Parts) -> String {
    let Parts {
        name,
        typed,
        server,
        seconds,
        workload,
        ..
    } = parts;
    let (passes, statements) = (passes(*seconds), workload.queries.len());
    let question = format!(
        "Which index makes these queries of {typed} faster in {}, and what does it cost?",
        server.name
    );
    let mut text = format!(
        "# From `refit recipes new {name} --from {}`; docs/recipes.md describes each key.\n\
         # After a change: refit recipes check ./{name}\n\
         # data.* is a copy of the database.\n\
         name = \"{name}\"\nquestion.en = {}\nmain = \"time\"\nbudget = \"10m\"\n{}\n\
         [load]\n{}# Passes through all {statements} statements; what one writes is rolled back.\n\
         operations = {passes}\nbrief = 1\nunit = \"pass\"\ntimeout = \"10m\"\n\n\
         [load.metrics.time]\nregex = \"^time ([0-9.]+) us\"\nunit = \"us\"\nabout = \"mean time of a statement\"\n\n\
         [load.metrics.size]\nregex = \"^size ([0-9]+)\"\nunit = \"bytes\"\nabout = {}\n\n",
        printable(typed),
        quoted(&question),
        server.keys(),
        parts.load,
        quoted(parts.size),
    );
    for (i, about) in workload.described().iter().take(MOST_METRICS).enumerate() {
        let number = i + 1;
        text += &format!(
            "[load.metrics.q{number}]\nregex = \"^q{number} ([0-9.]+) us\"\nunit = \"us\"\nabout = {}\n\n",
            quoted(about)
        );
    }
    text += &format!(
        "[check]\ncommand = \"sh $REFIT_RECIPE/check.sh\"\n\n[table]\ncommand = {}\n\n",
        quoted(parts.table)
    );
    for change in [Change::Add, Change::Drop] {
        let of = || {
            parts
                .candidates
                .iter()
                .filter(move |candidate| candidate.change == change)
        };
        if of().next().is_none() {
            continue;
        }
        let about = match change {
            Change::Add => "an index that is made",
            Change::Drop => "an index that is dropped",
        };
        text += &format!("[conf.{}]\nabout = \"{about}\"\n\n", change.knob());
        for candidate in of() {
            let (apply, inverse) = (apply(candidate), inverse(candidate));
            text += &format!(
                "[conf.{}.{}]\nclass = \"safe\"\ncommand = \"sh $REFIT_RECIPE/index.sh {apply}\"\n\
                 inverse = \"sh $REFIT_RECIPE/index.sh {inverse}\"\n\
                 ddl = \"indexes/{apply}\"\nddl-inverse = \"indexes/{inverse}\"\n",
                change.knob(),
                candidate.name
            );
            if let Some(applied) = &candidate.applied {
                text += &format!("applied = {}\n", quoted(applied));
            }
            text.push('\n');
        }
    }
    for candidate in parts.candidates {
        text += &format!(
            "[[variant]]\nsettings = \"{}\"\nwhy = {}\n\n",
            candidate.setting(),
            quoted(&candidate.why)
        );
    }
    text.trim_end().to_owned() + "\n"
}

fn list(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_round_numbers() {
        for (seconds, expected) in [
            (100.0, 1),
            (0.9, 1),
            (0.3, 3),
            (0.04, 10),
            (0.03, 30),
            (1e-9, 3000),
        ] {
            assert_eq!(passes(seconds), expected, "{seconds}");
        }
    }
}
