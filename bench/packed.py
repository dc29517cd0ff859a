#!/usr/bin/python3
"""Stored results: JSON, its numbers in columns. `bench/packed.py FILE` prints one as `refit report` reads it:

    bench/packed.py bench/gallery/postfix-cleanup.packed | refit report /dev/stdin

All numbers that stand under the same keys are a column of FILE, in the order of the JSON. What is left, the JSON with 0
or 0.0 in place of every number, and how the columns are read, is a line of `texts.xz` beside it: the results of one
folder hardly differ there. FILE begins with the digest of its line. Both are read with `xz -dc`, and both together take
half of what the same JSON takes in xz. A number comes back as it was, except:

- a float is rounded to seven digits: no two runs agree in as many;
- of the times of acknowledgements and flushes of a crash report, up to 380,000 in nanoseconds, how many fell into each
  50 ms is stored; they come back in order, evenly spread over them. They are drawn in 120 columns over 8 s and more.
  Ages of losses are computed before this, from what was measured;
- when a run began is rounded to 1 ms, when memory was read to 10 ms, what the reading cost to 0.1 ms, and RSS and VSZ
  while a service ran to 64 KiB: nothing is computed from them;
- the moment of a cut is rounded to 0.1 ms, as in the name of its state, and the age of a loss up to the next 0.1 ms;
- the hash of an image, and the number of a state in its name, become their order of appearance. The records are not
  stored, so no state can be opened by them; that two states of one record have the same image is.
"""

import hashlib
import itertools
import json
import lzma
import math
import os
import pathlib
import re
import sys
from decimal import Decimal

# Settings by the names that they were measured under, and by those of today: what they set is the same.
RENAMED = {
    "conf.flush_log=": "conf.innodb_flush_log_at_trx_commit=",
    "conf.flush_method=": "conf.innodb_flush_method=",
    "conf.log_buffering=": "conf.innodb_log_file_buffering=",
}
TIMES = {"acknowledged_ns", "flushed_ns"}
UNIT_NS = 50_000_000
CUT_DIGITS = -5
AGE_NS = 100_000
DIGITS = {"at_s": 3, "at_ms": -1, "cost_us": -2}
MEMORY = {"rss_bytes", "vsz_bytes"}
UNIT_BYTES = 65_536
FLOAT_DIGITS = 7
# A state of a crash report repeats its time in its name.
NAME = re.compile(r"c(\d+)-(\w+)-(\d+)")
COMPACT = {"ensure_ascii": False, "separators": (",", ":")}
STRONGEST = 9 | lzma.PRESET_EXTREME
TEXTS = "texts.xz"
DIGEST_BYTES = 6
# The length of the header of a column with repeated numbers.
REPEATED = 3
# A byte of a column says nothing about the next.
NUMBER = {"id": lzma.FILTER_LZMA1, "preset": STRONGEST, "lc": 0, "lp": 0, "pb": 0, "dict_size": 1 << 20}
# The format of lzma has a header of 13 bytes; that of xz, with its index, takes 60.
NUMBERS = {"format": lzma.FORMAT_ALONE, "filters": [NUMBER]}
TEXT = [{"id": lzma.FILTER_LZMA2, "preset": STRONGEST, "lc": 4, "pb": 0}]


