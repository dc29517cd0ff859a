//! Decimal numbers without rounding: a whole number of the smallest part.

/// `1.5` with three decimals is 1500. Digits, and after a point at most so many more; nothing else.
pub(super) fn parse(text: &str, decimals: u32) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits =
        |text: &str| !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return None;
    }
    // `1.50` is no more exact than `1.5`.
    let part = part.trim_end_matches('0');
    let missing = decimals.checked_sub(u32::try_from(part.len()).ok()?)?;
    let part = match part {
        "" => 0,
        part => part.parse::<u64>().ok()? * 10_u64.pow(missing),
    };
    let scale = 10_u64.pow(decimals);
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(scale)?
        .checked_add(part)
}

/// What [`parse`] reads as this number, in as few letters as will do.
pub(super) fn print(number: u64, decimals: u32) -> String {
    let scale = 10_u64.pow(decimals);
    let (whole, part) = (number / scale, number % scale);
    if part == 0 {
        return whole.to_string();
    }
    let part = format!("{part:0width$}", width = decimals as usize);
    format!("{whole}.{}", part.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_none() {
        for (text, decimals, number, printed) in [
            ("8", 6, 8_000_000, "8"),
            ("1.5", 3, 1500, "1.5"),
            ("1.50000", 3, 1500, "1.5"),
            ("0.001", 3, 1, "0.001"),
            ("007", 0, 7, "7"),
            ("1.0", 0, 1, "1"),
        ] {
            assert_eq!(parse(text, decimals), Some(number), "{text}");
            assert_eq!(print(number, decimals), printed);
        }
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "+1",
            "-1",
            "1e3",
            "1.2345",
            "1,5",
            "٣",
            "99999999999999999999",
            "18446744073709551615",
        ] {
            assert_eq!(parse(text, 3), None, "{text}");
        }
    }
}
