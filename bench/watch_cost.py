"""What `refit watch` takes itself: the processor time of one that looks at large trees, and one read of smaps_rollup."""

import contextlib
import json
import mmap
import os
import signal
import sys
import time

import estimate
import machine
import process
from part import Part
from postgres import Pgbench

WATCHED_S = 20
GOAL = 0.01  # of one core
TREE = """import os, threading, time
for _ in range(10):
    if os.fork() == 0:
        break
threads = [threading.Thread(target=time.sleep, args=(3600,), daemon=True) for _ in range(100)]
for thread in threads:
    thread.start()
print("ready", flush=True)
time.sleep(3600)
"""
CLIENTS = 250
SIZES_MIB = (16, 256, 1024)
READS = 20


@contextlib.contextmanager
def threads(bench):
    """Eleven processes, each with a hundred sleeping threads."""
    said = os.path.join(bench.memory, "ready")
    pid = process.start([sys.executable, "-c", TREE], bench.env, stdout=said)
    try:
        wait_for(lambda: os.path.exists(said) and open(said, encoding="ascii").read().count("ready") == 11)
        yield pid
    finally:
        process.kill(pid)


@contextlib.contextmanager
def connections(bench):
    """PostgreSQL with 250 clients, each of which runs a query and then waits for a second, again and again."""
    server, place = Pgbench(CLIENTS, 1), os.path.join(bench.disk, "connections")
    reason = server.unavailable(bench)
    if reason:
        raise process.Skipped(reason)
    os.makedirs(place)
    server.prepare(place)
    with open(f"{place}/data/postgresql.conf", "a", encoding="ascii") as file:
        file.write(f"max_connections = {CLIENTS + 10}\n")
    query = os.path.join(place, "query.sql")
    with open(query, "w", encoding="ascii") as file:
        file.write("SELECT count(*) FROM pgbench_branches;\nSELECT pg_sleep(1);\n")
    service = server._server(bench, [], place)
    with service:
        words = [server._program("pgbench"), "-h", place, "-U", "b", "-n", "-c", str(CLIENTS), "-T", "600", "-f", query]
        load = process.start([*words, "postgres"], bench.env)
        try:
            count = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            wait_for(lambda: int(server._client(place, "psql", "-Atc", count, "postgres")) > CLIENTS)
            yield service.pid
        finally:
            process.kill(load)


def wait_for(holds, limit_s=60):
    deadline = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > deadline:
            raise process.Failed(f"not ready within {limit_s} s")
        time.sleep(0.05)


def watched(bench, words):
    """The share of a core that refit used, and what it saw of itself."""
    series = os.path.join(bench.memory, "series.json")
    command = [bench.refit, "watch", "--batch", "--json", series, "--for", f"{WATCHED_S}s", *words]
    began = time.monotonic()
    pid = process.start(command, bench.env)
    _, status, usage = os.wait4(pid, 0)
    process._alive.discard(pid)
    if status:
        raise process.Failed(f"{' '.join(command)}: status {status}")
    with open(series, encoding="utf-8") as file:
        samples = len(json.load(file)["samples"])
    if samples < 2:
        raise process.Failed(f"{samples} samples in {WATCHED_S} s")
    return (usage.ru_utime + usage.ru_stime) / (time.monotonic() - began), samples


def trees(bench):
    def measure(self, _):
        self.rounds, self.unit = bench.times(6, 1), "share of a core"
        self.lines += ["| watched | share of a core | at most | samples in 20 s |", "|---|---|---|---|"]
        for name, place in {"11 processes of 100 threads": threads, f"PostgreSQL with {CLIENTS} connections": connections}.items():
            with place(bench) as pid:
                for scope, words in {"by its pid": [str(pid)], "the whole machine": []}.items():
                    found = [watched(bench, words) for _ in range(self.rounds)]
                    shares = [share for share, _ in found]
                    self.samples.append({"watched": f"{name}, {scope}", "shares": shares, "samples": [n for _, n in found],
                                         "load": machine.load().split(" ")[0]})
                    self.lines.append(f"| {name}, {scope} | {estimate.median(shares):.4f} | {max(shares):.4f} | "
                                      f"{estimate.median([n for _, n in found]):.0f} |")
        worst = max(max(one["shares"]) for one in self.samples)
        self.notes.append(f"goal: at most {GOAL:.0%} of a core in each run: **{'met' if worst <= GOAL else 'missed'}**")
        self.notes.append(f"user and system time of refit from its start to its end, in {self.rounds} runs of each")

    return Part("watch-cost", "What refit watch takes itself", measure)


def rollup(bench):
    """Anonymous memory of one mapping, touched, in pages of 4 KiB and as huge pages."""
    def measure(self, _):
        self.unit, self.rounds = "µs", READS
        self.lines += ["| resident | 4 KiB pages | huge pages |", "|---|---|---|"]
        for mib in SIZES_MIB:
            if not bench.has_room(bench.memory, mib << 20):
                raise process.Skipped(f"{mib} MiB of memory are not free")
            row = []
            for advice in (mmap.MADV_NOHUGEPAGE, mmap.MADV_HUGEPAGE):
                took = read_of(mib << 20, advice)
                self.samples.append({"mib": mib, "huge": advice == mmap.MADV_HUGEPAGE, "us": took})
                row.append(f"{estimate.median(took):,.0f} µs")
            self.lines.append(f"| {mib} MiB | {' | '.join(row)} |")
        self.notes.append(f"the median of {READS} reads of /proc/PID/smaps_rollup of a process that sleeps")

    return Part("smaps-rollup", "One read of smaps_rollup, by the size of the process", measure)


def read_of(size, advice):
    pid = os.fork()
    if pid == 0:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        memory.madvise(advice)
        for at in range(0, size, mmap.PAGESIZE):
            memory[at] = 1
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    process._alive.add(pid)
    try:
        os.waitid(os.P_PID, pid, os.WSTOPPED)
        took = []
        for _ in range(READS):
            began = time.perf_counter_ns()
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                text = file.read()
            took.append((time.perf_counter_ns() - began) / 1000)
        rss = int(next(line.split()[1] for line in text.splitlines() if line.startswith("Rss:")))
        if rss * 1024 < size:
            raise process.Failed(f"{rss} KiB are resident of {size >> 10}")
        return took
    finally:
        os.kill(pid, signal.SIGKILL)
        process.wait(pid)


PARTS = {"watch-cost": trees, "smaps-rollup": rollup}
