//! Counts as people read them.

use std::fmt::Display;

/// A whole number with its digits in groups of three: `8,012`.
#[must_use]
pub fn grouped(number: impl Display) -> String {
    let text = number.to_string();
    let sign = usize::from(text.starts_with('-'));
    let mut out = String::with_capacity(text.len() + text.len() / 3);
    for (i, digit) in text.chars().enumerate() {
        if i > sign && (text.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_third_digit_from_the_end_follows_a_comma() {
        for (number, shown) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345, "12,345"),
            (-100, "-100"),
            (-123_456, "-123,456"),
            (i128::from(u64::MAX), "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(grouped(number), shown);
        }
    }
}
