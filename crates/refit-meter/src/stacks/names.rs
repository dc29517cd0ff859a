//! The functions, files and lines that an address of code belongs to.
//!
//! blazesym reads them from the object's debug information, or from the debug files that it names (.gnu_debuglink, the
//! build id below /usr/lib/debug, DWARF packages), and else the name alone from its symbols.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::rc::Rc;

use blazesym::MaybeDefault;
use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer};
use refit_session::printable;

use super::Frame;
use super::function_name::function_name;

/// Names that were looked up.
pub struct Names {
    symbolizer: Symbolizer,
    /// By file and address.
    known: HashMap<(i32, u64), Rc<[Frame]>>,
}

impl Names {
    pub fn new() -> Names {
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            .enable_code_info(true)
            .enable_inlined_fns(true)
            .enable_demangling(false)
            .build();
        Names {
            symbolizer,
            known: HashMap::new(),
        }
    }

    /// The function at an address of a file and those that were inlined into it there, the innermost first; none
    /// where it has no name. The file has to stay open.
    pub fn frames(&mut self, file: &File, address: u64) -> Rc<[Frame]> {
        let key = (file.as_raw_fd(), address);
        if let Some(frames) = self.known.get(&key) {
            return Rc::clone(frames);
        }
        let frames: Rc<[Frame]> = self.look_up(file, address).unwrap_or_default().into();
        self.known.insert(key, Rc::clone(&frames));
        frames
    }

    fn look_up(&self, file: &File, address: u64) -> Option<Vec<Frame>> {
        let path = path_of(file);
        // Debug information that cannot be read leaves the names of the symbols.
        let symbol = [true, false].into_iter().find_map(|debug_syms| {
            let source = Source::Elf(Elf {
                debug_syms,
                ..Elf::new(&path)
            });
            let input = Input::VirtOffset(address);
            match self.symbolizer.symbolize_single(&source, input) {
                Ok(Symbolized::Sym(symbol)) => Some(symbol.into_owned()),
                _ => None,
            }
        })?;
        let inlined = symbol.inlined.iter().rev().map(|function| Frame {
            is_inlined: true,
            ..frame(&function.name, function.code_info.as_ref())
        });
        let around = frame(&symbol.name, symbol.code_info.as_deref());
        Some(inlined.chain([around]).collect())
    }
}

/// Its own path while that names it, so that what lies beside it is found; else what stands for the open file.
fn path_of(file: &File) -> PathBuf {
    let open = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let identity = |about: Metadata| (about.dev(), about.ino());
    let path = fs::read_link(&open).ok().filter(|path| {
        let [named, opened] =
            [fs::metadata(path), file.metadata()].map(|about| about.map(identity));
        matches!((named, opened), (Ok(named), Ok(opened)) if named == opened)
    });
    path.unwrap_or(open)
}

fn frame(symbol: &str, at: Option<&CodeInfo<'_>>) -> Frame {
    Frame {
        function: function_name(symbol),
        file: at.map(|at| printable(&at.to_path().to_string_lossy())),
        line: at.and_then(|at| at.line),
        is_inlined: false,
        is_script: false,
    }
}

/// Names of the kernel's own functions.
pub struct KernelNames {
    symbolizer: Symbolizer,
    known: HashMap<u64, Frame>,
}

impl KernelNames {
    pub fn new() -> KernelNames {
        let symbolizer = Symbolizer::builder().enable_code_info(false).build();
        KernelNames {
            symbolizer,
            known: HashMap::new(),
        }
    }

    /// The function at an address, as /proc/kallsyms names it: `ext4_sync_file [kernel]`.
    pub fn frame(&mut self, address: u64) -> Frame {
        let symbolizer = &self.symbolizer;
        let frame = self.known.entry(address).or_insert_with(|| {
            let source = Source::Kernel(Kernel {
                vmlinux: MaybeDefault::None,
                debug_syms: false,
                ..Kernel::default()
            });
            let found = symbolizer.symbolize_single(&source, Input::AbsAddr(address));
            Frame::of_name(match found {
                Ok(Symbolized::Sym(symbol)) => format!("{} [kernel]", printable(&symbol.name)),
                _ => "[kernel]".to_owned(),
            })
        });
        frame.clone()
    }
}
