//! A recipe without a service: the load itself is the program.

use refit_recipe::{Hook, Instance, how_it_ended, last_lines};
use refit_run::{End, Watch};

use super::phase::{Phase, failed, out};
use super::state::RecipeRunner;
use crate::comparison::runner::Made;
use crate::error::LabError;

impl RecipeRunner<'_> {
    /// The load itself is the program.
    pub(super) fn with_program(
        &mut self,
        variant: usize,
        instance: &Instance,
        made: &mut Made,
    ) -> Phase<()> {
        instance.run_hook(Hook::Warmup, || true)?;
        let bytes = Some(self.environment_bytes + self.padding);
        let mut prepared = self.prepare(variant, instance.env(), instance.program(), bytes)?;
        let files = instance.load_files()?;
        let mut watch = Watch::begin(&prepared, true);
        if self.witness {
            watch = watch.with_witness();
        }
        let timeout = self.recipe.load_timeout;
        let own_peak = !self.witness;
        let ended = prepared.measure(files, Some(&instance.dir), Some(timeout), own_peak, || {
            watch.tick()
        });
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                prepared.session.remove();
                return Err(LabError::Start {
                    command: "sh".to_owned(),
                    cause: error.0,
                }
                .into());
            }
        };
        made.run = watch.finish(&ended, &prepared.session);
        prepared.session.remove();
        if ended.timed_out {
            return out(format!(
                "load.command did not end within {} s",
                timeout.as_secs_f64()
            ));
        }
        if !matches!(ended.end, End::Exited(0)) {
            return failed(format!(
                "load.command ended with {}{}",
                how_it_ended(&ended),
                last_lines(&instance.hook_errors())
            ));
        }
        let mut record = match self.load_record(&instance.hook_text(), ended.wall) {
            Ok(record) => record,
            Err(reason) => return out(reason),
        };
        self.outcome(variant, instance, &mut record)?;
        made.load = Some(record);
        Ok(instance.expect_no_processes()?)
    }
}
