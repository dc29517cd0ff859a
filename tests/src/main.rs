//! Product tests: what a user of `refit` sees, and what the kernel sees beneath it.
//!
//! Each test runs in a process of its own, started by this same binary, so that a test that hangs or dies
//! takes nothing with it. `refit-tests --help` says how to run a part of them.

// This is a command: its report belongs on stdout.
#![allow(clippy::print_stdout)]

mod apply;
mod apply_booted;
mod apply_booted_health;
mod apply_booted_kills;
mod apply_booted_kills_postfix;
mod apply_booted_kills_schema;
mod apply_booted_kills_servers;
mod apply_booted_kills_together;
mod apply_booted_kinds;
mod apply_booted_mariadb;
mod apply_booted_packages;
mod apply_booted_postfix;
mod apply_booted_postgresql;
mod apply_booted_recipes;
mod apply_booted_redis;
mod apply_booted_rsyslog;
mod apply_booted_schema;
mod apply_booted_second;
mod apply_booted_unit;
mod apply_booted_wrapper;
mod apply_consent;
mod apply_each_kind;
mod apply_edited;
mod apply_end_to_end;
mod apply_evidence;
mod apply_full;
mod apply_kills;
mod apply_launcher;
mod apply_mariadb;
mod apply_odd;
mod apply_packages;
mod apply_postfix;
mod apply_postgresql;
mod apply_power_cut;
mod apply_redis;
mod apply_rsyslog;
mod apply_schema;
mod apply_schema_mariadb;
mod apply_schema_postgresql;
mod apply_schema_power_cut;
mod apply_second;
mod apply_shared_file;
mod apply_sysctl;
mod apply_together;
mod apply_wrapper;
mod attack;
mod backends;
mod bench;
mod call_by_call;
mod cells;
mod chromium;
mod chroots;
mod ci_workflow;
mod cluster;
mod coming_from;
mod compare;
mod compare_allocators;
mod compare_ci;
mod compare_codes;
mod compare_damaged;
mod compare_few;
mod compare_files;
mod compare_hooks;
mod compare_in_effect;
mod compare_junit;
mod compare_kept;
mod compare_memory;
mod compare_open_loop;
mod compare_outcome;
mod compare_prove;
mod compare_runs;
mod compare_scan;
mod compare_shown;
mod compare_signals;
mod compare_why;
mod compared;
mod conformance;
mod conformance_counts;
mod conformance_document;
mod containers;
mod counters;
mod coverage;
mod cpu_profile;
mod crash;
mod crash_acks;
mod crash_outside;
mod crash_recipes;
mod crash_remains;
mod crash_report;
mod crash_words;
mod database_counters;
mod deadline;
mod differences;
mod directories;
mod disk;
mod doctor_process;
mod doctor_process_access;
mod documents;
mod durability;
mod durability_programs;
mod endurance;
mod export_kubernetes;
mod export_oci;
mod export_oci_words;
mod export_workload;
mod fake_kubectl;
mod family;
mod file_circles;
mod file_graph;
mod fixture;
mod guardian;
mod guardian_processes;
mod heap;
mod heap_limit;
mod heap_purge;
mod heap_stacks;
mod hostile;
mod hostile_files;
mod hostile_text;
mod hostile_trees;
mod index_loop;
mod inherited;
mod intruder;
mod kills;
mod kubernetes;
mod kubernetes_apply;
mod kubernetes_policy;
mod kubernetes_replicas;
mod kubernetes_settings;
mod layering;
mod leap_second;
mod library;
mod live;
mod live_kills;
mod locations;
mod mailer;
mod malloc;
mod manual;
mod mapd;
mod matrix;
mod memory_growth;
mod memory_identity;
mod metrics;
mod metrics_scrape;
mod namespaces;
mod odirect;
mod one_environment;
mod openers;
mod other_preloads;
mod own_filter;
mod own_rings;
mod own_syscalls;
mod pages;
mod pipes;
mod places;
mod points;
mod pool;
mod pool_kubernetes;
mod postfix;
mod postfix_tables;
mod probe_disk;
mod processes;
mod programs;
mod ran;
mod random;
mod random_kills;
mod reach;
mod recipe_answers;
mod recipe_files;
mod recipe_folder;
mod recipe_from;
mod recipe_from_mariadb;
mod recipe_from_postfix;
mod recipe_from_rsyslog;
mod recipe_from_unit;
mod recipe_index;
mod recipe_index_mariadb;
mod recipe_index_postgresql;
mod recipe_index_server;
mod recipe_new;
mod recipe_room;
mod recipe_verbs;
mod recipes;
mod remains;
mod result;
mod rival_servers;
mod rivals;
mod runner;
mod rust_code;
mod sandboxes;
mod schema;
mod schema_cases;
mod schema_postgresql;
mod schema_random;
mod schema_server;
mod schema_sqlite;
mod scopes;
mod script_stacks;
mod seccomp;
mod seccomp_limits;
mod seccomp_opens;
mod sequences;
mod service_cleanup;
mod service_failures;
mod service_kept;
mod service_outcomes;
mod service_runs;
mod service_variants;
mod service_words;
mod settings_refused;
mod signals;
mod small_limits;
mod smoke;
mod standard_output;
mod start_cost;
mod strace;
mod sys;
mod sysctls;
mod systemd_units;
mod takeaways;
mod terminal;
mod test_env;
mod time_account;
mod traced;
mod transparency;
mod tune;
mod tune_answers;
mod used_packages;
mod verbs;
mod watch;
mod watch_end;
mod watch_heap;
mod watch_live;
mod watch_recipe;
mod watch_strange;
mod witness;
mod witness_remains;
mod worlds;

