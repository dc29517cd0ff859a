//! Memory of one process by what its mappings are for: heap, stacks, files, and the rest.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::mappings::Mapping;
use crate::process_facts::page;
use crate::process_memory::kib;
use crate::tree::at;

/// What a mapping is for, as far as the kernel can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MappingClass {
    /// `[heap]`: what brk(2) moves, most of glibc's malloc in a program without threads.
    Heap,
    /// Stacks of threads, the first one's included.
    Stack,
    /// Private memory without a file: other allocators, glibc's further arenas, and mmap(2) itself.
    Anonymous,
    /// What a file holds: programs, libraries, files that are read through memory.
    File,
    /// Private copies of a file's pages: data of programs and libraries.
    FileCopy,
    /// Shared memory without a file on a disk (shm_open(3), memfd_create(2), MAP_SHARED with MAP_ANONYMOUS).
    Shared,
}

/// All classes, in the order in which they are shown.
pub const MAPPING_CLASSES: [MappingClass; 6] = [
    MappingClass::Heap,
    MappingClass::Stack,
    MappingClass::Anonymous,
    MappingClass::File,
    MappingClass::FileCopy,
    MappingClass::Shared,
];

/// Memory of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassBytes {
    /// Mappings.
    pub mappings: u64,
    /// Resident.
    pub rss_bytes: u64,
    /// Resident, shared proportionally.
    pub pss_bytes: u64,
    /// In transparent huge pages.
    pub huge_bytes: u64,
}

/// Memory of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedMemory {
    classes: [ClassBytes; MAPPING_CLASSES.len()],
}

impl MappedMemory {
    /// Of one class.
    #[must_use]
    pub fn of(&self, class: MappingClass) -> ClassBytes {
        self.classes[class as usize]
    }

    /// Resident memory, all of it.
    #[must_use]
    pub fn rss_bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.rss_bytes).sum()
    }

    /// Proportional memory, all of it.
    #[must_use]
    pub fn pss_bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.pss_bytes).sum()
    }

    fn add(&mut self, class: MappingClass, fields: &Fields) {
        // A page of a file that was written privately is in the mapping of the file.
        let copied = match class {
            MappingClass::File => fields.anonymous.min(fields.rss),
            _ => 0,
        };
        let copied_pss = proportional(fields.pss, copied, fields.rss);
        let sum = &mut self.classes[class as usize];
        sum.mappings += 1;
        sum.rss_bytes = sum.rss_bytes.saturating_add(fields.rss - copied);
        sum.pss_bytes = sum
            .pss_bytes
            .saturating_add(fields.pss.saturating_sub(copied_pss));
        sum.huge_bytes = sum.huge_bytes.saturating_add(fields.huge);
        let copies = &mut self.classes[MappingClass::FileCopy as usize];
        copies.rss_bytes = copies.rss_bytes.saturating_add(copied);
        copies.pss_bytes = copies.pss_bytes.saturating_add(copied_pss);
    }
}

