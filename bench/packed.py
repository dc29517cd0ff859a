#!/usr/bin/python3
"""Stored results: JSON, compressed by xz. `bench/packed.py FILE` prints one as `refit report` reads it:

    bench/packed.py bench/gallery/postfix-cleanup.json.xz | refit report /dev/stdin

A crash report lists when each acknowledgement and each flush came: up to 380,000 times in nanoseconds, which are drawn
over the seconds of a run. They are stored as the steps from one to the next, in milliseconds; read() gives them back as
times. All else is stored as it came: ages of losses are computed before this, from what was measured.
"""

import itertools
import json
import lzma
import sys

TIMES = {"acknowledged_ns", "flushed_ns"}
UNIT_NS = 1_000_000
STRONGEST = 9 | lzma.PRESET_EXTREME


def _steps(times):
    rounded = [round(time / UNIT_NS) for time in times]
    return {"unit_ns": UNIT_NS, "steps": [b - a for a, b in itertools.pairwise([0, *rounded])]}


def _times(value):
    """What _steps made, as times; every other object as it is."""
    if value.keys() == {"unit_ns", "steps"}:
        return [steps * value["unit_ns"] for steps in itertools.accumulate(value["steps"])]
    return value


def _packed(value):
    if isinstance(value, dict):
        return {key: _steps(inner) if key in TIMES else _packed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_packed(inner) for inner in value]
    return value


def write(path, result):
    with lzma.open(path, "wt", preset=STRONGEST, encoding="utf-8") as file:
        file.write(json.dumps(_packed(result), ensure_ascii=False, separators=(",", ":")))


def read(path):
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return json.load(file, object_hook=_times)


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FILE.json.xz")
    result = read(sys.argv[1])
    # What make crash-night stores has the report in it, beside what it was measured on.
    sys.stdout.write(json.dumps(result.get("report", result)))


if __name__ == "__main__":
    main()
