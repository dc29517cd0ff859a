"""Runs the statements of queries.json on ./data.db; what one writes is rolled back.

usage: queries.py load PASSES  the mean time of each in microseconds; how many rows each gave goes to ./answers
       queries.py plans        a line for each kind of statement: how SQLite reads
       queries.py try          a line of JSON for each statement: its seconds, or what is wrong with it
"""

import json
import os
import sqlite3
import sys
from time import perf_counter


def run(db, query):
    """Rows and seconds of one statement."""
    began = perf_counter()
    if not query["writes"]:
        rows = len(db.execute(query["text"]).fetchall())
        return rows, perf_counter() - began
    db.execute("BEGIN")
    try:
        cursor = db.execute(query["text"])
        rows = len(cursor.fetchall()) or cursor.rowcount
    finally:
        db.execute("ROLLBACK")
    return rows, perf_counter() - began


def load(db, queries, passes):
    # Once untimed: afterwards pages are in memory.
    with open("answers", "w") as answers:
        for query in queries:
            answers.write(f"q{query['group']} {run(db, query)[0]} rows\n")
    sums, counts = {}, {}
    for _ in range(passes):
        for query in queries:
            group = query["group"]
            sums[group] = sums.get(group, 0) + run(db, query)[1]
            counts[group] = counts.get(group, 0) + 1
    print(f"time {sum(sums.values()) / sum(counts.values()) * 1e6:.2f} us")
    for group, total in sums.items():
        print(f"q{group} {total / counts[group] * 1e6:.2f} us")
    pages, size = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    print(f"size {pages * size}")


def plans(db, queries):
    known = set()
    for query in queries:
        if query["group"] not in known:
            known.add(query["group"])
            lines = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + query["text"])]
            print(f"plan of q{query['group']}\t{'; '.join(lines) or 'reads no table'}")


def attempt(db, queries):
    for query in queries:
        try:
            print(json.dumps({"seconds": run(db, query)[1]}))
        except sqlite3.Error as error:
            print(json.dumps({"error": str(error)}))


def main(what, passes=0):
    with open(os.path.join(os.environ["REFIT_RECIPE"], "queries.json")) as file:
        queries = json.load(file)
    db = sqlite3.connect("data.db", isolation_level=None)
    db.text_factory = bytes
    db.execute("PRAGMA cache_size = -262144")
    if what == "load":
        load(db, queries, int(passes))
        return
    db.text_factory = lambda text: text.decode(errors="replace")
    {"plans": plans, "try": attempt}[what](db, queries)


main(*sys.argv[1:])