/// The part of a PSS that belongs to `part` of `all` resident bytes.
fn proportional(pss: u64, part: u64, all: u64) -> u64 {
    if all == 0 {
        return 0;
    }
    let share = u128::from(pss) * u128::from(part) / u128::from(all);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// A guard below a thread's stack is a page; at most this is still one (pthread_attr_setguardsize(3)).
const MOST_GUARD: u64 = 64 << 10;

/// What a mapping is for, with the one below it.
///
/// A stack of pthread_create(3) has a guard, which nothing may touch, right below (glibc before 2.42,
/// nptl/allocatestack.c; musl likewise), or in its first page, which [`has_guard`] sees. glibc names stacks and arenas where the kernel lets it (prctl(2), PR_SET_VMA_ANON_NAME).
#[must_use]
pub fn class_of(mapping: &Mapping, below: Option<&Mapping>) -> MappingClass {
    let name = mapping.name.to_string_lossy();
    let starts = |start: &str| name.starts_with(start);
    if mapping.is_file() {
        let is_memory = [
            "/memfd:",
            "/dev/shm/",
            "/SYSV",
            "/dev/zero",
            "/anon_hugepage",
        ];
        return match is_memory.iter().any(|start| starts(start)) {
            true => MappingClass::Shared,
            false => MappingClass::File,
        };
    }
    let is_guard = |below: &Mapping| {
        !below.is_file()
            && below.end == mapping.start
            && below.bytes() <= MOST_GUARD
            && below.permissions == *b"---p"
    };
    match () {
        () if starts("[heap]") => MappingClass::Heap,
        () if starts("[stack") || starts("[anon: glibc: pthread stack") => MappingClass::Stack,
        () if starts("[anon:") => MappingClass::Anonymous,
        () if starts("[") => MappingClass::File,
        () if mapping.permissions[..2] == *b"rw" && below.is_some_and(is_guard) => {
            MappingClass::Stack
        }
        () => MappingClass::Anonymous,
    }
}

/// What smaps tells of one mapping, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields {
    pub rss: u64,
    pub pss: u64,
    pub anonymous: u64,
    pub huge: u64,
    /// Given back by madvise(2) MADV_FREE, and not taken yet: the kernel takes it when it needs memory.
    pub lazy_free: u64,
    /// It may not be given huge pages (VmFlags nh).
    pub never_huge: bool,
}

/// Reads /proc/PID/smaps (proc_pid_smaps(5)), which costs the process more than smaps_rollup: the kernel holds the
/// lock of its mappings for a part of the time, and writes a thousand bytes for each.
///
/// # Errors
/// No such process, or no right to read it (ptrace(2), PTRACE_MODE_READ).
pub fn mapped_memory(proc: &Path, pid: u32) -> io::Result<MappedMemory> {
    let mut memory = MappedMemory::default();
    for (class, _, fields) in classified(proc, pid)? {
        memory.add(class, &fields);
    }
    Ok(memory)
}

/// Every mapping, what it is for, and what smaps tells of it. One that grows across the end of one read(2) is in the next
/// one again, from its beginning (fs/proc/task_mmu.c, m_start): the later one counts.
pub(crate) fn classified(
    proc: &Path,
    pid: u32,
) -> io::Result<Vec<(MappingClass, Mapping, Fields)>> {
    let text = fs::read(at(proc, pid).join("smaps"))?;
    let mut found: Vec<(MappingClass, Mapping, Fields)> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(mapping) = Mapping::parse(line) {
            let is_before = |(_, known, _): &(_, Mapping, _)| known.end <= mapping.start;
            found.truncate(found.iter().rposition(is_before).map_or(0, |last| last + 1));
            let below = found.last().map(|(_, below, _)| below);
            found.push((class_of(&mapping, below), mapping, Fields::default()));
        } else if let Some((_, _, fields)) = found.last_mut() {
            fields.read(&String::from_utf8_lossy(line));
        }
    }
    let mut pagemap = None;
    for (class, mapping, fields) in &mut found {
        // What is mapped with MAP_STACK gets no huge pages since Linux 6.7, and is joined with memory of that kind alone.
        let may_be_stack = fields.never_huge && mapping.permissions[..2] == *b"rw";
        if *class == MappingClass::Anonymous && may_be_stack && mapping.name.as_os_str().is_empty()
        {
            let pagemap = pagemap.get_or_insert_with(|| File::open(at(proc, pid).join("pagemap")));
            if pagemap.as_ref().is_ok_and(|file| has_guard(file, mapping)) {
                *class = MappingClass::Stack;
            }
        }
    }
    Ok(found)
}

/// Whether the first page of a mapping is a guard of madvise(2), MADV_GUARD_INSTALL: glibc 2.42 and later protect stacks so.
/// The kernel shows that since Linux 6.15 (admin-guide/mm/pagemap.rst, bit 58).
fn has_guard(pagemap: &File, mapping: &Mapping) -> bool {
    let mut entry = [0; 8];
    let read = pagemap.read_exact_at(&mut entry, mapping.start / page() * 8);
    read.is_ok() && u64::from_ne_bytes(entry) & (1 << 58) != 0
}

