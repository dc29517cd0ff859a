//! What it takes to believe a report, to doubt it, and to make it again.

use refit_crash::CrashReport;
use refit_crash::mode::Role;
use refit_run::{Outcome, Run};

use crate::coverage::gaps;
use crate::crash::row::Row;
use crate::format;
use crate::html::elements::{self, section};
use crate::html::grid::{self, grid};
use crate::markup::Markup;
use crate::table::Column;

/// What refit reached of the program.
pub fn reached(main: &mut Markup, rows: &[Row]) {
    let runs: Vec<(&Row, &Run)> = rows
        .iter()
        .filter_map(|row| Some((row, row.mode.run.as_ref()?)))
        .collect();
    if runs.is_empty() {
        return;
    }
    section(main, "What was reached", |section| {
        let text = "Calls that ask for durability, of the program and all that it started. Suppressed calls did \
                    not reach the kernel; the calls of a process that was not reached were real.";
        section.leaf("p", &[], text);
        let words = |of: fn(&Row, &Run) -> String| runs.iter().map(move |(row, run)| of(row, run));
        let number = |title, of: fn(&Run) -> u64| {
            let numbers = runs.iter().map(|(_, run)| format::count(of(run) as f64));
            Column::numbers(title, numbers)
        };
        let columns = [
            Column::code("variant", words(|row, _| row.name.clone())),
            Column::words("ended", words(|_, run| ended(run))),
            Column::prose("not reached", words(|_, run| unreached(run))),
            number("processes", |run| run.coverage.processes_seen),
            number("reached", |run| run.coverage.processes_reached),
            number("sync calls", |run| run.syncs(|calls| calls.seen)),
            number("suppressed", |run| run.syncs(|calls| calls.suppressed)),
            number("real", |run| run.syncs(|calls| calls.real)),
        ];
        grid(section, "what was reached", "", &columns.each_ref());
    });
}

fn ended(run: &Run) -> String {
    match run.exit {
        Outcome::Code(code) => format!("exit code {code}"),
        Outcome::Signal(signal) => format!("signal {signal}"),
    }
}

fn unreached(run: &Run) -> String {
    match gaps(&run.coverage).as_slice() {
        [] => "–".to_owned(),
        gaps => gaps.join("; "),
    }
}

/// What may be concluded, and what may not.
pub fn meaning(main: &mut Markup, report: &CrashReport, rows: &[Row]) {
    section(main, "What this proves, and what it does not", |section| {
        section.element("dl", &[("class", "meaning")], |list| {
            for (title, text) in [
                ("A loss", proves()),
                ("No loss", no_proof(rows)),
                ("The model covers", covered(report)),
                ("The model does not cover", missing(report)),
            ] {
                list.leaf("dt", &[], title);
                list.element("dd", &[], |dd| dd.prose(&text));
            }
        });
    });
}

fn proves() -> String {
    "It is proof: with this kernel, file system and mount options, a disk with a volatile cache that honours its \
     flushes may hold this image after a power cut, and in it these acknowledged items are lost. Each such image is \
     a counter-example and can be opened again by name."
        .to_owned()
}

fn no_proof(rows: &[Row]) -> String {
    let zeros = rows
        .iter()
        .filter(|row| row.mode.role != Role::Control && row.tally.bad_images == 0);
    let fewest = zeros.map(|row| row.tally.images).filter(|n| *n > 0).min();
    // The rule of three: 3/n bounds at 95 % what n independent draws did not show.
    let bound = match fewest {
        Some(n) if n >= 10 => format!(
            " Had these cuts been drawn independently (they were not: most lie at flushes and acknowledgements), {} \
             without a loss would still allow a loss in up to {} of such cuts.",
            super::super::row::plural_images(n),
            format::magnitude(3.0 / n as f64)
        ),
        _ => String::new(),
    };
    format!(
        "That none was found in the images of this run, of this program under this load, does not prove that none is \
         possible, in this run or in others; an age seen here is not an upper bound.{bound}"
    )
}

fn covered(report: &CrashReport) -> String {
    format!(
        "The page cache is lost. The disk has a volatile cache: writes that completed before the last flush \
         began survive; of later ones any part may, in any order, the last of them torn in blocks of {} bytes. FUA is \
         a write followed by a flush; discarded blocks keep their content or read as zeros. The kernel itself recovers.",
        format::count(report.tear_bytes as f64)
    )
}

fn missing(report: &CrashReport) -> String {
    let speed = if report.with.contains("disk=") {
        format!("the disk was as fast as {} sets it", report.with)
    } else {
        "a flush of the recorded disk takes almost no time, so ages carry over to another disk and numbers of lost items \
         do not (--with disk=8ms emulates a slow one)"
            .to_owned()
    };
    format!(
        "Disks that ignore flushes (the control is one), damage to what was not being written (shorn writes, a flash \
         translation layer), stale data after a discard, several devices, RAID and LVM; acknowledgements still on the \
         network; other kernels, and bugs in them; cuts at other moments; your disk: {speed}. To test the device \
         itself, pull its plug."
    )
}

/// The command, to be copied.
pub fn repeat(main: &mut Markup, report: &CrashReport) {
    let about = "The seed fixes how cuts are drawn from a record. The record differs each time, since the \
                 program is run again.";
    elements::repeat(main, &words(report), about);
}

