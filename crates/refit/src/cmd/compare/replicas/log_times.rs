//! The time between two lines of a log, by the stamps that the node's runtime wrote before them (RFC 3339).

/// Nanoseconds from the line `MARK begin` to the line `MARK end 0`, or what is wrong with the log.
pub fn between(log: &str, mark: &str) -> Result<u64, String> {
    let begin = stamp(log, mark, "begin")?;
    let end = stamp(log, mark, "end 0")?;
    u64::try_from(end - begin)
        .ok()
        .filter(|time| *time > 0)
        .ok_or_else(|| "its end is before its beginning: the node's clock was set".to_owned())
}

/// The last line that the load itself printed, for a message.
pub fn last_line<'a>(log: &'a str, mark: &str) -> Option<&'a str> {
    let texts = log.lines().filter_map(|line| Some(line.split_once(' ')?.1));
    texts
        .rev()
        .find(|text| !text.starts_with(mark) && !text.trim().is_empty())
}

fn stamp(log: &str, mark: &str, what: &str) -> Result<i128, String> {
    let wanted = format!("{mark} {what}");
    let line = log
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(_, text)| *text == wanted);
    let (stamp, _) = line.ok_or_else(|| {
        format!("`{what}` is not in the log, of which a node keeps 10 MiB; let the load print less: --load 'COMMAND >/dev/null'")
    })?;
    nanoseconds(stamp).ok_or_else(|| format!("invalid time stamp `{stamp}`"))
}

/// Since 0000-03-01, without regard to the zone, which is the same for all lines of a node.
fn nanoseconds(stamp: &str) -> Option<i128> {
    let (date, time) = stamp.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (clock, fraction) = time[..zone].split_once('.').unwrap_or((&time[..zone], "0"));
    let [hours, minutes, seconds] = numbers(clock, ':')?;
    let digits: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let fraction: i128 = digits.parse().ok()?;
    // Howard Hinnant's days_from_civil, with March as the first month.
    let (year, month) = match month {
        3.. => (year, month - 3),
        _ => (year - 1, month + 9),
    };
    let days = year * 365 + year.div_euclid(4) - year.div_euclid(100)
        + year.div_euclid(400)
        + (153 * month + 2) / 5
        + day
        - 1;
    let whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
    Some(whole * 1_000_000_000 + fraction)
}

fn numbers(text: &str, between: char) -> Option<[i128; 3]> {
    let mut all = text.split(between).map(|part| part.parse::<u32>().ok());
    let three = [all.next()??, all.next()??, all.next()??];
    all.next().is_none().then(|| three.map(i128::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_that_between_the_marks_and_not_between_what_the_load_printed() {
        let log = "2026-02-28T23:59:59.5Z m begin\n\
                   2026-03-01T00:00:00.25Z m end 1\n\
                   2026-03-01T00:00:00.5Z other end 0\n\
                   2026-03-01T00:00:01.000000007Z m end 0\n";
        assert_eq!(between(log, "m"), Ok(1_500_000_007));
        assert_eq!(last_line(log, "m"), Some("other end 0"));
        let leap =
            "2024-02-28T23:00:00.000000000+09:00 m begin\n2024-03-01T00:00:00.1+09:00 m end 0\n";
        assert_eq!(
            between(leap, "m"),
            Ok((24 + 1) * 3_600_000_000_000 + 100_000_000)
        );
    }

    #[test]
    fn a_log_without_both_marks_has_no_time() {
        for log in [
            "",
            "2026-02-28T23:59:59.5Z m begin\n",
            "2026-02-28T23:59:59.5Z m end 0\n",
            "yesterday m begin\ntoday m end 0\n",
            "2026-02-28T23:59:59Z m end 0\n2026-02-28T23:59:59Z m begin\n",
        ] {
            assert!(between(log, "m").is_err(), "{log}");
        }
    }
}
