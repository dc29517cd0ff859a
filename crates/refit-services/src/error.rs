//! Why a service is not changed.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use refit_knobs::Class;

use crate::{FileError, FileState};

/// A file that is neither as it was before the change nor as the change left it.
#[derive(Clone, Debug)]
pub struct Changed {
    /// Its path.
    pub path: String,
    /// Before the change.
    pub before: Option<FileState>,
    /// As the change left it.
    pub after: Option<FileState>,
    /// As it is now.
    pub now: Option<FileState>,
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // each variant's message is its description
pub enum Error {
    #[error("--root {}", path.display())]
    Root { path: PathBuf, cause: io::Error },
    #[error("{} belongs to the user {uid}, who can write there what refit would read as its own and do as you\n  as that user: refit …; or: chown {} it", path.display(), rustix::process::geteuid().as_raw())]
    OthersTree { path: PathBuf, uid: u32 },
    #[error("{} is of the user {uid} with mode {mode:04o}: another user can write there what refit would do as you\n  look what it holds, then remove it, or: chown {} and chmod go-w", path.display(), rustix::process::geteuid().as_raw())]
    OthersStore { path: PathBuf, uid: u32, mode: u32 },
    #[error("{} is a symbolic link; refit does not edit what lies beyond one", path.display())]
    Link { path: PathBuf },
    #[error("{} can be written by other users, who could replace what refit puts or executes there\n  chown root, chmod go-w", path.display())]
    NotAlone { path: PathBuf },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "{path} is the C library: a service with a copy of it would have one that does not fit after an upgrade\n  \
         its own malloc needs no library: malloc=glibc"
    )]
    CLibrary { path: String },
    #[error(transparent)]
    Launch(#[from] refit_run::LaunchError),
    #[error("{service}: its name is too long for files named after it, by {over} bytes")]
    LongName { service: String, over: usize },
    #[error("{} is there already, and is not refit's\n  move it away, then apply again", path.display())]
    InTheWay { path: PathBuf },
    #[error(
        "changing a service of this machine needs root\n  sudo refit …, or --root DIR for a tree of your own"
    )]
    NotRoot,
    #[error("systemd does not run here, so no service can be changed\n  for an image: --root DIR")]
    NoSystemd,
    #[error(
        "{unit} is masked, and cannot be started: a change would do nothing\n  first: systemctl unmask {unit}"
    )]
    Masked { unit: String },
    #[error("there is no service `{word}`{place}\n  list them: {list}")]
    UnknownService {
        word: String,
        place: String,
        list: String,
    },
    #[error(
        "`{setting}` cannot be applied to {service}; what can: {known}\n  see what each does: refit help settings"
    )]
    UnknownSetting {
        setting: String,
        service: String,
        known: String,
    },
    #[error("`{setting}` cannot be applied to {service}: {reason}")]
    BadConf {
        setting: String,
        service: String,
        reason: String,
    },
    #[error("{name} cannot be written to {path}: its value is not one line of text")]
    NotOneLine { name: String, path: String },
    #[error("{place} sets {name} to `{value}`, and wins over {ours}\n  first: {mend}")]
    Overridden {
        name: String,
        value: String,
        place: String,
        ours: String,
        mend: String,
    },
    #[error(
        "{file} of {service} includes no conf.d, and names no data_directory with a postgresql.auto.conf\n  add the line: include_dir = 'conf.d'"
    )]
    NoPlace { service: String, file: String },
    #[error(
        "{path} changed after {service} was started, and a restart would take that up too\n  first: systemctl restart {service}, and see that it still does its work"
    )]
    NotTakenUp { service: String, path: String },
    #[error("refit cannot follow the include at {place}, or the file is not UTF-8")]
    NotRead { place: String },
    #[error("`{word}` is more than one service\n  name one of: {services}")]
    SeveralServices { word: String, services: String },
    #[error("`{setting}` is {class}: {meaning}\n  {next}")]
    NotAccepted {
        setting: String,
        class: Class,
        meaning: &'static str,
        next: String,
    },
    #[error(
        "--accept {class} needs evidence: {lacks}\n  make it: refit compare RECIPE VARIANT --remeasure --prove --json RESULT; or do without: --accept {class} --no-evidence"
    )]
    NoEvidence { class: Class, lacks: String },
    #[error("{service}: {reason}")]
    NotReached {
        service: String,
        reason: &'static str,
    },
    #[error(
        "{place} starts a script of refit's instead of {daemon}, and no change of it is known here\n  write {daemon} there again"
    )]
    Wrapped { place: String, daemon: String },
    #[error("{path} cannot be wrapped: {reason}")]
    NotWrapped { path: String, reason: String },
    #[error(
        "{path} belongs to a package ({package}): an upgrade would take refit's script away\n  a script before it in PATH stays: refit plan wrapper:{shadow}"
    )]
    OfPackage {
        path: String,
        package: String,
        shadow: String,
    },
    #[error(
        "{path} or {kept} changed after refit wrote them; nothing was reverted\n  to have the program as it was: mv {kept} {path}, then revert again"
    )]
    Replaced { path: String, kept: String },
    #[error("{what} cannot be changed: {reason}")]
    NoTable { what: String, reason: String },
    #[error(transparent)]
    Schema(Box<refit_schema::SchemaError>),
    #[error(
        "{service} is not a database whose schema refit reads\n  name one: sqlite:/PATH or postgresql/DATABASE"
    )]
    NoSchema { service: String },
    #[error("the schema of {service} was changed by somebody else meanwhile: {what}\n  plan again")]
    SchemaMeanwhile { service: String, what: String },
    #[error(
        "the schema of {service} changed after refit made it; nothing was reverted\n  {}\n  make it as it was, or drop it, then revert again",
        lines.join("\n  ")
    )]
    SchemaSince { service: String, lines: Vec<String> },
    #[error(
        "{service}: this destroys {}, which no revert brings back\n  to accept it: --accept loses-data",
        what.join(", ")
    )]
    Destroys { service: String, what: Vec<String> },
    #[error("somebody else made or changed index {index} of {service} meanwhile: that stays")]
    MadeSince { service: String, index: String },
    #[error(
        "index {index} of {service} changed after refit made it; nothing was reverted\n  refit made: {ours}\n  it is now:  {now}\n  make it as it was, or drop or rename it, then revert again"
    )]
    Redefined {
        service: String,
        index: String,
        ours: String,
        now: String,
    },
    #[error("{service}: {why}\n  apply it, and take it back yourself: refit revert {service}")]
    NotByItself { service: String, why: &'static str },
    #[error("nothing to apply: name settings, as in\n  refit plan {service} {example}")]
    NoSettings {
        service: String,
        example: &'static str,
    },
    #[error(
        "{service}: nothing to do: {settings} asks for what every service has\n  name an option, as in malloc=glibc:arena_max=2"
    )]
    AsksNothing { service: String, settings: String },
    #[error("{service}: malloc=glibc takes no other allocator away: {who}\n  {next}")]
    OtherAllocator {
        service: String,
        who: String,
        next: String,
    },
    #[error(transparent)]
    NoAllocator(#[from] refit_run::allocator::Missing),
    #[error(
        "there is no library {path}\n  name one that is there: preload=/PATH/LIB.so, or an allocator: malloc=jemalloc"
    )]
    NoLibrary { path: String },
    #[error("{path} is not a shared library of this machine's kind")]
    NotALibrary { path: String },
    #[error(
        "{service} has the change `{settings}` already, and not only for a time\n  to try it, take it back first: refit revert {service}"
    )]
    StaysAlready { service: String, settings: String },
    #[error(
        "{service} has the change `{settings}`, which waits to be confirmed\n  keep it: refit confirm {service}; or take it back: refit revert {service}"
    )]
    Waits { service: String, settings: String },
    #[error(
        "{service} has no setting `{word}`; it has {settings}\n  take all of it back: refit revert {service}"
    )]
    NotApplied {
        service: String,
        word: String,
        settings: String,
    },
    #[error(
        "{service}: systemd has {name}=`{loaded}` and refit read `{read}` in the unit's files, so that what stays beside it is not known\n  see: systemctl show -p Environment {service}; systemctl cat {service}"
    )]
    ReadOtherwise {
        service: String,
        name: String,
        read: String,
        loaded: String,
    },
    #[error("{service}: its `{setting}` is of the same index, and goes with it: name it too")]
    SameIndex { service: String, setting: String },
    #[error(
        "{service} was changed at the same time, and nothing was done\n  see: refit status {service}"
    )]
    NotAsPlanned { service: String },
    #[error(
        "a setting of the change of {service} is none that this refit takes\n  take the change back first: refit revert {service}"
    )]
    OldSettings {
        service: String,
        cause: Box<refit_knobs::SettingError>,
    },
    #[error(
        "a change of {service} was interrupted\n  take back what it did: refit revert {service}"
    )]
    Interrupted { service: String },
    #[error("--confirm-within has to be {} s at least: a restart has to fit into it", least.as_secs())]
    TooShort { least: Duration },
    #[error(
        "{service}: the change was not confirmed, and its files are gone, as after a reboot\n  forget it: refit revert {service}"
    )]
    TakenBackBefore { service: String },
    #[error("{service} has no change of refit's\n  list all: refit status")]
    NoChange { service: String },
    #[error("{service} was applied, and differs from it now\n  see what: refit status {service}")]
    Drifted { service: String },
    #[error("another refit is changing services, and did not end within {} s; try again when it has", waited.as_secs())]
    Busy { waited: Duration },
    #[error("{} is a record that this refit cannot read: {reason}\n  the files of its service are as they are, and all other services can be changed and reverted\n  put a copy of the record in its place; or restore the files by hand, and remove the record", path.display())]
    BadRecord { path: PathBuf, reason: String },
    #[error("{} changed after refit wrote it; nothing was reverted", paths(.0))]
    Conflict(Vec<Changed>),
    #[error("{path} is not the library that refit put there; nothing was reverted")]
    LibraryChanged { path: String },
    #[error("{command}: {output}")]
    Command { command: String, output: String },
    #[error("{service} was started with the change, but it is not in effect: {reason}")]
    NotInEffect { service: String, reason: String },
    #[error(
        "--health asks a service that runs, and below --root none does\n  leave one of the two out"
    )]
    NothingRuns,
    #[error("`{command}` {how} {when}")]
    NotHealthy {
        command: String,
        how: String,
        when: String,
    },
    #[error("not applied, and all was taken back: {}", with_cause(.0))]
    TakenBack(Box<Error>),
    #[error(
        "not applied, and all was taken back: {}\n  without the change {health}: see systemctl status {service}",
        with_cause(cause)
    )]
    StillNotHealthy {
        service: String,
        cause: Box<Error>,
        health: Box<Error>,
    },
    #[error(
        "not applied: {}\n  undoing it failed too: {}\n  once that is fixed: refit revert {service}",
        with_cause(cause),
        with_cause(revert)
    )]
    Stuck {
        service: String,
        cause: Box<Error>,
        revert: Box<Error>,
    },
}

