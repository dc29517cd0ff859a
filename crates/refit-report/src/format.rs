//! Numbers, dates and words, as people read them.

use std::fmt::Display;

pub use refit_run::grouped;
use refit_run::metric::Unit;
use refit_run::printable;

/// A minus sign as wide as a plus.
const MINUS: char = '\u{2212}';

/// Three digits and a unit: `412 ms`, `1.24 s`.
pub fn duration(ns: f64) -> String {
    match ns {
        _ if ns < 0.005 => "0 ns".to_owned(),
        _ if ns < 999.5 => format!("{} ns", three_digits(ns)),
        _ if ns < 999.5e3 => format!("{} µs", three_digits(ns / 1e3)),
        _ if ns < 999.5e6 => format!("{} ms", three_digits(ns / 1e6)),
        _ if ns < 999.5e9 => format!("{} s", three_digits(ns / 1e9)),
        _ => format!("{} min", three_digits(ns / 60e9)),
    }
}

fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        count(value)
    }
}

/// A time that was spent waiting for refit, roughly: `40 s`, `3 min`, `2 h`.
pub fn about(seconds: f64) -> String {
    if seconds < 100.0 {
        format!("{:.0} s", seconds.max(1.0))
    } else if seconds < 100.0 * 60.0 {
        format!("{:.0} min", seconds / 60.0)
    } else {
        format!("{} h", count(seconds / 3600.0))
    }
}

/// The same as an option takes it, never less than it is: `40s`, `3m`.
pub fn option_time(seconds: f64) -> String {
    if seconds < 120.0 {
        format!("{:.0}s", (seconds / 10.0).ceil() * 10.0)
    } else {
        format!("{:.0}m", (seconds / 60.0).ceil())
    }
}

/// `38 MiB`, `4.2 MiB`, `512 B`.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    if value < 0.0 {
        return format!("{MINUS}{}", bytes(-value));
    }
    let mut value = value;
    let mut unit = 0;
    while value >= 1023.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 9.95);
    // Beyond the largest unit, and below 1,024 of any.
    let digits = match digits {
        0 => count(value),
        _ => format!("{value:.1}"),
    };
    format!("{digits} {}", UNITS[unit])
}

/// A fact of a machine: `24684092 kB`, as /proc/meminfo has it, is `23.5 GiB`.
pub fn fact(text: &str) -> String {
    let kib = text.strip_suffix(" kB").and_then(|n| n.parse::<f64>().ok());
    match kib {
        Some(kib) if kib >= 1_048_576.0 => format!("{} GiB", three_digits(kib / 1_048_576.0)),
        Some(kib) => bytes(kib * 1024.0),
        None => text.to_owned(),
    }
}

/// `8,012`.
pub fn count(value: f64) -> String {
    grouped(format_args!("{value:.0}"))
}

/// How many things in a second: `1,013`, `40.5`, `0.27`.
pub fn per_second(value: f64) -> String {
    if value < 99.95 {
        three_digits(value)
    } else {
        count(value)
    }
}

/// How many of one operation: `0`, `0.04`, `3.5`, `1,013`.
pub fn per_operation(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        _ => per_second(value),
    }
}

/// A value in its unit.
pub fn value(value: f64, unit: Unit) -> String {
    match unit {
        _ if !value.is_finite() => "unknown".to_owned(),
        Unit::Nanoseconds => duration(value),
        Unit::Microseconds => duration(value * 1e3),
        Unit::Bytes => bytes(value),
        // A ratio, or the median of two counts.
        Unit::Count if value < 99.95 && value.fract() != 0.0 => three_digits(value),
        Unit::Count => count(value),
        Unit::PerSecond => format!("{}/s", per_second(value)),
        Unit::Percent => part_of_hundred(value),
    }
}

/// `99.98 %`; only all is 100.
fn part_of_hundred(value: f64) -> String {
    let text = format!("{value:.2}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "100" if value < 100.0 => "> 99.99 %".to_owned(),
        short => format!("{short} %"),
    }
}

/// `1 round pair`, `14 round pairs`, `2 flushes`.
pub fn plural(n: impl Display, word: &str) -> String {
    let n = grouped(n);
    let ending = match n.as_str() {
        "1" => "",
        _ if ["s", "sh", "ch"].iter().any(|end| word.ends_with(end)) => "es",
        _ => "s",
    };
    format!("{n} {word}{ending}")
}

/// The last name of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A relative change with its sign: `−58.5 %`, `+1,233 %`; `±0.0 %` is exactly none.
pub fn percent(change: f64) -> String {
    // Nearly all is not all.
    let is_all = |decimals: i32| (1.0 + change) * 10.0_f64.powi(decimals + 2) < 0.5;
    let decimals = match change {
        _ if change.abs() >= 10.0 => 0,
        _ if change > -1.0 => (1..5).find(|decimals| !is_all(*decimals)).unwrap_or(5),
        _ => 1,
    };
    signed(change, decimals.unsigned_abs() as usize)
}

