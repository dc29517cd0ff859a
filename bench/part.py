"""A part of the bench whose result is not a table of ratios, but lines of its own."""

import json
import os
import time
from dataclasses import dataclass, field
from typing import Callable

import process


# Why refit leaves out runs that did not fail: the budget was over.
INCOMPLETE = "its round pair was not completed"


@dataclass
class Part:
    name: str
    title: str
    measure: Callable[["Part", int], None]  # fills in the lines and the samples, from a seed
    lines: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    samples: list[dict] = field(default_factory=list)
    unit: str = "s"
    rounds: int = 0
    failure: str = ""
    skipped: bool = False
    seconds: float = 0.0  # of all sittings
    seed: int = 0  # of an earlier sitting, with which it goes on

    def conduct(self, seed):
        began = time.monotonic()
        self.measure(self, seed)
        self.seconds += time.monotonic() - began


def timed_output(words, env, cwd):
    """Seconds that a command took, start and end included."""
    began = time.perf_counter()
    process.output(words, env=env, cwd=cwd)
    return time.perf_counter() - began


def compared(bench, command, variant, seed, *options, env=None):
    """Runs `refit compare`: the seconds it took, and its result."""
    result = os.path.join(bench.memory, "compare.json")  # no disk is written to between the runs
    words = [bench.refit, "compare", "--quiet", "--seed", str(seed), "--json", result, *options]
    words += [variant, "--", *command]
    seconds = timed_output(words, env or bench.env, bench.disk)
    with open(result, encoding="utf-8") as file:
        record = json.load(file)
    out = [f"{v['name']}: {next(iter(v['disqualified'].values()))}" for v in record["variants"] if v["disqualified"]]
    lost = [run["failure"] for run in record["runs"] if run["failure"] not in (None, INCOMPLETE)]
    if out or lost:
        raise process.Failed(f"{' '.join(words)}: {(out or lost)[0]}")
    return seconds, record


NOTHING = {"verdict": "inconclusive", "change": None, "interval": None}


def effect(record, variant=1):
    """What a comparison found of a variant's time; variant 1 is the candidate, 2 the hidden baseline. Where its budget
    was too short for one round pair, it found nothing."""
    found = (e for e in record["effects"] if e["variant"] == variant and e["metric"] == "wall")
    return next(found, NOTHING)


def kept(record):
    """Of a comparison, what its answer follows from: seed, plan, and each run's variant and time in run order, to four
    digits."""
    return {
        "seed": record["seed"], "plan": record["plan"], "effect": effect(record), "hidden": effect(record, 2),
        "warnings": [warning["text"] for warning in record["warnings"]],
        "order": "".join(str(run["variant"]) for run in record["runs"]),
        "wall_us": [float(f"{run['metrics']['wall_ns'] / 1000:.4g}") for run in record["runs"]],
    }
