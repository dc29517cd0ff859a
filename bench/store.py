"""The stored parts of the bench: one packed file each, from which RESULTS.md is drawn. A part that is measured again
replaces its file, and nothing else; one that could not be measured leaves the result that is stored."""

import json
import os
import sys

import packed
import render

SCHEMA = 2


class Store:
    """The results below one directory: `results/PART.packed` and `RESULTS.md`."""

    def __init__(self, directory, order):
        self.directory, self.order, self.written = directory, order, 0
        self.results = os.path.join(directory, "results")
        os.makedirs(self.results, exist_ok=True)
        self.parts = {name: packed.read(self._path(name)) for name in order if os.path.exists(self._path(name))}

    def _path(self, name):
        return os.path.join(self.results, f"{name}.packed")

    def keep(self, one, origin, load, took_s):
        """Stores a part that has ended, and draws RESULTS.md anew; killed at any moment, the old or the new file is
        there. Of a part that failed or was skipped, nothing is stored where a measured result is."""
        stored = self.parts.get(one.name)
        if one.failure and stored is not None and not stored["failure"]:
            print(f"bench: {one.name} was not measured; the result of {stored['date']} stays", file=sys.stderr)
            return
        part = {
            "schema": SCHEMA, "kind": "bench", **origin, "load": load, "took_s": took_s,
            "name": one.name, "title": one.title, "unit": one.unit, "rounds": one.rounds, "seconds": one.seconds,
            "failure": one.failure, "skipped": one.skipped, "text": render.comparison(one), "notes": one.notes,
            "samples": one.samples,
        }
        packed.write(self._path(one.name), part)
        self.parts[one.name] = part
        self.written += 1
        self.draw()

    def draw(self):
        temporary = os.path.join(self.directory, "RESULTS.md.new")
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(render.document([self.parts[name] for name in self.order if name in self.parts]))
        os.replace(temporary, os.path.join(self.directory, "RESULTS.md"))

    def has(self, name, origin):
        """Whether this commit has measured the part, with this binary."""
        part = self.parts.get(name)
        return part is not None and not part["failure"] and is_same(part, origin)

    def estimate_s(self, name):
        """What the part took when it was measured last; None where it was not."""
        part = self.parts.get(name)
        return None if part is None or part["failure"] else part["took_s"]


def is_same(one, other):
    """Whether both were measured by the same code."""
    return (one["commit"], one["refit"]) == (other["commit"], other["refit"])


class Journal:
    """The samples of a part that takes long, one JSON line each, written as they are made. What another commit, binary
    or plan left there is not gone on with."""

    def __init__(self, path, origin, resume):
        self.path, self.origin = path, origin
        if not resume and os.path.exists(path):
            os.unlink(path)

    def begin(self, plan, seed):
        """The samples that there are already, and the seed that they follow from."""
        head = {"commit": self.origin["commit"], "refit": self.origin["refit"], "plan": plan}
        lines = self._lines()
        if lines and {key: lines[0].get(key) for key in head} == head:
            return lines[1:], lines[0]["seed"]
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "w", encoding="utf-8") as file:
            print(json.dumps(head | {"seed": seed}), file=file)
        return [], seed

    def _lines(self):
        """All whole lines: a kill can cut the last one short."""
        if not os.path.exists(self.path):
            return []
        with open(self.path, encoding="utf-8") as file:
            text = file.read()
        whole, _, cut = text.rpartition("\n")
        if cut:
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(f"{whole}\n" if whole else "")
        return [json.loads(line) for line in whole.splitlines()]

    def add(self, sample):
        with open(self.path, "a", encoding="utf-8") as file:
            print(json.dumps(sample), file=file)

    def end(self):
        os.unlink(self.path)


def plan_told(names, kept, estimates):
    """What will be measured, and how long that probably takes."""
    lines = [f"bench: kept, measured by this commit: {' '.join(kept)}"] if kept else []
    lines += [f"bench: {name:14} {_minutes(estimates[name])}" for name in names]
    unknown = sum(estimates[name] is None for name in names)
    total = _minutes(sum(estimates[name] or 0 for name in names))
    more = f", and what {unknown} of them take that were never measured" if unknown else ""
    print("\n".join([*lines, f"bench: {len(names)} parts, about {total.strip()} in all{more}"]), file=sys.stderr)


def _minutes(seconds):
    return "  unknown" if seconds is None else f"{int(seconds) // 60:3}:{int(seconds) % 60:02} min"
