//! `refit export kubernetes`: a Job that makes the same comparison on many nodes.

mod manifest;
mod workload;

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::parser::ValueSource;
use clap::{Args, Command, FromArgMatches};

use self::manifest::{WORK, manifest};
use crate::cli::{
    CompareArgs, KubernetesArgs, KubernetesCompareArgs, KubernetesVerb, new_seed, usage_error,
};
use crate::cmd::compare::{check_words, remove_at_end};
use crate::cmd::print;
use crate::cmd::result_file::replace;

pub fn export(args: &KubernetesArgs) -> Result<()> {
    match &args.verb {
        KubernetesVerb::Compare(args) => compare(args),
        KubernetesVerb::Apply(args) => workload::apply(args),
        KubernetesVerb::CopyRefit(args) => copy_refit(&args.file),
        KubernetesVerb::RemoveNamespace(args) => remove_at_end(&args.name, &args.kubectl),
    }
}

fn compare(args: &KubernetesCompareArgs) -> Result<()> {
    let words = compare_words(&args.compare)?;
    let seed = args.seed.unwrap_or_else(new_seed);
    let mut text = serde_json::to_string_pretty(&manifest(args, seed, &words))?;
    text.push('\n');
    match &args.out {
        Some(path) => replace(path, text.as_bytes()),
        None => print::result(&text),
    }
}

/// The words for `refit compare` in a pod, or the first mistake in what was typed.
fn compare_words(typed: &[OsString]) -> Result<Vec<String>> {
    let command = CompareArgs::augment_args(Command::new("refit compare").no_binary_name(true));
    let matches = command
        .try_get_matches_from(typed)
        .unwrap_or_else(|error| usage_error(error));
    let args = CompareArgs::from_arg_matches(&matches).unwrap_or_else(|error| usage_error(error));
    refuse(&args)?;
    check_words(&args)?;
    let mut words = Vec::new();
    if !args.quiet {
        words.push("--quiet".to_owned());
    }
    // The default may not be in the image.
    if matches.value_source("dir") != Some(ValueSource::CommandLine) {
        words.extend(["--dir", WORK].map(str::to_owned));
    }
    for word in typed {
        match word.to_str() {
            Some(word) => words.push(word.to_owned()),
            None => bail!(
                "{} is not UTF-8, and a manifest holds nothing else\n  name the file otherwise, or put the command into a script of the image",
                word.display()
            ),
        }
    }
    Ok(words)
}

/// Options that have no meaning in a pod.
fn refuse(args: &CompareArgs) -> Result<()> {
    if let Some(option) = args.output.other_than(&[]) {
        bail!(
            "{option}: a pod's files are deleted with it\n  leave it out after `--`: refit pool --from kubernetes writes files, of all results"
        );
    }
    let set_here = [
        ("--machine", args.machine.is_some(), "it is the node's name"),
        (
            "--seed",
            args.seed.is_some(),
            "write it before `--`: each index has its own",
        ),
        (
            "--log-result",
            args.log_result.is_some(),
            "it is the index of the pod",
        ),
        (
            "--gate and --strict",
            !args.gates.is_empty() || args.strict,
            "a pod that ends with another code than 0 is started again; judge the pool",
        ),
        (
            "--prove",
            args.prove,
            "it needs FUSE and loop devices; cut the power on one machine: refit crash",
        ),
    ];
    for (option, is_given, why) in set_here {
        if is_given {
            bail!("{option}: {why}\n  leave it out after `--`");
        }
    }
    Ok(())
}

/// Of the init container: nothing but refit needs to be in its image.
fn copy_refit(file: &Path) -> Result<()> {
    fs::copy("/proc/self/exe", file)
        .map(drop)
        .with_context(|| format!("cannot write {}", file.display()))
}
