//! `refit compare --scan`: the same comparison at several values of one setting.

use anyhow::{Result, bail};
use refit_knobs::Settings;
use refit_lab::{Request, Scan, ScanPoint, Subject, compare};
use refit_report::FORMATS;
use refit_run::{interrupting_signal, on_interruption};

use super::exit_code::{TROUBLE, code, interrupted};
use crate::cli::{CompareArgs, OutputArgs, ScanArg};
use crate::cmd::bounded::bounded;
use crate::cmd::output::Output;
use crate::cmd::print;
use crate::cmd::progress::Bar;

/// Refuses what cannot be said of several comparisons.
pub fn refuse(args: &CompareArgs, asked: &ScanArg, request: &Request) -> Result<()> {
    let setting = &asked.setting;
    let given = [
        ("--prove", args.prove),
        ("--remeasure", args.remeasure),
        ("--gate", !args.gates.is_empty()),
        ("--log-result", args.log_result.is_some()),
    ];
    let given = given.into_iter().find(|(_, is_given)| *is_given);
    let given = given.map(|(option, _)| option);
    let drawn = FORMATS.iter().filter(|format| format.scan.is_some());
    let drawn = drawn.map(|format| format.option);
    let drawn: Vec<&str> = drawn.chain(["--json", "--github-summary"]).collect();
    if let Some(option) = given.or(args.output.other_than(&drawn)) {
        bail!("{option} is of one comparison, and --scan makes several; leave out one of the two");
    }
    if let Subject::Replicas(_) = request.subject {
        bail!("--scan compares on this machine; leave out --on");
    }
    if request
        .subject
        .recipe()
        .is_some_and(|recipe| recipe.is_exact())
    {
        bail!("--scan: the recipe gives exact answers and measures nothing; leave it out");
    }
    let under = |one: &refit_knobs::Setting| one.to_string().starts_with(&format!("{setting}="));
    if request.with.0.iter().any(under) {
        bail!("{setting} is given by --scan and by --with; leave it out of --with");
    }
    let variants = &request.candidates;
    if let Some(variant) = variants
        .iter()
        .find(|one| one.settings().0.iter().any(under))
    {
        bail!("{setting} is scanned, and the variant {variant} sets it; leave out one of the two");
    }
    for value in &asked.values {
        let with = with(&request.with, setting, value)?;
        if let Some(recipe) = request.subject.recipe() {
            recipe.with_load(&with.launch().load)?;
        }
    }
    Ok(())
}

fn with(with: &Settings, setting: &str, value: &str) -> Result<Settings> {
    Ok(with.join(&Settings::parse([format!("{setting}={value}").into()])?))
}

/// Compares at each value, prints all of it, and returns the exit code.
pub fn scan(args: &CompareArgs, asked: &ScanArg, request: &Request, output: &Output) -> Result<u8> {
    let values = asked.values.len();
    let mut scan = Scan::new(&asked.setting, values);
    // The file is that of all of them.
    let nothing = Output::open(&OutputArgs::default())?;
    let mut codes = Vec::new();
    let mut trouble = None;
    for (n, value) in asked.values.iter().enumerate() {
        if interrupting_signal().is_some() {
            break;
        }
        if !args.quiet {
            print::say(format!("{}={value} ({} of {values})", asked.setting, n + 1));
        }
        let request = Request {
            with: with(&request.with, &asked.setting, value)?,
            budget: request.budget / u32::try_from(values).unwrap_or(u32::MAX),
            together: values,
            ..request.clone()
        };
        let mut bar = Bar::new(args.quiet, &nothing);
        on_interruption(bar.notice());
        let made = compare(&request, &mut bar);
        bar.finish();
        match made {
            Ok((comparison, _)) => {
                if let Some(failed) = &comparison.experiment.failed {
                    trouble = Some(format!("{}={value}: {failed}", asked.setting));
                }
                codes.push(code(&comparison, args.strict));
                scan.points.push(ScanPoint {
                    value: value.clone(),
                    comparison,
                });
                output.store(&scan)?;
            }
            Err(error) if scan.points.is_empty() => return Err(error.into()),
            Err(error) => trouble = Some(format!("{}={value}: {error}", asked.setting)),
        }
        if trouble.is_some() {
            break;
        }
    }
    let printed = match output.is_streamed() {
        true => Ok(()),
        false => print::result(&refit_report::scan::terminal(
            &bounded(&scan),
            &print::style(),
        )),
    };
    output.write_scan(&scan)?;
    printed?;
    if let Some(trouble) = trouble {
        bail!(trouble);
    }
    let worst = match codes.contains(&TROUBLE) {
        true => TROUBLE,
        false => codes.into_iter().max().unwrap_or(TROUBLE),
    };
    Ok(match interrupting_signal() {
        Some(signal) if scan.points.len() < values => interrupted(signal),
        _ => worst,
    })
}