def _state(number, state, images):
    time, kind, _ = NAME.fullmatch(state["name"]).groups()
    if int(time) != state["at_ns"]:
        raise ValueError(f"the name {state['name']} is not of {state['at_ns']} ns")
    image = images.setdefault(state["image"], len(images))
    kept = state | {"name": [kind, number], "at_ns": round(state["at_ns"], CUT_DIGITS), "image": image}
    if state["loss"] and state["loss"]["oldest_ns"]:
        kept["loss"] = state["loss"] | {"oldest_ns": -(-state["loss"]["oldest_ns"] // AGE_NS) * AGE_NS}
    return kept


def _rounded(value):
    """What is kept of a result."""
    if isinstance(value, float):
        return float(f"{value:.{FLOAT_DIGITS}g}")
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _rounded(inner) for key, inner in value.items()}
    for key in DIGITS.keys() & kept.keys():
        kept[key] = round(kept[key], DIGITS[key])
    for key in TIMES & kept.keys():
        kept[key] = sorted(time // UNIT_NS * UNIT_NS for time in kept[key])
    moments = kept.get("memory")
    for moment in moments if isinstance(moments, list) else []:
        for key in MEMORY & moment.keys():
            moment[key] = round(moment[key] / UNIT_BYTES) * UNIT_BYTES
    if isinstance(kept.get("states"), list):
        images = {}
        kept["states"] = [_state(number, state, images) for number, state in enumerate(kept["states"])]
    return kept


def _spread(times):
    """As many in each unit of time, at equal distances."""
    units = ((start, len(list(times))) for start, times in itertools.groupby(times))
    return [start + (2 * number + 1) * UNIT_NS // (2 * count) for start, count in units for number in range(count)]


def _restored(fields):
    """A record and a state as `refit crash` writes them; every other object as it is."""
    for key in TIMES & fields.keys():
        fields[key] = _spread(fields[key])
    if fields.keys() >= {"name", "at_ns", "image"}:
        kind, number = fields["name"]
        fields |= {"name": f"c{fields['at_ns']}-{kind}-{number}", "image": f"{fields['image']:016x}"}
    return fields


def _numbers(value, replaced, path=()):
    """The value with each number replaced by what `replaced(path, number)` returns."""
    if isinstance(value, dict):
        return {key: _numbers(inner, replaced, (*path, key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [_numbers(inner, replaced, (*path, 0)) for inner in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return replaced((*path, type(value)), value)
    return value


def _bytes(numbers, width):
    """All first bytes, then all second ones, and so on: the first ones hardly differ."""
    return b"".join(bytes(number >> shift & 255 for number in numbers) for shift in range(8 * width - 8, -1, -8))


def _whole(values):
    """Whole numbers without a common offset, factor and power of ten: how to undo that, and their bytes."""
    decimals = [Decimal(repr(value)) for value in values]
    exponent = min(0, *(decimal.as_tuple().exponent for decimal in decimals)) if decimals else 0
    whole = [int(decimal.scaleb(-exponent)) for decimal in decimals]
    encodings = []
    for is_steps, numbers in [(False, whole), (True, [b - a for a, b in itertools.pairwise([0, *whole])])]:
        least = min(numbers)
        factor = math.gcd(*(number - least for number in numbers)) or 1
        numbers = [(number - least) // factor for number in numbers]
        width = (max(numbers).bit_length() + 7) // 8
        encodings.append(([exponent, least, factor, is_steps, width], _bytes(numbers, width)))
    return min(encodings, key=_compressed)


def _column(values):
    """As they are; or, where that is shorter, what follows each other once, and then how often."""
    plain = _whole(values)
    runs = [(value, len(list(run))) for value, run in itertools.groupby(values)]
    if len(runs) > len(values) / 2:
        return plain
    (once, data), (times, more) = (_whole(numbers) for numbers in zip(*runs))
    return min(plain, ([len(runs), once, times], data + more), key=_compressed)


def _compressed(encoding):
    return len(lzma.compress(encoding[1], **NUMBERS))


def _undone(header, count, data):
    """The numbers, and the data after them."""
    exponent, least, factor, is_steps, width = header
    numbers = [0] * count
    for plane in range(width):
        numbers = [number << 8 | byte for number, byte in zip(numbers, data[plane * count : (plane + 1) * count])]
    numbers = [number * factor + least for number in numbers]
    whole = itertools.accumulate(numbers) if is_steps else numbers
    return [f"{number}e{exponent}" if exponent else number for number in whole], data[count * width :]


def _values(header, count, data):
    if len(header) != REPEATED:
        return _undone(header, count, data)
    runs, once, times = header
    values, data = _undone(once, runs, data)
    counts, data = _undone(times, runs, data)
    return [value for value, times in zip(values, counts) for _ in range(times)], data


def _texts(folder):
    """The lines of `texts.xz`, by their digests."""
    path = folder / TEXTS
    lines = lzma.decompress(path.read_bytes()).splitlines(keepends=True) if path.exists() else []
    return {hashlib.sha256(line).digest()[:DIGEST_BYTES]: line for line in lines}


def _digest(path):
    with lzma.open(path) as file:
        return file.read(DIGEST_BYTES)


def _replace(path, data):
    temporary = path.with_name(f"{path.name}.new")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def write(path, result):
    """Stores a result; killed at any moment, the old or the new one is there."""
    columns = {}

    def taken(where, number):
        columns.setdefault(where, []).append(number)
        return where[-1]()

    skeleton = _numbers(_rounded(result), taken)
    encoded = [_column(values) for values in columns.values()]
    line = json.dumps([skeleton, [header for header, _ in encoded]], **COMPACT).encode() + b"\n"
    digest = hashlib.sha256(line).digest()[:DIGEST_BYTES]
    path = pathlib.Path(path)
    # The line of the result that is replaced stays until the next one is written.
    in_use = {digest, *map(_digest, path.parent.glob("*.packed"))}
    texts = _texts(path.parent) | {digest: line}
    lines = sorted(text for key, text in texts.items() if key in in_use)
    _replace(path.parent / TEXTS, lzma.compress(b"".join(lines), filters=TEXT))
    _replace(path, lzma.compress(digest + b"".join(data for _, data in encoded), **NUMBERS))


def read(path):
    path = pathlib.Path(path)
    with lzma.open(path) as file:
        digest, data = file.read(DIGEST_BYTES), file.read()
    text = _texts(path.parent)[digest].decode()
    for old, new in RENAMED.items():
        text = text.replace(old, new)
    skeleton, headers = json.loads(text)
    counts = {}

    def counted(where, number):
        counts[where] = counts.get(where, 0) + 1
        return number

    _numbers(skeleton, counted)
    columns = {}
    for (where, count), header in zip(counts.items(), headers, strict=True):
        values, data = _values(header, count, data)
        columns[where] = iter(values)
    result = _numbers(skeleton, lambda where, _: where[-1](next(columns[where])))
    return json.loads(json.dumps(result), object_hook=_restored)


def main():
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} FILE.packed")
    result = read(sys.argv[1])
    # What make crash-night stores has the report in it, beside what it was measured on.
    sys.stdout.write(json.dumps(result.get("report", result)))


if __name__ == "__main__":
    main()
