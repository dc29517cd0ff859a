//! How often something is called growing that is not, over every kind of noise, and how large a leak is found.

mod sim_growth;

use sim_growth::{KINDS, Noise, rates};

/// Of each kind.
const PROGRAMS: u64 = 4000;

#[test]
fn at_most_one_of_twenty_is_called_growing_that_is_not() {
    for (name, noise) in KINDS {
        let (grows, covers) = rates(*noise, 0.0, PROGRAMS, 11);
        assert!(grows <= 0.05, "{name}: {grows}");
        // Programs of these two kinds move, but not at a steady rate: no slope is the true one.
        if !matches!(noise, Noise::Steps(_) | Noise::Filling(_)) {
            let least = if matches!(noise, Noise::Walk) {
                0.92
            } else {
                0.945
            };
            assert!(covers >= least, "{name}: {covers}");
        }
    }
}

#[test]
fn a_leak_that_is_well_above_the_noise_is_found() {
    for (noise, rise, least) in [
        (Noise::White, 8.0, 0.85),
        (Noise::White, 16.0, 0.99),
        (Noise::Correlated(0.9), 16.0, 0.7),
        (Noise::Correlated(0.9), 32.0, 0.99),
        (Noise::Sawtooth, 64.0, 0.5),
    ] {
        let (grows, covers) = rates(noise, rise, PROGRAMS, 12);
        assert!(grows >= least, "{noise:?}, {rise}: {grows}");
        assert!(covers >= 0.945, "{noise:?}, {rise}: {covers}");
    }
}
