//! `refit compare --on`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use refit_services::export::workload::Library;

use super::export::{image, library, seccomp_file};

const KUBERNETES: &str = "With --on kubernetes";

/// Where what is compared runs, if not on this machine.
#[derive(Args)]
pub struct ReplicasArgs {
    /// Compare replicas of a running service elsewhere: the first word is deployment/NAME.
    /// Each run is a fresh replica in a namespace made for the comparison, a load on it,
    /// and its end; the service itself is only read (docs/kubernetes.md)
    #[arg(long, value_name = "PLACE", requires = "load", help_heading = KUBERNETES)]
    pub on: Option<ReplicasOn>,

    /// What loads a replica, for `sh -c` in a Job: its time is the metric. REFIT_HOST is the
    /// replica's address, REFIT_PORT its first port
    #[arg(long, value_name = "COMMAND", requires = "on", help_heading = KUBERNETES)]
    pub load: Option<String>,

    /// Image for the load, with sh [default: that of the container]
    #[arg(long, value_name = "IMAGE", requires = "on", value_parser = image, help_heading = KUBERNETES)]
    pub load_image: Option<String>,

    /// The container whose memory is read, if the pod has several [default: the first]
    #[arg(long, value_name = "NAME", requires = "on", help_heading = KUBERNETES)]
    pub container: Option<String>,

    /// The allocator's library, as for `refit export kubernetes apply`
    #[arg(long, value_name = "IMAGE:/PATH", requires = "on", value_parser = library, help_heading = KUBERNETES)]
    pub library: Option<Library>,

    /// The profile for sync=off, below the kubelet's directory for seccomp
    #[arg(long, value_name = "FILE", requires = "on", default_value = "refit/sync-off.json", value_parser = seccomp_file, help_heading = KUBERNETES)]
    pub seccomp_profile: String,

    /// Namespace of the Deployment [default: that of kubectl's context]
    #[arg(short, long, value_name = "NAME", requires = "on", help_heading = KUBERNETES)]
    pub namespace: Option<String>,

    /// Context of kubectl [default: its current one]
    #[arg(long, value_name = "NAME", requires = "on", help_heading = KUBERNETES)]
    pub context: Option<String>,

    /// The kubectl to run
    #[arg(long, value_name = "PATH", requires = "on", default_value = "kubectl", help_heading = KUBERNETES)]
    pub kubectl: PathBuf,
}

/// What runs replicas.
#[derive(Clone, Copy, ValueEnum)]
pub enum ReplicasOn {
    /// A cluster, by kubectl
    Kubernetes,
}
