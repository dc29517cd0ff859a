"""Prints the items that are whole in spool/ or box/, and `!ID` for one that is there in part."""

import os

from items import BOX, SPOOL, content

for directory in (SPOOL, BOX):
    for name in os.listdir(directory) if os.path.isdir(directory) else []:
        if name.endswith(".tmp"):
            continue
        with open(f"{directory}/{name}", "rb") as file:
            is_whole = file.read() == content(int(name))
        print(name if is_whole else f"!{name}")
