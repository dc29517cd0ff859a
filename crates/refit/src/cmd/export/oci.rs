//! `refit export oci`: options of `docker run` and `podman run`, a seccomp profile, a line of a Dockerfile.

use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, Result, bail};
use refit_knobs::{Assignment, Class, Ground, Join, Preload, Settings};
use refit_launch::allocator;
use refit_report::shell_word;
use refit_run::{ElfFacts, replaced_syncs};
use refit_services::sync_filter::NOT_COVERED;
use serde_json::Value;

use super::seccomp::{allow_all, beneath};
use crate::cli::OciArgs;
use crate::cmd::named_file;
use crate::cmd::print;
use crate::cmd::result_file::{ResultFile, replace};

/// Where the settings act.
const GROUND: [Ground; 1] = [Ground::Container];

/// Where libraries are mounted in a container.
const LIBRARIES: &str = "/refit";

/// Where Podman and its relatives have their profile.
const INSTALLED: &str = "/usr/share/containers/seccomp.json";

pub fn export(args: &OciArgs) -> Result<()> {
    let settings = Settings::parse(args.settings.clone())?;
    match args.dockerfile {
        true => print::result(&instruction(&settings, args)?),
        false => {
            let options = options(&settings, args)?;
            let words: Vec<String> = options.iter().map(|word| shell_word(word)).collect();
            print::result(&(words.join(" ") + "\n"))
        }
    }
}

/// The words between `docker run` and the image.
fn options(settings: &Settings, args: &OciArgs) -> Result<Vec<String>> {
    if let Some(word) = args.command.first() {
        bail!(
            "a command is for --dockerfile; a container's stands after its image\n  leave out `-- {}`",
            word.display()
        );
    }
    refuse(settings)?;
    let launch = settings.launch();
    // The last rule is the one that holds.
    let is_off = launch.sync.last().is_some_and(|rule| !rule.on);
    let mut options = Vec::new();
    let libraries = libraries(settings, args)?;
    match (&args.seccomp, is_off) {
        (Some(file), true) => {
            write_profile(file, args.profile.as_deref())?;
            options.extend([
                "--security-opt".to_owned(),
                format!("seccomp={}", text(file)?),
            ]);
        }
        (None, true) => bail!(
            "sync=off is a seccomp profile, which runtimes read from a file\n  name a new one: --seccomp FILE"
        ),
        (Some(_), false) => bail!("--seccomp is for sync=off; add it, or leave out --seccomp"),
        (None, false) => {}
    }
    for setting in &settings.0 {
        if let Some(risk) = replaced_syncs(setting, |path| ElfFacts::of(path).ok()) {
            print::say(format_args!("{setting}: {}; {risk}", Class::LosesOnCrash));
        }
    }
    let mut preloaded = Vec::new();
    for (index, library) in libraries.iter().enumerate() {
        let name = library.rsplit('/').next().unwrap_or_default();
        let inside = format!("{LIBRARIES}/{}/{name}", index + 1);
        options.extend(["-v".to_owned(), format!("{library}:{inside}:ro")]);
        preloaded.push(inside);
    }
    if !preloaded.is_empty() {
        print::say(
            "the image needs the C library of this machine, in its version or a newer one, and what else the library needs; \
             not covered: static programs, set-id programs, and what is started with a cleared environment",
        );
    }
    let preload = Assignment::preload(preloaded.join(":"));
    for Assignment { name, value, join } in preload.into_iter().chain(launch.variables()) {
        if join != Join::Replace {
            print::say(format_args!(
                "{name} of the image is replaced by this one; where it has one (docker image inspect), add it by hand"
            ));
        }
        options.extend(["-e".to_owned(), format!("{name}={value}")]);
    }
    Ok(options)
}

