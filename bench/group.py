"""Would one flush for many callers (group commit from outside of the program) be faster than the kernel's own?

The trial is group/shared_flush.c, the disk group/slow_disk.c: one whose flushes really take their time, beneath a real
file system, which merges the syncs of many callers by itself. That disk also knows what a power cut would have left.
"""

import contextlib
import glob
import os
import random
import shlex
import subprocess
import sys

import estimate
import machine
import process
from part import Part

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "group")
RECIPE = os.path.join(machine.REPOSITORY, "recipes/postfix-cleanup")
FLAGS = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-pthread"]
SIZE_MIB = 1024
# File system and length of a flush; None is the disk that the bench itself lies on. A flush of next to no time shows
# what a file system leaves unflushed (xfs), and that is no place for programs.
DISKS = ((None, None), ("ext4", 100), ("ext4", 4000), ("ext4", 20000), ("btrfs", 4000), ("btrfs", 20000), ("xfs", 100),
         ("xfs", 4000))
LOOPS = [(1, "processes", "own", "append"), (8, "processes", "own", "append"), (64, "processes", "own", "append"),
         (8, "threads", "own", "append"), (8, "processes", "one", "append"), (64, "processes", "one", "append"),
         (8, "processes", "own", "overwrite"), (64, "processes", "own", "overwrite")]
SQLITE = [(16, "DELETE"), (16, "WAL")]
TRANSACTIONS = 20
MAILS = 600


class Disk:
    """A file system on a slow disk, in a mount namespace of its own; or, without a length, a directory as it is."""

    def __init__(self, bench, programs, name, filesystem, flush_us):
        self.path = os.path.join(bench.disk, name)
        self.programs, self.filesystem, self.flush_us = programs, filesystem, flush_us
        self.group = os.path.join(bench.memory, "group")
        self.durable, self._holder = "-", None

    def __enter__(self):
        os.makedirs(self.path)
        self.mounted = self.path
        if self.flush_us is None:
            return self
        self.durable = os.path.join(self.path, "durable")
        with open(self.durable, "wb") as file:
            file.truncate(8 * 256)
        self.mounted = os.path.join(self.path, "mounted")
        words = ["unshare", "-m", os.path.join(SOURCES, "slow_disk.sh"), self.programs["slow_disk"], self.filesystem,
                 str(SIZE_MIB), str(self.flush_us), self.durable]
        self._holder = subprocess.Popen(words, cwd=self.path, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        start_new_session=True, text=True)
        if self._holder.stdout.readline() != "ready\n":
            self.__exit__()
            raise process.Skipped(f"no {self.filesystem} on a loop device over FUSE")
        return self

    def __exit__(self, *_):
        if self._holder:
            self._holder.stdin.close()
            self._holder.wait()

    def run(self, words, way, hold_us=None, limit_s=120):
        """What a command says, which runs where the disk is mounted; `way` is "real", "group" or "early"."""
        env = ["env"]
        if way != "real":
            with open(self.group, "wb") as file:
                file.truncate(64)
            os.chmod(self.group, 0o666)  # for daemons that drop root
            env += [f"LD_PRELOAD={self.programs['shared_flush.so']}", f"REFIT_GROUP={self.group}",
                    f"REFIT_GROUP_HOLD_US={hold_us if hold_us is not None else max(self.flush_us or 0, 2000)}"]
            env += ["REFIT_GROUP_EARLY=1"] if way == "early" else []
        # Not --wd: nsenter would take the directory from outside, where nothing is mounted on it.
        inside = ["nsenter", "-t", str(self._holder.pid), "-m", "--"] if self._holder else []
        inside += ["sh", "-c", 'cd "$0" && exec "$@"', self.mounted]
        said = process.output([*inside, *env, *words], limit_s=limit_s)
        process.output([*inside, *shlex.split("find . -mindepth 1 -maxdepth 1 ! -name lost+found -exec rm -rf {} +")])
        return said


def built(bench):
    directory = os.path.join(bench.memory, "group-programs")
    os.makedirs(directory)
    for name in ("slow_disk", "writers"):
        process.output(["gcc", *FLAGS, f"{SOURCES}/{name}.c", "-o", f"{directory}/{name}"])
    process.output(["gcc", *FLAGS, "-shared", "-fPIC", f"{SOURCES}/shared_flush.c", "-o", f"{directory}/shared_flush.so"])
    os.chmod(bench.memory, 0o755)
    return {os.path.basename(path): path for path in glob.glob(f"{directory}/*")}


