//! How often is a comparison wrong, and how long does it take? Simulates whole comparisons on machines with
//! every kind of disturbance and prints how they came out, beside the same machines measured in hyperfine's
//! order and in a fixed ABAB. `cargo run --release -p refit-stats --example calibration [COMPARISONS]`

#![allow(clippy::print_stdout)] // what it is for

#[path = "../tests/sim/mod.rs"]
#[allow(dead_code)] // each user of it uses another part
mod sim;

use refit_stats::{DEFAULT_LOOKS, Levels, LookPlan, Verdict, fewest_for_ranks, plan_looks};
use sim::{Machine, Noise, SHARED_VM, Tally, compare, tally, tune};

/// Three minutes of a 0.4 s command: 450 runs are 75 round pairs of three variants, one of them warm-up.
const PAIRS: usize = 74;
/// Runs of each command in the other designs: 20 s of measuring.
const RUNS: usize = 24;
/// What one round pair of three variants takes.
const PAIR_SECONDS: f64 = 2.4;

fn main() {
    let comparisons = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(4000);
    let silent = Noise::default();
    let machines = [
        ("shared VM", SHARED_VM, 1),
        (
            "white noise",
            Noise {
                white: 0.015,
                ..silent
            },
            1,
        ),
        (
            "drift",
            Noise {
                drift: 0.2,
                wander: 0.03,
                white: 0.01,
                ..silent
            },
            1,
        ),
        (
            "slot effect",
            Noise {
                first_slot: 0.02,
                ..SHARED_VM
            },
            1,
        ),
        (
            "heavy tails",
            Noise {
                heavy: 0.01,
                ..silent
            },
            1,
        ),
        (
            "skew",
            Noise {
                skew: 0.03,
                ..silent
            },
            1,
        ),
        (
            "skew, one side",
            Noise {
                candidate_skew: 0.03,
                white: 0.003,
                ..silent
            },
            1,
        ),
        (
            "coarse clock",
            Noise {
                tick: 0.02,
                white: 0.01,
                ..silent
            },
            1,
        ),
        (
            "two speeds",
            Noise {
                two_speeds: 0.3,
                white: 0.003,
                ..silent
            },
            1,
        ),
        (
            "layout",
            Noise {
                layout: 0.05,
                white: 0.003,
                ..silent
            },
            1,
        ),
        ("3 candidates", SHARED_VM, 3),
    ];

    println!(
        "No effect; {comparisons} comparisons each, up to {PAIRS} round pairs, {DEFAULT_LOOKS} looks."
    );
    println!(
        "Blocks: hyperfine's order, Welch's t. ABAB: fixed order, paired t. {RUNS} runs each, at 5 %."
    );
    println!(
        "The shared VM's 95 % interval is {:.2} % wide at 12 round pairs.
",
        typical_width()
    );
    println!(
        "| machine | false faster/slower | coverage | same | inconclusive | pairs | blocks: false | ABAB: false |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, noise, candidates) in machines {
        let plan = plan(PAIRS, candidates);
        let t = tally(noise, &plan, candidates, 0.0, comparisons);
        let each = candidates as f64;
        println!(
            "| {name} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.1} | {:.1} % | {:.1} % |",
            t.percent(t.wrong),
            t.percent(t.covered),
            t.percent(t.same) / each,
            t.percent(t.inconclusive) / each,
            mean_pairs(&t),
            false_positives(noise, comparisons, Order::Blocks),
            false_positives(noise, comparisons, Order::Alternating),
        );
    }

    println!("\nA true effect of −2 % (0.4 s command, 3 min; warm-up included in the time).\n");
    println!("| machine | faster | slower | same | coverage | mean time |");
    println!("|---|---|---|---|---|---|");
    for (name, noise, candidates) in machines {
        let t = tally(
            noise,
            &plan(PAIRS, candidates),
            candidates,
            0.98_f64.ln(),
            comparisons,
        );
        let each = candidates as f64;
        println!(
            "| {name} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.0} s |",
            t.percent(t.right) / each,
            t.percent(t.wrong),
            t.percent(t.same) / each,
            t.percent(t.covered),
            PAIR_SECONDS * (each + 2.0) / 3.0 * (mean_pairs(&t) + 1.0),
        );
    }

    println!(
        "\nFew round pairs, Student's interval with all of the error. No effect: false; ×2 and +20 %: told.\n"
    );
    println!(
        "| machine | 3 pairs: false | 4 pairs: false | 5 pairs: false | ×2 within 4 | ×2 of 3 | +20 % within 8 |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, noise, candidates) in machines {
        let few = |pairs, ratio: f64| {
            tally(
                noise,
                &plan(pairs, candidates),
                candidates,
                ratio.ln(),
                comparisons,
            )
        };
        let false_after = |pairs| {
            let t = few(pairs, 1.0);
            t.percent(t.wrong)
        };
        let [three, four, five] = [3, 4, 5].map(false_after);
        // As part of a long plan, with a tenth of the error.
        let told = |ratio: f64, within| {
            let t = few(PAIRS, ratio);
            t.percent(t.within(within))
        };
        let of_three = few(3, 2.0);
        println!(
            "| {name} | {three:.1} % | {four:.1} % | {five:.1} % | {:.1} % | {:.1} % | {:.1} % |",
            told(2.0, 4),
            of_three.percent(of_three.within(3)),
            told(1.2, 8),
        );
    }

    println!("\nOther plans on the shared VM: wrong or missed, and mean time.\n");
    println!("| looks after | level each | no effect | −1 % | −2 % | −5 % | −50 % |");
    println!("|---|---|---|---|---|---|---|");
    let fixed = |looks: &[usize], ranks| LookPlan {
        looks: looks.to_vec(),
        levels: Levels { ranks, early: 0.0 },
    };
    for plan in [
        plan(PAIRS, 1),
        fixed(&[15, 30, 45, 60, 74], 0.0158),
        fixed(&[7, 24, 41, 57, 74], 0.0158),
        fixed(&[7, 13, 23, 41, 74], 0.0158),
        fixed(&[74], 0.05),
        plan(fewest_for_ranks(1), 1),
    ] {
        print!("| {:?} | {:.4} ", plan.looks, plan.levels.ranks);
        for ratio in [1.0_f64, 0.99, 0.98, 0.95, 0.5] {
            let t = tally(SHARED_VM, &plan, 1, ratio.ln(), comparisons / 2);
            let share = if ratio == 1.0 {
                t.wrong
            } else {
                t.comparisons - t.right
            };
            let seconds = PAIR_SECONDS * (mean_pairs(&t) + 1.0);
            print!("| {:.1} %, {seconds:.0} s ", t.percent(share));
        }
        println!("|");
    }

    println!(
        "\nTunings: a screening of 3, 6, 12 and 24 round pairs, then its best with new runs.\n"
    );
    println!(
        "| machine | 1 none: false | 5 none: false | the same by the screening's own runs | −10, −8, −5, 0 %: best lost | not confirmed | runs of 588 |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, noise, candidates) in machines {
        if candidates == 1 {
            tunings(name, noise, comparisons / 4);
        }
    }
}

