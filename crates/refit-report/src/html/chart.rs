//! What all charts have: a legend, an axis, round steps.

use refit_lab::experiment::{Experiment, Role};

use super::colour;
use crate::markup::Markup;
use crate::markup::number;

/// Which colour is which variant, of those that are wanted.
pub fn legend(section: &mut Markup, experiment: &Experiment, wanted: impl Fn(usize) -> bool) {
    section.element("ul", &[("class", "legend")], |list| {
        for (i, variant) in experiment.variants.iter().enumerate() {
            if !wanted(i) {
                continue;
            }
            list.element("li", &[("class", &colour::class(experiment, i))], |item| {
                item.leaf("span", &[("class", "dot")], "");
                item.text(match variant.role {
                    Role::Hidden => "a second baseline",
                    _ => &variant.name,
                });
            });
        }
    });
}

/// The labels left of a chart of this height, each at its own.
pub fn labels(chart: &mut Markup, height: f64, labels: impl Iterator<Item = (f64, String)>) {
    let height = number(height);
    let attributes = [
        ("class", "labels"),
        ("height", &*height),
        ("aria-hidden", "true"),
    ];
    chart.element("svg", &attributes, |svg| {
        for (y, label) in labels {
            let y = number(y + 4.0);
            svg.leaf(
                "text",
                &[("x", "100%"), ("y", &y), ("text-anchor", "end")],
                &label,
            );
        }
    });
}

/// Steps of 1, 2 or 5 times a power of ten from 0 up to `most`, at most six; in
/// multiples of `unit`.
pub fn steps(most: f64, unit: f64) -> Vec<f64> {
    if !(most > 0.0 && most.is_finite()) {
        return vec![0.0];
    }
    let powers = (-3..=18).map(|n| 10.0_f64.powi(n) * unit);
    let step = powers
        .flat_map(|power| [power, 2.0 * power, 5.0 * power])
        .find(|step| most / step <= 5.0);
    let Some(step) = step else {
        return vec![0.0];
    };
    let count = (most / step).floor() as usize;
    (0..=count).map(|i| i as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_in_their_unit() {
        assert_eq!(steps(3000.0, 1.0), [0.0, 1000.0, 2000.0, 3000.0]);
        assert_eq!(steps(44.0 * 1024.0, 1024.0).len(), 5);
        assert_eq!(steps(0.0, 1.0), [0.0]);
        assert_eq!(steps(f64::INFINITY, 1.0), [0.0]);
        assert!(steps(1.8e19, 1.0).len() > 1);
    }
}