/// As it would be typed.
pub fn words(report: &CrashReport) -> Vec<String> {
    let mut words: Vec<String> = ["refit", "crash"].map(str::to_owned).into();
    let mut option = |name: &str, value: &str| words.extend([name, value].map(str::to_owned));
    if report.recipe.is_none() {
        option("--check", &report.check);
        match report.ack.strip_prefix("regex ") {
            Some(regex) => option("--ack-regex", regex),
            None => option("--ack", &report.ack),
        }
        for (name, value) in [
            ("--load", &report.load),
            ("--ready", &report.ready),
            ("--prepare", &report.prepare),
        ] {
            if let Some(value) = value {
                option(name, value);
            }
        }
    }
    if let Some(value) = &report.background {
        option("--background", value);
    }
    if report.length_ns > 0 {
        let ms = report.length_ns / 1_000_000;
        let time = match ms % 1000 {
            0 => format!("{}s", ms / 1000),
            _ => format!("{ms}ms"),
        };
        option("--for", &time);
    }
    for setting in report.with.split(' ').filter(|word| !word.is_empty()) {
        option("--with", setting);
    }
    if report.cuts > 0 {
        option("--cuts", &report.cuts.to_string());
    }
    option("--fs", report.filesystem.kind.name());
    if !report.filesystem.options.is_empty() {
        option("--mount-options", &report.filesystem.options);
    }
    if !report.mount.starts_with(&report.directory) {
        option("--mount", &report.mount);
    }
    option("--size", &size(report.disk_bytes));
    option("--tear", &report.tear_bytes.to_string());
    option("--seed", &format::seed(report.seed));
    option("--json", "crash.json");
    option("--html", "crash.html");
    words.extend(report.options.iter().cloned());
    // The run of a recipe always ends after its time.
    if report.stop && report.recipe.is_none() {
        words.push("--stop".to_owned());
    }
    words.extend(report.recipe.clone());
    let candidates = report.modes.iter().filter(|m| m.role == Role::Candidate);
    words.extend(candidates.map(|mode| mode.name.clone()));
    if report.recipe.is_none() {
        words.push("--".to_owned());
        words.extend(report.command.iter().cloned());
    }
    words
}

/// As `--size` takes it.
fn size(bytes: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let whole = units
        .iter()
        .find(|(shift, _)| bytes.is_multiple_of(1 << shift));
    match whole {
        Some((shift, unit)) if bytes > 0 => format!("{}{unit}", bytes >> shift),
        _ => bytes.to_string(),
    }
}

/// Where it was.
pub fn machine(main: &mut Markup, report: &CrashReport) {
    let filesystem = &report.filesystem;
    let options = match filesystem.options.as_str() {
        "" => "the defaults",
        options => options,
    };
    let bytes = |n: u64| format::bytes(n as f64);
    let own = [
        ("file system", filesystem.kind.name().to_owned()),
        ("mount options", options.to_owned()),
        ("made by", report.mkfs.clone()),
        ("disk", bytes(report.disk_bytes)),
        ("torn in blocks of", bytes(report.tear_bytes)),
        ("kernel", report.kernel.clone()),
        ("check", report.check.clone()),
        ("acknowledged by", report.ack.clone()),
        ("under every variant", report.with.clone()),
        ("seed of the cuts", format::seed(report.seed)),
        ("records", report.directory.clone()),
    ];
    let own = own.iter().map(|(name, value)| (*name, &**value));
    // The kernel is there already; of the records' own disk nothing depends.
    let told = ["kernel", "directory", "filesystem"];
    let machine: Vec<(&str, String)> = (report.machine.iter())
        .map(|(name, value)| (&**name, format::fact(value)))
        .collect();
    let machine = machine.iter().map(|(name, value)| (*name, &**value));
    let machine = machine.filter(|(name, _)| !told.contains(name));
    let facts = own.chain(machine).filter(|(_, value)| !value.is_empty());
    section(main, "Machine and file system", |section| {
        grid::facts(section, "machine and file system", facts);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::sample;

    #[test]
    fn the_command_is_the_one_that_was_typed() {
        let mut report = sample::report();
        report.with = "disk=8ms tz=UTC".to_owned();
        assert_eq!(
            format::command_line(&words(&report)),
            "refit crash --check log:a.log --ack fd:1 --prepare 'touch $REFIT_MOUNT/a.log' --for 60s --with disk=8ms \
             --with tz=UTC --cuts 60 --fs ext4 --mount-options data=ordered --size 64M --tear 4096 --seed 0x5eed \
             --json crash.json --html crash.html --check-timeout 60000ms --backend seccomp sync=off malloc=jemalloc thp=never -- python3 writer.py 400"
        );
        report.ack = "regex committed (\\d+)".to_owned();
        report.length_ns = 1_500_000_000;
        report.stop = true;
        report.mount = "/srv".to_owned();
        let line = format::command_line(&words(&report));
        for part in [
            "--ack-regex 'committed (\\d+)'",
            "--for 1500ms",
            "--stop",
            "--mount /srv",
        ] {
            assert!(line.contains(part), "{line}");
        }
    }

    #[test]
    fn sizes_are_as_the_option_takes_them() {
        assert_eq!(
            [1 << 30, 320 << 20, 4096, 0, 7].map(size),
            ["1G", "320M", "4K", "0", "7"]
        );
    }
}
