"""What `--heap` costs: one malloc and free above each allocator, beside heaptrack and valgrind."""

import json
import os
import shutil

import process
from comparison import Column, Comparison, Goal, Variant
from micro import compiled, loop_ns

CHUNKS = 15
ALLOCATORS = ("glibc", "jemalloc", "mimalloc", "tcmalloc")
MOST_NS = 30


def one_allocator(bench, allocator):
    """A replaced block of 20,000 live ones, in processor time."""
    loop, report = compiled(bench, "alloc_loop"), os.path.join(bench.memory, "heap.json")
    pairs = 20_000 if bench.quick else 200_000
    setting = f"malloc={allocator}"
    bare, counted = setting, f"{setting} --heap"
    ways = {bare: bench.quiet(setting), f"{bare} again (noise)": bench.quiet(setting),
            counted: bench.run(report, setting)}
    ways[counted].insert(2, "--heap")

    def one(name, prefix):
        def run(round_name):
            words = [*prefix, loop, str(CHUNKS), str(pairs)]
            (ns,) = loop_ns(bench, words, bench.env, f"heap-{allocator}-{round_name}")
            facts = {}
            if name == counted:
                with open(report, encoding="utf-8") as file:
                    facts = {"allocations": json.load(file)["heap"]["executables"][0]["allocations"]}
                if facts["allocations"] < CHUNKS * pairs:
                    raise process.Failed(f"{facts['allocations']} allocations were counted of {CHUNKS * pairs}")
            return {name: ns}, facts

        return Variant(name, run)

    return Comparison(
        f"heap-{allocator}", f"free and malloc above {allocator} ({CHUNKS} × {pairs} pairs, median chunk)", "ns",
        list(ways), [one(*way) for way in ways.items()],
        [Column("over bare", bare, "over"), Column("÷ bare", bare)],
        [Goal(counted, 0, f"at most {MOST_NS} ns over bare", at_most=MOST_NS)],
        bench.rounds(20, 4), ["processor time of the process"],
    )


def tracers(bench):
    """The same loop above glibc, under what else counts allocations."""
    loop, report = compiled(bench, "alloc_loop"), os.path.join(bench.memory, "heap.json")
    pairs = 2_000 if bench.quick else 20_000
    record = os.path.join(bench.memory, "heaptrack")
    ways = {"bare": [], "refit run --heap": bench.run(report)}
    ways["refit run --heap"].insert(2, "--heap")
    found = {"heaptrack": ["-o", record], "valgrind": ["--quiet"]}
    for name, options in found.items():
        path = shutil.which(name)
        if not path:
            raise process.Skipped(f"{name} is not there: apt-get install {name}")
        ways[name] = [path, *options]
    ways["valgrind --tool=massif"] = [
        shutil.which("valgrind"), "--quiet", "--tool=massif", f"--massif-out-file={record}.massif"]

    def one(name, prefix):
        def run(round_name):
            words = [*prefix, loop, str(CHUNKS), str(pairs)]
            said = os.path.join(bench.memory, f"loop-tracers-{round_name}")
            process.timed(words, bench.env, f"{said}.log", stdout=said)
            with open(said, encoding="utf-8", errors="replace") as file:
                numbers = [line for line in file if line.replace(".", "").strip().isdigit()]
            return {name: float(numbers[-1])}, {}

        return Variant(name, run)

    return Comparison(
        "heap-tracers", f"free and malloc under what counts them ({CHUNKS} × {pairs} pairs, median chunk)", "ns",
        list(ways), [one(*way) for way in ways.items()],
        [Column("over bare", "bare", "over"), Column("÷ refit", "refit run --heap")], [],
        bench.rounds(10, 2), ["processor time of the process; heaptrack's own interpreter is not in it"],
    )


PARTS = {f"heap-{name}": (lambda bench, name=name: one_allocator(bench, name)) for name in ALLOCATORS}
PARTS["heap-tracers"] = tracers
