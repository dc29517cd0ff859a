"""Takes items into spool/, idles, and moves them to box/ as a careful mailer does: whatever it does is synced first.

By the time that an item is moved it was acknowledged at least 3 s ago. What is lost from then on is no item of the
last second, but one that had long been safe.
"""

import os
import time

from items import BOX, SPOOL, content

COUNT = 1500
IDLE_S = 3


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
for number in range(1, COUNT + 1):
    write_durably(f"{SPOOL}/{number}", content(number), spool)
    os.write(1, b"%d\n" % number)
    time.sleep(0.001)
time.sleep(IDLE_S)
for number in range(1, COUNT + 1):
    with open(f"{SPOOL}/{number}", "rb") as file:
        text = file.read()
    write_durably(f"{BOX}/{number}", text, box)
    # The copy is safe; the original is no longer needed.
    os.unlink(f"{SPOOL}/{number}")
    time.sleep(0.003)
