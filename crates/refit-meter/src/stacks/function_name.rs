//! Names of functions as their language writes them.

use std::fmt::Write as _;

use refit_session::printable;

/// Longer names stay as they are: a short symbol can stand for a name of any length.
const MOST_BYTES: usize = 4096;

/// A symbol's name, demangled where it is of Rust or C++: without the hash of the one, and without the types of the
/// other's parameters.
pub fn function_name(symbol: &str) -> String {
    let name = of_rust(symbol).or_else(|| of_cpp(symbol));
    printable(&name.unwrap_or_else(|| symbol.to_owned()))
}

fn of_rust(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut text = Bounded::default();
    write!(text, "{name:#}").ok()?;
    Some(text.0)
}

/// How deep the parser of C++ names may go. Where a template turns out to be none it tries again, and remembers twice as
/// much for each level of them: with its own limit of 96, 170 bytes took it 80 MB. Of 243,390 names of Debian's libraries
/// 1,342 need more than this, and stay as they are.
const CPP_DEPTH: u32 = 48;

/// The parser adds one to an index, unchecked: a debug build ends there.
const CPP_LAST_INDEX: &str = "9223372036854775807";

/// The parser tries what follows `nw` and `na`, operator new in an expression, twice: 57 of them in 133 bytes took it for
/// ever. A name with more of these letters stays as it is; of 87,222 names of Debian's libraries none has more than 9.
const CPP_MOST_NEW: usize = 12;

fn of_cpp(symbol: &str) -> Option<String> {
    let news = symbol.matches("nw").count() + symbol.matches("na").count();
    if news > CPP_MOST_NEW || symbol.contains(CPP_LAST_INDEX) {
        return None;
    }
    let options = cpp_demangle::ParseOptions::default().recursion_limit(CPP_DEPTH);
    let name = cpp_demangle::Symbol::new_with_options(symbol, &options).ok()?;
    let mut text = Bounded::default();
    let options = cpp_demangle::DemangleOptions::new().no_params();
    name.structured_demangle(&mut text, &options).ok()?;
    Some(text.0)
}

/// Text that ends in an error where it would be too long.
#[derive(Default)]
struct Bounded(String);

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > MOST_BYTES {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_language_has_its_own_names() {
        for (symbol, name) in [
            ("main", "main"),
            ("_ZN3foo3barEv", "foo::bar"),
            ("_ZN5CacheISsE4growEm", "Cache<std::string>::grow"),
            ("_Znwm", "operator new"),
            (
                "_ZN5alloc7raw_vec11finish_grow17h0123456789abcdefE",
                "alloc::raw_vec::finish_grow",
            ),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            // Of neither, though they begin as if.
            ("_ZN", "_ZN"),
            ("_Zebra", "_Zebra"),
            ("_R", "_R"),
            ("a\u{1b}b", "a\\u{1b}b"),
        ] {
            assert_eq!(function_name(symbol), name, "{symbol}");
        }
    }

    /// Each argument of a template stands for twice the text of the one before.
    #[test]
    fn a_short_symbol_for_an_endless_name_stays() {
        let mut symbol = "_Z1fI1AIiiE".to_owned();
        let mut last = "S0_".to_owned();
        for at in 1..32 {
            symbol += &format!("1AI{last}{last}E");
            last = format!(
                "S{}_",
                char::from_digit(at, 36).unwrap().to_ascii_uppercase()
            );
        }
        symbol += "Evv";
        let began = std::time::Instant::now();
        let name = function_name(&symbol);
        assert!(name.len() <= MOST_BYTES, "{}", name.len());
        assert!(began.elapsed().as_secs() < 5);
        // What the parser begins again at each level.
        let again = format!("_ZssSs{}{}E", "ISs".repeat(12), "s".repeat(130));
        assert_eq!(function_name(&again), again);
        // One that is nested without end.
        let nested = format!("_Z1f{}i", "P".repeat(1 << 20));
        assert!(!function_name(&nested).is_empty());
    }
}