impl Fields {
    fn read(&mut self, line: &str) {
        for (name, field) in [
            ("Rss", &mut self.rss),
            ("Pss", &mut self.pss),
            ("Anonymous", &mut self.anonymous),
            ("AnonHugePages", &mut self.huge),
            ("LazyFree", &mut self.lazy_free),
        ] {
            *field = kib(line, name).unwrap_or(*field);
        }
        let flags = line.strip_prefix("VmFlags:");
        self.never_huge |=
            flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "nh"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::FakeProc;

    const SMAPS: &str = "\
1000-3000 rw-p 00000000 fe:01 7 /lib/a.so
Rss: 8 kB
Pss: 6 kB
Anonymous: 4 kB
5000-9000 rw-p 00000000 00:00 0 [heap]
Rss: 16 kB
Pss: 16 kB
AnonHugePages: 0 kB
VmFlags: rd wr
10000-11000 ---p 00000000 00:00 0
Rss: 0 kB
11000-91000 rw-p 00000000 00:00 0
Rss: 12 kB
Pss: 12 kB
a0000-b0000 ---p 00000000 00:00 0
c0000-d0000 rw-p 00000000 00:00 0
Rss: 20 kB
Pss: 10 kB
AnonHugePages: 2048 kB
e0000-f0000 rw-s 00000000 00:05 9 /memfd:x (deleted)
Rss: 24 kB
Pss: 12 kB
7ff000-7ff800 rw-p 00000000 00:00 0 [stack]
Rss: 28 kB
Pss: 28 kB
";

    #[test]
    fn every_byte_has_a_class() {
        let proc = FakeProc::new();
        proc.write("3/smaps", SMAPS);
        let memory = mapped_memory(proc.path(), 3).unwrap();
        let kib = |class| {
            let bytes = memory.of(class);
            (bytes.mappings, bytes.rss_bytes >> 10, bytes.pss_bytes >> 10)
        };
        assert_eq!(kib(MappingClass::Heap), (1, 16, 16));
        assert_eq!(kib(MappingClass::Stack), (2, 40, 40));
        assert_eq!(kib(MappingClass::Anonymous), (3, 20, 10));
        assert_eq!(kib(MappingClass::File), (1, 4, 3));
        assert_eq!(kib(MappingClass::FileCopy), (0, 4, 3));
        assert_eq!(kib(MappingClass::Shared), (1, 24, 12));
        assert_eq!(memory.of(MappingClass::Anonymous).huge_bytes, 2 << 20);
        assert_eq!(
            (memory.rss_bytes() >> 10, memory.pss_bytes() >> 10),
            (108, 84)
        );
        assert!(mapped_memory(proc.path(), 4).is_err());
    }

    #[test]
    fn a_stack_begins_with_a_guard_of_its_own() {
        let proc = FakeProc::new();
        let stacks = "c0000-d0000 rw-p 00000000 00:00 0 \nRss: 20 kB\nPss: 20 kB\nVmFlags: rd wr nh\n\
                      e0000-f0000 rw-p 00000000 00:00 0 \nRss: 8 kB\nPss: 8 kB\nVmFlags: rd wr nh\n";
        proc.write("3/smaps", stacks);
        let all = |class| mapped_memory(proc.path(), 3).unwrap().of(class).rss_bytes >> 10;
        assert_eq!(
            (all(MappingClass::Stack), all(MappingClass::Anonymous)),
            (0, 28)
        );
        // One of them has it.
        let mut pagemap = vec![0; 0x100 * 8];
        pagemap[0xc0 * 8..][..8].copy_from_slice(&(1_u64 << 58).to_ne_bytes());
        proc.write("3/pagemap", pagemap);
        assert_eq!(
            (all(MappingClass::Stack), all(MappingClass::Anonymous)),
            (20, 8)
        );
    }

    /// As glibc 2.42 maps it.
    const GUARDED: &str = "#define _GNU_SOURCE\n#include <stdio.h>\n#include <string.h>\n#include <sys/mman.h>\n\
        int main(void) {\n\
        char *stack = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);\n\
        char *other = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n\
        int guards = madvise(stack, 4096, 102 /* MADV_GUARD_INSTALL */) == 0;\n\
        memset(stack + (1 << 19), 1, 1 << 19);\n\
        memset(other, 1, 1 << 20);\n\
        puts(guards ? \"guarded\" : \"no guards\");\n\
        fflush(stdout);\n\
        getchar();\n\
        return 0; }\n";

    #[test]
    fn a_stack_with_a_guard_of_madvise_is_a_stack() {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("guarded.c"), GUARDED).unwrap();
        let mut compiler = Command::new("cc");
        compiler.arg(at("guarded.c")).arg("-o").arg(at("guarded"));
        assert!(compiler.status().unwrap().success());
        let mut program = Command::new(at("guarded"));
        let program = program.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = program.spawn().unwrap();
        let mut line = String::new();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        printed.read_line(&mut line).unwrap();
        let memory = mapped_memory(Path::new("/proc"), child.id()).unwrap();
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        let stacks = memory.of(MappingClass::Stack).rss_bytes >> 10;
        // Linux 6.13 has such guards, and 6.15 shows them.
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        let mut version = release
            .split('.')
            .map_while(|part| part.parse::<u32>().ok());
        let version = (version.next().unwrap(), version.next().unwrap());
        match line.trim() {
            "guarded" if version >= (6, 15) => assert!((512..1024).contains(&stacks), "{stacks}"),
            _ => assert!(stacks < 512, "{stacks}"),
        }
    }

