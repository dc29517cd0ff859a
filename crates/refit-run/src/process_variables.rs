//! Variables that an allocator or the loader reads, of a process that was started with them: whether anything in it
//! reads them, and knows what they name.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use refit_knobs::NamedAllocator;
use refit_meter::LoadedObject;

/// Limit to what is read of a library.
const MOST_BYTES: u64 = 64 << 20;

/// One variable about allocators or libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// As it was set.
    pub name: String,
    /// As it was set.
    pub value: String,
    /// What becomes of it.
    pub effect: Effect,
}

/// What becomes of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Something that serves this process reads it.
    Read,
    /// It leads nowhere, in whole or in part, for this reason.
    Nowhere(String),
    /// That cannot be told, for this reason.
    Unknown(&'static str),
}

/// What a process has loaded, as far as its variables matter.
pub struct Loading<'a> {
    /// The libraries that serve malloc.
    pub servers: &'a [PathBuf],
    /// All that is loaded.
    pub objects: &'a [LoadedObject],
    /// It is a static program.
    pub is_static: bool,
    /// It was started in secure-execution mode.
    pub is_secure: bool,
    /// Where its files are.
    pub root: &'a Path,
}

/// Those among `set` that are about allocators or libraries.
#[must_use]
pub fn variables(set: &[(String, String)], loading: &Loading) -> Vec<Variable> {
    let checked = set.iter().filter_map(|(name, value)| {
        let effect = if name == "LD_PRELOAD" && !value.is_empty() {
            loading.preload(value)
        } else {
            let (reader, variable) = NamedAllocator::reader(name)?;
            let options = variable.options.map(|options| options(name, value));
            // GLIBC_TUNABLES are about other things too.
            if options.as_ref().is_some_and(Vec::is_empty) {
                return None;
            }
            loading.option(reader, &options.unwrap_or_default())
        };
        Some(Variable {
            name: name.clone(),
            value: value.clone(),
            effect,
        })
    });
    checked.collect()
}

