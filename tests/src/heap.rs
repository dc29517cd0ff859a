//! `run --heap`: what is counted equals what programs know that they allocated, above each allocator, in threads
//! and forked children; and the programs go on as without it.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use serde_json::Value;

use crate::locations::allocator_file;
use crate::ran::{base, number};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(a_known_sequence_is_counted_exactly_above_each_allocator),
    test!(a_known_sequence_is_counted_exactly_with_musl),
    test!(an_environment_in_the_middle_of_a_change_is_not_read),
    test!(operators_new_and_delete_are_counted_exactly),
    test!(more_children_than_there_is_room_for_are_summed),
    test!(size_classes_tell_what_each_allocator_takes),
    test!(a_comparison_has_columns_of_the_heap),
    test!(threads_that_free_each_others_blocks_are_counted_exactly),
    test!(a_forked_child_has_what_it_inherited_and_what_it_did),
    test!(totals_are_those_of_memcheck),
    test!(each_image_of_a_tree_is_counted_across_exec),
    test!(what_cannot_be_counted_is_told),
    test!(blocks_at_higher_addresses_are_told),
    test!(real_programs_print_the_same),
];

const ALLOCATORS: [&str; 4] = ["glibc", "jemalloc", "mimalloc", "tcmalloc"];

/// Allocations, frees, bytes ever requested, and what is live: bytes requested, bytes usable, blocks.
pub type Counts = [u64; 6];

pub fn printed(output: &Output) -> Vec<Counts> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().map(|line| {
        let numbers = line
            .split(' ')
            .map(|word| word.parse().expect("the programs print numbers"));
        numbers.collect::<Vec<_>>().try_into().expect("six of them")
    });
    lines.collect()
}

fn executable<'a>(report: &'a Value, name: &str) -> &'a Value {
    let all = report["heap"]["executables"].as_array();
    let all = all.unwrap_or_else(|| panic!("no heap in {report:#}"));
    let found = all.iter().find(|entry| base(&entry["executable"]) == name);
    found.unwrap_or_else(|| panic!("no {name} in {report:#}"))
}

/// What refit counted: sums over all processes of the program, and what was live at the end of the largest.
pub fn counted(report: &Value, name: &str) -> Counts {
    let entry = executable(report, name);
    let sums = ["allocations", "frees", "allocated_bytes"].map(|field| number(&entry[field]));
    let end = &entry["largest"]["end"];
    let live = ["requested_bytes", "usable_bytes", "blocks"].map(|field| number(&end[field]));
    let classes = entry["largest"]["classes"].as_array().expect("a list");
    let of_classes = |field| {
        classes
            .iter()
            .map(|class| number(&class["live"][field]))
            .sum::<u64>()
    };
    assert_eq!(of_classes("blocks"), live[2], "{entry:#}");
    assert_eq!(of_classes("requested_bytes"), live[0], "{entry:#}");
    [sums[0], sums[1], sums[2], live[0], live[1], live[2]]
}

/// Runs the program; the last argument is its number of steps. The program passes its own tests without refit too.
fn run(env: &TestEnv, settings: &[&str], program: &str, words: &[&str]) -> (Vec<Counts>, Value) {
    let path = env.program(program);
    expect_code(&env.run(&[&[path.as_str()], words].concat()), 0);
    let args = [&["run", "--heap"], settings, &["--", &path], words].concat();
    let (output, report) = env.refit_json(&args);
    expect_code(&output, 0);
    (printed(&output), report)
}

/// What the steps of a program add to what it counts and prints without any.
fn added(
    env: &TestEnv,
    settings: &[&str],
    program: &str,
    words: &[&str],
    steps: &str,
) -> [Counts; 2] {
    let [more, none] = [steps, "0"].map(|steps| {
        let words = [words, &[steps]].concat();
        let (printed, report) = run(env, settings, program, &words);
        [printed[printed.len() - 1], counted(&report, program)]
    });
    let difference =
        |which: usize| std::array::from_fn(|i| more[which][i].wrapping_sub(none[which][i]));
    [difference(0), difference(1)]
}

fn is_exact(env: &TestEnv, settings: &[&str], program: &str, words: &[&str], steps: &str) {
    let [truth, counted] = added(env, settings, program, words, steps);
    assert!(truth.iter().all(|count| *count > 0), "{truth:?}");
    assert_eq!(truth, counted, "{program} {words:?} with {settings:?}");
}

/// Whether an allocator breaks a program by itself, preloaded without refit: mimalloc 3.0.1 of Debian 13 does.
pub fn breaks(env: &TestEnv, allocator: &str, program: &str, words: &[&str]) -> bool {
    if allocator == "glibc" {
        return false;
    }
    let preload = format!("LD_PRELOAD={}", allocator_file(allocator));
    let output = env.run(&[&["env", &preload, program], words].concat());
    let is_broken = output.status.signal().is_some();
    if is_broken {
        println!("{allocator} left out: beneath it {program} fails without refit too");
    }
    is_broken
}

