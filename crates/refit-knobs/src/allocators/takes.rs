//! What an allocator's option accepts.

use crate::knobs::choice::one_of;

/// What an option's value can be. None can hold a `,`, which ends it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// A whole number, decimal, in hexadecimal too if the allocator reads that; or one of a few words.
    Number {
        min: i128,
        max: i128,
        hexadecimal: bool,
        words: &'static [&'static str],
    },
    /// A decimal fraction, not negative.
    Fraction,
    /// One of a few words.
    Words(&'static [&'static str]),
    /// Anything.
    Text,
}

impl Takes {
    /// The words among them.
    pub(crate) fn words(&self) -> &'static [&'static str] {
        match self {
            Self::Words(words) | Self::Number { words, .. } => words,
            Self::Fraction | Self::Text => &[],
        }
    }

    pub(crate) fn accepts(&self, value: &str) -> bool {
        match self {
            Self::Words(words) => words.contains(&value),
            Self::Text => !value.contains(','),
            Self::Fraction => {
                let digits =
                    |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
                let (whole, rest) = value.split_once('.').unwrap_or((value, "0"));
                digits(whole) && digits(rest)
            }
            Self::Number {
                min,
                max,
                hexadecimal,
                words,
            } => {
                let number = whole_number(value, *hexadecimal);
                words.contains(&value)
                    || number.is_some_and(|number| (*min..=*max).contains(&number))
            }
        }
    }

    pub(crate) fn expected(&self) -> String {
        match self {
            Self::Words(words) => one_of(words),
            Self::Text => "a text without `,`".to_owned(),
            Self::Fraction => "a number, as in `2.5`".to_owned(),
            Self::Number {
                min, max, words, ..
            } => {
                let most = if *max < i128::from(i32::MAX) {
                    format!(" to {max}")
                } else {
                    " or more".to_owned()
                };
                let or = if words.is_empty() {
                    String::new()
                } else {
                    format!(", {}", one_of(words))
                };
                format!("a whole number of {min}{most}{or}")
            }
        }
    }

    /// A value that it accepts.
    pub(crate) fn example(&self) -> String {
        match self {
            Self::Words(words) => words
                .first()
                .map_or_else(String::new, |&word| word.to_owned()),
            Self::Text => "text".to_owned(),
            Self::Fraction => "1.0".to_owned(),
            Self::Number { min, max, .. } => 1.clamp(*min, *max).to_string(),
        }
    }
}

/// Decimal, or `0x…`. No leading zero: some allocators would read octal, others decimal.
fn whole_number(value: &str, hexadecimal: bool) -> Option<i128> {
    let (minus, digits) = value
        .strip_prefix('-')
        .map_or((false, value), |digits| (true, digits));
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) if hexadecimal && !minus => (16, digits),
        _ => (10, digits),
    };
    let octal = radix == 10 && digits.len() > 1 && digits.starts_with('0');
    if octal || !digits.starts_with(|c: char| c.is_digit(radix)) {
        return None;
    }
    let number = i128::from_str_radix(digits, radix).ok()?;
    Some(if minus { -number } else { number })
}
