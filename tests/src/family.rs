//! Which program made a call. strace names only the thread; what it runs follows from the forks and execs before.

use std::collections::BTreeMap;

use crate::strace::{Call, Trace};

/// What strace has to follow for this, beside the calls that are wanted.
pub const CALLS: &str = "execve,clone,clone3,fork,vfork";

/// The calls of a tree of processes, each with the program that made it.
pub struct Family<'a> {
    pub calls: Vec<(String, &'a Call)>,
    /// How many processes ran a program: each exec of it, and each fork that did not go on to exec.
    pub processes: BTreeMap<String, u64>,
}

impl<'a> Family<'a> {
    /// `known` holds the processes that ran before strace watched.
    pub fn new(trace: &'a Trace, known: impl IntoIterator<Item = (u32, String)>) -> Self {
        let mut programs: BTreeMap<u32, String> = known.into_iter().collect();
        let mut forked: BTreeMap<u32, String> = BTreeMap::new();
        let mut processes: BTreeMap<String, u64> = BTreeMap::new();
        let mut calls = Vec::new();
        for call in &trace.calls {
            match call.name.as_str() {
                "execve" if call.result == "0" => {
                    let program = call.args.split('"').nth(1).expect("it has a path");
                    if let Some(of) = forked.remove(&call.thread) {
                        processes.entry(of).and_modify(|count| *count -= 1);
                    }
                    *processes.entry(program.to_owned()).or_default() += 1;
                    programs.insert(call.thread, program.to_owned());
                }
                "clone" | "clone3" | "fork" | "vfork" => {
                    let of = programs.get(&call.thread).cloned();
                    if let (Ok(child), Some(of)) = (call.result.parse(), of)
                        && !call.args.contains("CLONE_THREAD")
                    {
                        *processes.entry(of.clone()).or_default() += 1;
                        forked.insert(child, of.clone());
                        programs.insert(child, of);
                    }
                }
                _ => {
                    let program = programs.get(&call.thread).cloned();
                    calls.push((program.unwrap_or_default(), call));
                }
            }
        }
        Self { calls, processes }
    }

    /// How many calls of this kind each program made; those that made none are left out.
    pub fn count(&self, kind: impl Fn(&Call) -> bool) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (program, _) in self.calls.iter().filter(|(_, call)| kind(call)) {
            *counts.entry(program.clone()).or_default() += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_belongs_to_the_program_that_its_thread_runs_then() {
        let trace = Trace::parse(
            "\
1 execve(\"/bin/sh\", [\"sh\"], 0x7 /* 3 vars */) = 0
1 fsync(3) = 0
1 clone(child_stack=NULL, flags=SIGCHLD) = 2
2 fsync(3) = 0
1 vfork( <unfinished ...>
3 execve(\"/bin/missing\", [\"x\"], 0x7 /* 3 vars */) = -1 ENOENT (No such file or directory)
3 execve(\"/bin/tool\", [\"x\"], 0x7 /* 3 vars */ <unfinished ...>
1 <... vfork resumed>) = 3
3 <... execve resumed>) = 0
3 fsync(4) = 0
1 fsync(3) = 0
9 fsync(5) = 0
",
        );
        let family = Family::new(&trace, [(9, "/bin/old".to_owned())]);
        let expect = |counts: BTreeMap<String, u64>, expected: &[(&str, u64)]| {
            let expected = expected.iter().map(|(name, n)| ((*name).to_owned(), *n));
            assert_eq!(counts, expected.collect());
        };
        expect(
            family.count(Call::is_sync),
            &[("/bin/sh", 3), ("/bin/tool", 1), ("/bin/old", 1)],
        );
        expect(family.processes, &[("/bin/sh", 2), ("/bin/tool", 1)]);
    }
}
