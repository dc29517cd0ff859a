//! Which allocator takes the least memory, and what that costs.

use refit_lab::{Comparison, EffectRecord, Verdict};
use refit_run::AllocatorKind;

use super::note::{Note, note};
use crate::format;
use crate::paint::Tone;
use crate::row::{Row, counting, is_service, main_metric};

/// A candidate that is an allocator and nothing else.
struct Contestant<'a> {
    row: Row<'a>,
    kind: AllocatorKind,
    peak: &'a EffectRecord,
}

/// Where allocators were compared: the one with the least memory at its peak of those that lose no time. Where glibc
/// with an option of its own cannot be told from it, or is it, no other library is needed.
pub fn allocators(comparison: &Comparison) -> Option<Note> {
    let metrics: &[&str] = match is_service(&comparison.experiment) {
        true => &["pss-peak", "pss"],
        false => &["max-rss"],
    };
    let mut all: Vec<Contestant> = counting(comparison)
        .into_iter()
        .filter_map(|row| contestant(comparison, row, metrics[0]))
        .collect();
    if all.len() < 2 {
        return None;
    }
    all.retain(|one| one.is_less() && !one.loses(&comparison.experiment.main));
    all.sort_by(|a, b| a.peak.change.total_cmp(&b.peak.change));
    let Some(least) = all.first() else {
        let text = format!(
            "no allocator takes less at its peak ({}) without losing {}",
            metrics[0],
            main_metric(&comparison.experiment)
        );
        return Some(note("memory:", Tone::Plain, text));
    };
    let told = |one: &Contestant| one.told(comparison, metrics);
    let glibc = all.iter().find(|one| one.kind == AllocatorKind::GLIBC);
    let text = match glibc {
        Some(glibc) if glibc.row.index == least.row.index => format!(
            "glibc with an option takes the least, no other library is needed: {}",
            told(glibc)
        ),
        Some(glibc) if glibc.overlaps(least) => format!(
            "glibc with an option is not told from the least, no other library is needed: {}; {}",
            told(glibc),
            told(least)
        ),
        Some(glibc) => format!(
            "{} takes the least: {}; glibc with an option: {}",
            least.row.name,
            told(least),
            told(glibc)
        ),
        None => format!("{} takes the least: {}", least.row.name, told(least)),
    };
    Some(note("memory:", Tone::Plain, text))
}

fn contestant<'a>(comparison: &'a Comparison, row: Row<'a>, peak: &str) -> Option<Contestant<'a>> {
    let [only] = &*row.variant.settings else {
        return None;
    };
    Some(Contestant {
        kind: only.allocator()?,
        peak: comparison.effects.get(row.index, peak)?,
        row,
    })
}

impl Contestant<'_> {
    fn is_less(&self) -> bool {
        self.peak.verdict == Some(Verdict::Less)
    }

    /// In the metric that the comparison is about, unless that is an amount of memory itself.
    fn loses(&self, main: &str) -> bool {
        let verdict = self.row.effect.and_then(|effect| effect.verdict);
        main != self.peak.metric && matches!(verdict, Some(Verdict::Slower | Verdict::More))
    }

    fn overlaps(&self, other: &Contestant) -> bool {
        match (self.peak.interval, other.peak.interval) {
            (Some([low, _]), Some([_, high])) => low <= high,
            _ => false,
        }
    }

    /// `malloc=glibc:arena_max=2 (pss-peak −31 % [−33 %, −29 %], wall +0.2 % [−1 %, +1 %])`
    fn told(&self, comparison: &Comparison, metrics: &[&str]) -> String {
        let main = comparison.experiment.main.as_str();
        let names = metrics
            .iter()
            .copied()
            .chain((!metrics.contains(&main)).then_some(main));
        let told: Vec<String> = names
            .filter_map(|name| Some((name, comparison.effects.get(self.row.index, name)?)))
            .map(|(name, effect)| {
                let change = format::percent(effect.change);
                format!("{name} {change} {}", format::interval(effect.interval))
            })
            .collect();
        format!("{} ({})", self.row.name, told.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{effect_mut, experiment, setting};

    /// Of two allocators: name, change of max-rss; and what the second one costs in time.
    fn told(of: [(&str, f64); 2], time: Verdict) -> String {
        let mut comparison = experiment();
        for (index, (name, change)) in [2, 3].into_iter().zip(of) {
            let class = comparison.experiment.variants[index].class;
            let variant = &mut comparison.experiment.variants[index];
            name.clone_into(&mut variant.name);
            variant.settings = vec![setting(name, class)];
            let mut peak = effect_mut(&mut comparison, 2, "max-rss").clone();
            peak.variant = index;
            peak.change = change;
            peak.interval = Some([change - 0.01, change + 0.01]);
            peak.verdict = Some(if change < 0.0 {
                Verdict::Less
            } else {
                Verdict::More
            });
            let others = comparison
                .effects
                .iter()
                .filter(|one| one.variant != index || one.metric != "max-rss");
            comparison.effects = others.cloned().chain([peak]).collect();
        }
        effect_mut(&mut comparison, 3, "wall").verdict = Some(time);
        allocators(&comparison).unwrap().text
    }

    #[test]
    fn glibc_with_an_option_wins_where_nothing_is_told_from_it() {
        let of = |jemalloc, glibc, time| {
            told(
                [
                    ("malloc=jemalloc", jemalloc),
                    ("malloc=glibc:arena_max=2", glibc),
                ],
                time,
            )
        };
        assert_eq!(
            of(-0.1, -0.3, Verdict::Same),
            "glibc with an option takes the least, no other library is needed: malloc=glibc:arena_max=2 \
             (max-rss −30.0 % [−31.0 %, −29.0 %], wall −3.2 % [−6.9 %, +0.4 %])"
        );
        let near = of(-0.31, -0.3, Verdict::Same);
        assert!(
            near.starts_with("glibc with an option is not told from the least"),
            "{near}"
        );
        let far = of(-0.4, -0.3, Verdict::Same);
        assert!(far.starts_with("malloc=jemalloc takes the least"), "{far}");
        assert!(
            far.contains("; glibc with an option: malloc=glibc:arena_max=2"),
            "{far}"
        );
        let slow = of(-0.1, -0.3, Verdict::Slower);
        assert!(
            slow.starts_with("malloc=jemalloc takes the least"),
            "{slow}"
        );
        assert!(!slow.contains("glibc"), "{slow}");
        let none = of(0.1, 0.3, Verdict::Same);
        assert_eq!(
            none,
            "no allocator takes less at its peak (max-rss) without losing wall"
        );
    }
}
