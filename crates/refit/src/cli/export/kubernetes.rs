//! `refit export kubernetes`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::{OUTPUT, duration, seed};

const JOB: &str = "Job";
const POD: &str = "Pod";

/// Print a manifest for Kubernetes
#[derive(Args)]
pub struct KubernetesArgs {
    #[command(subcommand)]
    pub verb: KubernetesVerb,
}

#[derive(Subcommand)]
pub enum KubernetesVerb {
    Compare(Box<KubernetesCompareArgs>),
    Apply(Box<super::KubernetesApplyArgs>),
    #[command(hide = true)]
    CopyRefit(CopyRefitArgs),
    #[command(hide = true)]
    RemoveNamespace(RemoveNamespaceArgs),
}

/// Wait for the end of stdin, then delete a namespace: for `refit compare --on kubernetes`,
/// however it ends
#[derive(Args)]
pub struct RemoveNamespaceArgs {
    /// The namespace
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The words of kubectl
    #[arg(last = true, value_name = "KUBECTL")]
    pub kubectl: Vec<OsString>,
}

/// Copy this refit, for the init container of `--refit-from image:IMAGE`
#[derive(Args)]
pub struct CopyRefitArgs {
    /// The new file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Print a Job that makes the same comparison on many nodes; `refit pool` reads its results
///
/// What follows `--` are the words of `refit compare`: options, variants and `-- COMMAND`,
/// or a recipe. Each index of the Job runs them with a seed of its own, in an empty
/// directory on the node's disk, under the name of its node, and writes its result into its
/// log. A node runs one index at a time. Kubernetes 1.29 or newer.
///
/// ```text
/// refit export kubernetes compare --nodes 4 --image IMAGE -- sync=off -- COMMAND >compare.json
/// kubectl apply -f compare.json
/// kubectl wait --for=condition=complete job/refit-compare
/// refit pool --from kubernetes job/refit-compare
/// ```
///
/// The manifest is JSON, which is YAML too. Exit code: 0, or 2 for a usage error.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "refit export kubernetes compare [OPTIONS] --image IMAGE -- VARIANT... -- COMMAND [ARG]...\n       refit export kubernetes compare [OPTIONS] --image IMAGE -- RECIPE [VARIANT]..."
)]
pub struct KubernetesCompareArgs {
    /// Compare on N nodes at the same time; pods wait until there are as many [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), conflicts_with = "completions", help_heading = JOB)]
    pub nodes: Option<u32>,

    /// Compare N times, over as many nodes as there are
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), help_heading = JOB)]
    pub completions: Option<u32>,

    /// Name of the Job and of its ServiceAccount
    #[arg(long, value_name = "NAME", default_value = "refit-compare", value_parser = label, help_heading = JOB)]
    pub name: String,

    /// Namespace of both [default: that of kubectl's context]
    #[arg(short, long, value_name = "NAME", value_parser = label, help_heading = JOB)]
    pub namespace: Option<String>,

    /// Make the namespace too
    #[arg(long, requires = "namespace", help_heading = JOB)]
    pub create_namespace: bool,

    /// Seed of index 0; index I has this one plus I
    #[arg(long, value_name = "SEED", value_parser = seed, help_heading = JOB)]
    pub seed: Option<u64>,

    /// Start an index again at most N times
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = JOB)]
    pub retries: u32,

    /// Delete the Job and its results this long after its end
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = days, help_heading = JOB)]
    pub keep: Duration,

    /// Image with the command, or with the server of the recipe
    #[arg(long, value_name = "IMAGE", value_parser = image, help_heading = POD)]
    pub image: String,

    /// Where pods find refit: hostpath:/PATH, a file on each node, or image:IMAGE, an image
    /// with refit on its PATH [default: on the PATH of --image]
    #[arg(long, value_name = "PLACE", value_parser = refit_from, help_heading = POD)]
    pub refit_from: Option<RefitFrom>,

    /// Run in /PATH of the node, which exists there, and not in an empty directory
    #[arg(long, value_name = "hostpath:/PATH", value_parser = host_path, help_heading = POD)]
    pub work_on: Option<String>,

    /// Only on nodes with this label; can be repeated
    #[arg(long, value_name = "LABEL=VALUE", value_parser = node_label, help_heading = POD)]
    pub node_selector: Vec<(String, String)>,

    /// What a pod asks for, for example cpu=2,memory=1Gi
    #[arg(long, value_name = "NAME=AMOUNT", value_delimiter = ',', value_parser = amount, help_heading = POD)]
    pub request: Vec<(String, String)>,

    /// What a pod may take at most, as for --request
    #[arg(long, value_name = "NAME=AMOUNT", value_delimiter = ',', value_parser = amount, help_heading = POD)]
    pub limit: Vec<(String, String)>,

    /// Write the manifest into FILE, and not to stdout
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,

    /// The words of `refit compare`
    #[arg(last = true, required = true, value_name = "WORD")]
    pub compare: Vec<OsString>,
}

/// Where pods find refit.
#[derive(Clone)]
pub enum RefitFrom {
    /// A file of each node.
    HostPath(String),
    /// An image with refit on its `PATH`.
    Image(String),
}

