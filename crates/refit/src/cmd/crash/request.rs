//! What was typed after `refit crash`, as a request.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use refit_crash::ack_source::AckText;
use refit_crash::check::Check;
use refit_crash::filesystem::Filesystem;
use refit_crash::{Program, Request, Typed};
use refit_knobs::{Settings, Variant};
use refit_recipe::{Promise, Recipe, available};

use crate::cli::{CrashArgs, for_recipes, typed_options};
use crate::cmd::{print, recipes, trust};

/// The time limit of a run that ends by itself, and the length of one of mails.
const LONGEST_RUN: Duration = Duration::from_secs(60);
const MAILS: Duration = Duration::from_secs(5);
/// Where neither an option nor a recipe says otherwise.
const CUTS: usize = 300;
const DISK_BYTES: u64 = 1 << 30;

/// Options that a report holds in places of their own.
const IN_REPORT: [&str; 17] = [
    "check",
    "ack",
    "ack-regex",
    "load",
    "ready",
    "prepare",
    "background",
    "for",
    "stop",
    "with",
    "cuts",
    "fs",
    "mount-options",
    "mount",
    "size",
    "tear",
    "seed",
];

/// What depends on whether a command or a recipe is cut.
struct Subject {
    program: Program,
    check_text: String,
    ack: AckText,
    length: Duration,
    stop: bool,
    cuts: usize,
    disk_bytes: u64,
    variants: Vec<Variant>,
}

/// The request that was typed. A recipe's commands have been agreed to.
pub fn plan(args: &CrashArgs) -> Result<Request> {
    let with = Settings::parse(args.with.clone())?;
    let subject = match recipe(args)? {
        Some((recipe, typed)) => of_recipe(args, &with, &recipe, typed)?,
        None if args.yes && !args.command.is_empty() => return Err(for_recipes("--yes")),
        None => of_command(args)?,
    };
    if subject.cuts == 0 {
        bail!("--cuts 0: nothing would be checked; take at least 1");
    }
    let smallest = args.fs.smallest();
    if subject.disk_bytes < smallest {
        bail!(
            "--size {}: a disk for {} needs at least {} bytes",
            subject.disk_bytes,
            args.fs.name(),
            smallest
        );
    }
    expect_conf(&subject, &with)?;
    let check: Check = subject
        .check_text
        .parse()
        .map_err(Error::msg)
        .context("--check")?;
    Ok(Request {
        program: subject.program,
        candidates: subject.variants,
        with,
        check,
        check_text: subject.check_text,
        ack: subject.ack,
        background: args.background.clone(),
        length: subject.length,
        stop: subject.stop,
        filesystem: Filesystem {
            kind: args.fs,
            options: args.mount_options.clone(),
        },
        disk_bytes: subject.disk_bytes,
        record_cap: args.record_size,
        cuts: subject.cuts,
        tear: args.tear.parse().context("--tear")?,
        check_timeout: args.check_timeout,
        mount: mount(args)?,
        directory: PathBuf::new(),
        seed: args.seed.unwrap_or_else(crate::cli::new_seed),
        reach: args.reach.reach(),
        options: typed_options::<CrashArgs>(std::env::args_os().skip(2), &IN_REPORT)?,
        allocator_dir: args.allocator_dir.clone(),
        workers: std::thread::available_parallelism().map_or(1, usize::from),
    })
}

/// The recipe, if the first word is one, and the words that are variants.
fn recipe(args: &CrashArgs) -> Result<Option<(Recipe, &[OsString])>> {
    let Some((first, rest)) = args.variants.split_first() else {
        return Ok(None);
    };
    let Some(name) = first.to_str().filter(|word| recipes::is_recipe_word(word)) else {
        return Ok(None);
    };
    if !args.command.is_empty() {
        if Recipe::find(name).is_ok() {
            bail!(
                "a recipe has its own program; leave out `-- {}`",
                args.command[0].display()
            );
        }
        return Ok(None);
    }
    let of_commands = [
        ("--check", args.check.is_some()),
        ("--ack", args.ack.is_some()),
        ("--ack-regex", args.ack_regex.is_some()),
        ("--load", args.load.is_some()),
        ("--ready", args.ready.is_some()),
        ("--prepare", args.prepare.is_some()),
    ];
    if let Some((option, _)) = of_commands.iter().find(|(_, given)| *given) {
        bail!(
            "{option} is for commands: a recipe sets that in [promise]\n  change a copy of it: refit recipes copy {name}"
        );
    }
    Ok(Some((Recipe::find(name)?, rest)))
}

