"""Prints its argument again and again, with 1, 2, 3 … for each %d, as fast as a client of a server types."""

import itertools
import sys
import time

for number in itertools.count(1):
    print(sys.argv[1].replace("%d", str(number)), flush=True)
    time.sleep(0.002)