fn refit_from(text: &str) -> Result<RefitFrom, String> {
    if let Some(name) = text.strip_prefix("image:") {
        return image(name).map(RefitFrom::Image);
    }
    host_path(text)
        .map(RefitFrom::HostPath)
        .map_err(|_| "write hostpath:/PATH or image:IMAGE".to_owned())
}

/// Kubernetes refuses `..` in it.
fn host_path(text: &str) -> Result<String, String> {
    let path = text.strip_prefix("hostpath:").unwrap_or_default();
    let is_plain = path.split('/').all(|part| part != "..");
    if path.len() > 1 && path.starts_with('/') && is_plain {
        Ok(path.to_owned())
    } else {
        Err("write hostpath:/PATH, without `..`".to_owned())
    }
}

/// A reference has no spaces; the rest is the registry's matter.
pub fn image(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    if text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_plain) {
        Ok(text.to_owned())
    } else {
        Err("write an image as registry.example/name:tag".to_owned())
    }
}

/// The name of an object (RFC 1123); pods get it with a number, and 63 bytes are the limit.
fn label(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_label = (1..=52).contains(&text.len())
        && text.bytes().all(is_plain)
        && !text.starts_with('-')
        && !text.ends_with('-');
    if is_label {
        Ok(text.to_owned())
    } else {
        Err("write at most 52 lower-case letters, digits and `-`".to_owned())
    }
}

/// `KEY=VALUE`, the key with a prefix or not.
fn node_label(text: &str) -> Result<(String, String), String> {
    let is_name = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_end = |end: Option<char>| end.is_some_and(|end| end.is_ascii_alphanumeric());
        text.len() <= 63
            && text.bytes().all(is_plain)
            && is_end(text.chars().next())
            && is_end(text.chars().last())
    };
    let is_key = |key: &str| match key.split_once('/') {
        Some((prefix, name)) => {
            prefix.len() <= 253 && prefix.split('.').all(is_name) && is_name(name)
        }
        None => is_name(key),
    };
    match text.split_once('=') {
        Some((key, value)) if is_key(key) && (value.is_empty() || is_name(value)) => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("write a label as kubernetes.io/hostname=db1".to_owned()),
    }
}

/// `NAME=AMOUNT` with a quantity of Kubernetes.
fn amount(text: &str) -> Result<(String, String), String> {
    const UNITS: &[&str] = &[
        "", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi",
    ];
    let wrong = || "write an amount as cpu=500m or memory=1Gi".to_owned();
    let (name, amount) = text.split_once('=').ok_or_else(wrong)?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-./".contains(&byte);
    let unit = amount.trim_start_matches(|digit: char| digit.is_ascii_digit() || digit == '.');
    let number = &amount[..amount.len() - unit.len()];
    let is_amount = number.parse::<f64>().is_ok() && UNITS.contains(&unit);
    if !name.is_empty() && name.bytes().all(is_name) && is_amount {
        Ok((name.to_owned(), amount.to_owned()))
    } else {
        Err(wrong())
    }
}

/// As other times, and in days.
fn days(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    match days {
        Some(days) => Some(days)
            .filter(|days: &u64| *days <= 10_000)
            .map(|days| Duration::from_secs(days * 24 * 60 * 60)),
        None => duration(text).ok(),
    }
    .ok_or_else(|| "write a time as 2h or 7d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_kubernetes_takes() {
        for name in ["a", "a-1", &"a".repeat(52)] {
            assert!(label(name).is_ok(), "{name}");
        }
        for name in ["", "-a", "a-", "A", "a.b", "a\nb", "ä", &"a".repeat(53)] {
            assert!(label(name).is_err(), "{name}");
        }
        for label in ["a=b", "example.com/a_b=", "kubernetes.io/hostname=node-1.x"] {
            assert!(node_label(label).is_ok(), "{label}");
        }
        for label in ["a", "=b", "a/=b", "/a=b", "a=b c", "a=-", "a=\"", "a/b/c=d"] {
            assert!(node_label(label).is_err(), "{label}");
        }
    }

    #[test]
    fn amounts_are_those_that_kubernetes_takes() {
        for text in ["cpu=2", "cpu=500m", "memory=1.5Gi", "example.com/gpu=1"] {
            assert!(amount(text).is_ok(), "{text}");
        }
        for text in [
            "cpu",
            "=1",
            "cpu=",
            "cpu=m",
            "cpu=-1",
            "memory=1GiB",
            "cpu=1e",
            "cpu=\"1\"",
        ] {
            assert!(amount(text).is_err(), "{text}");
        }
    }

    #[test]
    fn places_are_paths_and_images() {
        assert!(matches!(
            refit_from("hostpath:/opt/refit"),
            Ok(RefitFrom::HostPath(path)) if path == "/opt/refit"
        ));
        assert!(matches!(
            refit_from("image:registry.example:5000/refit@sha256:00"),
            Ok(RefitFrom::Image(_))
        ));
        for text in [
            "",
            "hostpath:",
            "hostpath:/",
            "hostpath:a",
            "hostpath:/a/../b",
            "image:",
            "image:-a",
            "image:a b",
            "/opt",
        ] {
            assert!(refit_from(text).is_err(), "{text}");
        }
    }
}
