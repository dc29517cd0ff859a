//! `run --heap-stacks`: who allocated what is live, against programs that know it.

use serde_json::Value;

use crate::locations::source_dir;
use crate::ran::{base, number};
use crate::runner::{Outcome, Test};
use crate::test;
use crate::test_env::{TestEnv, described, expect_code};

pub const TESTS: &[Test] = &[
    test!(the_function_that_leaks_most_has_its_share),
    test!(above_each_allocator_and_with_musl_a_leak_has_a_name),
    test!(functions_have_the_names_that_their_language_gives),
    test!(what_was_freed_before_or_after_a_fork_is_not_live),
    test!(the_line_of_each_function_is_named_inlined_ones_too),
    test!(a_rust_program_has_its_lines),
    test!(objects_without_names_or_unwind_tables_are_told),
    test!(a_flame_graph_and_folded_text_are_written),
    test!(an_unwind_table_without_an_end_holds_nobody_up),
];

const ALLOCATORS: [&str; 4] = ["glibc", "jemalloc", "mimalloc", "tcmalloc"];

/// The record of one executable.
fn paths<'a>(report: &'a Value, name: &str) -> &'a Value {
    let all = report["heap_paths"].as_array();
    let all = all.unwrap_or_else(|| panic!("no paths in {report:#}"));
    let found = all.iter().find(|one| base(&one["executable"]) == name);
    found.unwrap_or_else(|| panic!("no {name} in {report:#}"))
}

fn has(path: &Value, function: &str) -> bool {
    let frames = path["frames"].as_array().expect("a list");
    frames.iter().any(|frame| frame["function"] == function)
}

/// Live bytes of the paths through a function.
fn through(paths: &Value, function: &str) -> u64 {
    let all = paths["paths"].as_array().expect("a list").iter();
    all.filter(|path| has(path, function))
        .map(|path| number(&path["bytes"]))
        .sum()
}

/// Bytes that two functions leaked, as refit estimates it and as the program prints it.
fn leaked(env: &TestEnv, settings: &[&str], words: &[&str], name: &str) -> ([u64; 2], [u64; 2]) {
    let (output, report) = env.refit_json(&[&["run", "--heap"], settings, &["--"], words].concat());
    expect_code(&output, 0);
    let text = String::from_utf8_lossy(&output.stdout);
    let truth: Vec<u64> = text
        .split_whitespace()
        .map(|word| word.parse().expect("numbers"))
        .collect();
    let paths = paths(&report, name);
    assert!(through(paths, "passing") <= 4 << 20, "{paths:#}");
    (
        ["mostly", "rarely"].map(|function| through(paths, function)),
        [truth[0], truth[1]],
    )
}

/// Of 10 runs of 96 MiB, with some 154 and 38 samples of the two: the means lie within 4 standard errors, and each run
/// within 5 of its own.
fn the_function_that_leaks_most_has_its_share(env: &TestEnv) -> Outcome {
    let program = env.program("heap_leak");
    let mut ratios = [0.0; 2];
    let runs = 10;
    for seed in 0..runs {
        let (estimated, truth) =
            leaked(env, &[], &[&program, "96", &seed.to_string()], "heap_leak");
        for ((estimate, truth), sum) in estimated.into_iter().zip(truth).zip(&mut ratios) {
            let ratio = estimate as f64 / truth as f64;
            let error = (f64::from(512 << 10) / truth as f64).sqrt();
            assert!((ratio - 1.0).abs() < 5.0 * error, "{ratio} ± {error}");
            *sum += (ratio - 1.0) / error;
        }
    }
    for sum in ratios {
        let mean = sum / f64::from(runs).sqrt();
        assert!(mean.abs() < 4.0, "biased by {mean} standard errors");
    }
    Outcome::Pass
}

fn above_each_allocator_and_with_musl_a_leak_has_a_name(env: &TestEnv) -> Outcome {
    let program = env.program("heap_leak");
    for allocator in ALLOCATORS {
        let setting = format!("malloc={allocator}");
        let (estimated, truth) = leaked(env, &[&setting], &[&program, "48", "5"], "heap_leak");
        assert!(
            estimated[0] > truth[0] / 2 && estimated[1] < truth[0] / 2,
            "{allocator}: {estimated:?} {truth:?}"
        );
    }
    let program = env.program("musl_heap_leak");
    let (estimated, truth) = leaked(env, &[], &[&program, "48", "5"], "musl_heap_leak");
    assert!(estimated[0] > truth[0] / 2, "musl: {estimated:?} {truth:?}");
    Outcome::Pass
}

