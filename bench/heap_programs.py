"""What `--heap` and `refit watch` cost real programs: Ruby, Python, a C++ compiler, Redis under load."""

import contextlib
import json
import os
import shutil
import signal
import time

import process
from comparison import Column, Comparison, Goal, Variant

BARE, AGAIN, HEAP, WATCHED = "bare", "bare again (noise)", "--heap", "beside refit watch"
WHOLE = "--heap, refit's start and report too"
HEAP_GOAL, WATCH_GOAL = 1.05, 1.005
READY_S = 20

RUBY = """h = {}
600_000.times { |i| h["key-#{i % 50_000}"] = "value " + i.to_s * 3 }
abort unless h.size == 50_000
"""
PYTHON = """import json
rows = [{"id": i, "name": "name %d" % i, "tags": ["a%d" % (i % 7), "b"]} for i in range(60000)]
for _ in range(4):
    back = json.loads(json.dumps(rows))
assert back == rows
"""


class Command:
    """A program whose run is one command."""

    has_whole = True

    def __init__(self, name, title, words, source=None, more=()):
        self.name, self.title, self.words, self.source, self.more = name, title, words, source, dict(more)

    def unavailable(self):
        return "" if shutil.which(self.words[0]) else f"{self.words[0]} is not there"

    def seconds(self, bench, prefix, place):
        words = [shutil.which(self.words[0]), *self.words[1:]]
        if self.source:
            words.append(os.path.join(place, "source"))
            with open(words[-1], "w", encoding="ascii") as file:
                file.write(self.source)
        return process.timed([*prefix, *words], {**bench.env, **self.more}, os.path.join(place, "log")) / 1e9


class Redis:
    """Only the load is timed: redis-benchmark with eight clients, random keys and values of 100 bytes."""

    name, title = "redis", "400,000 SET of redis-benchmark"
    has_whole = False

    def unavailable(self):
        return "" if shutil.which("redis-server") else "redis-server is not there"

    def seconds(self, bench, prefix, place):
        socket, log = os.path.join(place, "socket"), os.path.join(place, "log")
        options = ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", place]
        server = process.start([*prefix, shutil.which("redis-server"), *options], bench.env, log)
        try:
            deadline = time.monotonic() + READY_S
            while not os.path.exists(socket):
                if time.monotonic() > deadline:
                    raise process.Failed("redis-server has no socket")
                time.sleep(0.01)
            load = [shutil.which("redis-benchmark"), "-s", socket, "-c", "8", "-n", "400000", "-r", "100000", "-d", "100",
                    "-t", "set", "-P", "4", "-q"]
            seconds = process.timed(load, bench.env, log) / 1e9
            process.output(["redis-cli", "-s", socket, "shutdown", "nosave"], env=bench.env)
            if process.wait_limited(server):
                raise process.Failed("redis-server failed")
            return seconds
        finally:
            process.kill(server)


PYTHON_WORDS = ["/usr/bin/python3"]
PROGRAMS = [
    Command("ruby", "600,000 strings into a Ruby hash", ["ruby"], RUBY),
    Command("python", "JSON of 60,000 rows in Python", PYTHON_WORDS, PYTHON),
    Command("python-malloc", "the same with PYTHONMALLOC=malloc", PYTHON_WORDS, PYTHON, {"PYTHONMALLOC": "malloc"}),
    Command("g++", "g++ parses <regex> and <iostream>",
            ["g++", "-x", "c++", "-fsyntax-only", "-include", "regex", "-include", "iostream", "/dev/null"]),
    Redis(),
]


@contextlib.contextmanager
def watching(bench, words, series):
    pid = process.start(words, bench.env)
    try:
        yield
        os.kill(pid, signal.SIGTERM)
        process.wait_limited(pid)
        with open(series, encoding="utf-8") as file:
            if not json.load(file)["samples"]:
                raise process.Failed("refit watch took no sample")
        os.remove(series)
    finally:
        process.kill(pid)


def part(bench, program):
    reason = program.unavailable()
    if reason:
        raise process.Skipped(reason)
    series = os.path.join(bench.memory, "series.json")
    watch = [bench.refit, "watch", "--batch", "--json", series]

    def one(name):
        def run(round_name):
            place = os.path.join(bench.memory, f"heap-{program.name}", round_name)
            os.makedirs(place)
            report = os.path.join(place, "report.json")
            prefix = []
            if name == HEAP:
                prefix = bench.run(report)
                prefix.insert(2, "--heap")
            with watching(bench, watch, series) if name == WATCHED else contextlib.nullcontext():
                seconds = program.seconds(bench, prefix, place)
            values, facts = {name: seconds}, {}
            if name == HEAP:
                with open(report, encoding="utf-8") as file:
                    counted = json.load(file)
                facts = {"allocations": sum(one["allocations"] for one in counted["heap"]["executables"])}
                if facts["allocations"] < 1000:
                    raise process.Failed(f"{program.name}: {facts['allocations']} allocations were counted")
                if program.has_whole:
                    values = {HEAP: counted["metrics"]["wall_ns"] / 1e9, WHOLE: seconds}
            shutil.rmtree(place)
            return values, facts

        return Variant(name, run)

    return Comparison(
        f"heap-{program.name}", f"{program.title}, counted and watched", "s",
        [BARE, AGAIN, HEAP, *([WHOLE] if program.has_whole else []), WATCHED],
        [one(name) for name in (BARE, AGAIN, HEAP, WATCHED)], [Column("÷ bare", BARE)],
        [Goal(HEAP, 0, f"at most {HEAP_GOAL} of bare", at_most=HEAP_GOAL),
         Goal(WATCHED, 0, f"at most {WATCH_GOAL} of bare", at_most=WATCH_GOAL)],
        bench.rounds(20, 2), ["stacks are sampled too; `refit watch` looks at the whole machine",
                              "the time of the program itself, but for the row that has refit's start and report too"],
    )


PARTS = {f"heap-{program.name}": (lambda bench, program=program: part(bench, program)) for program in PROGRAMS}
