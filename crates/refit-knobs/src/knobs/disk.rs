//! `disk`: the device beneath every sync call that is real.

mod decimal;
mod fault;
mod latency;
mod texts;

use std::fmt;
use std::path::PathBuf;

use crate::error::{Hint, SettingError};
use crate::explain::{Class, Prose};
use crate::knob::{Behaviour, Knob};
use crate::launch::{Disk, DiskRule, Launch};
use crate::nearest::{Known, nearest};
use crate::scope::Scope;
use crate::word::Word;

pub static KNOB: Knob = Knob {
    name: "disk",
    form: "disk[@exe:NAME|@/PATH]=8ms|p50=4ms,p99=30ms|/path/profile.json|fail:EIO[,every=N|,after=N|,p=0.01]|real",
    about: "another disk's latency, or its faults, for every real sync call",
    example: "disk=8ms",
    scoped: true,
    has_members: false,
    once: true,
    permanent: "",
    grounds: &[],
    values: |_| VALUES.iter().map(|&value| value.to_owned()).collect(),
    aliases: &[
        "latency",
        "sync_latency",
        "fsync_latency",
        "disk_latency",
        "slow",
        "slow_disk",
        "delay",
        "device",
        "storage",
        "fault",
        "fail",
    ],
    opposites: &[],
};

/// One of each form that needs no file.
const VALUES: &[&str] = &[
    "8ms",
    "p50=4ms,p99=30ms",
    "fail:EIO",
    "fail:ENOSPC",
    "fail:EDQUOT",
    "fail:EROFS",
    "real",
];

/// Hundredths of a percent: a single latency is the median of all.
const MEDIAN: u32 = 5000;

const WORDS: [Known; 2] = [
    (
        "real",
        &[
            "none", "off", "no", "on", "false", "0", "0ms", "native", "default",
        ],
    ),
    ("fail:EIO", &["fail", "eio", "error", "fault", "broken"]),
];

/// A real disk or an emulated one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// `None` is the real one alone.
    pub emulated: Option<Disk>,
}

pub(crate) fn parse(word: &Word) -> Result<Device, SettingError> {
    let value = word.value;
    let emulated = if value == "real" {
        None
    } else if let Some(fault) = value.strip_prefix("fail:") {
        let (errno, when) = fault::parse(word, fault)?;
        Some(Disk::Fail { errno, when })
    } else if value.starts_with('/') {
        Some(Disk::Profile(PathBuf::from(value)))
    } else if value.contains('/') || value.ends_with(".json") {
        return Err(relative(word));
    } else if value.contains(',') || is_percentile(value) {
        Some(Disk::Latency(latency::parse_percentiles(word)?))
    } else {
        let ns = latency::parse(value).ok_or_else(|| unknown(word))?;
        Some(Disk::Latency(vec![(MEDIAN, ns)]))
    };
    Ok(Device { emulated })
}

fn is_percentile(value: &str) -> bool {
    let digits = value.strip_prefix('p');
    digits.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}

fn unknown(word: &Word) -> SettingError {
    let expected = format!(
        "{}; percentiles (`p50=4ms,p99=30ms`), the absolute path of a profile, `fail:EIO` or `real`",
        latency::EXPECTED
    );
    let meant = latency::meant(word.value)
        .or_else(|| nearest(word.value, WORDS.into_iter()).map(str::to_owned));
    let meant = meant.and_then(|value| word.with_value(&value));
    word.unknown_value(expected, meant)
}

/// refit and its processes may work elsewhere, and a stored variant has to mean the same later.
fn relative(word: &Word) -> SettingError {
    let path = word.value.to_owned();
    let (base, name) = match path.strip_prefix("~/") {
        Some(name) => ("$HOME", name),
        None => ("$PWD", path.trim_start_matches("./")),
    };
    let absolute = word.with_value(&format!("/PATH/{name}"));
    SettingError::RelativeProfile {
        knob: KNOB.name,
        shell: format!("\"{base}/{name}\""),
        hint: absolute.map_or_else(|| word.as_in_example(), Hint::AsIn),
        path,
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.emulated {
            None => f.write_str("real"),
            Some(Disk::Latency(points)) => match points.as_slice() {
                [(_, ns)] => f.write_str(&latency::print(*ns)),
                points => latency::print_percentiles(points, f),
            },
            // It came from a word, which was UTF-8.
            Some(Disk::Profile(path)) => path.display().fmt(f),
            Some(Disk::Fail { errno, when }) => fault::print(errno.1, *when, f),
        }
    }
}

impl Behaviour for Device {
    fn knob(&self) -> &'static Knob {
        &KNOB
    }

    fn class(&self) -> Class {
        match self.emulated {
            None => Class::Safe,
            Some(_) => Class::ChangesBehaviour,
        }
    }

    fn prose(&self, scope: Option<&Scope>) -> Prose {
        texts::prose(self.emulated.as_ref(), scope)
    }

    fn apply(&self, scope: Option<&Scope>, launch: &mut Launch) {
        launch.disk = self.emulated.clone().map(|disk| DiskRule {
            scope: scope.cloned(),
            disk,
        });
    }
}