use std::process::ExitCode;

use runner::{Options, Test};

/// Every test there is. A new file of tests is one `mod` line and one line here.
const TABLE: &[&[Test]] = &[
    apply::TESTS,
    apply_booted::TESTS,
    apply_booted_health::TESTS,
    apply_consent::TESTS,
    apply_edited::TESTS,
    apply_end_to_end::TESTS,
    apply_evidence::TESTS,
    apply_each_kind::TESTS,
    apply_full::TESTS,
    apply_kills::TESTS,
    apply_launcher::TESTS,
    apply_mariadb::TESTS,
    apply_odd::TESTS,
    apply_booted_kills::TESTS,
    apply_booted_kills_postfix::TESTS,
    apply_booted_kills_schema::TESTS,
    apply_booted_kills_servers::TESTS,
    apply_booted_kills_together::TESTS,
    apply_booted_kinds::TESTS,
    apply_booted_mariadb::TESTS,
    apply_booted_packages::TESTS,
    apply_packages::TESTS,
    apply_postfix::TESTS,
    apply_postgresql::TESTS,
    apply_power_cut::TESTS,
    apply_redis::TESTS,
    apply_rsyslog::TESTS,
    apply_second::TESTS,
    apply_shared_file::TESTS,
    apply_together::TESTS,
    apply_schema::TESTS,
    schema_postgresql::TESTS,
    schema_sqlite::TESTS,
    apply_schema_mariadb::TESTS,
    apply_schema_postgresql::TESTS,
    apply_schema_power_cut::TESTS,
    apply_sysctl::TESTS,
    apply_booted_recipes::TESTS,
    apply_booted_redis::TESTS,
    apply_booted_schema::TESTS,
    apply_booted_second::TESTS,
    apply_booted_unit::TESTS,
    apply_booted_wrapper::TESTS,
    apply_booted_postfix::TESTS,
    apply_booted_rsyslog::TESTS,
    apply_booted_postgresql::TESTS,
    apply_wrapper::TESTS,
    attack::TESTS,
    bench::TESTS,
    chromium::TESTS,
    chroots::TESTS,
    coming_from::TESTS,
    compare::TESTS,
    compare_allocators::TESTS,
    compare_codes::TESTS,
    compare_damaged::TESTS,
    compare_few::TESTS,
    compare_ci::TESTS,
    ci_workflow::TESTS,
    compare_files::TESTS,
    compare_junit::TESTS,
    compare_hooks::TESTS,
    compare_in_effect::TESTS,
    compare_kept::TESTS,
    compare_memory::TESTS,
    compare_open_loop::TESTS,
    compare_outcome::TESTS,
    compare_prove::TESTS,
    compare_runs::TESTS,
    compare_scan::TESTS,
    compare_shown::TESTS,
    compare_signals::TESTS,
    export_oci::TESTS,
    export_oci_words::TESTS,
    compare_why::TESTS,
    conformance::TESTS,
    conformance_counts::TESTS,
    counters::TESTS,
    coverage::TESTS,
    cpu_profile::TESTS,
    crash::TESTS,
    crash_acks::TESTS,
    crash_outside::TESTS,
    crash_recipes::TESTS,
    crash_remains::TESTS,
    crash_report::TESTS,
    crash_words::TESTS,
    database_counters::TESTS,
    directories::TESTS,
    disk::TESTS,
    doctor_process::TESTS,
    doctor_process_access::TESTS,
    documents::TESTS,
    durability::TESTS,
    durability_programs::TESTS,
    script_stacks::TESTS,
    endurance::TESTS,
    export_workload::TESTS,
    export_kubernetes::TESTS,
    guardian::TESTS,
    heap::TESTS,
    heap_limit::TESTS,
    heap_purge::TESTS,
    heap_stacks::TESTS,
    hostile::TESTS,
    hostile_files::TESTS,
    hostile_text::TESTS,
    hostile_trees::TESTS,
    index_loop::TESTS,
    inherited::TESTS,
    kills::TESTS,
    kubernetes::TESTS,
    kubernetes_apply::TESTS,
    kubernetes_policy::TESTS,
    kubernetes_replicas::TESTS,
    kubernetes_settings::TESTS,
    file_circles::TESTS,
    layering::TESTS,
    leap_second::TESTS,
    malloc::TESTS,
    manual::TESTS,
    library::TESTS,
    standard_output::TESTS,
    start_cost::TESTS,
    namespaces::TESTS,
    odirect::TESTS,
    one_environment::TESTS,
    openers::TESTS,
    other_preloads::TESTS,
    own_filter::TESTS,
    own_rings::TESTS,
    own_syscalls::TESTS,
    mapd::TESTS,
    memory_growth::TESTS,
    memory_identity::TESTS,
    metrics::TESTS,
    metrics_scrape::TESTS,
    pages::TESTS,
    pipes::TESTS,
    pool::TESTS,
    pool_kubernetes::TESTS,
    sysctls::TESTS,
    systemd_units::TESTS,
    takeaways::TESTS,
    takeaways::disk::TESTS,
    time_account::TESTS,
    postfix::TESTS,
    postfix_tables::TESTS,
    probe_disk::TESTS,
    programs::TESTS,
    random_kills::TESTS,
    reach::TESTS,
    recipe_answers::TESTS,
    recipe_files::TESTS,
    recipe_from::TESTS,
    recipe_from_mariadb::TESTS,
    recipe_from_postfix::TESTS,
    recipe_from_rsyslog::TESTS,
    recipe_from_unit::TESTS,
    recipe_index::TESTS,
    recipe_index_mariadb::TESTS,
    recipe_index_postgresql::TESTS,
    recipe_new::TESTS,
    recipe_room::TESTS,
    recipe_verbs::TESTS,
    recipes::TESTS,
    recipes::EACH,
    result::TESTS,
    rival_servers::TESTS,
    rivals::TESTS,
    sandboxes::TESTS,
    scopes::TESTS,
    seccomp::TESTS,
    seccomp_limits::TESTS,
    seccomp_opens::TESTS,
    sequences::TESTS,
    service_cleanup::TESTS,
    service_failures::TESTS,
    service_kept::TESTS,
    service_outcomes::TESTS,
    service_runs::TESTS,
    service_variants::TESTS,
    service_words::TESTS,
    settings_refused::TESTS,
    signals::TESTS,
    small_limits::TESTS,
    smoke::TESTS,
    transparency::TESTS,
    tune::TESTS,
    tune_answers::TESTS,
    verbs::TESTS,
    watch::TESTS,
    watch_end::TESTS,
    watch_heap::TESTS,
    watch_recipe::TESTS,
    watch_live::TESTS,
    watch_strange::TESTS,
    witness::TESTS,
    witness_remains::TESTS,
    worlds::TESTS,
    worlds::compare::TESTS,
    worlds::crash::TESTS,
    worlds::heap::TESTS,
];

