//! The emulated disk as the session page holds it.

use refit_knobs as knobs;
use refit_preload::session::{Disk, LATENCIES, When};

use crate::LaunchError;

/// The page's form of a `disk=` value.
pub fn emulated(disk: &knobs::Disk) -> Result<Disk, LaunchError> {
    Ok(match disk {
        knobs::Disk::Latency(points) => Disk::Latency(Box::new([points[0].1; LATENCIES])),
        knobs::Disk::Profile(path) => {
            return Err(LaunchError::LibraryUnreadable {
                path: path.clone(),
                cause: std::io::ErrorKind::Unsupported.into(),
            });
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
