"""Takes items into spool/, and moves them to box/ as a careful mailer does: each step is synced before the next.

usage: mailer.py COUNT [IDLE_S]
With IDLE_S it acknowledges each item on standard output, pauses, and idles between the two halves: an item was
acknowledged at least so long before it is moved. What is lost from then on had long been safe.
"""

import os
import sys
import time

from items import BOX, SPOOL, content

count = int(sys.argv[1])
idle_s = float(sys.argv[2]) if len(sys.argv) > 2 else 0


def write_durably(path, text, directory):
    """Under another name, synced, renamed, and the directory synced."""
    file = os.open(path + ".tmp", os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(file, text)
    os.fsync(file)
    os.close(file)
    os.rename(path + ".tmp", path)
    os.fsync(directory)


os.mkdir(SPOOL)
os.mkdir(BOX)
spool, box = os.open(SPOOL, os.O_RDONLY), os.open(BOX, os.O_RDONLY)
for number in range(1, count + 1):
    write_durably(f"{SPOOL}/{number}", content(number), spool)
    if idle_s:
        os.write(1, b"%d\n" % number)
        time.sleep(0.001)
time.sleep(idle_s)
for number in range(1, count + 1):
    with open(f"{SPOOL}/{number}", "rb") as file:
        text = file.read()
    write_durably(f"{BOX}/{number}", text, box)
    # The copy is safe; the original is no longer needed.
    os.unlink(f"{SPOOL}/{number}")
    if idle_s:
        time.sleep(0.003)