fn a_known_sequence_is_counted_exactly_above_each_allocator(env: &TestEnv) -> Outcome {
    let program = env.program("heap_sequence");
    for allocator in ALLOCATORS {
        if breaks(env, allocator, &program, &["20000"]) {
            continue;
        }
        let setting = format!("malloc={allocator}");
        is_exact(env, &[&setting], "heap_sequence", &[], "20000");
    }
    is_exact(env, &["malloc=glibc:check=0"], "heap_sequence", &[], "3001");
    Outcome::Pass
}

fn a_known_sequence_is_counted_exactly_with_musl(env: &TestEnv) -> Outcome {
    is_exact(env, &[], "musl_heap_sequence", &[], "20000");
    Outcome::Pass
}

fn an_environment_in_the_middle_of_a_change_is_not_read(env: &TestEnv) -> Outcome {
    for settings in [&[][..], &["sync=off"], &["malloc=jemalloc"]] {
        is_exact(env, settings, "heap_environment", &[], "2000");
    }
    Outcome::Pass
}

/// glibc's C++ library calls malloc; the other allocators have operators of their own.
fn operators_new_and_delete_are_counted_exactly(env: &TestEnv) -> Outcome {
    for allocator in ALLOCATORS {
        let setting = format!("malloc={allocator}");
        is_exact(env, &[&setting], "heap_operators", &[], "3000");
    }
    Outcome::Pass
}

/// A shell forks for each of these: the room of those that ended is used again, and nothing of them is lost.
fn more_children_than_there_is_room_for_are_summed(env: &TestEnv) -> Outcome {
    let entries = ["600", "0"].map(|times| {
        let script = format!("i=0; while [ $i -lt {times} ]; do i=$((i+1)); (a=$i); done; true");
        let (output, report) = env.refit_json(&["run", "--heap", "--", "/bin/sh", "-c", &script]);
        expect_code(&output, 0);
        assert_eq!(report["heap"].get("uncounted"), None, "{report:#}");
        let shells = report["heap"]["executables"][0].clone();
        ["processes", "allocations", "frees"].map(|field| number(&shells[field]))
    });
    let [many, one] = entries;
    assert_eq!([many[0], one[0]], [601, 1]);
    assert!(
        many[1] > one[1] + 600 && many[2] <= many[1],
        "{many:?} {one:?}"
    );
    Outcome::Pass
}

/// What is predicted with one allocator is what is measured with the others.
fn size_classes_tell_what_each_allocator_takes(env: &TestEnv) -> Outcome {
    let sizes = ["6", "20", "25", "100", "300", "1000", "9000", "30000"];
    let blocks = |setting: &str, count: &str| {
        let words = [&sizes[..], &[count]].concat();
        let (_, report) = run(env, &[setting], "heap_sizes", &words);
        let largest = &executable(&report, "heap_sizes")["largest"];
        let fits = largest["fit"].as_array().expect("a list").iter();
        let predicted = fits.map(|fit| (fit["allocator"].to_string(), number(&fit["bytes"])));
        let usable = number(&largest["end"]["usable_bytes"]);
        (predicted.collect::<BTreeMap<_, _>>(), usable)
    };
    let count = 500;
    let ran = ALLOCATORS.map(|allocator| {
        let setting = format!("malloc={allocator}");
        [count.to_string().as_str(), "0"].map(|count| blocks(&setting, count))
    });
    let of_glibc = &ran[0];
    for (allocator, [some, none]) in ALLOCATORS.iter().zip(&ran) {
        let name = format!("\"{allocator}\"");
        let predicted = of_glibc[0].0[&name] - of_glibc[1].0[&name];
        // glibc's headers are not usable.
        let headers = if *allocator == "glibc" {
            8 * count * sizes.len() as u64
        } else {
            0
        };
        let measured = some.1 - none.1 + headers;
        assert!(
            predicted.abs_diff(measured) * 1000 <= measured,
            "{allocator}: {predicted} for {measured}"
        );
    }
    let path = env.program("heap_sizes");
    let output = env.refit(&["run", "--heap", "--", &path, "6", "100000"]);
    let told = described(&output);
    let expected = "would take, by size classes alone: 781 KiB with jemalloc, mimalloc, tcmalloc; 3.1 MiB with glibc";
    assert!(told.contains(expected), "{told}");
    Outcome::Pass
}

