//! `refit export`: what other systems need to run refit.

mod kubernetes;
mod oci;
mod seccomp;

use std::process::ExitCode;

use super::print;
use crate::cli::{ExportArgs, ExportVerb};

pub fn main(args: &ExportArgs) -> ExitCode {
    let exported = match &args.verb {
        ExportVerb::Kubernetes(args) => kubernetes::export(args),
        ExportVerb::Oci(args) => oci::export(args),
    };
    match exported {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print::failed(&error, 2),
    }
}
