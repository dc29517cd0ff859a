"""A log: each line is written and synced, then acknowledged on standard output."""

import os
import time

log = os.open(os.environ["REFIT_MOUNT"] + "/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
number = 0
while True:
    number += 1
    os.write(log, b"%d\n" % number)
    os.fsync(log)
    os.write(1, b"%d\n" % number)
    time.sleep(0.002)