fn a_comparison_has_columns_of_the_heap(env: &TestEnv) -> Outcome {
    let program = env.program("heap_sequence");
    let json = env.path("compared.json");
    let args = [
        "compare",
        "--heap",
        "--rounds",
        "2",
        "--json",
        &json,
        "malloc=jemalloc",
        "--",
        &program,
        "3000",
    ];
    let output = env.refit(&args);
    expect_code(&output, 0);
    let text = std::fs::read_to_string(&json).expect("refit wrote its result");
    let result: Value = serde_json::from_str(&text).expect("it is JSON");
    for metric in ["heap-requested", "heap-usable", "allocations"] {
        let effects = result["effects"].as_array().expect("a list");
        let is_it = |effect: &&Value| effect["metric"] == metric && effect["variant"] == 1;
        let effect = effects.iter().find(is_it);
        assert!(effect.is_some(), "no {metric} in {effects:#?}");
    }
    Outcome::Pass
}

/// 8 threads have counters of their own; of 64 some share them.
fn threads_that_free_each_others_blocks_are_counted_exactly(env: &TestEnv) -> Outcome {
    for allocator in ALLOCATORS {
        let setting = format!("malloc={allocator}");
        for (threads, blocks) in [(8_u64, "20000"), (64, "3000")] {
            let words = [&*threads.to_string()];
            let [truth, mut counted] = added(env, &[&setting], "heap_threads", &words, blocks);
            assert!(truth.iter().all(|count| *count > 0), "{truth:?}");
            // glibc also gives out what is left of a free block where that is too small for one of its own: 16 bytes
            // (malloc.c, MINSIZE). To which of its blocks for each thread that happens differs from run to run.
            if allocator == "glibc" && truth[4].abs_diff(counted[4]) <= 16 * threads {
                counted[4] = truth[4];
            }
            assert_eq!(truth, counted, "{threads} threads above {allocator}");
        }
    }
    Outcome::Pass
}

fn a_forked_child_has_what_it_inherited_and_what_it_did(env: &TestEnv) -> Outcome {
    for allocator in ALLOCATORS {
        let setting = format!("malloc={allocator}");
        let [(more, report), (_, none)] =
            ["9000", "0"].map(|n| run(env, &[&setting], "heap_fork", &[n]));
        let [child, parent] = more[..] else {
            panic!("both print: {more:?}")
        };
        let (all, none) = (counted(&report, "heap_fork"), counted(&none, "heap_fork"));
        let got: Counts = std::array::from_fn(|i| all[i].wrapping_sub(none[i]));
        // The sums are of both; the child is the larger one.
        assert_eq!(
            got[..3],
            [0, 1, 2].map(|i| child[i] + parent[i]),
            "{allocator}"
        );
        assert_eq!(got[3..], child[3..], "{allocator}");
        assert!(child.iter().all(|count| *count > 0), "{child:?}");
        assert_eq!(executable(&report, "heap_fork")["processes"], 2);
    }
    Outcome::Pass
}

/// What is usable is left out: memcheck has an allocator of its own. It counts an allocation that fails.
fn totals_are_those_of_memcheck(env: &TestEnv) -> Outcome {
    env.require_command("valgrind");
    let program = env.program("heap_sequence");
    let memchecks = ["2000", "0"].map(|steps| {
        let output = env.run(&["valgrind", &program, steps, "X"]);
        expect_code(&output, 0);
        let text = String::from_utf8_lossy(&output.stderr).replace(',', "");
        let line = text
            .lines()
            .find_map(|line| Some(line.split_once("total heap usage: ")?.1));
        let words = line.unwrap_or_else(|| panic!("no total in {text}"));
        let numbers = words.split(' ').filter_map(|word| word.parse().ok());
        numbers.collect::<Vec<u64>>()
    });
    let counts = ["2000", "0"].map(|steps| {
        let (_, report) = run(env, &[], "heap_sequence", &[steps, "X"]);
        counted(&report, "heap_sequence")[..3].to_vec()
    });
    // From the first allocation to the last, and nothing of refit's own.
    assert_eq!(memchecks, counts);
    let counted = &counts[0];
    assert!(counted[0] > 1000, "{counted:?}");
    Outcome::Pass
}

fn each_image_of_a_tree_is_counted_across_exec(env: &TestEnv) -> Outcome {
    let program = env.program("heap_sequence");
    let script = format!("for i in 1 2 3; do env -i {program} 500; done; exec {program} 500");
    let (output, report) = env.refit_json(&["run", "--heap", "--", "sh", "-c", &script]);
    expect_code(&output, 0);
    let (_, one) = env.refit_json(&["run", "--heap", "--", &program, "500"]);
    let [four, one] = [report, one].map(|report| {
        let entry = executable(&report, "heap_sequence").clone();
        ["processes", "allocations", "allocated_bytes"].map(|field| number(&entry[field]))
    });
    assert_eq!(four, one.map(|count| 4 * count));
    assert!(one[1] > 200, "{one:?}");
    Outcome::Pass
}