/// What no option of a runtime can do.
fn refuse(settings: &Settings) -> Result<()> {
    for setting in &settings.0 {
        if !setting.acts_on(&GROUND) {
            bail!(
                "{setting}: options of a container cannot do this; they can do {}\n  \
                 run refit inside: refit run {} -- COMMAND, in a build by --dockerfile",
                Ground::settings(&GROUND),
                shell_word(&setting.to_string())
            );
        }
    }
    Ok(())
}

/// Libraries of this machine, by absolute path.
fn libraries(settings: &Settings, args: &OciArgs) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for preload in settings.launch().preloads() {
        let path = match preload {
            Preload::Allocator(malloc) => {
                allocator::library(malloc, args.allocator_dir.as_deref())?
            }
            Preload::File(path) => Some(path.to_owned()),
        };
        all.extend(path.map(|path| library(&path)).transpose()?);
    }
    Ok(all)
}

fn library(path: &Path) -> Result<String> {
    if !path.is_file() {
        bail!(
            "there is no library {}\n  name a file by its absolute path",
            path.display()
        );
    }
    let found = text(path)?;
    // -v has colons between its parts, LD_PRELOAD colons and spaces.
    if found.contains([':', ' ', '\t', '\n']) {
        bail!(
            "{}: an option -v cannot name it\n  copy it to a path without colons and spaces",
            path.display()
        );
    }
    Ok(found)
}

/// The path as a runtime finds it from anywhere.
fn text(path: &Path) -> Result<String> {
    let path: PathBuf = absolute(path).with_context(|| path.display().to_string())?;
    match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => bail!("{} is not UTF-8\n  name another file", path.display()),
    }
}

fn write_profile(file: &Path, given: Option<&Path>) -> Result<()> {
    // Before anything is told of it.
    ResultFile::create(file)?;
    let json = match given {
        Some(given) => {
            let shown = given.display();
            let content = named_file::read(given, named_file::MOST_OF_OBJECT)?;
            let profile: Value =
                serde_json::from_str(&content).with_context(|| format!("{shown} is not JSON"))?;
            let made = beneath(profile).with_context(|| format!("--profile {shown}"))?;
            if !made.kept.is_empty() {
                print::say(format_args!(
                    "{shown} decides by itself about {}: that stays",
                    made.kept.join(", ")
                ));
            }
            made.json
        }
        None => {
            let next = match Path::new(INSTALLED).is_file() {
                true => INSTALLED,
                false => "FILE",
            };
            print::say(format_args!(
                "without --profile the runtime's own protection is dropped: every call that is not a sync is allowed\n  \
                 give its default profile: --profile {next}"
            ));
            allow_all()
        }
    };
    let text = serde_json::to_string_pretty(&json)? + "\n";
    replace(file, text.as_bytes())?;
    print::say(format_args!(
        "sync=off: {}; {NOT_COVERED}",
        Class::LosesOnCrash
    ));
    Ok(())
}

/// One instruction, with refit from the build's context.
fn instruction(settings: &Settings, args: &OciArgs) -> Result<String> {
    if args.command.is_empty() {
        bail!(
            "no command for the instruction\n  write it after `--`: refit export oci --dockerfile sync=off -- apt-get install …"
        );
    }
    let mut words = vec!["/refit".to_owned(), "run".to_owned()];
    words.extend(settings.0.iter().map(ToString::to_string));
    words.push("--".to_owned());
    for word in &args.command {
        match word.to_str() {
            Some(word) => words.push(word.to_owned()),
            None => bail!("{} is not UTF-8, and a Dockerfile is", word.display()),
        }
    }
    // A shell of the image reads plain words; others are a list, which no shell reads.
    let command = match words.iter().all(|word| shell_word(word) == *word) {
        true => words.join(" "),
        false => serde_json::to_string(&words)?,
    };
    let refit = std::env::current_exe().context("cannot find refit itself")?;
    Ok(format!(
        "# Put refit into the context of the build: cp {} .\n\
         RUN --mount=type=bind,source=refit,target=/refit {command}\n",
        shell_word(&refit.display().to_string())
    ))
}
