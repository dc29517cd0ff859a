//! Functions of an interpreter, as `sync/script_stack.c` of refit-preload writes them.

/// A function of a program that an interpreter runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScriptFunction {
    /// Its name, as the interpreter has it; in brackets why there are none.
    pub name: String,
    /// Source file; empty where there is none.
    pub file: String,
    /// The line that is executed; 0 where it is not known.
    pub line: u32,
}

impl ScriptFunction {
    /// Reads name, file and line of each, with a NUL after each of these; what is cut or wrong at the end is left out.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Vec<ScriptFunction> {
        let texts: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let functions = texts.chunks_exact(3).map_while(|one| {
            Some(ScriptFunction {
                name: text(one[0]),
                file: text(one[1]),
                line: text(one[2]).parse().ok()?,
            })
        });
        functions.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_functions_are_read_and_nothing_else() {
        let one = ScriptFunction {
            name: "f".to_owned(),
            file: "a.py".to_owned(),
            line: 7,
        };
        let one = [one];
        let wrong = b"f\0a.py\x007\0g\0a.py\0x\0";
        assert_eq!(ScriptFunction::parse(b"f\0a.py\x007\0"), one);
        assert_eq!(ScriptFunction::parse(b"f\0a.py\x007\0g\0a."), one);
        assert_eq!(ScriptFunction::parse(wrong), one);
        assert_eq!(ScriptFunction::parse(b""), []);
        assert_eq!(ScriptFunction::parse(&[0xff; 30]), []);
    }
}
