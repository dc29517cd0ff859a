//! How a recipe starts its service, and when the service is ready.

use std::time::Duration;

use regex_lite::Regex;

/// When a service is ready.
#[derive(Clone, Debug)]
pub enum Ready {
    /// Somebody listens on this port (by name).
    Tcp(String),
    /// Somebody listens on this socket.
    Unix(String),
    /// A line matches: of the file, or of the service's own output where none is named.
    Log(Regex, Option<String>),
    /// The command succeeds.
    Command(String),
}

/// A service to start.
#[derive(Clone, Debug)]
pub struct ServiceStart {
    /// The command that starts it; what is swapped is swapped beneath this.
    pub start: String,
    /// It is started once, and all runs load the same one.
    pub keep: bool,
    /// When it is ready.
    pub ready: Ready,
    /// The command that ends it; `None`: SIGTERM.
    pub stop: Option<String>,
    /// How long to wait until it is ready.
    pub ready_timeout: Duration,
    /// How long to wait until it has ended.
    pub stop_timeout: Duration,
}
