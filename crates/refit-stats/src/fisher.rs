//! Fisher's F distribution, by the regularised incomplete beta function as a continued fraction (Abramowitz and
//! Stegun, *Handbook of Mathematical Functions*, 26.6.2 and 26.5.8), evaluated by Lentz's method.

/// P(F > f) with `above` and `below` degrees of freedom, which need not be whole. 1 where f is not above 0.
pub(crate) fn upper_tail(f: f64, above: f64, below: f64) -> f64 {
    if f.is_nan() || f <= 0.0 || above <= 0.0 || below <= 0.0 {
        return 1.0;
    }
    if f.is_infinite() {
        return 0.0;
    }
    incomplete_beta(below / (below + above * f), 0.5 * below, 0.5 * above)
}

/// I_x(a, b), from 0 to 1.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast on this side alone.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let log_front =
        a * x.ln() + b * (-x).ln_1p() + log_gamma(a + b) - log_gamma(a) - log_gamma(b) - a.ln();
    (log_front.exp() / fraction(x, a, b)).clamp(0.0, 1.0)
}

/// 1 + d₁/(1 + d₂/(1 + …)), with d of odd and even steps.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut whole, mut c, mut d) = (1.0, 1.0, 0.0);
    for step in 1..500_u32 {
        let half = f64::from(step / 2);
        let place = a + 2.0 * half;
        let term = if step % 2 == 0 {
            half * (b - half) * x / ((place - 1.0) * place)
        } else {
            -(a + half) * (a + b + half) * x / (place * (place + 1.0))
        };
        d = 1.0 / away(1.0 + term * d);
        c = away(1.0 + term / c);
        whole *= c * d;
        if (c * d - 1.0).abs() < 1e-13 {
            break;
        }
    }
    whole
}

/// ln Γ(x) of x > 0: Stirling's series (6.1.41), after x was moved to where eight terms are exact to 10⁻¹⁴.
fn log_gamma(x: f64) -> f64 {
    let mut shift = 0.0;
    let mut at = x;
    while at < 10.0 {
        shift += at.ln();
        at += 1.0;
    }
    let squared = at * at;
    let mut power = at;
    let mut series = 0.0;
    for divisor in [12.0, -360.0, 1260.0, -1680.0, 1188.0] {
        series += 1.0 / (divisor * power);
        power *= squared;
    }
    (at - 0.5) * at.ln() - at + 0.5 * std::f64::consts::TAU.ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_are_those_of_the_printed_tables() {
        // Upper 5 % and 1 % of any printed table.
        for (above, below, five, one) in [
            (1.0, 1.0, 161.45, 4052.2),
            (1.0, 10.0, 4.965, 10.044),
            (2.0, 5.0, 5.786, 13.274),
            (5.0, 2.0, 19.296, 99.299),
            (4.0, 20.0, 2.866, 4.431),
            (10.0, 30.0, 2.165, 2.979),
            (24.0, 120.0, 1.608, 1.950),
        ] {
            for (f, tail) in [(five, 0.05), (one, 0.01)] {
                let found = upper_tail(f, above, below);
                assert!(
                    (found / tail - 1.0).abs() < 2e-3,
                    "{above} {below}: {found}"
                );
            }
        }
    }

    #[test]
    fn with_one_above_it_is_student_squared() {
        for freedom in [1_u32, 2, 3, 7, 30] {
            for t in [0.1, 1.0, 2.5, 40.0] {
                let found = upper_tail(t * t, 1.0, f64::from(freedom));
                let student = crate::student::two_sided_tail(t, freedom as usize);
                assert!(
                    (found - student).abs() < 1e-10,
                    "{freedom} {t}: {found} {student}"
                );
            }
        }
    }

    #[test]
    fn what_is_no_number_proves_nothing() {
        assert_eq!(upper_tail(f64::NAN, 1.0, 1.0), 1.0);
        assert_eq!(upper_tail(-1.0, 1.0, 1.0), 1.0);
        assert_eq!(upper_tail(1.0, 0.0, 1.0), 1.0);
        assert_eq!(upper_tail(f64::INFINITY, 1.0, 1.0), 0.0);
    }

    #[test]
    fn gamma_is_the_factorial() {
        for (x, gamma) in [(1.0, 1.0), (5.0, 24.0), (11.0, 3_628_800.0_f64)] {
            assert!((log_gamma(x) - gamma.ln()).abs() < 1e-12);
        }
        assert!((log_gamma(0.5) - 0.5 * std::f64::consts::PI.ln()).abs() < 1e-12);
    }
}