impl Loading<'_> {
    fn option(&self, reader: &NamedAllocator, options: &[String]) -> Effect {
        if self.is_static {
            return Effect::Unknown("the program is static: its allocator has no file of its own");
        }
        if self.servers.is_empty() {
            return Effect::Unknown("who serves malloc is not known");
        }
        let Some(server) = self
            .servers
            .iter()
            .find(|one| NamedAllocator::of_file(file_name(one)) == Some(reader))
        else {
            let mut names: Vec<&str> = self
                .servers
                .iter()
                .map(|server| file_name(server))
                .collect();
            names.dedup();
            return Effect::Nowhere(format!(
                "only {} reads it, and malloc is served by {}",
                reader.title(),
                names.join(", ")
            ));
        };
        if self.is_secure && reader.is_deaf_when_secure {
            return Effect::Nowhere(
                "the program was started in secure-execution mode, where it is not read".to_owned(),
            );
        }
        let holder = match reader.is_c_librarys() {
            // The loader reads its tunables, and has their names.
            true => {
                let is_loader = |object: &&LoadedObject| file_name(&object.path).starts_with("ld-");
                self.objects
                    .iter()
                    .find(is_loader)
                    .map(|object| object.path.as_path())
            }
            false => Some(server.as_path()),
        };
        let file = holder
            .filter(|_| !options.is_empty())
            .and_then(|path| self.file(path));
        let (Some(holder), Some(file)) = (holder, file) else {
            return Effect::Read;
        };
        let is_unknown = |option: &&String| !option.is_empty() && !holds(&file, option);
        match options.iter().find(is_unknown) {
            Some(option) => Effect::Nowhere(format!(
                "the file of {} has no option `{option}`",
                file_name(holder)
            )),
            None => Effect::Read,
        }
    }

    /// ld.so separates the libraries by colons or blanks (ld.so(8)).
    fn preload(&self, value: &str) -> Effect {
        if self.is_static {
            return Effect::Nowhere("the program is static: no loader reads it".to_owned());
        }
        if self.objects.is_empty() {
            return Effect::Unknown("what is loaded is not known");
        }
        let mut names = value.split([':', ' ']).filter(|name| !name.is_empty());
        let Some(missing) = names.find(|name| !self.is_loaded(name)) else {
            return Effect::Read;
        };
        let reason = match () {
            () if self.is_secure => "the program was started in secure-execution mode",
            () if missing.starts_with('/')
                && fs::symlink_metadata(self.below_root(Path::new(missing))).is_err() =>
            {
                "there is no such file"
            }
            () => "the loader refused it, or the program was not started with it",
        };
        Effect::Nowhere(format!("{missing} is not loaded: {reason}"))
    }

    /// Mapped under its own name, or under the one that its link leads to.
    fn is_loaded(&self, name: &str) -> bool {
        let path = Path::new(name);
        let real = path.canonicalize().ok();
        self.objects.iter().any(|object| {
            let mapped = object.path.to_string_lossy();
            let mapped = Path::new(mapped.trim_end_matches(" (deleted)"));
            real.as_deref() == Some(mapped) || file_name(mapped).starts_with(file_name(path))
        })
    }

    fn below_root(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The content of a library; nothing but a regular file is opened.
    fn file(&self, path: &Path) -> Option<Vec<u8>> {
        let path = self.below_root(path);
        let size = fs::symlink_metadata(&path)
            .ok()
            .filter(fs::Metadata::is_file)?
            .len();
        let mut bytes = Vec::new();
        let read = File::open(path)
            .ok()?
            .take(MOST_BYTES)
            .read_to_end(&mut bytes);
        (read.is_ok() && size <= MOST_BYTES).then_some(bytes)
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// Whether a file holds a name between bytes that belong to no name.
fn holds(file: &[u8], name: &str) -> bool {
    let is_of_a_name =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let mut from = 0;
    while let Some(found) = find(&file[from..], name.as_bytes()) {
        let at = from + found;
        // A text that ends like it may be used for it: the linker merges them.
        if !is_of_a_name(file.get(at + name.len())) {
            return true;
        }
        from = at + 1;
    }
    false
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let (first, rest) = needle.split_first()?;
    let mut from = 0;
    while let Some(found) = haystack[from..].iter().position(|byte| byte == first) {
        let after = from + found + 1;
        if haystack[after..].starts_with(rest) {
            return Some(after - 1);
        }
        from = after;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(path: &Path) -> LoadedObject {
        LoadedObject {
            path: path.to_owned(),
            namespace: 0,
            exports_malloc: true,
            imports: Vec::new(),
        }
    }

    #[test]
    fn a_variable_leads_nowhere_where_another_allocator_serves() {
        let directory = tempfile::tempdir().expect("a directory");
        let library = directory.path().join("libjemalloc.so.2");
        fs::write(&library, "\0narenas\0opt_dirty_decay_ms\0").expect("a file");
        let objects = [object(&library)];
        let servers = [library.clone()];
        let mut loading = Loading {
            servers: &servers,
            objects: &objects,
            is_static: false,
            is_secure: false,
            root: Path::new("/"),
        };
        let effect = |loading: &Loading, name: &str, value: &str| {
            let set = [(name.to_owned(), value.to_owned())];
            let found = variables(&set, loading);
            found.first().map(|variable| variable.effect.clone())
        };
        let nowhere = |text: &str| Some(Effect::Nowhere(text.to_owned()));
        let of_glibc = "only glibc's malloc reads it, and malloc is served by libjemalloc.so.2";
        assert_eq!(effect(&loading, "MALLOC_ARENA_MAX", "2"), nowhere(of_glibc));
        assert_eq!(
            effect(&loading, "GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"),
            nowhere(of_glibc)
        );
        assert_eq!(
            effect(&loading, "GLIBC_TUNABLES", "glibc.pthread.rseq=0"),
            None
        );
        assert_eq!(effect(&loading, "HOME", "/"), None);
        let good = "narenas:2,dirty_decay_ms:0";
        assert_eq!(effect(&loading, "MALLOC_CONF", good), Some(Effect::Read));
        let unknown = nowhere("the file of libjemalloc.so.2 has no option `dirty_decay`");
        assert_eq!(effect(&loading, "MALLOC_CONF", "dirty_decay:0"), unknown);
        let preload = library.to_string_lossy().into_owned();
        assert_eq!(effect(&loading, "LD_PRELOAD", &preload), Some(Effect::Read));
        assert_eq!(
            effect(&loading, "LD_PRELOAD", "libjemalloc.so.2"),
            Some(Effect::Read)
        );
        let missing = nowhere("/no/such.so is not loaded: there is no such file");
        assert_eq!(
            effect(&loading, "LD_PRELOAD", &format!("{preload}:/no/such.so")),
            missing
        );
        let libc = [directory.path().join("libc.so.6")];
        let loader = directory.path().join("ld-linux-x86-64.so.2");
        fs::write(&loader, "glibc.malloc.arena_max\0").expect("a file");
        let loader = [object(&loader)];
        let glibc = Loading {
            servers: &libc,
            objects: &loader,
            ..loading
        };
        let tunable =
            |name: &str| effect(&glibc, "GLIBC_TUNABLES", &format!("glibc.malloc.{name}=1"));
        assert_eq!(tunable("arena_max"), Some(Effect::Read));
        let unknown =
            nowhere("the file of ld-linux-x86-64.so.2 has no option `glibc.malloc.arena`");
        assert_eq!(tunable("arena"), unknown);
        loading.is_secure = true;
        assert!(matches!(
            effect(&loading, "MALLOC_CONF", good),
            Some(Effect::Nowhere(_))
        ));
        loading.is_static = true;
        assert!(matches!(
            effect(&loading, "MALLOC_CONF", good),
            Some(Effect::Unknown(_))
        ));
        assert!(matches!(
            effect(&loading, "LD_PRELOAD", "x"),
            Some(Effect::Nowhere(_))
        ));
    }
}
