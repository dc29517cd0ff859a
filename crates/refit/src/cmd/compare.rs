//! `refit compare`: which variant is better, by how much, and how certain that is.

mod exit_code;
pub mod prove;
mod replicas;
mod request;
mod scan;

use std::process::ExitCode;

use anyhow::{Result, bail};
use refit_lab::{Comparison, Subject, compare};
use refit_recipe::remove_abandoned_instances;
use refit_report::Compared;
use refit_run::{interrupting_signal, on_interruption};
use refit_session::remove_abandoned;

use self::exit_code::{TROUBLE, code, interrupted};
pub use self::prove::{Cuts, missing};
pub use self::replicas::remove_at_end;
use self::request::request;
pub use self::request::{check_words, command_subject, options, refuse_options_of_commands};
use super::bounded::bounded;
use super::log_frame::framed;
use super::output::Output;
use super::print;
use super::progress::Bar;
use crate::cli::CompareArgs;

pub fn main(args: &CompareArgs) -> ExitCode {
    match run(args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => print::failed(&error, TROUBLE),
    }
}

fn run(args: &CompareArgs) -> Result<u8> {
    let request = request(args)?;
    if let Some(asked) = &args.scan {
        scan::refuse(args, asked, &request)?;
    }
    let output = Output::open(&args.output)?;
    prove::warn(args, request.subject.recipe());
    remove_abandoned();
    if let Subject::Recipe(subject) = &request.subject {
        remove_abandoned_instances(&subject.dir);
    }
    if let Some(cost) = refit_launch::privileged::cost(&request.reach) {
        print::say(cost);
    }
    if let Some(asked) = &args.scan {
        return scan::scan(args, asked, &request, &output);
    }
    let mut bar = Bar::new(args.quiet, &output);
    on_interruption(bar.notice());
    let comparison = compare(&request, &mut bar);
    bar.finish();
    let (comparison, remains) = match comparison {
        Ok(made) => made,
        Err(error) => {
            let comparison = Comparison::unmade(&request, &error);
            let proof = None;
            output.write_unmade(&Compared { comparison, proof })?;
            return Err(error.into());
        }
    };
    let mut compared = Compared {
        comparison,
        proof: None,
    };
    let mut proof_code = 0;
    if let (true, Some(recipe), None) = (
        args.prove,
        request.subject.recipe(),
        &compared.comparison.experiment.failed,
    ) {
        // Stored already, in case that nothing comes of the cuts.
        output.write_early(&compared)?;
        drop(remains);
        bar.power_cuts_begin();
        let (proof, code) = prove::prove(args, recipe, &compared.comparison);
        compared.proof = Some(proof);
        proof_code = code;
    }
    // The table first: a full disk cannot take it away. And a terminal that is gone
    // cannot take the files away.
    let printed = match output.is_streamed() {
        true => Ok(()),
        false => print::result(&bounded(&compared).terminal(&print::style())),
    };
    output.write(&compared)?;
    printed?;
    let comparison = &compared.comparison;
    if let Some(failed) = &comparison.experiment.failed {
        bail!("{failed}");
    }
    if let Some(index) = args.log_result {
        print::log(&framed(index, &serde_json::to_string(&compared)?))?;
    }
    Ok(
        match (code(comparison, args.strict), interrupting_signal()) {
            // Cuts that were interrupted say nothing.
            (0, Some(signal)) if proof_code == TROUBLE => interrupted(signal),
            (0, _) => proof_code,
            (code, _) => code,
        },
    )
}
