use std::collections::BTreeMap;

use refit_stats::Block;

use super::input::InputVariant;
use super::*;

/// A result of `sync=off` with this effect, on a machine with this disk.
fn input(file: &str, machine: &str, disk: &str, log_ratio: f64) -> PoolInput {
    let fixed = [("machine", machine), ("disk", disk), ("cpu", "one")];
    let block = Block {
        log_ratio,
        error: 0.01,
        freedom: 9.0,
    };
    PoolInput {
        file: file.to_owned(),
        refit: "0.1.0".to_owned(),
        started_unix: 1_700_000_000,
        seed: file.bytes().map(u64::from).sum(),
        pairs: 10,
        interrupted: false,
        is_exact: false,
        is_recipe: false,
        command: vec!["import".to_owned()],
        question: None,
        input: None,
        main: "wall".to_owned(),
        measure: refit_run::metric::MeasureRecord::Duration,
        unit: refit_run::metric::Unit::Nanoseconds,
        unit_name: None,
        with: Vec::new(),
        delta: 0.01,
        fixed: fixed
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        baseline: Some(1e9),
        sync_ns: None,
        variants: vec![InputVariant {
            name: "sync=off".to_owned(),
            risk: Risk::of([refit_knobs::Class::LosesOnCrash]),
            measured: Ok((block, 10)),
        }],
    }
}

/// Three machines with a slow disk, on which it gains, and three with a fast one.
fn fleet() -> Vec<PoolInput> {
    [
        ("a", "slow", -1.00),
        ("b", "slow", -1.05),
        ("c", "slow", -0.95),
        ("d", "fast", -0.02),
        ("e", "fast", 0.00),
        ("f", "fast", 0.01),
    ]
    .map(|(name, disk, effect)| input(name, name, disk, effect))
    .into()
}

#[test]
fn the_disk_explains_what_differs_and_what_is_equal_does_not() {
    let pool = pool(fleet()).unwrap();
    let [variant] = pool.variants.as_slice() else {
        panic!("{:?}", pool.variants);
    };
    let pooled = variant.pooled.as_ref().unwrap();
    assert!(pooled.differ && pooled.p_equal < 1e-6);
    assert!((pooled.change - (-3.01_f64 / 6.0).exp_m1()).abs() < 1e-12);
    let [disk] = variant.factors.as_slice() else {
        panic!("{:?}", variant.factors);
    };
    assert_eq!((&*disk.name, disk.explains), ("disk", true));
    assert_eq!(disk.groups[0].machines, [0, 1, 2]);
    assert!((disk.groups[0].change - (-1.0_f64).exp_m1()).abs() < 1e-12);
}

#[test]
fn one_machine_of_each_kind_does_not_tell_which_property_it_is() {
    let inputs = fleet().into_iter().step_by(3).collect();
    let pool = pool(inputs).unwrap();
    let variant = &pool.variants[0];
    assert!(variant.pooled.as_ref().unwrap().differ);
    let [disk] = variant.factors.as_slice() else {
        panic!("{:?}", variant.factors);
    };
    assert_eq!((disk.p_equal, disk.explains), (None, false));
}

#[test]
fn results_of_one_machine_are_one_block() {
    let mut inputs = fleet();
    inputs[1].fixed.insert("machine".to_owned(), "a".to_owned());
    let pool = pool(inputs).unwrap();
    assert_eq!((pool.results.len(), pool.machines.len()), (6, 5));
    let first = &pool.variants[0].machines[0];
    assert_eq!((first.results, first.pairs), (2, 20));
    assert!((first.change - (-1.025_f64).exp_m1()).abs() < 1e-12);
}

#[test]
fn a_variant_that_a_result_lacks_is_pooled_of_the_others_and_named() {
    let mut inputs = fleet();
    inputs[0].variants[0].measured = Err("disqualified: another output".to_owned());
    let other = InputVariant {
        name: "malloc=jemalloc".to_owned(),
        risk: Risk::NONE,
        measured: Err("not installed".to_owned()),
    };
    inputs[1].variants.push(other);
    let pool = pool(inputs).unwrap();
    let [off, jemalloc] = pool.variants.as_slice() else {
        panic!("{:?}", pool.variants);
    };
    assert_eq!((off.machines.len(), off.not_pooled.len()), (5, 1));
    assert_eq!(off.not_pooled[0].file, "a");
    assert_eq!((jemalloc.machines.len(), jemalloc.not_pooled.len()), (0, 6));
    assert!(jemalloc.pooled.is_none());
}

#[test]
fn times_are_grouped_by_the_gaps_between_them() {
    let mut inputs = fleet();
    for (input, ns) in inputs
        .iter_mut()
        .zip([4.2e6, 4.4e6, 5e6, 2e5, 2.1e5, 900.0])
    {
        input.sync_ns = Some(ns);
    }
    let pool = pool(inputs).unwrap();
    let mut factors = pool.variants[0].factors.iter();
    let times = factors.find(|factor| factor.name == "sync time").unwrap();
    let values: Vec<&str> = times.groups.iter().map(|group| &*group.value).collect();
    assert_eq!(values, ["4.2 ms to 5.0 ms", "200 µs to 210 µs", "900 ns"]);
}

#[test]
fn what_has_no_effect_or_is_of_something_else_is_refused() {
    let refused = |change: fn(&mut PoolInput)| {
        let mut inputs = fleet();
        change(&mut inputs[1]);
        pool(inputs).unwrap_err()
    };
    let is_of = |error: PoolError, wanted: &str| match error {
        PoolError::Other { what, .. } => assert_eq!(what, wanted),
        other => panic!("{other}"),
    };
    is_of(
        refused(|input| input.command.push("more".to_owned())),
        "command",
    );
    is_of(refused(|input| input.is_recipe = true), "command");
    is_of(
        refused(|input| input.input = Some("in".to_owned())),
        "input",
    );
    is_of(refused(|input| input.main = "cpu".to_owned()), "metric");
    is_of(
        refused(|input| input.with.push("disk=4ms".to_owned())),
        "--with",
    );
    assert!(matches!(
        refused(|input| input.is_exact = true),
        PoolError::Exact(_)
    ));
    assert!(matches!(
        refused(|input| input.variants[0].name.push('x')),
        PoolError::NoCommonVariant { .. }
    ));
    assert!(matches!(
        refused(|input| (input.seed, input.fixed) =
            (97, BTreeMap::from([("machine".to_owned(), "a".to_owned())]))),
        PoolError::Twice { .. }
    ));
    let alone = fleet().into_iter().take(1).collect();
    assert!(matches!(pool(alone), Err(PoolError::TooFew(_))));
    assert!(matches!(pool(Vec::new()), Err(PoolError::TooFew(_))));
}
