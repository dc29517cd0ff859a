//! The known word nearest to one that is not known.

/// A known word and what else people call it.
pub(crate) type Known = (&'static str, &'static [&'static str]);

/// The known word that `typed` most likely stands for, if there is one.
///
/// In this order: the word or an alias in another case; the word after a prefix (`glibc.malloc.arena_max`);
/// the only word that begins so (`dirty`); the word at the smallest edit distance.
pub(crate) fn nearest(
    typed: &str,
    known: impl Iterator<Item = Known> + Clone,
) -> Option<&'static str> {
    // The longest known word has 30 bytes; anything much longer is not a typing error.
    if typed.len() > 60 {
        return None;
    }
    let typed = typed.to_lowercase().replace('-', "_");
    named(&typed, known.clone())
        .or_else(|| behind_a_prefix(&typed, known.clone()))
        .or_else(|| completed(&typed, known.clone()))
        .or_else(|| at_a_small_distance(&typed, known))
}

/// The known word of that very name or alias, whatever its case.
pub(crate) fn named(typed: &str, mut known: impl Iterator<Item = Known>) -> Option<&'static str> {
    let is = |name: &str| name.eq_ignore_ascii_case(typed);
    known
        .find(|(name, aliases)| is(name) || aliases.iter().any(|alias| is(alias)))
        .map(|(name, _)| name)
}

fn behind_a_prefix(typed: &str, known: impl Iterator<Item = Known>) -> Option<&'static str> {
    let ends_so = |name: &str| {
        typed
            .strip_suffix(name)
            .is_some_and(|rest| rest.ends_with(['.', '_', ':']))
    };
    let spelled = known.flat_map(|(name, aliases)| {
        [name]
            .into_iter()
            .chain(aliases.iter().copied())
            .map(move |spelled| (spelled, name))
    });
    spelled
        .filter(|(spelled, _)| ends_so(spelled))
        .max_by_key(|(spelled, _)| spelled.len())
        .map(|(_, name)| name)
}

fn completed(typed: &str, known: impl Iterator<Item = Known>) -> Option<&'static str> {
    let mut begin_so = known
        .map(|(name, _)| name)
        .filter(|name| typed.len() >= 3 && name.starts_with(typed));
    begin_so.next().filter(|_| begin_so.next().is_none())
}

fn at_a_small_distance(typed: &str, known: impl Iterator<Item = Known>) -> Option<&'static str> {
    known
        .map(|(name, _)| {
            (
                distance(typed, name),
                usize::MAX - common_prefix(typed, name),
                name,
            )
        })
        .filter(|&(distance, ..)| distance <= most_slips(typed))
        .min()
        .map(|(.., name)| name)
}

/// The names nearest to one that is not among them, the nearest first; of a name with slashes its last part
/// counts as well.
#[must_use]
pub fn near<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const MOST: usize = 3;
    let typed = typed.to_lowercase();
    let slips = |name: &str| {
        let name = name.to_lowercase();
        let last = name.rsplit('/').next().unwrap_or_default();
        distance(&typed, &name).min(distance(&typed, last))
    };
    let mut near: Vec<_> = names.map(|name| (slips(name), name.len(), name)).collect();
    near.retain(|(slips, ..)| *slips <= most_slips(&typed));
    near.sort_unstable();
    near.into_iter().take(MOST).map(|(.., name)| name).collect()
}

/// How many slips still make it that word. Three of seven letters are too many: they make `nothing` of `pooling`.
fn most_slips(typed: &str) -> usize {
    ((typed.chars().count() + 1) / 3).min(3)
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + changed);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_one_for_each_slip() {
        for (a, b, slips) in [
            ("sync", "sync", 0),
            ("snyc", "sync", 1),
            ("syn", "sync", 1),
            ("", "tz", 2),
            ("of", "off", 1),
        ] {
            assert_eq!(distance(a, b), slips, "{a} {b}");
        }
    }

    #[test]
    fn the_nearest_names_come_first() {
        let names = [
            "Asia/Tokyo",
            "Europe/Paris",
            "Europe/Berlin",
            "right/Asia/Tokyo",
        ];
        let near = |typed| near(typed, names.into_iter());
        assert_eq!(near("tokio"), ["Asia/Tokyo", "right/Asia/Tokyo"]);
        assert_eq!(near("Europe/Berln"), ["Europe/Berlin"]);
        assert_eq!(near("Phobos"), [""; 0]);
        assert_eq!(super::near("nothing", ["pooling"].into_iter()), [""; 0]);
    }

    #[test]
    fn the_nearest_word_is_the_one_meant() {
        const KNOWN: [Known; 4] = [
            ("on", &["yes"]),
            ("off", &["drop"]),
            ("arena_max", &[]),
            ("dirty_decay_ms", &[]),
        ];
        for (typed, meant) in [
            ("YES", Some("on")),
            ("Off", Some("off")),
            ("of", Some("off")),
            ("onn", Some("on")),
            ("glibc.malloc.arena_max", Some("arena_max")),
            ("MALLOC_ARENA_MAX", Some("arena_max")),
            ("arena-max", Some("arena_max")),
            ("dirty", Some("dirty_decay_ms")),
            ("x", None),
            ("", None),
            ("maybe", None),
        ] {
            assert_eq!(nearest(typed, KNOWN.into_iter()), meant, "{typed}");
        }
    }
}
