"""A row for each transaction, acknowledged after its commit.

usage: insert.py JOURNAL_MODE SYNCHRONOUS (SQLite's pragmas of these names)
"""

import os
import sqlite3
import sys
import time

journal, synchronous = sys.argv[1:]
# No isolation level: each statement is a transaction of its own.
base = sqlite3.connect(os.environ["REFIT_MOUNT"] + "/base", isolation_level=None)
for pragma, wanted in [("journal_mode", journal), ("synchronous", synchronous)]:
    base.execute(f"PRAGMA {pragma} = {wanted}")
number = 0
while True:
    number += 1
    base.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 100))
    os.write(1, b"%d\n" % number)
    time.sleep(0.002)
