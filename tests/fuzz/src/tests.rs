use std::panic;
use std::sync::Mutex;

use super::*;

fn target() -> Target {
    Target::new(env!("CARGO_MANIFEST_DIR"), "none").seeds(["abc=1", "[]"])
}

fn message(of: impl FnOnce() + panic::UnwindSafe) -> String {
    let panic = panic::catch_unwind(of).expect_err("it has to fail");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn a_seed_gives_the_same_inputs_again() {
    let inputs = || {
        let all = Mutex::new(Vec::new());
        target().run(|input| all.lock().unwrap().push(input.to_vec()));
        all.into_inner().unwrap()
    };
    let all = inputs();
    assert_eq!(all.len(), 2 + MUTATIONS);
    assert_eq!(all, inputs());
    let mut different = all.clone();
    different.sort();
    different.dedup();
    assert!(different.len() > 50, "{}", different.len());
}

#[test]
fn a_panic_is_a_failure_with_its_place_and_its_input() {
    let text = message(|| target().run(|input| assert!(!input.contains(&b'['), "a bracket")));
    assert!(
        text.contains("src/tests.rs") && text.contains("a bracket"),
        "{text}"
    );
    assert!(text.contains("the input is \"[]\""), "{text}");
}

#[test]
fn what_a_count_does_not_justify_is_a_failure() {
    let text = message(|| {
        target().run(|input| {
            if input.contains(&b'=') {
                drop(Vec::<u8>::with_capacity(2 << 20));
            }
        });
    });
    assert!(text.contains("allocates more"), "{text}");
    // What the input justifies is none.
    target().memory(0, 8).run(|input| drop(input.repeat(4)));
}

#[test]
fn the_smaller_input_does_the_same() {
    let input: Vec<u8> = (0..=255).collect();
    let small = failure::smaller(&input, |tried| tried.contains(&7) && tried.contains(&200));
    assert_eq!(small, [7, 200]);
}

#[test]
fn a_failure_in_another_place_is_another() {
    let one = failure::run(&|_: &[u8]| panic!("1"), b"").failure;
    let two = failure::run(&|_: &[u8]| panic!("1"), b"").failure;
    assert!(one.is_some() && one != two);
}
