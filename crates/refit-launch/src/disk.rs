//! The emulated disk as the session page holds it.

mod normal;
pub mod profile;
pub(crate) mod quantiles;

use refit_knobs as knobs;
use refit_session::{Disk, When};

use crate::LaunchError;

/// The page's form of a `disk=` value.
///
/// # Errors
/// [`LaunchError::Profile`] when a profile cannot be read.
pub fn emulated(disk: &knobs::Disk) -> Result<Disk, LaunchError> {
    Ok(match disk {
        knobs::Disk::Latency(points) => Disk::Latency(quantiles::of_percentiles(points)),
        knobs::Disk::Profile(path) => {
            let samples = profile::read(path).map_err(|problem| LaunchError::Profile {
                path: path.clone(),
                problem,
            })?;
            Disk::Latency(quantiles::of_samples(samples))
        }
        knobs::Disk::Fail { errno, when } => Disk::Fail {
            error: errno.0.unsigned_abs(),
            when: match *when {
                knobs::When::Always => When::Always,
                knobs::When::Every(n) => When::Every(n),
                knobs::When::After(n) => When::After(n),
                knobs::When::Chance(n) => When::Chance(n.into()),
            },
        },
    })
}

/// How long flushes take: equally likely times in nanoseconds, rising.
///
/// # Errors
/// [`LaunchError::Profile`] when a profile cannot be read;
/// [`LaunchError::FaultyDisk`] when the disk fails flushes instead of delaying them.
pub fn latencies(disk: &knobs::Disk) -> Result<Vec<u64>, LaunchError> {
    match emulated(disk)? {
        Disk::Latency(times) => Ok(times.to_vec()),
        Disk::Fail { .. } => Err(LaunchError::FaultyDisk),
    }
}
