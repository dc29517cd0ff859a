//! One run as a page: what waited or was swapped, then who, where and what it took.

use refit_run::{Calls, ExecutableReport, Outcome, RunReport};

use super::{lines, time};
use crate::calls::{ALL, by_call, sum};
use crate::cpu_profile::cpu_profile;
use crate::format::{bytes, command_line, duration, grouped};
use crate::heap_paths::heap_profile;
use crate::html::elements::{scrolled, section};
use crate::html::grid::{facts, grid};
use crate::html::page;
use crate::markup::Markup;
use crate::stacks::Profile;
use crate::table::Column;

/// The page.
#[must_use]
pub fn html(report: &RunReport) -> String {
    let command = command_line(&report.command);
    page(&format!("refit run: {command}"), &[], |body| {
        body.element("header", &[], |header| {
            header.leaf("p", &[("class", "of")], "refit run");
            header.element("h1", &[], |h1| h1.leaf("code", &[], &command));
        });
        body.element("main", &[], |main| sections(main, report));
        let text = format!("refit {}. One run of this machine.", report.refit);
        body.leaf("footer", &[], &text);
    })
}

fn sections(main: &mut Markup, report: &RunReport) {
    // The findings have a section of their own.
    let lines = lines(report, false);
    main.element("section", &[("class", "result")], |section| {
        let mut lines = lines.iter();
        if let Some(first) = lines.next() {
            section.element("p", &[("class", "answer")], |p| p.prose(first));
        }
        section.element("ul", &[("class", "notes")], |list| {
            for line in lines {
                list.element("li", &[], |item| item.prose(line.trim_start()));
            }
        });
    });
    if let Some(durability) = &report.durability {
        crate::durability::html(main, durability);
    }
    time::html(main, report);
    if let Some(cpu) = &report.cpu {
        flames(main, "Where it was on the processors", &cpu_profile(cpu));
    }
    flames(
        main,
        "Who allocated what is live at the end",
        &heap_profile(&report.heap_paths),
    );
    let seen = |executable: &&ExecutableReport| sum(&executable.calls, |calls| calls.seen) > 0;
    let mut busy: Vec<&ExecutableReport> = report.run.executables.iter().filter(seen).collect();
    let waited = |executable: &ExecutableReport| sum(&executable.calls, |calls| calls.waited_ns);
    busy.sort_by_key(|executable| std::cmp::Reverse(waited(executable)));
    if !busy.is_empty() {
        section(main, "Waiting for the disk", |section| {
            let text = "Calls that ask for durability, by executable. Suppressed calls did not reach the kernel.";
            section.leaf("p", &[], text);
            executables(section, &busy);
        });
        directories(main, &busy);
    }
    section(main, "What it took", |section| took(section, report));
}

/// Each function as broad as what it and those that it called weigh, below those that called it.
fn flames(main: &mut Markup, title: &str, profile: &Profile) {
    if profile.is_empty() {
        return;
    }
    section(main, title, |section| {
        let text = "Each function is as broad as what it and the functions below it took; those that called it are above it. \
                    What is narrower than 0.5 % is left out.";
        section.leaf("p", &[], text);
        scrolled(section, title, |region| {
            region.classed("div", "flames", |all| profile.nested(all));
        });
    });
}

fn executables(section: &mut Markup, busy: &[&ExecutableReport]) {
    let count = |title: &str, of: fn(&Calls) -> u64| {
        Column::numbers(title, busy.iter().map(|one| grouped(sum(&one.calls, of))))
    };
    let kinds = busy
        .iter()
        .map(|one| by_call(&one.calls, |calls| calls.seen, ALL));
    let waited = busy
        .iter()
        .map(|one| duration(sum(&one.calls, |calls| calls.waited_ns) as f64));
    let columns = [
        Column::code("executable", busy.iter().map(|one| one.executable.clone())),
        Column::numbers("processes", busy.iter().map(|one| grouped(one.processes))),
        count("calls", |calls| calls.seen),
        count("suppressed", |calls| calls.suppressed),
        count("real", |calls| calls.real),
        Column::numbers("waited", waited),
        Column::words("which", kinds),
    ];
    grid(section, "sync calls by executable", "", &columns.each_ref());
}

fn directories(main: &mut Markup, busy: &[&ExecutableReport]) {
    let all: Vec<_> = (busy.iter())
        .flat_map(|one| {
            one.directories
                .iter()
                .map(move |directory| (one, directory))
        })
        .filter(|(_, directory)| directory.waited_ns > 0)
        .collect();
    if all.is_empty() {
        return;
    }
    section(main, "Where it waited", |section| {
        let columns = [
            Column::code("directory", all.iter().map(|(_, one)| one.path.clone())),
            Column::code(
                "executable",
                all.iter().map(|(of, _)| of.executable.clone()),
            ),
            Column::numbers(
                "waited",
                all.iter().map(|(_, one)| duration(one.waited_ns as f64)),
            ),
        ];
        grid(section, "waits by directory", "", &columns.each_ref());
    });
}

fn took(section: &mut Markup, report: &RunReport) {
    let metrics = &report.run.metrics;
    let usage = &metrics.usage;
    let ended = match report.run.exit {
        Outcome::Code(code) => format!("with exit code {code}"),
        Outcome::Signal(signal) => format!("by signal {signal}"),
    };
    let rows = [
        ("ended", ended),
        ("wall", duration(metrics.wall_ns as f64)),
        ("user", duration(usage.user_ns as f64)),
        ("system", duration(usage.system_ns as f64)),
        (
            "max RSS",
            usage
                .max_rss_bytes
                .map_or("unknown".to_owned(), |most| bytes(most as f64)),
        ),
        ("minor faults", grouped(usage.minor_faults)),
        ("major faults", grouped(usage.major_faults)),
    ];
    facts(
        section,
        "what it took",
        rows.iter().map(|(name, value)| (*name, &**value)),
    );
}
