//! Where a setting can act for longer than one run.

use crate::knobs::KNOBS;

/// What settings are made permanent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// A systemd unit's drop-in.
    Unit,
    /// What a server, not systemd, gives its processes: PostgreSQL's `environment`, Postfix's `import_environment`.
    ServerEnvironment,
    /// A script in a program's place.
    Wrapper,
    /// Such a script that only root starts: there is a launcher between it and the program, for what no variable
    /// carries.
    Daemon,
    /// A service's own configuration or schema.
    Configuration,
    /// The schema of a database.
    Database,
    /// The load of a recipe: nothing that could be permanent.
    Load,
    /// The options of a container.
    Container,
    /// The pod template of a workload.
    Pod,
}

impl Ground {
    /// The settings that can act on one of these, as they are written: `malloc=, sync=off`.
    #[must_use]
    pub fn settings(grounds: &[Ground]) -> String {
        let forms = KNOBS
            .iter()
            .filter(|knob| knob.grounds.iter().any(|one| grounds.contains(one)))
            .map(|knob| knob.permanent);
        forms.collect::<Vec<_>>().join(", ")
    }
}
