"""A comparison as a Markdown table, the whole bench as RESULTS.md and as raw samples."""

import estimate
from part import Part


def _number(value, unit=""):
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}{unit}"


def _effect(effect, column, unit):
    if effect is None:
        return "base"
    if column.kind == "over":
        point = f"{effect.point:+.2f} {unit}"
        return f"{point} [{effect.low:+.2f}, {effect.high:+.2f}]"
    return f"{effect.point:.3f} [{effect.low:.3f}, {effect.high:.3f}]"


def _grid(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def comparison(one):
    """Title, table, goals and notes."""
    lines = [f"### {one.title} (`{one.name}`)", ""]
    if one.failure:
        return "\n".join([*lines, f"Not measured{'' if one.skipped else ', it failed'}: {one.failure}", ""])
    if isinstance(one, Part):
        return "\n".join([*lines, *one.lines, f"{one.seconds:.0f} s in all.", *(f"- {note}" for note in one.notes), ""])
    table = one.table()
    rows = [["", f"median {one.unit}", *(column.title for column in one.columns)]]
    for row, effects in table.items():
        cells = [_effect(effect, column, one.unit) for effect, column in zip(effects, one.columns)]
        rows.append([row, _number(estimate.median(one.series(row))), *cells])
    some = next(effect for effects in table.values() for effect in effects if effect)
    lines += [_grid(rows), ""]
    lines.append(f"{one.rounds} rounds, mirrored pairs: {some.pairs}, intervals at {some.level:.1%}, "
                 f"{one.seconds:.0f} s in all.")
    lines += [f"- {goal.told(table)}" for goal in one.goals]
    lines += [f"- {note}" for note in one.notes + _counts(one)]
    return "\n".join([*lines, ""])


def _counts(one):
    """What refit counted in the last run of each row."""
    last = {s["variant"]: s["facts"] for s in one.samples if "suppressed" in s["facts"]}
    return [
        f"refit's count in one run of {name}: {facts['seen']} durable calls seen, {facts['suppressed']} suppressed, "
        f"{facts['real']} real; {facts['reached']} of {facts['processes']} program starts reached"
        for name, facts in last.items()
    ]


METHOD = """\
Each part says when it was measured, at which commit and beside what: the processors' time that others used
is that of /proc/stat, less that of the bench and of all that it started and waited for; stolen is what the
hypervisor gave to other machines. Both are shares of all processors. The load average counts what is
measured, too.

All rows of a table ran interleaved (`calibration`, `aa` and `verdict-time` say themselves what they did):
each round runs every row once in a random order, the next round runs that order backwards, and one round
before them is not counted. An effect is the Hodges–Lehmann estimate (the median of all averages of two) over
the mirrored pairs, of log-ratios or, where a table says "over", of differences; its interval is the exact
signed-rank one, at the level that stands below the table. A row "again" is its base run a second time: its
interval is the noise of this machine on that day. Before each run of a whole program `sync` is called and
Dirty and Writeback fall below 4 MiB, for 5 s at most. Nothing on disk is deleted before the end. "÷" is a
ratio of times unless it says speed. A goal is *met* or *missed* when the whole interval says so, else
*undecided*; "not slower beyond noise" is missed when it lies above 1, met when it ends where that of the row
"again" does, or before. No timing makes this program fail. eatmydata is Debian's wrapper, where a table does not say
LD_PRELOAD.
"""


def document(parts):
    """RESULTS.md, from the stored parts in their order."""
    # What was measured last speaks for all; a part says where it differs.
    environment = max(parts, key=lambda part: part["date"])["environment"]
    rows = [["", ""], *([name, value] for name, value in environment.items())]
    lines = ["# Results: refit beside its peers", "",
             "Written by `make bench`, part by part; all raw samples of a part, in run order, are in "
             "`results/PART.packed` (`packed.py` prints it).", "", _grid(rows), "", METHOD]
    return "\n".join(lines + [_section(part, environment) for part in parts])


def _section(part, environment):
    title, text = part["text"].split("\n", 1)
    load = part["load"]
    used = "not recorded" if load["others"] is None else f"{load['others']:.1%} of the processors"
    stolen = "" if load["stolen"] is None else f", stolen {load['stolen']:.1%}"
    others = [f"{name} {value}" for name, value in part["environment"].items() if environment.get(name) != value]
    elsewhere = f" On: {'; '.join(others)}." if others else ""
    averages = " and ".join(" ".join(load[when].split(" ")[:3]) for when in ("before", "after"))
    return (f"{title}\n\n*{part['date']}, commit {part['commit']}, {part['refit']}, seed {part['seed']}. "
            f"Used by others: {used}{stolen}; load average before and after {averages}.{elsewhere}*\n{text}")
