//! The files that a result is drawn into, as they are typed.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, value_parser};
use refit_report::{FORMATS, ResultFormat};

use super::OUTPUT;

const SUMMARY: &str = "--github-summary";

/// Files of a result: JSON, and each format that its kind may have.
#[derive(Clone, Default)]
pub struct Files {
    /// Everything that was measured.
    pub json: Option<PathBuf>,
    /// What is drawn of it.
    pub drawn: Vec<(&'static ResultFormat, Option<PathBuf>)>,
}

/// Files that a result is drawn into.
#[derive(Clone, Default)]
pub struct OutputArgs {
    pub files: Files,
    /// The table is appended to the summary of a step of GitHub Actions.
    pub github_summary: bool,
}

/// Files that a pool is drawn into.
#[derive(Clone, Default)]
pub struct PoolOutput(pub Files);

impl Files {
    /// All that can be asked for, with their options.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Option<PathBuf>)> {
        let drawn = self
            .drawn
            .iter()
            .map(|(format, path)| (format.option, path));
        std::iter::once(("--json", &self.json)).chain(drawn)
    }

    /// The path of each that was asked for.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.iter().filter_map(|(_, path)| path.as_ref())
    }

    /// Without those whose path is one of these.
    pub fn without(&self, is_left_out: fn(&Path) -> bool) -> Files {
        let kept = |path: &Option<PathBuf>| path.clone().filter(|path| !is_left_out(path));
        let drawn = self.drawn.iter();
        Files {
            json: kept(&self.json),
            drawn: drawn.map(|(format, path)| (*format, kept(path))).collect(),
        }
    }

    fn options(
        verb: Command,
        json: &'static str,
        formats: impl Iterator<Item = &'static ResultFormat>,
    ) -> Command {
        let all = std::iter::once(("--json", json));
        let all = all.chain(formats.map(|format| (format.option, format.about)));
        verb.args(all.map(|(option, about)| {
            let name = long(option);
            Arg::new(name)
                .long(name)
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help(about)
                .help_heading(OUTPUT)
        }))
    }

    fn of(matches: &ArgMatches, formats: impl Iterator<Item = &'static ResultFormat>) -> Files {
        let path = |option| matches.get_one::<PathBuf>(long(option)).cloned();
        Files {
            json: path("--json"),
            drawn: formats
                .map(|format| (format, path(format.option)))
                .collect(),
        }
    }
}

impl OutputArgs {
    /// Whether any form was asked for.
    pub fn any(&self) -> bool {
        self.github_summary || self.files.paths().next().is_some()
    }

    /// The first option that was given and is not one of these.
    pub fn other_than(&self, known: &[&str]) -> Option<&'static str> {
        let files = self.files.iter().filter(|(_, path)| path.is_some());
        let summary = self.github_summary.then_some(SUMMARY);
        let mut given = files.map(|(option, _)| option).chain(summary);
        given.find(|option| !known.contains(option))
    }
}

/// An option's name without its dashes.
fn long(option: &'static str) -> &'static str {
    option.trim_start_matches('-')
}

fn of_pools() -> impl Iterator<Item = &'static ResultFormat> {
    FORMATS.iter().filter(|format| format.pool.is_some())
}

impl Args for OutputArgs {
    fn augment_args(verb: Command) -> Command {
        let json = "Write everything that was measured (docs/result.schema.json); `-` is stdout, as for each FILE here, and \
                    then nothing else goes there";
        Files::options(verb, json, FORMATS.iter()).arg(
            Arg::new(long(SUMMARY))
                .long(long(SUMMARY))
                .action(ArgAction::SetTrue)
                .help("Append the table to the summary of this step of GitHub Actions, the file that GITHUB_STEP_SUMMARY names")
                .help_heading(OUTPUT),
        )
    }

    fn augment_args_for_update(verb: Command) -> Command {
        Self::augment_args(verb)
    }
}

impl FromArgMatches for OutputArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<OutputArgs, Error> {
        Ok(OutputArgs {
            files: Files::of(matches, FORMATS.iter()),
            github_summary: matches.get_flag(long(SUMMARY)),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for PoolOutput {
    fn augment_args(verb: Command) -> Command {
        let json = "Write everything that was computed (docs/pool.schema.json); `-` is stdout, as for each FILE here";
        Files::options(verb, json, of_pools())
    }

    fn augment_args_for_update(verb: Command) -> Command {
        Self::augment_args(verb)
    }
}

impl FromArgMatches for PoolOutput {
    fn from_arg_matches(matches: &ArgMatches) -> Result<PoolOutput, Error> {
        Ok(PoolOutput(Files::of(matches, of_pools())))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
