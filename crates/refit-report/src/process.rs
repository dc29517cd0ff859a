//! What `refit doctor PID` prints.

use std::path::{Path, PathBuf};

use refit_run::process::{Effect, NotLoaded, Process, Server, Serving};

use crate::doctor::{kind, malloc, syncs};
use crate::format::bytes;
use crate::page::Page;

/// At most this many objects are named for each library that serves them.
const MOST: usize = 8;

/// Who serves malloc in a process, and what else of it can be told from outside.
#[must_use]
pub fn process(process: &Process) -> String {
    let mut page = Page::default();
    page.heading(&format!("process {}, {}", process.pid, process.facts.name));
    let missing = "unknown: this user may not read it";
    match &process.facts.executable {
        Some(path) => page.row("program", path.display().to_string()),
        None => page.row("program", missing),
    }
    if let Some(reachability) = &process.reachability {
        page.row("kind", kind(&reachability.target));
    }
    if process.facts.is_secure == Some(true) {
        page.folded(
            "started",
            "in secure-execution mode (set-id, or capabilities of its file): ld.so ignores libraries and tunables",
        );
    }
    page.heading("who serves malloc");
    serving(&mut page, process);
    page.heading("variables of its start about allocators and libraries");
    match process.variables.as_deref() {
        None => page.row("variables", missing),
        Some([]) => page.row("variables", "none"),
        Some(set) => set.iter().for_each(|variable| {
            let effect = match &variable.effect {
                Effect::Read => "read".to_owned(),
                Effect::Nowhere(reason) => format!("leads nowhere: {reason}"),
                Effect::Unknown(reason) => format!("unknown: {reason}"),
            };
            page.line(1, format!("{}={}", variable.name, variable.value));
            page.folded("", &effect);
        }),
    }
    page.heading("thp: transparent huge pages");
    page.row("system", process.thp.to_string());
    page.folded(
        "process",
        match process.facts.thp_allowed {
            Some(true) => "allowed",
            Some(false) => {
                "switched off by prctl (PR_SET_THP_DISABLE), by itself or by what started it"
            }
            None => "unknown: this kernel does not tell",
        },
    );
    match process.facts.huge_bytes {
        Some(huge) => page.row("in use", bytes(huge as f64)),
        None => page.row("in use", missing),
    }
    page.heading("what refit could swap at its next start (of a running process nothing)");
    match &process.reachability {
        Some(reachability) => {
            page.row("sync, disk", syncs(reachability.syncs));
            page.folded("malloc", &malloc(&reachability.malloc));
            page.row("thp", "never");
        }
        None => page.row("settings", missing),
    }
    page.text()
}

fn serving(page: &mut Page, process: &Process) {
    let groups = match &process.serving {
        Ok(groups) => groups,
        Err(reason) => return page.folded("unknown", &unread(reason, process.pid)),
    };
    if groups.is_empty() {
        page.row("nobody", "nothing that is loaded calls malloc");
    }
    for Serving { by, objects } in groups {
        let (server, how) = served(by);
        page.line(1, format!("{server}{how}"));
        page.folded("", &named(objects));
    }
    if !process.mixed.is_empty() {
        page.folded(
            "mixed",
            &format!(
                "{} got functions of more than one library: what one allocates another may free",
                named(&process.mixed)
            ),
        );
    }
}

fn served(by: &Server) -> (String, String) {
    let text = |path: &Path| path.display().to_string();
    match by {
        Server::First(library) => (text(library), " serves".to_owned()),
        Server::Past { library, first } => (
            text(library),
            format!(
                ", and not {}, serves (RTLD_DEEPBIND, or bound when it was linked)",
                file_name(first)
            ),
        ),
        Server::Namespace(library) => (
            text(library),
            ", in a namespace of its own (dlmopen), serves".to_owned(),
        ),
        Server::NotYet(Some(library)) => (
            text(library),
            " will be found at the first call (not yet called; with RTLD_DEEPBIND another)"
                .to_owned(),
        ),
        Server::NotYet(None) => (
            "nothing that is loaded".to_owned(),
            " would be found at the first call".to_owned(),
        ),
        Server::Unknown => (
            "code that no loader loaded".to_owned(),
            " serves".to_owned(),
        ),
    }
}

/// Names of files, the first of many.
fn named(paths: &[PathBuf]) -> String {
    let names: Vec<&str> = paths
        .iter()
        .take(MOST)
        .map(|path| file_name(path))
        .collect();
    match paths.len().saturating_sub(MOST) {
        0 => names.join(", "),
        more => format!("{}, and {more} more", names.join(", ")),
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("?")
}

fn unread(reason: &NotLoaded, pid: u32) -> String {
    match reason {
        NotLoaded::Static => {
            "the program is static: the allocator in it serves it, and no library can replace it".to_owned()
        }
        NotLoaded::OtherArchitecture => "a 32-bit program, or one of another machine: not read".to_owned(),
        NotLoaded::NoMemory => "it has ended".to_owned(),
        NotLoaded::Refused(error) => format!(
            "its memory may not be read ({error}): its owner may where the kernel lets it (kernel.yama.ptrace_scope), \
             and root may: sudo refit doctor {pid}"
        ),
        NotLoaded::NoList => {
            "the list of what it has loaded could not be read: it starts, keeps loading, or has no usual loader"
                .to_owned()
        }
    }
}
