//! What `refit watch` shows of a [`Series`](refit_run::series::Series).

mod columns;
mod summary;

pub use columns::{heading, lines};
pub use summary::summary;

#[cfg(test)]
mod sample;
