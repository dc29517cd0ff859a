//! `refit recipes`: lists, shows, copies, writes and checks recipes.

mod index;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use refit_knobs::{Settings, Variant};
use refit_lab::{Checked, DEFAULT_BUDGET, RecipeSubject, Request, Subject, check_recipe};
use refit_recipe::{
    Available, Folder, FromError, Made, Notes, Recipe, Text, available, available_unasked,
    from_path, from_template, from_unit, remove_abandoned_instances, shipped_names,
};
use refit_report::{Page, at_most};
use refit_session::remove_abandoned;

use super::print;
use super::trust::{self, commands};
use crate::cli::{
    RecipeCheckArgs, RecipeCopyArgs, RecipeNameArgs, RecipeNewArgs, RecipesArgs, RecipesVerb,
};

pub fn main(args: &RecipesArgs) -> ExitCode {
    let result = match &args.verb {
        None | Some(RecipesVerb::List) => list(),
        Some(RecipesVerb::Show(args)) => show(args),
        Some(RecipesVerb::Copy(args)) => copy(args),
        Some(RecipesVerb::New(args)) => new(args),
        Some(RecipesVerb::Check(args)) => check(args),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => print::failed(&error, 2),
    }
}

fn list() -> Result<bool> {
    let width = shipped_names().map(str::len).max().unwrap_or(0);
    let mut page = Page::default();
    for name in shipped_names() {
        let recipe = Recipe::find(name)?;
        let question = localized(&recipe.file.question);
        page.line(0, format!("{name:width$}  {question}"));
        if let Some(missing) = recipe.missing("compare") {
            let remedy = missing.lines().last().unwrap_or_default().trim();
            page.line(0, format!("{:width$}  cannot run here; {remedy}", ""));
        }
    }
    page.heading("refit recipes show NAME      show what it runs");
    page.line(0, "refit recipes check NAME     see whether it works here");
    page.line(0, "refit compare NAME           compare its variants");
    print::result(&page.text())?;
    Ok(true)
}

fn show(args: &RecipeNameArgs) -> Result<bool> {
    let recipe = Recipe::find(&args.name)?;
    let mut page = Page::default();
    page.heading(recipe.name());
    page.line(0, localized(&recipe.file.question));
    if let Some(answer) = &recipe.file.answer {
        page.heading(localized(answer));
    }
    if let Some(note) = &recipe.file.note {
        page.heading(&format!("note: {}", note.title));
        page.line(0, format!("then: {}", note.then));
    }
    if let Some(missing) = recipe.missing("compare") {
        page.line(0, "");
        page.lines(0, &format!("cannot run here: {missing}"));
    }
    page.heading("variants");
    let all = available_unasked(&recipe);
    for entry in &recipe.file.variants {
        let settings = &entry.settings;
        page.line(1, format!("{settings}{}", class(&recipe, settings)));
        page.line(3, &entry.why);
        let unavailable = all.unavailable.iter().find(|u| u.settings == *settings);
        if let Some(unavailable) = unavailable {
            let reason = unavailable.reason.lines().next().unwrap_or_default();
            page.line(3, format!("not available here: {reason}"));
        }
    }
    let open = recipe.file.load.open.as_ref();
    if open.is_some() || !recipe.file.load.knobs.is_empty() {
        page.heading("load");
    }
    for (name, knob) in &recipe.file.load.knobs {
        page.line(1, format!("load.{name}={}", knob.default));
        page.line(3, &knob.about);
    }
    if let Some(open) = open {
        page.line(1, "load.rate=NUMBER/s");
        let text = format!(
            "refit sends `{}` ({}) at this rate in place of load.command; load.arrivals=constant or poisson",
            open.request, open.protocol
        );
        page.line(3, text);
    }
    let budget = at_most(recipe.budget.unwrap_or(DEFAULT_BUDGET));
    page.line(0, "");
    page.line(
        0,
        format!("budget of a comparison: {budget} (another: --budget TIME)"),
    );
    page.heading("commands");
    commands(&recipe, &mut page);
    files(&recipe, &mut page);
    print::result(&page.text())?;
    Ok(true)
}

/// In Japanese where the locale asks for it and the text has it: LC_ALL wins over LC_MESSAGES, and that over LANG
/// (locale(7)).
fn localized(text: &Text) -> &str {
    let names = ["LC_ALL", "LC_MESSAGES", "LANG"];
    let mut set = names.iter().filter_map(env::var_os);
    let locale = set.find(|value| !value.is_empty()).unwrap_or_default();
    match &text.ja {
        Some(japanese) if locale.as_encoded_bytes().starts_with(b"ja") => japanese,
        _ => &text.en,
    }
}

/// The class of some settings, and the bound that is declared of them.
fn class(recipe: &Recipe, settings: &str) -> String {
    let Ok(variant) = Variant::parse(settings) else {
        return String::new();
    };
    let class = recipe.class(variant.settings());
    match recipe.bound(variant.settings()) {
        Some(bound) => format!("   ({class}: {bound})"),
        None => format!("   ({class})"),
    }
}

/// The files that the commands name; not the recipe, which has been shown, nor its
/// description.
fn files(recipe: &Recipe, page: &mut Page) {
    for file in &recipe.folder.files {
        let name = file.path.display().to_string();
        if ["recipe.toml", "README.md", "picture.svg"].contains(&&*name) {
            continue;
        }
        page.heading(&format!("file {name}"));
        match std::str::from_utf8(&file.bytes) {
            Ok(text) => page.lines(1, &text.replace('\t', "    ")),
            Err(_) => page.line(1, format!("{} bytes that are no text", file.bytes.len())),
        }
    }
}

