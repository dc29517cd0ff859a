//! A recipe without a service: the load itself is the program.

use std::fs::{self, File};
use std::path::Path;

use refit_run::{End, Watch, tree::Part};

use super::RecipeRunner;
use super::phase::{Phase, described, failed, out, passed, seconds};
use crate::comparison::runner::{Made, io_error};
use crate::error::LabError;
use crate::place::Instance;
use refit_recipe::last_lines;

impl RecipeRunner<'_> {
    /// The load itself is the program.
    pub(super) fn with_program(
        &mut self,
        variant: usize,
        instance: &Instance,
        made: &mut Made,
    ) -> Phase<()> {
        let load = &self.recipe.file.load;
        passed!(self.tool("load.warmup", load.warmup.as_deref(), instance, || true));
        let surroundings = self.surroundings(instance);
        let words = surroundings.words(&self.place.tree, Part::Service, &load.command);
        let bytes = Some(self.environment_bytes + self.padding);
        let mut prepared = self.prepare(variant, &surroundings.env, words, bytes)?;
        let errors = instance.load_output.with_extension("stderr");
        let files = files(&instance.load_output, &errors)?;
        let mut watch = Watch::begin(&prepared, true);
        if self.witness {
            watch = watch.with_witness();
        }
        let timeout = Some(self.recipe.load_timeout);
        let ended = prepared.measure(files, Some(&instance.dir), timeout, || watch.tick());
        let ended = match ended {
            Ok(ended) => ended,
            Err(error) => {
                prepared.session.remove();
                return Err(LabError::Start {
                    command: "sh".to_owned(),
                    cause: error.0,
                });
            }
        };
        made.run = watch.finish(&ended, &prepared.session);
        prepared.session.remove();
        if ended.timed_out {
            return out(format!(
                "load.command did not end within {}",
                seconds(self.recipe.load_timeout)
            ));
        }
        if !matches!(ended.end, End::Exited(0)) {
            let said = last_lines(&errors);
            return failed(format!(
                "load.command ended with {}{said}",
                described(&ended)
            ));
        }
        let text = fs::read_to_string(&instance.load_output).unwrap_or_default();
        let mut record = match self.load_record(&text, ended.wall) {
            Ok(record) => record,
            Err(reason) => return out(reason),
        };
        passed!(self.outcome(variant, instance, &mut record));
        made.load = Some(record);
        self.nobody_left()
    }
}

fn files(stdout: &Path, stderr: &Path) -> Result<[File; 3], LabError> {
    let failed = || io_error("cannot open the files of a run");
    Ok([
        File::open("/dev/null").map_err(failed())?,
        File::create(stdout).map_err(failed())?,
        File::create(stderr).map_err(failed())?,
    ])
}