fn functions_have_the_names_that_their_language_gives(env: &TestEnv) -> Outcome {
    let program = env.program("heap_leak_names");
    let (output, report) = env.refit_json(&["run", "--heap", "--", &program]);
    expect_code(&output, 0);
    let paths = paths(&report, "heap_leak_names");
    for name in ["storage::Cache<char>::grow", "storage::grown"] {
        let mib = through(paths, name) >> 20;
        assert!((16..=50).contains(&mib), "{name} {mib}: {paths:#}");
    }
    Outcome::Pass
}

/// A child inherits blocks of its parent, frees them, and leaks others; a thread leaks in the parent.
fn what_was_freed_before_or_after_a_fork_is_not_live(env: &TestEnv) -> Outcome {
    let program = env.program("heap_leak_fork");
    let (output, report) = env.refit_json(&["run", "--heap", "--", &program]);
    expect_code(&output, 0);
    let paths = paths(&report, "heap_leak_fork");
    let mib = |function| through(paths, function) >> 20;
    for (function, truth) in [
        ("of_the_parent", 32),
        ("of_the_child", 32),
        ("of_a_thread", 32),
    ] {
        assert!(
            (16..=50).contains(&mib(function)),
            "{function} {truth}: {paths:#}"
        );
    }
    assert_eq!(mib("freed_by_the_parent"), 0, "{paths:#}");
    Outcome::Pass
}

/// The line of a test's program that has this text.
fn line_of(program: &str, text: &str) -> u64 {
    let source = source_dir().join("tests/programs").join(program);
    let source = std::fs::read_to_string(source).expect("it was compiled");
    let at = source.lines().position(|line| line.contains(text));
    at.expect("it has that line") as u64 + 1
}

/// Function, line, whether it was inlined, the outermost first.
fn lines_of(path: &Value) -> Vec<(String, Option<u64>, bool)> {
    let frames = path["frames"].as_array().expect("a list").iter();
    frames
        .map(|frame| {
            let file = frame["file"].as_str().unwrap_or("heap_lines.c");
            assert!(file.ends_with("heap_lines.c"), "{file}");
            let function = frame["function"].as_str().expect("a name");
            let is_inlined = frame["is_inlined"].as_bool().unwrap_or(false);
            (function.to_owned(), frame["line"].as_u64(), is_inlined)
        })
        .collect()
}

fn the_line_of_each_function_is_named_inlined_ones_too(env: &TestEnv) -> Outcome {
    let program = env.program("heap_lines");
    let wanted = ["main", "leak", "grab"].map(|function| {
        let line = line_of("heap_lines.c", &format!("// line of {function}"));
        (function.to_owned(), Some(line), function != "main")
    });

    // With what names its lines in itself, beside it, and nowhere.
    let debug = env.path("heap_lines.debug");
    let linked = env.path("heap_linked");
    let stripped = env.path("heap_stripped");
    let link = format!("--add-gnu-debuglink={debug}");
    for words in [
        &["objcopy", "--only-keep-debug", &program, &debug][..],
        &["strip", "-o", &stripped, &program],
        &["objcopy", &link, &stripped, &linked],
    ] {
        expect_code(&env.run(words), 0);
    }
    let source = source_dir().join("tests/programs/heap_lines.c");
    let source = source.to_str().expect("a plain path");
    let (packed, split) = (env.path("heap_packed"), env.path("heap_split"));
    let mut programs = vec![
        (&program, "heap_lines"),
        (&linked, "heap_linked"),
        (&packed, "heap_packed"),
    ];
    let gcc = ["gcc", "-O2", "-g", "-o"];
    expect_code(&env.run(&[&gcc[..], &[&packed, "-gz", source]].concat()), 0);
    // Debian 12 has it in binutils; it reads no later version.
    let dwp = "/usr/bin/dwp";
    if std::path::Path::new(dwp).exists() {
        let words = [&split, "-gdwarf-4", "-gsplit-dwarf", source];
        expect_code(&env.run(&[&gcc[..], &words].concat()), 0);
        let package = env.path("heap_split.dwp");
        expect_code(&env.run(&[dwp, "-e", &split, "-o", &package]), 0);
        programs.push((&split, "heap_split"));
    }
    for (program, name) in programs {
        let (output, report) = env.refit_json(&["run", "--heap", "--", program]);
        expect_code(&output, 0);
        let path = &paths(&report, name)["paths"][0];
        assert_eq!(lines_of(path), wanted, "{name}");
        let text = wanted.iter().rev().map(|(function, line, _)| {
            format!("{function} (heap_lines.c:{})", line.expect("checked"))
        });
        let text = format!("100 % {}", text.collect::<Vec<_>>().join(" < "));
        let told = described(&output);
        assert!(told.contains(&text), "{text}: {told}");
    }
    let (output, report) = env.refit_json(&["run", "--heap", "--", &stripped]);
    expect_code(&output, 0);
    let path = &paths(&report, "heap_stripped")["paths"][0];
    let frames = path["frames"].as_array().expect("a list");
    for frame in frames {
        let function = frame["function"].as_str().expect("a name");
        let file = frame["file"].as_str().unwrap_or_default();
        assert!(
            !file.ends_with("heap_lines.c") && function != "main",
            "{path:#}"
        );
    }
    let is_placed = |frame: &Value| {
        let name = frame["function"].as_str().expect("a name");
        name.starts_with("heap_stripped+0x")
    };
    assert!(frames.iter().any(is_placed), "{path:#}");
    Outcome::Pass
}