const HELP: &str = "\
refit-tests [FILTER…]    run the tests whose name contains one of the FILTERs (all without one);
                         MODULE:: are those of one module
  --list                 print the names instead
  --strict               a skipped test is a failed one
  --again                all tests ran as another user: without those to which the user makes no difference
  --times N              run each of them N times; count every run, and print at the end which failed how often
  --one NAME             run this test in this very process, its output unhidden
  --programs             compile every program of the tests, and run nothing
  --used-files FILE      write the files below /usr that any process opens into FILE until killed, as root
  --used-packages FILE   name their packages that none of those on standard input brings, and run nothing
  --conformance          print docs/conformance.md as it should be, and run nothing else
environment:
  REFIT_BIN              the refit under test         (below target/)
  REFIT_FIXTURES         where compiled programs lie  (target/fixtures)
  REFIT_SOURCE           the source tree              (where this was built)
  REFIT_TEST_DIR         where tests work; no tmpfs   (/var/tmp)
  REFIT_TEST_SLOWER      how many times longer limits are, on an emulated processor   (1)
  REFIT_POINTS           `all`: sweeps try each point, and not only some              (some)
  REFIT_SEED             what draws those, and other random numbers; it is printed    (a new one)";

fn main() -> ExitCode {
    let mut options = Options {
        filters: Vec::new(),
        list: false,
        strict: false,
        again: false,
        times: 1,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--list" => options.list = true,
            "--strict" => options.strict = true,
            "--again" => options.again = true,
            "--times" => match args.next().and_then(|times| times.parse().ok()) {
                Some(times) if times > 0 => options.times = times,
                _ => {
                    eprintln!("refit-tests: --times needs a number greater than 0");
                    return ExitCode::from(2);
                }
            },
            "--programs" => return fixture::compile_all(cells::executables()),
            "--used-files" | "--used-packages" => {
                let Some(file) = args.next() else {
                    eprintln!("refit-tests: {arg} needs a file");
                    return ExitCode::from(2);
                };
                return match arg.as_str() {
                    "--used-files" => used_packages::record(&file),
                    _ => used_packages::judge(&file),
                };
            }
            "--conformance" => return conformance::print_document(),
            "--one" => {
                return args
                    .next()
                    .map_or(ExitCode::from(2), |name| runner::run_one(TABLE, &name));
            }
            "--help" => {
                println!("{HELP}");
                return ExitCode::SUCCESS;
            }
            option if option.starts_with('-') => {
                eprintln!("refit-tests: unknown option {option}\n{HELP}");
                return ExitCode::from(2);
            }
            filter => options.filters.push(filter.to_owned()),
        }
    }
    match runner::run(TABLE, &options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("refit-tests: {error:#}");
            ExitCode::from(2)
        }
    }
}