    #[test]
    fn a_mapping_that_grew_while_it_was_read_counts_once() {
        let proc = FakeProc::new();
        let heap = |end: &str, rss: u32| {
            format!("5000-{end} rw-p 00000000 00:00 0 [heap]\nRss: {rss} kB\nPss: {rss} kB\n")
        };
        let rest = "20000-30000 rw-p 00000000 00:00 0\nRss: 20 kB\nPss: 10 kB\n";
        proc.write("3/smaps", &(heap("9000", 16) + &heap("c000", 28) + rest));
        let memory = mapped_memory(proc.path(), 3).unwrap();
        assert_eq!(memory.of(MappingClass::Heap).rss_bytes, 28 << 10);
        assert_eq!(memory.of(MappingClass::Heap).mappings, 1);
        assert_eq!(memory.rss_bytes(), 48 << 10);
    }

    #[test]
    fn the_classes_of_a_real_process_are_its_resident_memory() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let proc = Path::new("/proc");
        let stat = || fs::read_to_string(at(proc, child.id()).join("stat")).unwrap();
        while !stat().contains("(sleep) S") {
            std::thread::yield_now();
        }
        let memory = mapped_memory(proc, child.id()).unwrap();
        let rollup = fs::read_to_string(at(proc, child.id()).join("smaps_rollup")).unwrap();
        let rss = rollup.lines().find_map(|line| kib(line, "Rss")).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(memory.rss_bytes(), rss);
        assert!(
            memory.of(MappingClass::Stack).rss_bytes > 0
                && memory.of(MappingClass::File).rss_bytes > 0
        );
    }

    #[test]
    fn stacks_of_threads_are_told_from_other_mappings() {
        let line = |text: &str| Mapping::parse(text.as_bytes()).unwrap();
        let guard = line("1000-2000 ---p 00000000 00:00 0 ");
        let arena = line("2000-23000 rw-p 00000000 00:00 0 ");
        let reserve = line("23000-4000000 ---p 00000000 00:00 0 ");
        let next = line("4000000-4021000 rw-p 00000000 00:00 0 ");
        assert_eq!(class_of(&arena, Some(&guard)), MappingClass::Stack);
        assert_eq!(class_of(&arena, None), MappingClass::Anonymous);
        assert_eq!(class_of(&next, Some(&reserve)), MappingClass::Anonymous);
        let named = line("2000-23000 rw-p 00000000 00:00 0 [anon: glibc: malloc arena]");
        assert_eq!(class_of(&named, Some(&guard)), MappingClass::Anonymous);
    }
}
