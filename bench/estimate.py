"""Effects from mirrored round pairs: Hodges-Lehmann estimate, exact signed-rank interval.

Pure functions, no I/O. The unit is the round pair: the mean of a round's and its mirror image's
paired difference, so that drift and a penalty of the slot cancel inside the unit.
"""

import functools
import math
from dataclasses import dataclass

LEVEL = 0.95


@dataclass(frozen=True)
class Effect:
    """An estimate with its interval, and the level that this interval really has."""

    point: float
    low: float
    high: float
    level: float
    pairs: int

    def mapped(self, function):
        low, high = sorted((function(self.low), function(self.high)))
        return Effect(function(self.point), low, high, self.level, self.pairs)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


@functools.cache
def _signed_rank_cut(pairs, level):
    """How many Walsh averages to drop at each end, and the exact level of what remains."""
    ways = [1]
    for rank in range(1, pairs + 1):
        longer = ways + [0] * rank
        for total, count in enumerate(ways):
            longer[total + rank] += count
        ways = longer
    total, below, cut = 2**pairs, 0, 0
    for count in ways:
        if 2 * (below + count) > (1 - level) * total:
            break
        below += count
        cut += 1
    if cut == 0:  # too few pairs for the level: the whole range, at the level that it has
        return 0, 1 - 2 / total
    return cut - 1, 1 - 2 * below / total


def hodges_lehmann(units, level=LEVEL):
    """The centre of paired differences, one number per round pair."""
    pairs = len(units)
    walsh = sorted((units[i] + units[j]) / 2 for i in range(pairs) for j in range(i, pairs))
    cut, real_level = _signed_rank_cut(pairs, level)
    return Effect(median(walsh), walsh[cut], walsh[len(walsh) - 1 - cut], real_level, pairs)


def binomial_interval(successes, trials, level=LEVEL):
    """Where a probability lies of which so many trials showed so many (Clopper and Pearson, exact)."""
    tail = (1 - level) / 2

    def at_most(count, p):
        return sum(math.comb(trials, i) * p**i * (1 - p) ** (trials - i) for i in range(count + 1))

    def crossing(above):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if above(middle) else (low, middle)
        return low

    low = crossing(lambda p: 1 - at_most(successes - 1, p) < tail) if successes else 0.0
    high = crossing(lambda p: at_most(successes, p) > tail) if successes < trials else 1.0
    return low, high


def _pair_means(differences):
    return [(differences[i] + differences[i + 1]) / 2 for i in range(0, len(differences) - 1, 2)]


def ratio(values, base):
    """values / base; both lists hold one number per round, in round order."""
    logs = [math.log(v / b) for v, b in zip(values, base, strict=True)]
    return hodges_lehmann(_pair_means(logs)).mapped(math.exp)


def difference(values, base):
    """values - base, in the unit of the values."""
    return hodges_lehmann(_pair_means([v - b for v, b in zip(values, base, strict=True)]))
