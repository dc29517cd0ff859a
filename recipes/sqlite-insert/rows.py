"""For the promise: a row for each transaction, printed after its COMMIT. (The sqlite3 shell would print in blocks.)"""

import os
import re
import sqlite3
import time

path = re.search("db='(.*)'", open("sqlite.conf").read())[1]
# No isolation level: each statement is a transaction of its own.
base = sqlite3.connect(path, isolation_level=None)
base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, body TEXT NOT NULL)")
for pragma in open("pragma.sql"):
    base.execute(pragma)
number = 0
while True:
    number += 1
    base.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 100))
    os.write(1, b"%d\n" % number)
    time.sleep(0.002)
