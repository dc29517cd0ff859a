//! What a watch publishes while it goes on.

use std::time::{Duration, Instant};

use anyhow::Result;
use refit_report::metrics::{Format, WatchMetrics};
use refit_run::series::{Sample, Series};

use super::metrics_file::MetricsFile;
use crate::cli::WatchArgs;

/// The share of one core that estimating growth may take: an estimate of a long watch takes milliseconds for each service.
const ESTIMATING: f64 = 0.002;

/// The metrics of a watch, and where they go.
pub struct Publisher {
    metrics: WatchMetrics,
    file: MetricsFile,
    began: Instant,
    estimating: Duration,
}

impl Publisher {
    /// `None` where nothing is to be published.
    pub fn begin(args: &WatchArgs) -> Option<Publisher> {
        Some(Publisher {
            metrics: WatchMetrics::default(),
            file: MetricsFile::new(args.openmetrics.as_deref()?),
            began: Instant::now(),
            estimating: Duration::ZERO,
        })
    }

    /// Takes in a sample that the series does not have yet.
    pub fn add(&mut self, series: &Series, sample: &Sample) {
        self.metrics.add(series, sample);
    }

    /// Publishes all that was added; `series` has it by now.
    pub fn publish(&mut self, series: &Series) {
        while self.estimating <= self.began.elapsed().mul_f64(ESTIMATING) {
            let began = Instant::now();
            let is_more = self.metrics.estimate_next(series);
            self.estimating += began.elapsed();
            if !is_more {
                break;
            }
        }
        let text = self.metrics.metrics().text(Format::Prometheus);
        self.file.set(text);
    }

    /// Waits until all is written.
    pub fn finish(self) -> Result<()> {
        self.file.finish()
    }
}
