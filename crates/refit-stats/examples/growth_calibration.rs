//! How often is something called growing that is not, and how often is a leak found? Simulates programs whose memory
//! moves in every way that is known. `cargo run --release -p refit-stats --example growth_calibration [PROGRAMS]`

#![allow(clippy::print_stdout)] // what it is for

#[path = "../tests/sim_growth/mod.rs"]
mod sim_growth;

use sim_growth::{KINDS, Noise, SAMPLES, rates};

fn main() {
    let programs = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(20_000);
    println!("{SAMPLES} samples each, {programs} programs of each kind, interval at 95 %");
    println!(
        "{:<20} {:>14} {:>12}",
        "no growth", "called growing", "covered"
    );
    for (name, noise) in KINDS {
        let (grows, covers) = rates(*noise, 0.0, programs, 1);
        println!(
            "{name:<20} {:>12.2} % {:>10.1} %",
            grows * 100.0,
            covers * 100.0
        );
    }
    println!();
    println!("{:<20} {:>14} {:>12}", "growth of", "found", "covered");
    for (name, noise) in [
        ("white noise", Noise::White),
        ("correlated, 0.9", Noise::Correlated(0.9)),
        ("sawtooth", Noise::Sawtooth),
    ] {
        for rise in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
            let (grows, covers) = rates(noise, rise, programs, 2);
            println!(
                "{name:<16} {rise:>3} {:>12.1} % {:>10.1} %",
                grows * 100.0,
                covers * 100.0
            );
        }
    }
}
