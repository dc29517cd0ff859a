"""What the durability check costs a program, beside observing it."""

import json
import os
import shutil
import subprocess

import process
from comparison import Column, Comparison, Goal, Variant

OBSERVED, AGAIN, CHECKED = "refit run", "refit run again (noise)", "refit run --durability"
GOAL = 1.05
COMMITS, INSERTS, MAILS, WRITES = 8, 300, 400, 2_000_000


def git(place):
    words = [["git", "init", "-q", "."], ["git", "config", "user.name", "a"], ["git", "config", "user.email", "a@b"]]
    for one in words:
        subprocess.run(one, cwd=place, check=True)
    for number in range(200):
        with open(os.path.join(place, f"f{number}"), "w", encoding="utf-8") as file:
            file.write(f"{number}\n")
    return ["sh", "-c", f"git add .; for i in $(seq {COMMITS}); do echo $i >> f$i; git commit -qam $i; done"]


def sqlite(place):
    with open(os.path.join(place, "inserts.sql"), "w", encoding="utf-8") as file:
        file.write("create table t(a);\n" + "insert into t values(1);\n" * INSERTS)
    return ["sqlite3", "t.db", ".read inserts.sql"]


def maildir(place):
    for name in ("tmp", "new"):
        os.mkdir(os.path.join(place, name))
    return ["python3", "-S", "-c", f"""
import os
for i in range({MAILS}):
    file = os.open(f"tmp/{{i}}", os.O_CREAT | os.O_WRONLY); os.write(file, b"x" * 3000); os.fsync(file); os.close(file)
    os.rename(f"tmp/{{i}}", f"new/{{i}}")
    new = os.open("new", os.O_RDONLY); os.fsync(new); os.close(new)
"""]


def writes(place):
    return ["python3", "-S", "-c", f"""
import os
file, write, data = os.open("f", os.O_CREAT | os.O_WRONLY), os.pwrite, b"x" * 64
for i in range({WRITES}): write(file, data, 0)
"""]


PROGRAMS = {
    "git": (git, f"git add and {COMMITS} commits of 200 files"),
    "sqlite": (sqlite, f"{INSERTS} inserts of SQLite, each a transaction (journal_mode=delete)"),
    "maildir": (maildir, f"{MAILS} deliveries to a Maildir"),
    "writes": (writes, f"{WRITES:,} writes of 64 bytes that no sync follows"),
}


def part(bench, name):
    prepare, title = PROGRAMS[name]

    def one(row):
        def run(round_name):
            place = os.path.join(bench.disk, f"durability-{name}", round_name, row.replace(" ", "-"))
            os.makedirs(place)
            command, report = prepare(place), os.path.join(bench.memory, f"durability-{name}.json")
            prefix = bench.run(report)
            if row == CHECKED:
                prefix.insert(2, "--durability")
            subprocess.run(["sync", place], check=True)
            process_env = {**bench.env, "HOME": place}
            subprocess.run(prefix + command, cwd=place, env=process_env, check=True, stdout=subprocess.DEVNULL)
            with open(report, encoding="utf-8") as file:
                record = json.load(file)
            facts = {}
            if row == CHECKED:
                facts = {key: record["durability"][key] for key in ("events", "lost")}
                if facts["events"] == 0 or facts["lost"]:
                    raise process.Failed(f"{name}: {facts}")
            shutil.rmtree(place)
            return {row: record["metrics"]["wall_ns"] / 1e9}, facts

        return Variant(row, run)

    rows = [OBSERVED, AGAIN, CHECKED]
    return Comparison(
        f"durability-{name}", f"{title}, with the durability check", "s", rows, [one(row) for row in rows],
        [Column("÷ observed", OBSERVED)],
        [Goal(CHECKED, 0, f"at most {GOAL} of observing", at_most=GOAL)],
        bench.rounds(20, 2), ["the time of the program itself, without refit's start and report"],
    )


PARTS = {f"durability-{name}": (lambda bench, name=name: part(bench, name)) for name in PROGRAMS}
