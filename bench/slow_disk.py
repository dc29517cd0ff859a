"""`disk=PROFILE` beside the slow disk that it was sampled from: is a flush as long as it was there?"""

import contextlib
import json
import os
import random
import select
import shutil
import sys

import estimate
import process
from micro import SOURCES, compiled
from part import Part

FLUSHES = 500  # in each run; 368 bound p99
QUANTILES = {"p10": 0.10, "p50": 0.50, "p90": 0.90, "p99": 0.99}
WITHIN = 0.10
READY_LIMIT_S = 20


@contextlib.contextmanager
def slow_disk(bench, seed):
    """The words before a command that is to see the slow disk, and where it is mounted."""
    place = os.path.join(bench.disk, "slow")
    os.makedirs(place, exist_ok=True)
    reader, writer = os.pipe()
    words = [shutil.which("unshare"), "--mount", "--propagation", "private", sys.executable,
             f"{SOURCES}/slow_server.py", place, str(seed)]
    log = os.path.join(bench.memory, "slow_server.log")
    pid = process.start(words, bench.env, log, stdout=f"/proc/self/fd/{writer}")
    try:
        os.close(writer)
        ready, _, _ = select.select([reader], [], [], READY_LIMIT_S)
        if not ready or not os.read(reader, 16).startswith(b"ready"):
            with open(log, encoding="utf-8", errors="replace") as file:
                raise process.Skipped(f"no FUSE here: {file.read()[-300:].strip() or 'the server did not start'}")
        yield [shutil.which("nsenter"), "--mount", f"--target={pid}", "--"], place
    finally:
        os.close(reader)
        process.kill(pid)


def flushes(bench, prefix, file):
    """How long each took, in ns, to the microsecond, shortest first: noise and the order would be stored for nothing."""
    times = process.output([*prefix, compiled(bench, "flush_loop"), file, str(60 if bench.quick else FLUSHES)], env=bench.env)
    return sorted(round(int(word), -3) for word in times.split())


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def verdict(effect):
    if effect.level < 0.9:
        return "too few rounds to say"
    low, high = 1 - WITHIN, 1 / (1 - WITHIN)
    if low <= effect.low and effect.high <= high:
        return "met"
    return "missed" if effect.high < low or effect.low > high else "undecided"


def part(bench):
    def measure(self, seed):
        if os.geteuid() != 0:
            raise process.Skipped("mounting needs root")
        self.rounds = bench.rounds(16, 2)
        chance = random.Random(f"{seed} slow-disk")
        profile, order = os.path.join(bench.disk, "profile.json"), []
        with slow_disk(bench, chance.randrange(2**32)) as (there, place):
            file = {"slow": os.path.join(place, "log"), "disk=": os.path.join(bench.disk, "log"),
                    "fast": os.path.join(bench.disk, "log")}
            for number in range(self.rounds):
                sampled = None
                if number % 2 == 0:  # once for each pair, so that a profile's own error is in the interval
                    order = chance.sample(sorted(file), len(file))
                    probe = [bench.refit, "doctor", "--probe-disk", place, "--json", profile]
                    process.output([*there, *probe], env=bench.env)
                    with open(profile, encoding="utf-8") as record:
                        sampled = sorted(round(ns, -3) for ns in json.load(record)["samples_ns"])
                else:
                    order = order[::-1]
                emulated = bench.quiet(f"disk={profile}", "--seed", str(chance.randrange(2**32)))
                prefix = {"slow": there, "disk=": emulated, "fast": []}
                for position, name in enumerate(order):
                    took = flushes(bench, prefix[name], file[name])
                    self.samples.append({"round": number, "position": position, "variant": name,
                                         "profile": sampled if position == 0 else None, "values": took})
        report(self)

    return Part("slow-disk", "`disk=` beside the slow disk that its profile was sampled from", measure, unit="ns")


def report(self):
    def series(name, share):
        of_name = sorted((s for s in self.samples if s["variant"] == name), key=lambda s: s["round"])
        return [quantile(s["values"], share) for s in of_name]

    self.lines = ["| of each flush | slow disk, ms | disk=, ms | disk= ÷ slow | the disk beneath disk=, ms |",
                  "|---|---|---|---|---|"]
    for name, share in QUANTILES.items():
        real, emulated, fast = (series(variant, share) for variant in ("slow", "disk=", "fast"))
        effect = estimate.ratio(emulated, real)
        self.lines.append(f"| {name} | {estimate.median(real) / 1e6:.2f} | {estimate.median(emulated) / 1e6:.2f} | "
                          f"{effect.point:.3f} [{effect.low:.3f}, {effect.high:.3f}] | {estimate.median(fast) / 1e6:.2f} |")
        self.notes.append(f"goal, {name}: within 10 % of the slow disk: **{verdict(effect)}**")
    runs = len(self.samples)
    if estimate.median(series("fast", 0.9)) > estimate.median(series("slow", 0.1)):
        self.notes.append("the disk beneath was too slow itself for this: a real flush comes first, and is as long as "
                          "it is")
    self.lines += ["", f"{self.rounds} rounds, mirrored pairs: {effect.pairs}, intervals at {effect.level:.1%}, "
                   f"{len(self.samples[0]['values'])} flushes in each of {runs} runs;"]
    self.notes.append(
        "the slow disk is a FUSE file system in memory (bench/slow_server.py) of which every fsync waits for a "
        "server that sleeps: 3 ms times a log-normal factor (σ 0.4), one in fifty six times as long; it is sampled "
        "anew for each pair by `refit doctor --probe-disk`. A throttled cgroup (blkio.throttle) also delays "
        "flushes, but in steps of its 100 ms slices, and not the journal's part of them"
    )
