"""A log: each line is written and synced, and then acknowledged on standard output.

usage: append.py [COUNT] (without it: until it is ended, with a pause after each line)
"""

import itertools
import os
import sys
import time

count = int(sys.argv[1]) if len(sys.argv) > 1 else None
log = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
for number in range(1, count + 1) if count else itertools.count(1):
    os.write(log, b"%d\n" % number)
    os.fsync(log)
    if not count:
        os.write(1, b"%d\n" % number)
        time.sleep(0.002)
