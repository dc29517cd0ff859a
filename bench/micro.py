"""Single calls and empty programs: a suppressed fsync, an observed one, open and close, a launch."""

import glob
import os
import re
import shutil
import sys

import process
import subjects
import tried
from comparison import Column, Comparison, Goal, Variant

CHUNKS = 25
SOURCES = os.path.dirname(os.path.abspath(__file__))
VERIFIED_CALLS = 1000


def compiled(bench, name):
    program = os.path.join(bench.disk, name)
    if not os.path.exists(program):
        flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
        process.output(["gcc", *flags, f"{SOURCES}/{name}.c", "-o", program])
    return program


def eatmydata_library():
    found = glob.glob("/usr/lib/*/libeatmydata.so*") or glob.glob("/usr/lib/libeatmydata/*.so*")
    if not found:
        raise process.Failed("libeatmydata.so is not there: apt-get install eatmydata")
    return min(found, key=len)


def calls_traced(bench, words, env, *names):
    """How often each system call was made by a command, by strace and outside of any timing."""
    log = os.path.join(bench.memory, "strace")
    strace = [shutil.which("strace"), "-f", "-qq", "-o", log, "-e", f"trace={','.join(names)}"]
    process.output([*strace, *words], env=env)
    with open(log, encoding="utf-8", errors="replace") as file:
        text = file.read()
    return {name: len(re.findall(rf"^\d+ +{name}\(", text, re.MULTILINE)) for name in names}


def expect(what, got, wanted):
    if got != wanted:
        raise process.Failed(f"{what}: {got} calls, not {wanted}")


def loop_ns(bench, words, env, round_name):
    """Runs a loop program; the numbers that it prints."""
    output = os.path.join(bench.memory, f"loop-{round_name}")
    process.timed(words, env, f"{output}.log", stdout=output)
    with open(output, encoding="ascii") as file:
        return [float(word) for word in file.read().split()]


def fsync(bench):
    """What a suppressed fsync costs."""
    loop, file = compiled(bench, "fsync_loop"), os.path.join(bench.disk, "fsynced")
    report = os.path.join(bench.memory, "fsync.json")
    calls = 2000 if bench.quick else 10000
    preload = dict(bench.env, LD_PRELOAD=eatmydata_library())
    raw = "sync_file_range(fd,0,0,0), raw"
    ways = {
        "eatmydata": ([], preload),
        "eatmydata again (noise)": ([], preload),
        "refit run --quiet sync=off": (bench.quiet("sync=off"), bench.env),
        "refit run --json F -q sync=off": (bench.run(report, "sync=off"), bench.env),
    }

    def one(name, prefix, env):
        def run(round_name):
            words = [*prefix, loop, file, str(CHUNKS), str(calls), str(calls)]
            ns, raw_ns = loop_ns(bench, words, env, f"fsync-{round_name}")
            facts = {"raw probe": raw_ns}
            if "--json" in prefix:
                facts |= subjects.totals(report)
                expect("fsync suppressed, by refit", facts["suppressed"], CHUNKS * calls)
                expect("fsync seen, by refit", facts["seen"], CHUNKS * calls)
            return ({name: ns, raw: raw_ns} if name.endswith("--quiet sync=off") else {name: ns}), facts

        return Variant(name, run)

    notes = []
    small = [loop, file, "1", str(VERIFIED_CALLS), "0"]
    for name, (prefix, env) in {"bare": ([], bench.env), **ways}.items():
        traced = [f"-E{key}={value}" for key, value in env.items() if key == "LD_PRELOAD"]
        seen = calls_traced(bench, [*traced, *prefix, *small], bench.env, "fsync", "sync_file_range", "fcntl")
        expect(f"fsync under {name}, by strace", seen["fsync"], VERIFIED_CALLS if name == "bare" else 0)
        if not "again" in name:
            rest = ", ".join(f"{count} {call}" for call, count in seen.items())
            notes.append(f"strace of {VERIFIED_CALLS} calls, {name}: {rest}")
    notes.append("the raw probe is timed in the process of `refit run --quiet`, by an instruction of its own;"
                 " libeatmydata by LD_PRELOAD")
    return Comparison(
        "fsync", f"A suppressed fsync ({CHUNKS} × {calls} calls, median chunk)", "ns", [*ways, raw],
        [one(name, *way) for name, way in ways.items()],
        [Column("÷ eatmydata", "eatmydata"), Column("over the raw probe", raw, "over")],
        [
            Goal(name, 0, "at most 0.7 × libeatmydata", at_most=0.7, tried=tried.FSYNC)
            for name in ways if name.startswith("refit")
        ],
        bench.rounds(40, 4), notes,
    )


