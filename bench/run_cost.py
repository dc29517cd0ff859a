"""What observing a real program costs it, and sampling where it is on the processors."""

import json
import os
import shutil

import process
from comparison import Column, Comparison, Goal, Variant
from heap_programs import AGAIN, BARE, PROGRAMS

OBSERVED, CPU = "refit run", "refit run --cpu"
OBSERVED_GOAL, CPU_GOAL = 1.01, 1.02
LEAST_SAMPLES = 100


def part(bench, program):
    reason = program.unavailable()
    if reason:
        raise process.Skipped(reason)

    def one(name):
        def run(round_name):
            place = os.path.join(bench.memory, f"cost-{program.name}", round_name)
            os.makedirs(place)
            report = os.path.join(place, "report.json")
            prefix = {BARE: [], AGAIN: [], OBSERVED: bench.run(report), CPU: bench.run(report)}[name]
            if name == CPU:
                prefix.insert(2, "--cpu")
            seconds, facts = program.seconds(bench, prefix, place), {}
            if prefix:
                with open(report, encoding="utf-8") as file:
                    record = json.load(file)
                if program.has_whole:
                    seconds = record["metrics"]["wall_ns"] / 1e9
                if name == CPU:
                    executables = record["cpu"]["executables"]
                    facts = {"samples": sum(path["samples"] for one in executables for path in one["paths"])}
                    if facts["samples"] < LEAST_SAMPLES:
                        raise process.Failed(f"{program.name}: {facts['samples']} samples")
            shutil.rmtree(place)
            return {name: seconds}, facts

        return Variant(name, run)

    rows = [BARE, AGAIN, OBSERVED, CPU]
    return Comparison(
        f"cost-{program.name}", f"{program.title}, observed and sampled", "s", rows, [one(name) for name in rows],
        [Column("÷ bare", BARE)],
        [Goal(OBSERVED, 0, f"at most {OBSERVED_GOAL} of bare", at_most=OBSERVED_GOAL),
         Goal(CPU, 0, f"at most {CPU_GOAL} of bare", at_most=CPU_GOAL)],
        bench.rounds(20, 2), ["one sample for each millisecond on a processor, its stack unwound",
                              "the time of the program itself, without refit's start and report"],
    )


PARTS = {f"cost-{program.name}": (lambda bench, program=program: part(bench, program)) for program in PROGRAMS}
