//! What a watch publishes while it goes on.

use std::time::{Duration, Instant};

use anyhow::Result;
use refit_report::metrics::{Format, WatchMetrics};
use refit_run::series::{Sample, Series};

use super::metrics_file::MetricsFile;
use super::metrics_server::MetricsServer;
use crate::cli::WatchArgs;
use crate::cmd::print;

/// The share of one core that estimating growth may take: an estimate of a long watch takes milliseconds for each service.
const ESTIMATING: f64 = 0.0005;

/// The metrics of a watch, and where they go.
pub struct Publisher {
    metrics: WatchMetrics,
    file: Option<MetricsFile>,
    server: Option<MetricsServer>,
    /// The answer that was given last; invalid after the next sample.
    text: Option<(Format, String)>,
    began: Instant,
    estimating: Duration,
}

impl Publisher {
    /// `None` where nothing is to be published.
    ///
    /// # Errors
    /// It cannot listen.
    pub fn begin(args: &WatchArgs) -> Result<Option<Publisher>> {
        if args.openmetrics.is_none() && args.listen.is_none() {
            return Ok(None);
        }
        let server = args.listen.map(MetricsServer::bind).transpose()?;
        if let Some(server) = &server {
            let address = server.address()?;
            if !address.ip().to_canonical().is_loopback() {
                print::say(format_args!(
                    "other machines may reach {address}, and read what is watched there: names, memory, waits"
                ));
            }
            print::say(format_args!("metrics are at http://{address}/metrics"));
        }
        Ok(Some(Publisher {
            metrics: WatchMetrics::default(),
            file: args.openmetrics.as_deref().map(MetricsFile::new),
            server,
            text: None,
            began: Instant::now(),
            estimating: Duration::ZERO,
        }))
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
        self.text = None;
        if let Some(file) = &mut self.file {
            file.set(self.metrics.metrics().text(Format::Prometheus));
        }
    }

    /// Answers those who ask.
    pub fn tick(&mut self) {
        let Some(server) = &mut self.server else {
            return;
        };
        server.tick(|format| match &self.text {
            Some((of, text)) if *of == format => text.clone(),
            _ => {
                let text = self.metrics.metrics().text(format);
                self.text = Some((format, text.clone()));
                text
            }
        });
    }

    /// Waits until all is written, and frees the port.
    pub fn finish(self) -> Result<()> {
        self.file.map_or(Ok(()), MetricsFile::finish)
    }
}