fn of_recipe(
    args: &CrashArgs,
    with: &Settings,
    recipe: &Recipe,
    typed: &[OsString],
) -> Result<Subject> {
    let promise = recipe.promise()?;
    trust::agree(recipe, args.yes)?;
    if let Some(missing) = recipe.promise_missing() {
        bail!(missing);
    }
    let mut variants = variants(typed)?;
    if variants.is_empty() {
        let all = available(recipe, with, args.allocator_dir.as_deref());
        for one in all.unavailable {
            print::say(format_args!(
                "{} cannot be tried here: {}",
                one.settings, one.reason
            ));
        }
        variants = all.variants;
    }
    Ok(Subject {
        check_text: promise.check.clone(),
        ack: ack(promise.ack.as_deref(), promise.ack_regex.as_deref())?,
        length: args.length.unwrap_or(promise.length.0),
        stop: true,
        cuts: args.cuts.or(promise.cuts).unwrap_or(CUTS),
        disk_bytes: args.size.unwrap_or_else(|| disk_bytes(promise)),
        program: Program::Recipe(Box::new(recipe.promising()?)),
        variants,
    })
}

fn disk_bytes(promise: &Promise) -> u64 {
    promise.size.map_or(DISK_BYTES, |size| size.0)
}

fn of_command(args: &CrashArgs) -> Result<Subject> {
    if args.command.is_empty() && args.check.is_none() && args.ack.is_none() {
        bail!(
            "nothing to cut\n  name a recipe: refit crash append-log    (refit recipes lists them)\n  or a command: refit crash --check CHECK --ack SOURCE [VARIANT]... -- COMMAND"
        );
    }
    let Some(check_text) = args.check.clone() else {
        bail!(
            "no --check, which finds what is there after a cut\n  give a command that prints the id of each thing that is there, or for a log: --check log:FILE"
        );
    };
    if args.ack.is_none() && args.ack_regex.is_none() {
        bail!(
            "no --ack, which is how the program acknowledges\n  take the lines that it prints (--ack fd:1), or --ack-regex, --ack smtp:HOST:PORT, --ack sync"
        );
    }
    let ack = ack(args.ack.as_deref(), args.ack_regex.as_deref())?;
    if args.command.is_empty() {
        bail!(
            "no command to run\n  write it after `--`: refit crash --check … --ack … sync=off -- COMMAND"
        );
    }
    let is_mail = ack.is_smtp();
    if is_mail && args.load.is_some() {
        bail!("--ack smtp is a load by itself; leave out --load");
    }
    Ok(Subject {
        check_text,
        ack,
        length: args
            .length
            .unwrap_or(if is_mail { MAILS } else { LONGEST_RUN }),
        stop: args.stop,
        cuts: args.cuts.unwrap_or(CUTS),
        disk_bytes: args.size.unwrap_or(DISK_BYTES),
        program: Program::Command(Typed {
            command: args.command.clone(),
            prepare: args.prepare.clone(),
            load: args.load.clone(),
            ready: args.ready.clone(),
        }),
        variants: variants(&args.variants)?,
    })
}

fn ack(source: Option<&str>, regex: Option<&str>) -> Result<AckText> {
    match (source, regex) {
        (Some(text), _) => AckText::source(text).map_err(Error::msg).context("--ack"),
        (None, text) => AckText::regex(text.unwrap_or_default())
            .map_err(Error::msg)
            .context("--ack-regex"),
    }
}

fn variants(words: &[OsString]) -> Result<Vec<Variant>> {
    let variants = words
        .iter()
        .map(|word| Variant::parse_os(word))
        .collect::<Result<Vec<_>, _>>()?;
    let twice = |(at, one): (usize, &Variant)| variants[..at].contains(one);
    match variants.iter().enumerate().find(|each| twice(*each)) {
        Some((_, one)) => bail!("the variant {one} is given twice; name it once"),
        None => Ok(variants),
    }
}

/// Only a recipe declares `conf.` and `load.` settings, and only its own.
fn expect_conf(subject: &Subject, with: &Settings) -> Result<()> {
    let own = subject.variants.iter().map(|variant| &variant.settings().0);
    for setting in std::iter::once(&with.0).chain(own).flatten() {
        let is_of_recipe = setting.conf().is_some() || setting.load().is_some();
        match &subject.program {
            Program::Recipe(recipe) => {
                if let Some((name, value)) = setting.conf() {
                    recipe.conf(name, value)?;
                }
                if let Some((name, value)) = setting.load() {
                    let asked = recipe.with_load(&[(name.to_owned(), value.to_owned())])?;
                    if asked.open_loop().is_some() {
                        bail!(
                            "{setting} is of compare: a recipe's promise has a load of its own; leave it out"
                        );
                    }
                }
            }
            Program::Command(_) if is_of_recipe => bail!(
                "{setting}: only recipes have such settings\n  name a recipe first: refit crash NAME {setting}    (refit recipes lists them)"
            ),
            Program::Command(_) => {}
        }
    }
    Ok(())
}

fn mount(args: &CrashArgs) -> Result<Option<PathBuf>> {
    let Some(typed) = &args.mount else {
        return Ok(None);
    };
    let mount = fs::canonicalize(typed)
        .with_context(|| format!("--mount {}: name a directory that exists", typed.display()))?;
    if !mount.is_dir() || mount == Path::new("/") {
        bail!("--mount {}: name a directory other than /", mount.display());
    }
    Ok(Some(mount))
}