/// Where heap_leak allocates, as it is told.
fn block() -> String {
    format!(
        "block (heap_leak.c:{})",
        line_of("heap_leak.c", "malloc(bytes)")
    )
}

fn a_rust_program_has_its_lines(env: &TestEnv) -> Outcome {
    let program = env.program("heap_lines_rust");
    let (output, report) = env.refit_json(&["run", "--heap", "--", &program]);
    expect_code(&output, 0);
    let path = &paths(&report, "heap_lines_rust")["paths"][0];
    for (function, marked) in [("leak", "// line of leak"), ("main", "// line of main")] {
        let name = format!("heap_lines_rust::{function}");
        let frames = path["frames"].as_array().expect("a list");
        let frame = frames.iter().find(|frame| frame["function"] == name);
        let frame = frame.unwrap_or_else(|| panic!("no {name}: {path:#}"));
        let file = frame["file"].as_str().expect("a file");
        assert!(file.ends_with("heap_lines_rust.rs"), "{file}");
        assert_eq!(frame["line"], line_of("heap_lines_rust.rs", marked));
    }
    Outcome::Pass
}

fn objects_without_names_or_unwind_tables_are_told(env: &TestEnv) -> Outcome {
    let program = env.program("heap_leak");
    let stripped = env.path("heap_stripped");
    expect_code(&env.run(&["strip", "-o", &stripped, &program]), 0);
    let output = env.refit(&["run", "--heap", "--", &stripped, "16", "1"]);
    expect_code(&output, 0);
    let told = described(&output);
    assert!(
        told.contains("no names for all functions of heap_stripped"),
        "{told}"
    );
    assert!(told.contains("heap_stripped+0x"), "{told}");
    let without = env.path("heap_tableless");
    let remove = [
        "objcopy",
        "-R",
        ".eh_frame",
        "-R",
        ".eh_frame_hdr",
        &program,
        &without,
    ];
    expect_code(&env.run(&remove), 0);
    let output = env.refit(&["run", "--heap", "--", &without, "16", "1"]);
    expect_code(&output, 0);
    let told = described(&output);
    assert!(
        told.contains("no path leads through heap_tableless"),
        "{told}"
    );
    assert!(
        told.contains(&format!("{} < [heap_tableless cannot be unwound]", block())),
        "{told}"
    );
    Outcome::Pass
}

fn a_flame_graph_and_folded_text_are_written(env: &TestEnv) -> Outcome {
    let program = env.program("heap_leak");
    for (name, wanted) in [
        ("f.svg", "<title>mostly: "),
        ("f.folded", "main;mostly;block "),
        ("f.json", "\"name\": \"mostly\""),
    ] {
        let file = env.path(name);
        let args = [
            "run",
            "--heap",
            "--heap-stacks",
            &file,
            "--",
            &program,
            "32",
            "3",
        ];
        let output = env.refit(&args);
        expect_code(&output, 0);
        let text = std::fs::read_to_string(&file).expect("it was written");
        assert!(text.contains(wanted), "{text}");
        let told = described(&output);
        assert!(
            told.contains(&format!("% {} < mostly (heap_leak.c:", block())),
            "{told}"
        );
    }
    let output = env.refit(&["run", "--heap-stacks", &env.path("g"), "--", "true"]);
    expect_code(&output, 125);
    Outcome::Pass
}

/// refit waits 20 s. The program ends at once.
fn an_unwind_table_without_an_end_holds_nobody_up(env: &TestEnv) -> Outcome {
    let program = env.program("endless_unwind");
    let (output, report) = env.refit_json(&["run", "--heap", "--", &program]);
    expect_code(&output, 0);
    let told = described(&output);
    assert!(told.contains("not unwound within 20 s"), "{told}");
    assert!(report["heap_paths"].is_null(), "{report:#}");
    let live = number(&report["heap"]["executables"][0]["largest"]["end"]["requested_bytes"]);
    assert!(live >= 64 << 20, "{live}");
    Outcome::Pass
}
