//! `[load.open]`: requests at their times, whatever the service does.

use serde::Deserialize;

use crate::quantities::Time;

/// requests of refit's own, each at its time whatever the service does: load.rate=NUMBER/s takes them in place of `command`
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(extend("oneOf" = [{ "required": ["tcp"] }, { "required": ["unix"] }])))]
pub struct OpenEntry {
    /// how the service is asked: http, redis or lines
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["http", "redis", "lines"])))]
    pub protocol: String,
    /// one of service.ports (code)
    pub tcp: Option<String>,
    /// a socket in the instance's directory
    pub unix: Option<String>,
    /// one request: GET /path, a command of Redis, or a line (code); $REFIT_LOAD_NAME is replaced
    pub request: String,
    /// the most connections, each with one request on its way at most; a further one is opened when none is free; default 100
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 10_000)))]
    pub connections: Option<u32>,
    /// how long requests are sent; default 5s
    pub length: Option<Time>,
}
