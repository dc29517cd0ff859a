//! Functions of an interpreter in the place of those of the interpreter itself.

use refit_session::{ScriptFunction, printable};

use super::Frame;

/// The functions that run a program of CPython's. One of them may run many functions of the program (3.11 and later).
const LOOPS: [&str; 1] = ["_PyEval_EvalFrameDefault"];

/// A stack with the functions of the program that an interpreter runs, and what the innermost of them called; `native`:
/// the functions of the process, the outermost first; `script`: the innermost first.
#[must_use]
pub fn with_script(native: Vec<Frame>, script: &[ScriptFunction]) -> Vec<Frame> {
    if script.is_empty() {
        return native;
    }
    let is_loop = |frame: &Frame| {
        let of_loop = |name| frame.function.strip_prefix(name);
        let rest = LOOPS.iter().find_map(of_loop);
        // Compilers name parts of a function `.cold`, `.isra.0`.
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let called = match native.iter().rposition(is_loop) {
        Some(at) => at + 1,
        None => native.len().saturating_sub(1),
    };
    let functions = script.iter().rev().map(|one| Frame {
        function: printable(&one.name),
        file: (!one.file.is_empty()).then(|| printable(&one.file)),
        line: (one.line > 0).then_some(one.line),
        is_inlined: false,
        is_script: true,
    });
    functions.chain(native.into_iter().skip(called)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(native: &[&str], script: &[&str]) -> Vec<String> {
        let native = native.iter().map(|name| Frame::of_name((*name).to_owned()));
        let script: Vec<ScriptFunction> = script
            .iter()
            .map(|name| ScriptFunction {
                name: (*name).to_owned(),
                file: "a.py".to_owned(),
                line: 7,
            })
            .collect();
        let all = with_script(native.collect(), &script);
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_interpreter_makes_way_for_what_it_runs() {
        let loops = "_PyEval_EvalFrameDefault";
        assert_eq!(
            names(
                &["main", loops, "call", &format!("{loops}.cold"), "os_rename"],
                &["save", "<module>"]
            ),
            ["<module> (a.py:7)", "save (a.py:7)", "os_rename"]
        );
        // Without its name the call alone is sure.
        assert_eq!(
            names(&["main", "python+0x1", "os_rename"], &["save"]),
            ["save (a.py:7)", "os_rename"]
        );
        assert_eq!(names(&["main", loops], &[]), ["main", loops]);
        assert_eq!(names(&[], &["save"]), ["save (a.py:7)"]);
    }
}