def observe(bench):
    """What counting and timing add to a real fsync, where that is nearly free."""
    loop, file = compiled(bench, "fsync_loop"), os.path.join(bench.memory, "observed")
    report = os.path.join(bench.memory, "observe.json")
    calls = 2000 if bench.quick else 10000
    ways = {"bare": [], "bare again (noise)": [], "refit run (observing)": bench.run(report)}

    def one(name, prefix):
        def run(round_name):
            words = [*prefix, loop, file, str(CHUNKS), str(calls), "0"]
            ns, _ = loop_ns(bench, words, bench.env, f"observe-{round_name}")
            facts = {}
            if prefix:
                facts = subjects.totals(report)
                expect("fsync seen, by refit", facts["seen"], CHUNKS * calls)
                expect("fsync real, by refit", facts["real"], CHUNKS * calls)
            return {name: ns}, facts

        return Variant(name, run)

    notes = []
    small = [loop, file, "1", str(VERIFIED_CALLS), "0"]
    for name, prefix in ways.items():
        seen = calls_traced(bench, [*prefix, *small], bench.env, "fsync")
        expect(f"fsync under {name}, by strace", seen["fsync"], VERIFIED_CALLS)
    notes.append(f"strace of {VERIFIED_CALLS} calls: {VERIFIED_CALLS} fsync in every row")
    return Comparison(
        "observe", f"A real fsync on tmpfs, observed ({CHUNKS} × {calls} calls, median chunk)", "ns",
        list(ways), [one(*way) for way in ways.items()],
        [Column("over bare", "bare", "over"), Column("÷ bare", "bare")], [], bench.rounds(40, 4), notes,
    )


def open_close(bench):
    """What looking at open flags adds to opening a plain file."""
    loop, file = compiled(bench, "open_loop"), os.path.join(bench.disk, "plain")
    with open(file, "w", encoding="ascii") as plain:
        plain.write("plain\n")
    report = os.path.join(bench.memory, "open.json")
    calls = 1000 if bench.quick else 3000
    ways = {
        "bare": ([], bench.env),
        "bare again (noise)": ([], bench.env),
        "eatmydata": ([], dict(bench.env, LD_PRELOAD=eatmydata_library())),
        "refit run (observing)": (bench.run(report), bench.env),
        "refit run --json F -q sync=off": (bench.run(report, "sync=off"), bench.env),
        "refit run --quiet sync=off": (bench.quiet("sync=off"), bench.env),
    }

    def one(name, prefix, env):
        def run(round_name):
            words = [*prefix, loop, file, str(CHUNKS), str(calls)]
            (ns,) = loop_ns(bench, words, env, f"open-{round_name}")
            return {name: ns}, subjects.totals(report) if "--json" in prefix else {}

        return Variant(name, run)

    return Comparison(
        "open", f"open(O_RDONLY) and close of a plain file ({CHUNKS} × {calls} pairs, median chunk)", "ns",
        list(ways), [one(name, *way) for name, way in ways.items()],
        [Column("÷ bare", "bare"), Column("over bare", "bare", "over")],
        [
            Goal(name, 0, "at most 1.03 × bare", at_most=1.03, tried=tried.OPEN)
            for name in ways if name.startswith("refit")
        ],
        bench.rounds(60, 4), ["libeatmydata by LD_PRELOAD"],
    )


def launch(bench):
    """What it takes to start a program that does nothing."""
    true, env_command = shutil.which("true"), shutil.which("env")
    ways = {
        "true": [],
        "true again (noise)": [],
        "env true": [env_command],
        "eatmydata true": [bench.eatmydata],
        "refit run sync=off -- true": [bench.refit, "run", "sync=off", "--"],
        "refit run --quiet sync=off -- true": bench.quiet("sync=off"),
    }

    def one(name, prefix):
        def run(_):
            log = "/dev/null"
            return {name: process.timed([*prefix, true], bench.env, log) / 1e6}, {}

        return Variant(name, run)

    return Comparison(
        "launch", "Launch and wait for `true`", "ms", list(ways),
        [one(*way) for way in ways.items()], [Column("over bare", "true", "over")],
        [
            Goal("refit run sync=off -- true", 0, "at most 1.05 ms over bare", at_most=1.05, tried=tried.LAUNCH),
            Goal("refit run --quiet sync=off -- true", 0, "at most 0.90 ms over bare", at_most=0.90,
                 tried=tried.LAUNCH),
        ],
        bench.rounds(400, 40),
        [f"posix_spawn and waitid from Python {sys.version.split()[0]}; stderr to /dev/null"],
    )


def starts(bench):
    """What each further program costs, once refit is beneath the shell that starts it."""
    count = 50 if bench.quick else 200
    true, report = shutil.which("true"), os.path.join(bench.memory, "starts.json")
    script = f"i=0; while [ $i -lt {count} ]; do i=$((i+1)); {true} || exit; done"
    ways = {
        "bare": [],
        "eatmydata": [bench.eatmydata],
        "eatmydata again (noise)": [bench.eatmydata],
        "refit run --json F -q sync=off": bench.run(report, "sync=off"),
        "refit run --quiet sync=off": bench.quiet("sync=off"),
    }

    def one(name, prefix):
        def run(_):
            ns = process.timed([*prefix, "/bin/sh", "-c", script], bench.env, "/dev/null")
            facts = subjects.totals(report) if "--json" in prefix else {}
            if facts:
                expect("programs reached, by refit", facts["reached"], count + 1)
            return {name: ns / 1e6 / count}, facts

        return Variant(name, run)

    return Comparison(
        "starts", f"`true`, {count} times in a shell, for each", "ms", list(ways),
        [one(*way) for way in ways.items()],
        [Column("over bare", "bare", "over"), Column("÷ eatmydata", "eatmydata")],
        [
            Goal(name, 1, "not slower than eatmydata beyond noise", noise_row="eatmydata again (noise)",
                 tried=tried.STARTS)
            for name in ways if name.startswith("refit")
        ],
        bench.rounds(40, 4), ["the launch of eatmydata or refit itself is divided by their number"],
    )
