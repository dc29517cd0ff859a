//! `refit export kubernetes apply`: settings for a workload, as a patch.

use std::path::Path;

use anyhow::{Context, Result};
use refit_knobs::Settings;
use refit_services::export::workload::{Profile, WorkloadPatch, patch, policy};
use serde_json::Value;

use crate::cli::{KubernetesApplyArgs, PatchForm};
use crate::cmd::named_file;
use crate::cmd::print;
use crate::cmd::result_file::replace;

pub fn apply(args: &KubernetesApplyArgs) -> Result<()> {
    let settings = Settings::parse(args.settings.iter().cloned())?;
    let object = object(&args.of)?;
    let profile = Profile {
        settings: &settings,
        library: args.library.clone(),
        seccomp_profile: &args.seccomp_profile,
        refit: args.refit.as_deref(),
        container: args.container.as_deref(),
    };
    if matches!(args.form, PatchForm::Policy) {
        let made = policy(&object, &profile)?;
        write(args, &made.objects)?;
        made.notes.iter().for_each(print::say);
        return Ok(());
    }
    let patch = patch(&object, &profile)?;
    write(args, &written(&patch, args.form))?;
    // What is to be known of a change is not to be known of its end.
    if !matches!(args.form, PatchForm::Inverse) {
        patch.notes.iter().for_each(print::say);
    }
    let type_of = match args.form {
        PatchForm::Json | PatchForm::Inverse => "json",
        PatchForm::Merge => "strategic",
        PatchForm::Kustomize | PatchForm::Policy => return Ok(()),
    };
    let file = args
        .out
        .as_ref()
        .map_or("FILE".to_owned(), |out| out.display().to_string());
    print::say(format_args!(
        "apply it: kubectl patch {} --type={type_of} --patch-file={file}",
        patch.workload
    ));
    Ok(())
}

fn write(args: &KubernetesApplyArgs, object: &Value) -> Result<()> {
    let mut text = serde_json::to_string_pretty(object)?;
    text.push('\n');
    match &args.out {
        Some(path) => replace(path, text.as_bytes()),
        None => print::result(&text),
    }
}

fn written(patch: &WorkloadPatch, form: PatchForm) -> Value {
    match form {
        PatchForm::Json => Value::Array(patch.operations.clone()),
        PatchForm::Inverse => Value::Array(patch.inverse.clone()),
        PatchForm::Merge => patch.strategic(),
        PatchForm::Kustomize | PatchForm::Policy => patch.component(),
    }
}

fn object(path: &Path) -> Result<Value> {
    let text = match path.to_str() {
        Some("-") => named_file::read_stdin(named_file::MOST_OF_OBJECT)?,
        _ => named_file::read(path, named_file::MOST_OF_OBJECT)?,
    };
    serde_json::from_str(&text).with_context(|| {
        format!(
            "{} is not JSON\n  kubectl get deployment/NAME -o json prints the object",
            path.display()
        )
    })
}
