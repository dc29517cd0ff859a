//! Lines of a file that were changed twice: by refit, and by somebody else since.

use std::ops::Range;

/// Lines `old` of the one file are lines `new` of the other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hunk {
    old: Range<usize>,
    new: Range<usize>,
}

/// A file as its lines, and whether the last one is ended. No bytes are no lines.
struct Lines<'a> {
    all: Vec<&'a [u8]>,
    is_ended: bool,
}

impl Lines<'_> {
    fn of(bytes: &[u8]) -> Lines<'_> {
        let is_ended = bytes.is_empty() || bytes.ends_with(b"\n");
        let text = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        let mut all: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        if bytes.is_empty() {
            all.clear();
        }
        Lines { all, is_ended }
    }
}

/// What is left of `now` when the lines that make `after` of `before` are taken out of it, and the
/// lines that somebody else added. `None` where somebody else changed refit's lines, or added a line
/// that is one of them.
pub fn taken_out(before: &[u8], after: &[u8], now: &[u8]) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let [before, after, now] = [before, after, now].map(Lines::of);
    let ours = hunks(&after.all, &before.all)?;
    let theirs = hunks(&after.all, &now.all)?;
    let added = |hunk: &Hunk| now.all[hunk.new.clone()].iter().copied();
    let mut left: Vec<&[u8]> = Vec::new();
    let (mut at, mut of_ours, mut of_theirs) =
        (0, ours.iter().peekable(), theirs.iter().peekable());
    loop {
        let hunk = match (of_ours.peek(), of_theirs.peek()) {
            (None, None) => break,
            (Some(one), Some(other)) if one.old == other.old => {
                // Somebody else took it out by hand.
                if before.all[one.new.clone()] != now.all[other.new.clone()] {
                    return None;
                }
                of_theirs.next();
                (&before, of_ours.next()?)
            }
            (Some(one), Some(other)) if touches(one, other) => return None,
            (Some(one), Some(other)) if comes_first(one, other) => (&before, of_ours.next()?),
            (Some(_), None) => (&before, of_ours.next()?),
            (_, Some(_)) => (&now, of_theirs.next()?),
        };
        let (source, Hunk { old, new }) = hunk;
        left.extend(&after.all[at..old.start]);
        left.extend(&source.all[new.clone()]);
        at = old.end;
    }
    left.extend(&after.all[at..]);
    let own: Vec<&[u8]> = ours
        .iter()
        .flat_map(|hunk| &after.all[hunk.old.clone()])
        .copied()
        .collect();
    let mut others = theirs
        .iter()
        .flat_map(added)
        .filter(|line| !line.trim_ascii().is_empty());
    if others.any(|line| own.contains(&line)) {
        return None;
    }
    let is_last = |hunk: &Hunk| hunk.old.end == after.all.len() && !hunk.new.is_empty();
    let is_ended = match left.last() {
        last if last == before.all.last() && !theirs.last().is_some_and(is_last) => before.is_ended,
        _ => now.is_ended,
    };
    let mut bytes = left.join(&b'\n');
    if is_ended && !left.is_empty() {
        bytes.push(b'\n');
    }
    let added = theirs.iter().flat_map(added).map(<[u8]>::to_vec).collect();
    Some((bytes, added))
}

/// Whether both change the same line, or one adds lines within those that the other changes.
fn touches(one: &Hunk, other: &Hunk) -> bool {
    one.old.start < other.old.end && other.old.start < one.old.end
}

fn comes_first(one: &Hunk, other: &Hunk) -> bool {
    (one.old.start, one.old.end) < (other.old.start, other.old.end)
}

/// With more lines removed and added than this, files are not compared.
const MOST: usize = 1000;

/// The differences between two files, with as few lines as possible; `None` for more than [`MOST`].
fn hunks(old: &[&[u8]], new: &[&[u8]]) -> Option<Vec<Hunk>> {
    let first = same(old.iter(), new.iter());
    let rest = old.len().min(new.len()) - first;
    let last = same(old.iter().rev(), new.iter().rev()).min(rest);
    let ways = ways(&old[first..old.len() - last], &new[first..new.len() - last])?;
    let mut found: Vec<Hunk> = Vec::new();
    for (from, to) in ways {
        let (from, to) = (
            (first + from.0, first + from.1),
            (first + to.0, first + to.1),
        );
        match found.last_mut() {
            Some(last) if (last.old.end, last.new.end) == from => {
                (last.old.end, last.new.end) = to;
            }
            _ => found.push(Hunk {
                old: from.0..to.0,
                new: from.1..to.1,
            }),
        }
    }
    Some(found)
}

/// A line of the old file and one of the new.
type At = (usize, usize);