/// The same where room is short: `−35 %`, `+1.2 %`.
pub fn percent_short(change: f64) -> String {
    signed(change, usize::from(change.abs() < 0.0995))
}

fn signed(change: f64, decimals: usize) -> String {
    if !(change * 100.0).is_finite() {
        return "unknown".to_owned();
    }
    let digits = format!("{:.decimals$}", change.abs() * 100.0);
    // `−0.0 %` lies below 0, however little: that is what an interval's end has to say.
    let sign = match change {
        0.0 => '±',
        _ if change < 0.0 => MINUS,
        _ => '+',
    };
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    format!("{sign}{}{fraction} %", grouped(whole))
}

/// A change of twice or half and more, as a factor: `9.7×`, `1,200×`; of a rate, whose
/// ratio grows where a time's shrinks, too.
pub fn factor(change: f64) -> Option<String> {
    let ratio = 1.0 + change;
    let factor = if ratio < 1.0 { 1.0 / ratio } else { ratio };
    let text = match factor {
        _ if !factor.is_finite() || factor < 2.0 || ratio <= 0.0 => return None,
        _ if factor < 9.95 => format!("{factor:.1}"),
        _ => count(factor),
    };
    Some(format!("{text}×"))
}

/// A change that was typed, as it was typed: `1.25 %`.
pub fn margin(change: f64) -> String {
    let percent = change.abs() * 100.0;
    let typed = format!("{percent:.6}");
    let is_typed = typed
        .parse()
        .is_ok_and(|typed: f64| (typed - percent).abs() < 1e-12);
    match is_typed && percent > 0.0 {
        true => format!("{} %", typed.trim_end_matches('0').trim_end_matches('.')),
        false => magnitude(change),
    }
}

/// A size of changes, without a sign: `0.7 %`, `1 %`.
pub fn magnitude(change: f64) -> String {
    let percent = change.abs() * 100.0;
    // As many digits as it takes to be more than nothing.
    let decimals = (1..4)
        .find(|decimals| percent * 10.0_f64.powi(*decimals) >= 0.5)
        .unwrap_or(1);
    let digits = format!("{percent:.*}", decimals.unsigned_abs() as usize);
    format!("{} %", digits.trim_end_matches(".0"))
}

/// `[−59.9 %, −57.2 %]`; without one nothing is excluded.
pub fn interval(ends: Option<[f64; 2]>) -> String {
    match ends {
        Some([low, high]) => format!("[{}, {}]", percent(low), percent(high)),
        None => "unbounded".to_owned(),
    }
}

/// As it is typed for `--seed`.
pub fn seed(seed: u64) -> String {
    format!("{seed:#x}")
}

/// `2026-11-20 23:54`, in UTC (the days after Howard Hinnant's `civil_from_days`).
pub fn date(unix: u64) -> String {
    let (days, minutes) = (unix / 86_400, unix % 86_400 / 60);
    // Years begin in March, so that the odd day comes last; 400 of them are an era.
    let day = days.saturating_add(719_468);
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}",
        minutes / 60,
        minutes % 60
    )
}

/// A word as a shell reads it. What is not printed is written as in `$'…'`, which bash, zsh and ksh
/// know, and POSIX since 2024.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let is_obeyed = |c: char| printable(c.encode_utf8(&mut [0; 4])) != c.to_string();
    if !word.contains(is_obeyed) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut text = String::new();
    for c in word.chars() {
        match c {
            '\'' | '\\' => text.extend(['\\', c]),
            c if is_obeyed(c) => {
                let bytes = c.to_string().into_bytes();
                bytes
                    .iter()
                    .for_each(|byte| text += &format!("\\{byte:03o}"));
            }
            c => text.push(c),
        }
    }
    format!("$'{text}'")
}

/// The command as it could be typed again, on one line.
pub fn command_line(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    printable(&quoted.join(" "))
}

