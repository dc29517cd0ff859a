"""One comparison: its variants, its schedule, the samples, and the effects that it names.

Every round runs each variant once; a round with an odd number is the mirror image of the one
before. One first round is run, recorded and not counted. A run that fails ends its comparison.
"""

import random
import sys
import time
from dataclasses import dataclass, field
from typing import Callable

import estimate
import machine

TRUSTED_LEVEL = 0.9  # below it an interval gets no verdict

@dataclass(frozen=True)
class Variant:
    """One way to run. `run(round name)` gives a number for each of its rows, and facts to keep."""

    name: str
    run: Callable[[str], tuple[dict[str, float], dict]]


@dataclass(frozen=True)
class Column:
    """Each row against one base row: "ratio", "speed" (the ratio upside down) or "over" (minus)."""

    title: str
    base: str
    kind: str = "ratio"

    def effect(self, values, base):
        if self.kind == "over":
            return estimate.difference(values, base)
        if self.kind == "speed":
            return estimate.ratio(base, values)
        return estimate.ratio(values, base)


@dataclass(frozen=True)
class Goal:
    """What a row should be in a column. Nothing fails when it is not; `tried` is then told."""

    row: str
    column: int
    text: str
    at_most: float | None = None
    at_least: float | None = None
    noise_row: str | None = None  # not slower than the base; equal is what differs as little as this row
    tried: str = ""

    def verdict(self, table):
        effect = table[self.row][self.column]
        if effect.level < TRUSTED_LEVEL:
            return "too few rounds to say"
        if self.at_most is not None:
            return _word(effect.high <= self.at_most, effect.low > self.at_most)
        if self.at_least is not None:
            return _word(effect.low >= self.at_least, effect.high < self.at_least)
        noise = table[self.noise_row][self.column]
        limit = max(noise.high, 1 / noise.low)  # noise has no side
        return _word(effect.high <= limit, effect.low > 1)

    def told(self, table):
        """The goal, and what became of it."""
        verdict = self.verdict(table)
        tried = f" Tried: {self.tried}." if verdict == "missed" and self.tried else ""
        return f"goal, {self.row}: {self.text}: **{verdict}**.{tried}"


def _word(met, missed):
    """Noise makes an interval wide, and its own limit too: a whole interval on the wrong side is never met."""
    return "missed" if missed else "met" if met else "undecided"


@dataclass
class Comparison:
    name: str
    title: str
    unit: str  # of the raw samples, which are all times
    rows: list[str]
    variants: list[Variant]
    columns: list[Column]
    goals: list[Goal]
    rounds: int
    notes: list[str] = field(default_factory=list)
    samples: list[dict] = field(default_factory=list)
    failure: str = ""
    skipped: bool = False
    seconds: float = 0.0

    def conduct(self, seed):
        """Runs everything; samples are kept in run order."""
        chance = random.Random(f"{seed} {self.name}")
        began = time.monotonic()
        order = []
        for number in range(-1, self.rounds):  # round -1 is the warm-up
            if number % 2 == 0 or not order:
                order = chance.sample(self.variants, len(self.variants))
            else:
                order = order[::-1]
            for position, variant in enumerate(order):
                self._progress(number, variant.name)
                values, facts = variant.run(f"{number + 1:03}-{position}")
                self.samples.append({
                    "round": number, "position": position, "variant": variant.name,
                    "warm_up": number < 0, "values": values, "facts": facts,
                    "load": machine.load().split(" ")[0],
                })
            if number < 0:
                order = []
        self.seconds = time.monotonic() - began
        self._progress(None, "")

    def _progress(self, number, name):
        if sys.stderr.isatty():
            text = "" if number is None else f"{self.name}: round {number + 1} of {self.rounds}, {name}"
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def series(self, row):
        """One number per counted round, in round order."""
        counted = [s for s in self.samples if not s["warm_up"] and row in s["values"]]
        return [s["values"][row] for s in sorted(counted, key=lambda s: s["round"])]

    def table(self):
        """Each row's effects, one per column; None where the row is the column's base."""
        all_series = {row: self.series(row) for row in self.rows}
        return {
            row: [
                None if row == column.base else column.effect(values, all_series[column.base])
                for column in self.columns
            ]
            for row, values in all_series.items()
        }