/// Each line removed or added, as the places before and after it.
///
/// Myers, "An O(ND) difference algorithm and its variations" (1986): after `d` such lines, the
/// furthest place on diagonal `k` (old line - new line) is kept in `furthest`.
fn ways(old: &[&[u8]], new: &[&[u8]]) -> Option<Vec<(At, At)>> {
    let (n, m) = (old.len().cast_signed(), new.len().cast_signed());
    let middle = MOST.cast_signed() + 1;
    let index = |k: isize| (middle + k).cast_unsigned();
    let is_same =
        |x: isize, y: isize| x < n && y < m && old[x.cast_unsigned()] == new[y.cast_unsigned()];
    // Whether the way to diagonal k comes from the one above: by a line that is added.
    let is_added = |furthest: &[isize], d: isize, k: isize| {
        k == -d || (k != d && furthest[index(k - 1)] < furthest[index(k + 1)])
    };
    let mut furthest = vec![0; 2 * MOST + 3];
    let mut rounds = Vec::new();
    'found: for d in 0..=MOST.cast_signed() {
        rounds.push(furthest.clone());
        for k in (-d..=d).step_by(2) {
            let mut x = match is_added(&furthest, d, k) {
                true => furthest[index(k + 1)],
                false => furthest[index(k - 1)] + 1,
            };
            while is_same(x, x - k) {
                x += 1;
            }
            furthest[index(k)] = x;
            if k == n - m && x >= n {
                break 'found;
            }
        }
        if d == MOST.cast_signed() {
            return None;
        }
    }
    let at = |x: isize, y: isize| (x.cast_unsigned(), y.cast_unsigned());
    let (mut found, mut k) = (Vec::new(), n - m);
    for (d, furthest) in (0..)
        .zip(&rounds)
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
    {
        let (from, x, y) = if is_added(furthest, d, k) {
            let x = furthest[index(k + 1)];
            (k + 1, x, x - k)
        } else {
            let x = furthest[index(k - 1)] + 1;
            (k - 1, x, x - k)
        };
        let before = furthest[index(from)];
        found.push((at(before, before - from), at(x, y)));
        k = from;
    }
    found.reverse();
    Some(found)
}

fn same<'a>(
    one: impl Iterator<Item = &'a &'a [u8]>,
    other: impl Iterator<Item = &'a &'a [u8]>,
) -> usize {
    one.zip(other).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::taken_out;

    const BEFORE: &str = "one\ntwo\nthree";
    const AFTER: &str = "one\ntwo\nthree\n# ours\nfour\n";

    fn left(before: &str, after: &str, now: &str) -> Option<String> {
        let (bytes, _) = taken_out(before.as_bytes(), after.as_bytes(), now.as_bytes())?;
        Some(String::from_utf8(bytes).expect("text"))
    }

    #[test]
    fn what_somebody_else_changed_is_kept() {
        for (now, meant) in [
            (AFTER, BEFORE),
            (
                "new\none\ntwo\nthree\n# ours\nfour\n",
                "new\none\ntwo\nthree",
            ),
            ("one\nthree\n# ours\nfour\n", "one\nthree"),
            ("one\ntwo\n3\n# ours\nfour\n", "one\ntwo\n3\n"),
            (
                "one\ntwo\nthree\nnew\n# ours\nfour\n",
                "one\ntwo\nthree\nnew\n",
            ),
            (
                "one\ntwo\nthree\n# ours\nfour\nnew\n",
                "one\ntwo\nthree\nnew\n",
            ),
            ("one\ntwo\nthree\n# ours\nfour\nnew", "one\ntwo\nthree\nnew"),
            ("1\ntwo\nthree\n# ours\nfour\n5\n", "1\ntwo\nthree\n5\n"),
            ("one\r\ntwo\r\nthree\n# ours\nfour\n", "one\r\ntwo\r\nthree"),
            ("1\ntwo\nthree\n", "1\ntwo\nthree"),
            ("# ours\nfour\n", ""),
        ] {
            assert_eq!(left(BEFORE, AFTER, now).as_deref(), Some(meant), "{now:?}");
        }
        let [before, after] = ["a\nb\nc\nd\n", "a\nB\nc\nD\n"];
        let now = "new\na\nB\nc\nc\nD\n";
        assert_eq!(
            left(before, after, now).as_deref(),
            Some("new\na\nb\nc\nc\nd\n")
        );
    }

    #[test]
    fn what_somebody_else_did_to_our_lines_is_left_to_a_person() {
        for now in [
            "one\ntwo\nthree\n# ours\nfive\n",
            "one\ntwo\nthree\n# ours\n",
            "one\ntwo\nthree\n# ours\nnew\nfour\n",
            "# ours\nfour\none\ntwo\nthree\n",
            "four\none\ntwo\nthree\n# ours\nfour\n",
            "one\ntwo\nthree\n# ours\r\nfour\r\n",
            "one\ntwo\nthree\nnew\n",
            "",
        ] {
            assert_eq!(left(BEFORE, AFTER, now), None, "{now:?}");
        }
    }

    #[test]
    fn a_file_of_no_lines_is_left_so() {
        for before in ["", "\n", "\n\n", "x", "x\n"] {
            let after = format!("{before}ours\n");
            assert_eq!(
                left(before, &after, &after).as_deref(),
                Some(before),
                "{before:?}"
            );
        }
    }
}
