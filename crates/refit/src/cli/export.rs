//! `refit export`.

mod kubernetes;
mod oci;
mod workload;

use clap::{Args, Subcommand};

pub use kubernetes::{KubernetesArgs, KubernetesCompareArgs, KubernetesVerb, RefitFrom, image};
pub use oci::OciArgs;
pub use workload::{KubernetesApplyArgs, PatchForm, library, profile as seccomp_file};

/// Write what other systems need to run refit
#[derive(Args)]
pub struct ExportArgs {
    #[command(subcommand)]
    pub verb: ExportVerb,
}

#[derive(Subcommand)]
pub enum ExportVerb {
    Kubernetes(KubernetesArgs),
    Oci(OciArgs),
}