/// At most `width` characters; what is left out is left out of the middle,
/// since names differ at their ends.
pub fn shortened(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let head: String = text.chars().take(kept.div_ceil(2)).collect();
    let tail: String = text.chars().skip(length - kept / 2).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (1.862, "1.86 ns"),
            (58.04, "58.0 ns"),
            (999.0, "999 ns"),
            (999.9, "1.00 µs"),
            (41_234.0, "41.2 µs"),
            (411_900_000.0, "412 ms"),
            (999_600_000.0, "1.00 s"),
            (1_240_000_000.0, "1.24 s"),
            (1_200e9, "20.0 min"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn a_margin_is_as_it_was_typed() {
        for (change, text) in [
            (0.01, "1 %"),
            (0.0125, "1.25 %"),
            (0.0033, "0.33 %"),
            (0.5, "50 %"),
            (0.1 / 3.0, "3.3 %"),
            (0.0, "0 %"),
        ] {
            assert_eq!(margin(change), text);
        }
    }

    #[test]
    fn twice_and_more_is_a_factor() {
        for (change, text) in [
            (-0.898, Some("9.8×")),
            (-0.9, Some("10×")),
            (-0.5, Some("2.0×")),
            (-0.49, None),
            (0.99, None),
            (1.0, Some("2.0×")),
            (12.33, Some("13×")),
            (1299.0, Some("1,300×")),
            (-1.0, None),
            (f64::NAN, None),
            (-3.0, None),
        ] {
            assert_eq!(factor(change).as_deref(), text, "{change}");
        }
    }

    #[test]
    fn sizes_and_counts() {
        assert_eq!(bytes(512.0), "512 B");
        assert_eq!(bytes(1010.0 * 1024.0), "1,010 KiB");
        assert_eq!(duration(7.2e15), "120,000 min");
        assert_eq!(fact("24684092 kB"), "23.5 GiB");
        assert_eq!(fact("512 kB"), "512 KiB");
        assert_eq!(fact("AMD EPYC"), "AMD EPYC");
        assert_eq!(bytes(4.2 * 1024.0 * 1024.0), "4.2 MiB");
        assert_eq!(bytes(38.4 * 1024.0 * 1024.0), "38 MiB");
        assert_eq!(bytes(1023.9 * 1024.0), "1.0 MiB");
        assert_eq!(count(8012.0), "8,012");
        assert_eq!(count(1_234_567.0), "1,234,567");
        assert_eq!(plural(1, "round pair"), "1 round pair");
        assert_eq!(plural(1_200_u64, "process"), "1,200 processes");
        assert_eq!(value(1500.0, Unit::Microseconds), "1.50 ms");
        assert_eq!(
            [15.66, 16.0, 2.5].map(|number| value(number, Unit::Count)),
            ["15.7", "16", "2.50"]
        );
    }

    #[test]
    fn rates_and_sizes_below_nothing() {
        assert_eq!(value(1013.4, Unit::PerSecond), "1,013/s");
        assert_eq!(value(0.271, Unit::PerSecond), "0.27/s");
        assert_eq!(bytes(-3.0 * 1024.0 * 1024.0), "−3.0 MiB");
        assert_eq!(value(f64::NAN, Unit::Bytes), "unknown");
        let percent = |number| value(number, Unit::Percent);
        assert_eq!(percent(99.976), "99.98 %");
        assert_eq!([percent(100.0), percent(99.999)], ["100 %", "> 99.99 %"]);
        assert_eq!([percent(0.0), percent(50.0)], ["0 %", "50 %"]);
    }

    #[test]
    fn every_percentage_has_its_sign() {
        assert_eq!(percent(-0.585), "−58.5 %");
        assert_eq!(percent(0.002), "+0.2 %");
        assert_eq!(percent(-0.0001), "−0.0 %");
        assert_eq!(percent(0.0), "±0.0 %");
        assert_eq!(percent(12.334), "+1,233 %");
        assert_eq!(percent(-0.99962), "−99.96 %");
        assert_eq!(percent(-1.0), "−100.0 %");
        assert_eq!(percent(f64::INFINITY), "unknown");
        assert_eq!(percent_short(-0.9988), "−100 %");
        assert_eq!(percent_short(0.014), "+1.4 %");
        assert_eq!(magnitude(0.01), "1 %");
        assert_eq!(magnitude(-0.0072), "0.7 %");
        assert_eq!(magnitude(0.0003), "0.03 %");
        assert_eq!(magnitude(0.0), "0 %");
        assert_eq!(interval(Some([-0.009, 0.002])), "[−0.9 %, +0.2 %]");
        assert_eq!(interval(None), "unbounded");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00");
        assert_eq!(date(951_782_399), "2000-02-28 23:59");
        assert_eq!(date(951_782_400), "2000-02-29 00:00");
        assert_eq!(date(1_795_218_854), "2026-11-20 23:54");
        date(u64::MAX);
    }

    #[test]
    fn times_for_people_and_for_options() {
        assert_eq!(about(42.4), "42 s");
        assert_eq!(about(150.0), "2 min");
        assert_eq!(about(9000.0), "2 h");
        assert_eq!(option_time(41.0), "50s");
        assert_eq!(option_time(150.0), "3m");
    }

    #[test]
    fn nothing_in_a_record_moves_the_cursor() {
        let words = ["./it's".to_owned(), "a b".to_owned()];
        assert_eq!(command_line(&words), r"'./it'\''s' 'a b'");
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(shortened("sync@exe:cleanup=off", 11), "sync@…p=off");
        assert_eq!(shortened("short", 5), "short");
    }
}
