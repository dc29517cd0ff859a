//! Requests at their times: an open loop.
//!
//! A closed loop sends when the last answer has come: a server that stands still is asked nothing meanwhile, and one slow
//! answer is all that is seen of it. Here each request has a time at which it is due, whatever the server does, and its
//! latency counts from then to its answer.
//!
//! Promises: no request is left out; one that could not be sent when it was due is sent as soon as it can be, and its
//! latency holds the wait. What the generator itself was late by is kept beside the latencies.

mod connection;
mod generator;
mod latencies;
mod protocol;
mod schedule;
mod sys;
mod target;

pub use generator::{Generated, LoadError, Plan, generate};
pub use latencies::Latencies;
pub use protocol::{Protocol, RequestError};
pub use schedule::{Arrivals, schedule};
pub use target::Target;
