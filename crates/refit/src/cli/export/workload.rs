//! `refit export kubernetes apply`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use refit_services::export::workload::Library;

use crate::cli::OUTPUT;

const POD: &str = "Pod";

/// Print a patch that gives a Deployment, StatefulSet, DaemonSet, CronJob or Job these settings
///
/// The object is read as `kubectl get -o json` prints it. An allocator's library is brought by
/// an init container, and appended to the LD_PRELOAD of each container; `sync=off` names a
/// seccomp profile of the nodes, which `refit export oci` writes. Nothing is changed here:
///
/// ```text
/// kubectl get deployment/web -o json >web.json
/// refit export kubernetes apply --of web.json --library IMAGE:/PATH malloc=jemalloc >patch.json
/// refit export kubernetes apply --of web.json --library IMAGE:/PATH malloc=jemalloc --form inverse >back.json
/// kubectl patch deployment/web --type=json --patch-file=patch.json
/// ```
///
/// A patch of form `json` or `inverse` tests what it relies on, and fails where the object has
/// changed meanwhile. Exit code: 0, or 2 where the settings cannot be given to the object.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct KubernetesApplyArgs {
    /// The object as JSON; `-` is stdin
    #[arg(long, value_name = "FILE", required = true, help_heading = "Input")]
    pub of: PathBuf,

    /// How the change is written
    #[arg(long, value_name = "FORM", default_value = "json", help_heading = OUTPUT)]
    pub form: PatchForm,

    /// Write it into FILE, and not to stdout
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub out: Option<PathBuf>,

    /// The allocator's library: an image with `cp` and the C library of the containers
    /// (glibc or musl), and the library's path in it
    #[arg(long, value_name = "IMAGE:/PATH", value_parser = library, help_heading = POD)]
    pub library: Option<Library>,

    /// The profile for sync=off, below the kubelet's directory for seccomp
    #[arg(long, value_name = "FILE", default_value = "refit/sync-off.json", value_parser = profile, help_heading = POD)]
    pub seccomp_profile: String,

    /// Where the containers have refit, for thp=never
    #[arg(long, value_name = "/PATH", help_heading = POD)]
    pub refit: Option<String>,

    /// Only this container
    #[arg(long, value_name = "NAME", help_heading = POD)]
    pub container: Option<String>,

    /// Settings, as in refit run
    #[arg(value_name = "SETTINGS", required = true)]
    pub settings: Vec<OsString>,
}

/// How a change is written.
#[derive(Clone, Copy, ValueEnum)]
pub enum PatchForm {
    /// A JSON patch, which tests what it relies on (kubectl patch --type=json)
    Json,
    /// The JSON patch that takes it back
    Inverse,
    /// A strategic merge (kubectl patch --type=strategic)
    Merge,
    /// A component of kustomize with the merge
    Kustomize,
    /// A MutatingAdmissionPolicy with its binding, for each new pod (Kubernetes 1.36; kubectl apply)
    Policy,
}

pub fn library(text: &str) -> Result<Library, String> {
    let wrong = || "write it as registry.example/name:tag:/usr/lib/libjemalloc.so.2".to_owned();
    let (image, path) = text.split_once(":/").ok_or_else(wrong)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let has_file = !path.is_empty() && !path.ends_with('/');
    let is_image = image.starts_with(|first: char| first.is_ascii_alphanumeric());
    if !is_image || !has_file || !image.bytes().all(is_plain) {
        return Err(wrong());
    }
    Ok(Library {
        image: image.to_owned(),
        path: format!("/{path}"),
    })
}

/// The kubelet refuses absolute paths and `..`.
pub fn profile(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('/') || text.split('/').any(|part| part == "..") {
        return Err("write a path below the kubelet's directory, without `..`".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_an_image_and_a_path() {
        let found = library("registry.example:5000/a@sha256:00:/usr/lib/libjemalloc.so.2").unwrap();
        assert_eq!(found.image, "registry.example:5000/a@sha256:00");
        assert_eq!(found.path, "/usr/lib/libjemalloc.so.2");
        for text in [
            "",
            "a",
            "a:b",
            ":/lib",
            "a:/",
            "a:/lib/",
            "-a:/lib/x",
            "a b:/x",
        ] {
            assert!(library(text).is_err(), "{text}");
        }
        for text in ["", "/abs", "../up", "a/../b"] {
            assert!(profile(text).is_err(), "{text}");
        }
    }
}