impl From<refit_schema::SchemaError> for Error {
    fn from(error: refit_schema::SchemaError) -> Error {
        Error::Schema(Box::new(error))
    }
}

/// An error, and what it comes from.
fn with_cause(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

fn paths(all: &[Changed]) -> String {
    let paths: Vec<&str> = all.iter().map(|changed| &*changed.path).collect();
    paths.join(", ")
}

impl Error {
    /// Whether a file could not be written because there is no space for it.
    pub(crate) fn is_no_space(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self, Error::File(FileError::Failed { cause, .. })
            if [StorageFull, QuotaExceeded, FileTooLarge].contains(&cause.kind()))
    }

    /// refit's exit code: 1 the change did not hold, 2 usage or environment, 3 a person must
    /// decide.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Conflict(_)
            | Error::LibraryChanged { .. }
            | Error::Replaced { .. }
            | Error::Redefined { .. }
            | Error::SchemaSince { .. }
            | Error::Drifted { .. }
            | Error::File(FileError::Edited { .. }) => 3,
            Error::TakenBack(cause) if matches!(**cause, Error::File(FileError::Edited { .. })) => {
                3
            }
            Error::TakenBack(cause) if matches!(**cause, Error::File(_)) => 2,
            Error::TakenBack(_)
            | Error::StillNotHealthy { .. }
            | Error::Stuck { .. }
            | Error::NotInEffect { .. } => 1,
            _ => 2,
        }
    }
}