def loop(disk, cell, way, seconds):
    """Seconds for each acknowledged block, and how many of them a power cut would have taken."""
    words = [disk.programs["writers"], ".", *map(str, cell), str(seconds), disk.durable]
    blocks, took, undurable = map(float, disk.run(words, way).split())
    return took / blocks, int(undurable)


def sqlite(disk, cell, way):
    """Seconds until so many sqlite3, each with a database of its own, have made their transactions."""
    count, journal = cell
    inserts = "".join(f"insert into t values({number});" for number in range(TRANSACTIONS))
    pragmas = f"pragma journal_mode={journal}; pragma synchronous=full;"
    one = shlex.join(["sqlite3", "N.db", f"{pragmas} create table t(a); {inserts}"]).replace("N.db", "$n.db")
    script = (f"began=$(date +%s%N); pids=; for n in $(seq {count}); do {one} >/dev/null & pids=\"$pids $!\"; done;"
              "for pid in $pids; do wait $pid || exit 1; done; echo $(($(date +%s%N) - began))")
    return int(disk.run(["bash", "-c", script], way)) / 1e9, -1


def postfix(disk, _, way):
    """Seconds for each of the mails that the recipe's load hands in from 20 senders at once."""
    script = os.path.join(SOURCES, "postfix.sh")
    said = disk.run(["sh", script, RECIPE, str(MAILS)], way)
    return 1 / float(said.split()[-2]), -1


def group(bench):
    """The part of the bench."""
    rounds = bench.rounds(6, 2)
    seconds = 0.3 if bench.quick else 1

    def cells(filesystem, flush_us):
        yield from (("loop", cell, lambda disk, way, cell=cell: loop(disk, cell, way, seconds)) for cell in LOOPS)
        if filesystem == "xfs" or flush_us == 100:
            return
        yield from (("sqlite", cell, lambda disk, way, cell=cell: sqlite(disk, cell, way)) for cell in SQLITE)
        yield ("postfix", (20, "senders"), lambda disk, way: postfix(disk, None, way))

    def measure(part, seed):
        if os.geteuid() != 0:
            raise process.Skipped("root mounts the slow disk")
        chance, programs = random.Random(f"{seed} group"), built(bench)
        head = ["disk", "load", "real, ms", "group ÷ real", "acknowledged, not flushed: real", "group", "early"]
        part.lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        disks = [disk for disk in DISKS if not bench.quick or disk[1] != 20000]
        for number, (filesystem, flush_us) in enumerate(disks):
            title = f"{filesystem}, {flush_us / 1000:g} ms" if flush_us is not None else "this disk"
            with contextlib.ExitStack() as stack:
                disk = stack.enter_context(Disk(bench, programs, f"group-{number}", filesystem, flush_us))
                for name, cell, run in cells(filesystem, flush_us):
                    text = " ".join(map(str, (name, *cell)))
                    part.lines.append(_line(part, title, text, name, disk, run, rounds, chance))
                    print(f"bench: {part.lines[-1]}", file=sys.stderr)
        part.lines.append("")

    return Part("group", "One flush for many callers, against the kernel's own merging", measure,
                notes=["a column \"not flushed\" counts blocks whose sync had returned and that the slow disk had not "
                       "flushed; \"early\" is the trial with the mistake that this count must show, run once"])


def _line(part, title, text, name, disk, run, rounds, chance):
    """Mirrored rounds of one cell: a round and its mirror image."""
    times, undurable, order = {"real": [], "group": []}, {"real": 0, "group": 0}, []
    for number in range(rounds):
        order = order[::-1] if number % 2 else chance.sample(list(times), len(times))
        for way in order:
            value, lost = run(disk, way)
            times[way].append(value)
            undurable[way] += lost
            part.samples.append({"round": number, "disk": title, "load": text, "way": way, "s": value, "lost": lost})
    effect = estimate.ratio(times["group"], times["real"])
    shown = ["", "", ""]
    if name == "loop" and disk.durable != "-":
        shown = [str(undurable["real"]), str(undurable["group"]), str(run(disk, "early")[1])]
    real = f"{estimate.median(times['real']) * 1000:.3f}"
    ratio = f"{effect.point:.2f} [{effect.low:.2f}, {effect.high:.2f}] at {effect.level:.0%}"
    return "| " + " | ".join([title, text, real, ratio, *shown]) + " |"
