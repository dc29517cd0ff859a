"""What the filter costs a service that drops its privileges: refit puts one beneath it just before, since a program that
it starts later may need one and could not have it then. Nothing reaches the disk in any row but bare, so that what is
compared is the price of system calls. `--backend preload` puts no filter beneath anything."""

import contextlib
import os
import re
import shutil
import socket
import time

import machine
import process
from backends import as_root
from comparison import Column, Comparison, Variant
from postgres import Pgbench

WITHOUT, WITH = "refit sync=off, no filter", "refit sync=off"
WAYS = {
    "bare": None,
    WITHOUT: ("--backend", "preload", "sync=off"),
    f"{WITHOUT}, again (noise)": ("--backend", "preload", "sync=off"),
    WITH: ("sync=off",),
}
RECIPE = os.path.join(machine.REPOSITORY, "recipes/postfix-cleanup")
START_LIMIT_S = 30
COUNTS = {"drop-postgres": (30_000, 2_000), "drop-postfix": (800, 100)}  # usually, and with --quick


def filters(pid):
    """How many filters lie beneath a process (`Seccomp_filters` of proc(5))."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return int(re.search(r"^Seccomp_filters:\s*(\d+)", file.read(), re.MULTILINE)[1])


def expect_filters(name, counts):
    """Only the row with the filter has any, and that row has some."""
    if bool(sum(counts)) != (name == WITH) or not counts:
        raise process.Failed(f"{name}: {sum(counts)} filters beneath {len(counts)} processes")


def part(name, title, run, rounds, quick_rounds, notes):
    def prepared(bench):
        as_root()
        run_one = run(bench)

        def one(way, settings):
            prefix = bench.quiet(*settings) if settings else []

            def timed(round_name):
                process.settle()
                seconds, counts = run_one(prefix, round_name)
                expect_filters(way, counts)
                return {way: seconds}, {"processes": len(counts), "filters": sum(counts)}

            return Variant(way, timed)

        return Comparison(
            name, title.format(COUNTS[name][bench.quick]), "s", list(WAYS), [one(*way) for way in WAYS.items()],
            [Column("÷ without the filter", WITHOUT), Column("÷ bare", "bare")], [],
            bench.rounds(rounds, quick_rounds), notes,
        )

    return prepared


def postgres(bench):
    program = Pgbench(1, 0)
    if reason := program.unavailable(bench):
        raise process.Skipped(reason)
    place = os.path.join(bench.disk, "drop-postgres")
    os.mkdir(place)
    program.prepare(place)
    count = COUNTS["drop-postgres"][bench.quick]

    def run(prefix, _):
        server = program._server(bench, prefix, place)
        with server:
            counts = [filters(server.pid)]
            words = [program._program("pgbench"), "-h", place, "-U", "b", "--no-vacuum", "--select-only"]
            process.output([*words, f"--transactions={count // 10}", "postgres"])
            took = process.timed([*words, f"--transactions={count}", "postgres"], bench.env, f"{place}/pgbench.log")
        return took / 1e9, counts

    return run


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def queue_processes(queue):
    """Postfix's daemons work in the queue's directory."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/cwd").startswith(queue):
                found.append(filters(pid))
    return found


def postfix(bench):
    if not shutil.which("postfix"):
        raise process.Skipped("no postfix")
    mails = COUNTS["drop-postfix"][bench.quick]

    def run(prefix, round_name):
        place, memory = (os.path.join(root, "drop-postfix", round_name) for root in (bench.disk, bench.memory))
        os.makedirs(place)
        os.makedirs(memory)
        env = {**bench.env, "REFIT_DIR": place, "REFIT_RECIPE": RECIPE, "REFIT_TMPFS": memory,
               "REFIT_PORT_SMTP": str(free_port()), "REFIT_PORT_SINK": str(free_port()), "REFIT_OPERATIONS": str(mails)}

        def script(name, *words):
            return process.output(["/bin/sh", f"{RECIPE}/{name}.sh", *words], env=env, cwd=place)

        script("setup")
        began = process.start(["/usr/bin/env", "-C", place, *prefix, "/bin/sh", f"{RECIPE}/start.sh"], env,
                              f"{place}/start.log")
        try:
            await_port(int(env["REFIT_PORT_SMTP"]))
            script("load", "100", "warmup.test")
            timed_from = time.monotonic()
            script("load", str(mails), "load.test")
            seconds = time.monotonic() - timed_from
            counts = queue_processes(f"{place}/queue")
            script("check")
            script("stop")
            process.wait_limited(began, START_LIMIT_S)
        except BaseException:
            process.kill(began)
            raise
        return seconds, counts

    return run


def await_port(port):
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        if time.monotonic() > deadline:
            raise process.Failed(f"postfix does not answer on port {port}")
        time.sleep(0.01)


PARTS = {
    "drop-postgres": part(
        "drop-postgres", "PostgreSQL started by setpriv: {} read-only transactions of one client", postgres, 10, 2,
        ["`refit run --quiet sync=off -- setpriv --reuid … postgres`; pgbench itself is bare, and alone is timed"]),
    "drop-postfix": part(
        "drop-postfix", "Postfix: {} mails by SMTP, until all have left the queue", postfix, 10, 2,
        ["the server and the load of recipes/postfix-cleanup; smtp-source and smtp-sink are bare"]),
}