fn what_cannot_be_counted_is_told(env: &TestEnv) -> Outcome {
    let output = env.refit(&[
        "run",
        "--heap",
        "--",
        &env.program("own_malloc"),
        &env.path("f"),
    ]);
    expect_code(&output, 0);
    let told = described(&output);
    assert!(
        told.contains("own_malloc ×1 (it has a malloc of its own)"),
        "{told}"
    );
    let deep = [
        "run",
        "--heap",
        "--",
        &env.program("deepbind"),
        &env.path("f"),
    ];
    let output = env.refit(&deep);
    expect_code(&output, 0);
    let told = described(&output);
    assert!(
        told.contains("not exact: libraries that it opened with RTLD_DEEPBIND"),
        "{told}"
    );
    let output = env.refit(&["run", "--heap", "--", &env.program("static_true")]);
    expect_code(&output, 0);
    let told = described(&output);
    assert!(
        told.contains("heap: unknown: no process was counted"),
        "{told}"
    );
    let output = env.refit(&["run", "--heap", "--quiet", "--", "true"]);
    expect_code(&output, 125);
    let output = env.refit(&["run", "--heap", "--backend=seccomp", "--", "true"]);
    expect_code(&output, 125);
    assert!(described(&output).contains("--backend=seccomp"));
    Outcome::Pass
}

/// Counting has a place for addresses of 48 bits.
fn blocks_at_higher_addresses_are_told(env: &TestEnv) -> Outcome {
    let program = env.program("heap_high");
    let beneath = format!("preload={}", env.program("high_malloc"));
    let [high, usual] = [&[&*beneath][..], &[]].map(|settings| {
        let words = [&["run", "--heap"], settings, &["--", &program]].concat();
        let (output, report) = env.refit_json(&words);
        expect_code(&output, 0);
        let entry = executable(&report, "heap_high").clone();
        let is_told = described(&output).contains("10 blocks not counted");
        assert_eq!(is_told, !settings.is_empty(), "{}", described(&output));
        ["untracked", "unknown_frees", "allocations", "frees"]
            .map(|field| entry[field].as_u64().unwrap_or(0))
    });
    assert_eq!(usual[..2], [0, 0], "{usual:?}");
    assert!(usual[2] >= 30 && usual[3] >= 30, "{usual:?}");
    assert_eq!(high[..2], [10, 10], "{high:?}");
    Outcome::Pass
}

const RUBY: &str = "a = (1..3000).map { |i| 'x' * i }; \
     pids = 5.times.map { |i| fork { a.map!(&:upcase); exit!(a.sum(&:size) == 4501500 ? i : 99) } }; \
     puts pids.map { |pid| Process.wait2(pid)[1].exitstatus }.inspect; \
     puts 20.times.map { |i| Thread.new { a.map(&:size).sum + i } }.map(&:value).inspect";
const PYTHON: &str = "import json, threading, subprocess, ctypes\n\
     x = json.loads(json.dumps([{str(i): ['a' * i]} for i in range(2000)]))\n\
     t = [threading.Thread(target=lambda: json.dumps(x)) for _ in range(8)]\n\
     [a.start() for a in t]; [a.join() for a in t]\n\
     print(len(json.dumps(x)), subprocess.run(['echo', 'hi'], capture_output=True).stdout)";

fn real_programs_print_the_same(env: &TestEnv) -> Outcome {
    let commands: [&[&str]; 4] = [
        &["/usr/bin/ruby", "-e", RUBY],
        &["/usr/bin/python3", "-c", PYTHON],
        &[
            "/usr/bin/perl",
            "-e",
            "print join ' ', map { 'y' x $_ } 1..999",
        ],
        &[
            "/bin/sh",
            "-c",
            "ls / | sort -r | sed s/a/b/ | awk '{print length($0)}'",
        ],
    ];
    for words in commands {
        let bare = env.run(words);
        expect_code(&bare, 0);
        for allocator in ALLOCATORS {
            let setting = format!("malloc={allocator}");
            let (output, report) =
                env.refit_json(&[&["run", "--heap", &setting, "--"], words].concat());
            expect_code(&output, 0);
            assert_eq!(output.stdout, bare.stdout, "{words:?} with {setting}");
            assert_eq!(report["heap"].get("uncounted"), None, "{report:#}");
            let odd: BTreeMap<&str, &Value> = ["untracked", "vanished", "unknown_frees", "gaps"]
                .into_iter()
                .filter_map(|field| Some((field, report["heap"]["executables"][0].get(field)?)))
                .collect();
            assert!(odd.is_empty(), "{words:?} with {setting}: {odd:?}");
        }
    }
    Outcome::Pass
}
