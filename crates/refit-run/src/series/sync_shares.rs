//! How long a group waited for its durable calls.

/// The time in which at least one of the waits went on, in the unit of the waits. They are
/// begins and ends.
pub fn covered(waits: &mut [[u64; 2]]) -> u64 {
    waits.sort_unstable();
    let mut covered = 0_u64;
    let mut until = 0;
    for [begin, end] in waits.iter() {
        let begin = (*begin).max(until);
        if *end > begin {
            covered = covered.saturating_add(end - begin);
            until = *end;
        }
    }
    covered
}

/// Their sum.
pub fn sum(waits: &[[u64; 2]]) -> u64 {
    let lengths = waits.iter().map(|[begin, end]| end.saturating_sub(*begin));
    lengths.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_at_the_same_time_cover_it_once() {
        for (waits, expected) in [
            (&mut [][..], 0),
            (&mut [[1, 4], [2, 3], [6, 8]], 5),
            (&mut [[6, 8], [1, 4], [3, 7]], 7),
            (&mut [[5, 5], [7, 6]], 0),
        ] {
            assert_eq!(covered(waits), expected, "{waits:?}");
        }
        assert_eq!(sum(&[[1, 4], [2, 3], [9, 8]]), 4);
        assert_eq!(sum(&[[0, u64::MAX], [0, 2]]), u64::MAX);
    }
}