fn copy(args: &RecipeCopyArgs) -> Result<bool> {
    let Some(folder) = Folder::shipped(&args.name) else {
        // The error names those that there are.
        Recipe::find(&args.name)?;
        bail!("{} is a folder already; copy it with cp -r", args.name);
    };
    let to = args
        .dir
        .clone()
        .unwrap_or_else(|| PathBuf::from(&args.name));
    let remedy = format!(
        "name another directory: refit recipes copy {} DIR",
        args.name
    );
    write(&folder, &to, &remedy)?;
    let here = if to.is_absolute() || to.starts_with("..") || to.starts_with(".") {
        to.display().to_string()
    } else {
        format!("./{}", to.display())
    };
    line(format!(
        "{} written; next: refit compare {here}",
        to.display()
    ))?;
    Ok(true)
}

fn new(args: &RecipeNewArgs) -> Result<bool> {
    let name = &args.name;
    if let Some(from) = &args.from
        && (args.queries.is_some() || refit_index::is_database(from))
    {
        return index::new(name, from, args.queries.as_deref());
    }
    let parts = |made: Made| (made.folder, made.notes);
    let (made, option) = match (&args.from, &args.from_unit, &args.template) {
        (Some(path), ..) => {
            let made = from_path(path, name).map(parts);
            (made, format!("--from {}", path.display()))
        }
        (_, Some(unit), _) => {
            let made = from_unit(unit, name).map(parts);
            (made, format!("--from-unit {unit}"))
        }
        (.., template) => {
            let template = template.as_deref().unwrap_or_default();
            let Some(folder) = from_template(template, name) else {
                bail!("there is no template `{template}`");
            };
            let made = folder.map(|folder| (folder, Notes::default()));
            (
                made.map_err(FromError::Recipe),
                format!("--template {template}"),
            )
        }
    };
    let remedy = format!("choose another name: refit recipes new NAME {option}");
    let (folder, notes) = made.map_err(|error| match error {
        FromError::Recipe(_) => anyhow!("{error}\n  {remedy}"),
        error => anyhow!("{error}"),
    })?;
    write(&folder, Path::new(name), &remedy)?;
    // Nobody else wrote what it runs.
    trust::remember_own(&Recipe::find(&format!("./{name}"))?);
    let mut page = Page::default();
    for (title, notes) in notes.titled() {
        page.heading(title);
        for note in notes {
            page.line(1, note);
        }
    }
    page.heading(&format!(
        "{name} written; next: refit recipes check ./{name}, then refit compare ./{name}"
    ));
    print::result(&page.text())?;
    Ok(true)
}

/// Writes a folder where there is nothing yet.
fn write(folder: &Folder, to: &Path, remedy: &str) -> Result<()> {
    if to.symlink_metadata().is_ok() {
        bail!("{} is there already; {remedy}", to.display());
    }
    let failed = || format!("cannot write {}", to.display());
    folder.write(to).with_context(failed)
}

/// A result of one line.
fn line(text: String) -> Result<()> {
    let mut page = Page::default();
    page.line(0, text);
    print::result(&page.text())
}

fn check(args: &RecipeCheckArgs) -> Result<bool> {
    let names: Vec<String> = if args.names.is_empty() {
        shipped_names().map(str::to_owned).collect()
    } else {
        args.names.clone()
    };
    remove_abandoned();
    remove_abandoned_instances(&args.instances.base()?);
    let mut all_passed = true;
    let mut trouble = None;
    for name in names {
        let recipe = Recipe::find(&name)?;
        trust::agree(&recipe, args.instances.yes)?;
        match check_one(&recipe, args) {
            Ok(passed) => all_passed &= passed,
            // The others can still be tried.
            Err(error) => {
                print::say(format_args!("{error:#}"));
                trouble = Some(name);
            }
        }
    }
    if let Some(name) = trouble {
        bail!("{name} could not be checked");
    }
    Ok(all_passed)
}

fn check_one(recipe: &Recipe, args: &RecipeCheckArgs) -> Result<bool> {
    let Available {
        variants,
        unavailable,
    } = available(recipe, &Settings::default(), args.allocator_dir.as_deref());
    let subject = RecipeSubject {
        recipe: recipe.clone(),
        dir: args.instances.base()?,
        explain_memory: false,
    };
    let request = Request {
        candidates: variants,
        unavailable,
        allocator_dir: args.allocator_dir.clone(),
        ..Request::of(Subject::Recipe(Box::new(subject)))
    };
    let name = recipe.name();
    let passed = check_recipe(&request, &mut |checked: &Checked| {
        let (word, text) = match &checked.outcome {
            Ok(outcome) => ("ok     ", outcome),
            Err(reason) => ("FAILED ", reason),
        };
        // What a check prints may have several lines.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let seconds = checked.took.as_secs_f64();
        // A closed pipe does not end the check: the exit code still reports it.
        let _ = line(format!(
            "{word} {name}: {}: {text} ({seconds:.1} s)",
            checked.variant
        ));
    })?;
    for unavailable in &request.unavailable {
        let reason = unavailable.reason.lines().next().unwrap_or_default();
        line(format!(
            "skipped {name}: {}: {reason}",
            unavailable.settings
        ))?;
    }
    Ok(passed)
}

/// The directory of a recipe that was typed with or without a slash at its end.
pub fn is_recipe_word(word: &str) -> bool {
    !word.contains('=') || Path::new(word).is_dir()
}
