"""Ways to start a program: bare, under eatmydata, under refit; and what refit reports of it."""

import json
import os
import shutil

import process

DURABLE_SEEN = ("suppressed", "real", "seen")
OPENING = ("open(O_SYNC)", "open(O_DIRECT)", "fcntl(O_DIRECT)", "io_uring_setup")


class Bench:
    """What all comparisons share: the refit under test, the directories, the number of rounds."""

    def __init__(self, refit, scratch, work, rounds, quick):
        self.disk, self.memory, self.cache = scratch.disk, scratch.memory, os.path.join(work, "debs")
        self.busy = self.journal = None  # of the part that is measured, and of one that takes long
        self._rounds, self.quick = rounds, quick
        self.left = []  # directories of comparisons that have ended
        self.refit = os.path.join(scratch.disk, "refit")
        shutil.copy2(refit, self.refit)  # a build during the measurement changes nothing
        home = os.path.join(scratch.disk, "home")
        os.mkdir(home)
        self.env = process.environment(home)
        self.eatmydata = shutil.which("eatmydata") or "/usr/bin/eatmydata"

    def times(self, usual, quick):
        return self._rounds or (quick if self.quick else usual)

    def rounds(self, usual, quick):
        """An even number: a round and its mirror image."""
        count = self.times(usual, quick)
        return max(2, count + count % 2)

    def has_room(self, directory, need):
        """Whether twice as many bytes are free; what ended comparisons left is deleted only where that is too little:
        deleting makes the disk busy, which is waited for."""
        if directory == self.disk and need > shutil.disk_usage(directory).free // 2:
            for path in self.left:
                shutil.rmtree(path, ignore_errors=True)
            self.left.clear()
            process.settle_discards(self.disk)
        return need <= shutil.disk_usage(directory).free // 2

    def run(self, report, *settings):
        """The words before a command: counting, its report to a file, nothing on the terminal."""
        return [self.refit, "run", "--json", report, "--quiet", *settings, "--"]

    def quiet(self, *settings):
        """Nothing is counted; refit becomes the program."""
        return [self.refit, "run", "--quiet", *settings, "--"]


def totals(report):
    """Of the calls that ask for durability: seen, suppressed, real."""
    with open(report, encoding="utf-8") as file:
        record = json.load(file)
    if record["coverage"]["processes_reached"] < 1:
        raise process.Failed(f"{report}: refit reached no process")
    sums = dict.fromkeys(DURABLE_SEEN, 0)
    for name, calls in record["totals"].items():
        if name not in OPENING:
            for key in sums:
                sums[key] += calls[key]
    sums["reached"] = record["coverage"]["processes_reached"]
    sums["processes"] = record["coverage"]["processes_seen"]
    return sums
