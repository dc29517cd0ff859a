//! What other systems need to run a service with settings: refit itself changes nothing there.

pub mod workload;