/// A line of the table of tunings.
fn tunings(name: &str, noise: Noise, tunings: u32) {
    let centre = sim::centre(noise);
    let share = |count: usize| 100.0 * count as f64 / f64::from(tunings);
    let all = |effects: &[f64]| {
        let made = (0..u64::from(tunings)).map(|seed| {
            let mut machine = Machine::new(noise, centre, seed ^ 0x7475_6e65);
            tune(&mut machine, &plan(PAIRS, 1), effects, seed)
        });
        made.collect::<Vec<_>>()
    };
    let less = Some(Verdict::Less);
    let (one, five) = (all(&[0.0]), all(&[0.0; 5]));
    let effects = [0.95_f64, 0.90, 1.0, 0.92].map(f64::ln);
    let four = all(&effects);
    let runs: usize = four.iter().map(|tuned| tuned.runs).sum();
    println!(
        "| {name} | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.1} % | {:.0} |",
        share(one.iter().filter(|tuned| tuned.confirmed == less).count()),
        share(five.iter().filter(|tuned| tuned.confirmed == less).count()),
        share(five.iter().filter(|tuned| tuned.screened == less).count()),
        share(four.iter().filter(|tuned| !tuned.left.contains(&1)).count()),
        share(four.iter().filter(|tuned| tuned.confirmed != less).count()),
        runs as f64 / f64::from(tunings),
    );
}

fn plan(pairs: usize, candidates: usize) -> LookPlan {
    plan_looks(pairs, candidates, DEFAULT_LOOKS).expect("enough round pairs")
}

fn mean_pairs(tally: &Tally) -> f64 {
    f64::from(tally.pairs) / f64::from(tally.comparisons)
}

/// Median width in percent, of two variants as is usual.
fn typical_width() -> f64 {
    let plan = LookPlan::once(12, 1);
    let mut widths: Vec<f64> = (0..1000)
        .filter_map(|seed| {
            let outcomes = compare(&mut Machine::new(SHARED_VM, 0.0, seed), &plan, 1, 0.0, seed);
            outcomes[0].effect.interval
        })
        .map(|interval| 200.0 * interval.half_width())
        .collect();
    widths.sort_by(f64::total_cmp);
    widths[widths.len() / 2]
}

#[derive(Clone, Copy)]
enum Order {
    Blocks,
    Alternating,
}

/// Percent of comparisons without an effect that a t-test at 5 % calls significant.
fn false_positives(noise: Noise, comparisons: u32, order: Order) -> f64 {
    let centre = sim::centre(noise);
    let wrong = (0..u64::from(comparisons)).filter(|seed| {
        let mut machine = Machine::new(noise, centre, seed ^ 0xabcd_0000);
        let mut run = |candidate, first| machine.run(0.0, candidate, first);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        match order {
            Order::Blocks => {
                a.extend((0..RUNS).map(|i| run(false, i == 0)));
                b.extend((0..RUNS).map(|_| run(true, false)));
                let error = (variance(&a) + variance(&b)) / RUNS as f64;
                (mean(&a) - mean(&b)).abs() > T_WELCH * error.sqrt()
            }
            Order::Alternating => {
                for _ in 0..RUNS {
                    a.push(run(false, true));
                    b.push(run(true, false));
                }
                let d: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
                mean(&d).abs() > T_PAIRED * (variance(&d) / RUNS as f64).sqrt()
            }
        }
    });
    100.0 * wrong.count() as f64 / f64::from(comparisons)
}

/// Student's t for 23 degrees of freedom, and for Welch's, of which there are nearly twice as many.
const T_PAIRED: f64 = 2.069;
const T_WELCH: f64 = 2.014;

fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

fn variance(x: &[f64]) -> f64 {
    let m = mean(x);
    x.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (x.len() - 1) as f64
}
