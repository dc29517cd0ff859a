//! An interval as one line of text: `├──●──┤` beside the mark of no effect.

use refit_lab::EffectRecord;

use crate::format;

/// From where to where all bars of a table reach, as logarithms of ratios,
/// because ratios multiply. No effect lies within.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// At the left or lower edge.
    pub low: f64,
    /// At the right or upper edge.
    pub high: f64,
}

impl Scale {
    /// Room for all of these changes, for 0, and for ±`delta`.
    pub fn around(changes: impl Iterator<Item = f64>, delta: f64) -> Scale {
        let margin = delta.abs().max(1e-4).ln_1p();
        let start = Scale {
            low: -margin,
            high: margin,
        };
        changes
            .map(f64::ln_1p)
            .filter(|log| log.is_finite())
            .fold(start, |scale, log| Scale {
                low: scale.low.min(log),
                high: scale.high.max(log),
            })
    }

    /// Where a logarithm lies: 0 at the low edge, 1 at the high one.
    pub fn part(&self, log: f64) -> f64 {
        ((log - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn column(&self, log: f64, width: usize) -> usize {
        (self.part(log) * (width - 1) as f64).round() as usize
    }
}

/// The bars of a table: one for each row, on one scale.
pub struct Bars<'a> {
    scale: Scale,
    effects: Vec<Option<&'a EffectRecord>>,
}

impl<'a> Bars<'a> {
    /// Of the rows' effects; within ±`delta` there is none.
    pub fn new(effects: impl Iterator<Item = Option<&'a EffectRecord>>, delta: f64) -> Bars<'a> {
        let effects: Vec<_> = effects.collect();
        let all = effects.iter().flatten().flat_map(|effect| changes(effect));
        Bars {
            scale: Scale::around(all, delta),
            effects,
        }
    }

    /// What stands above them.
    pub fn title(&self, width: usize) -> String {
        title(&self.scale, width)
    }

    /// One line for each row.
    pub fn lines(&self, width: usize) -> Vec<String> {
        let bars = self.effects.iter();
        bars.map(|effect| bar(*effect, &self.scale, width))
            .collect()
    }
}

/// Every change that an effect names.
pub fn changes(effect: &EffectRecord) -> impl Iterator<Item = f64> {
    [effect.change]
        .into_iter()
        .chain(effect.interval.into_iter().flatten())
}

/// Whether all that an effect names can be drawn: a damaged file may name −800 %.
pub fn is_drawable(effect: &EffectRecord) -> bool {
    changes(effect).all(|change| change > -1.0 && change.is_finite())
}

/// The bar of an effect; without one, the mark of no effect alone.
fn bar(effect: Option<&EffectRecord>, scale: &Scale, width: usize) -> String {
    let mut line = vec![' '; width];
    let zero = scale.column(0.0, width);
    line[zero] = '│';
    if let Some([low, high]) = effect.and_then(|effect| effect.interval) {
        let (low, high) = (
            scale.column(low.ln_1p(), width),
            scale.column(high.ln_1p(), width),
        );
        if low < high {
            line[low..=high].fill('─');
            line[low] = '├';
            line[high] = '┤';
            if low < zero && zero < high {
                line[zero] = '┼';
            }
        }
    }
    if let Some(effect) = effect {
        line[scale.column(effect.change.ln_1p(), width)] = '●';
    }
    line.into_iter().collect::<String>().trim_end().to_owned()
}

/// Both ends of the scale and its 0, where they do not touch.
fn title(scale: &Scale, width: usize) -> String {
    let mut line = vec![' '; width];
    let zero = scale.column(0.0, width);
    line[zero] = '0';
    let left: Vec<char> = format::percent_short(scale.low.exp_m1()).chars().collect();
    let right: Vec<char> = format::percent_short(scale.high.exp_m1()).chars().collect();
    if left.len() < zero {
        line[..left.len()].copy_from_slice(&left);
    }
    if zero + 1 + right.len() < width {
        line[width - right.len()..].copy_from_slice(&right);
    }
    line.into_iter().collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(low: f64, change: f64, high: f64) -> EffectRecord {
        EffectRecord {
            variant: 1,
            metric: "wall".to_owned(),
            change,
            interval: Some([low, high]),
            pairs: 8,
            ..EffectRecord::default()
        }
    }

    #[test]
    fn all_bars_share_one_scale() {
        let effects = [
            effect(-0.5, -0.4, -0.3),
            effect(-0.1, 0.05, 0.25),
            effect(0.9, 0.95, 1.0),
        ];
        let scale = Scale::around(effects.iter().flat_map(changes), 0.01);
        let lines: Vec<String> = effects
            .iter()
            .map(|effect| bar(Some(effect), &scale, 21))
            .collect();
        assert_eq!(title(&scale, 21), "−50 %     0    +100 %");
        assert_eq!(
            lines,
            ["├──●─┤    │", "        ├─┼●─┤", "          │        ├●"]
        );
        assert_eq!(bar(None, &scale, 21), "          │");
    }

    #[test]
    fn a_point_without_an_interval_or_width_is_a_point() {
        let scale = Scale::around([-0.5].into_iter(), 0.01);
        let mut one = effect(-0.5, -0.5, -0.5);
        assert_eq!(bar(Some(&one), &scale, 11), "●         │");
        one.interval = None;
        assert_eq!(bar(Some(&one), &scale, 11), "●         │");
    }

    #[test]
    fn a_scale_has_room_even_for_nothing() {
        let scale = Scale::around([f64::NAN, -1.0, 0.0].into_iter(), 0.0);
        assert!(scale.low < 0.0 && scale.high > 0.0 && scale.low.is_finite());
    }
}
