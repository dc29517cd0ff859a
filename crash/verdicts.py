"""Counts the stored verdicts of `refit crash`, and draws docs/crash-verdicts.md and the table of docs/safety.md."""

import collections
import dataclasses
import pathlib
import re

import modes
import packed

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "crash"
PAGE = ROOT / "docs" / "crash-verdicts.md"
SAFETY = ROOT / "docs" / "safety.md"
# Beside a flush every second: twice its period.
LONG_SAFE_S = 2
MARKS = re.compile(r"(<!-- crash -->\n).*?(<!-- /crash -->)", re.DOTALL)


@dataclasses.dataclass
class Tally:
    """The cuts of one mode, of one run or several. Counts are of cuts, but for those of images."""

    runs: int
    cuts: int
    images: int
    bad_images: int
    with_pending: int
    with_loss: int
    worst: tuple
    oldest_ns: int
    long_safe: int
    holes: int
    damaged: int
    broken: int
    unmountable: int
    complaints: list


def is_bad(state):
    loss = state["loss"]
    return bool(state["unmountable"] or state["broken"] or loss["lost"] or loss["resurrected"])


def cause(complaint):
    """The line of a complaint that says why, without the times and numbers that differ each time."""
    lines = complaint.strip().split("\n")
    line = next((line for line in lines if re.search("FATAL|PANIC|ERROR", line)), lines[-1])
    return re.sub(r"\d{4}-\d\d-\d\d +[\d:.]+ (UTC )?(\[\d+\] )?|0x[0-9a-f]+", "", line)[:160]


def tally(recorded):
    """Of the modes of one name, one from each run."""
    # The same number is the same image of the same record only.
    states = [(run, state) for run, mode in enumerate(recorded) for state in mode["states"]]
    losses = [state["loss"] for _, state in states]
    complaints = (state["broken"] or state["unmountable"] for _, state in states)
    complaints = collections.Counter(map(cause, filter(None, complaints)))
    return Tally(
        runs=len(recorded),
        cuts=len(states),
        images=len({(run, state["image"]) for run, state in states}),
        bad_images=len({(run, state["image"]) for run, state in states if is_bad(state)}),
        with_pending=sum(state["pending"] > 0 for _, state in states),
        with_loss=sum(loss["lost"] > 0 for loss in losses),
        worst=max((loss["lost"], loss["acknowledged"]) for loss in losses),
        oldest_ns=max((loss["oldest_ns"] or 0 for loss in losses), default=0),
        long_safe=sum((loss["oldest_ns"] or 0) > LONG_SAFE_S * 10**9 for loss in losses),
        holes=sum(loss["is_hole"] for loss in losses),
        damaged=sum(loss["damaged"] > 0 for loss in losses),
        broken=sum(bool(state["broken"]) for _, state in states),
        unmountable=sum(bool(state["unmountable"]) for _, state in states),
        complaints=complaints.most_common(3),
    )


def brief(tally):
    if not tally.bad_images:
        return f"no loss found in {tally.cuts:,} cuts"
    return f"lost in {tally.with_loss:,} of {tally.cuts:,} cuts, worst {tally.worst[0]:,} of {tally.worst[1]:,}"


def age(tally):
    return f"{tally.oldest_ns / 1e9:.2f} s" if tally.with_loss else "–"


def otherwise(tally):
    counts = [(tally.holes, "with holes"), (tally.damaged, "with parts of items")]
    counts += [(tally.broken, "broken as a whole"), (tally.unmountable, "did not mount")]
    return ", ".join(f"{count:,} {what}" for count, what in counts if count) or "–"


def verdict(tally, role, may_lose):
    if not tally.bad_images:
        return "no loss found"
    if role == "control":
        return "the check can see a loss"
    if role == "baseline":
        return "**the program itself loses**"
    return "**loses**, as its class says" if may_lose else "**LOSES WHAT ITS CLASS FORBIDS**"


def load():
    """What is stored, by program and file system, then by environment: the runs in order."""
    found = {}
    for path in sorted(RESULTS.glob("*.json.xz")):
        stored = packed.read(path)
        filesystem = stored["report"]["filesystem"]
        place = " ".join(filter(None, [filesystem["kind"], filesystem["options"]]))
        key = (stored["program"], place)
        found.setdefault(key, {}).setdefault(stored["environment"], []).append(stored)
    return found


def of_mode(runs, name):
    reports = (stored["report"] for stored in runs)
    return [mode for report in reports for mode in report["modes"] if mode["name"] == name]


def rows(by_environment):
    """The control, then what modes.py lists and was measured: about, recorded modes, environment."""
    control = of_mode(by_environment.get("plain", []), "control")
    if control:
        yield "control: a disk that ignores flushes", control, None
    for mode in modes.MODES:
        recorded = of_mode(by_environment.get(mode.environment.name, []), mode.variant or "baseline")
        if recorded:
            yield mode.about, recorded, mode


def table(by_environment):
    yield "| mode | acknowledged | cuts (runs) | images, lossy of all | worst loss | oldest loss | otherwise | verdict |"
    yield "|:--|--:|--:|--:|--:|--:|:--|:--|"
    for about, recorded, _ in rows(by_environment):
        counted = tally(recorded)
        acked = sum(len(mode["record"]["acknowledged_ns"]) for mode in recorded)
        worst = f"{counted.worst[0]:,} of {counted.worst[1]:,}" if counted.with_loss else "0"
        cells = [about, f"{acked:,}", f"{counted.cuts:,} ({counted.runs})"]
        cells += [f"{counted.bad_images:,} of {counted.images:,}", worst, age(counted), otherwise(counted)]
        cells += [verdict(counted, recorded[0]["role"], recorded[0]["may_lose"])]
        yield "| " + " | ".join(cells) + " |"


def footnotes(by_environment, program):
    first = next(iter(by_environment.values()))[0]["report"]
    for about, recorded, mode in rows(by_environment):
        counted = tally(recorded)
        for complaint, cuts in counted.complaints if mode else []:
            yield f"- {about}: {cuts:,} × {complaint}"
        if mode and mode.environment.is_race and counted.long_safe:
            yield f"- {about}: in {counted.long_safe:,} cuts something was lost that had been acknowledged more than {LONG_SAFE_S} s before"
    baselines = [
        (name, tally(of_mode(runs, "baseline"))) for name, runs in by_environment.items() if name != "plain"
    ]
    for name, counted in baselines:
        yield f"- the baseline in the environment `{name}`: {brief(counted)}"
    if not program.get("odirect"):
        yield f"- `odirect=off`: not tried; {direct_opens(by_environment)}"
    seeds = sorted({stored["report"]["seed"] for runs in by_environment.values() for stored in runs})
    yield f"- seeds {', '.join(map(hex, seeds))}; blocks of {first['tear_bytes']} bytes are written as a whole"


def direct_opens(by_environment):
    runs = (mode["run"] for stored in by_environment.values() for mode in of_mode(stored, "baseline"))
    opens = sum(run["totals"].get("open(O_DIRECT)", {"seen": 0})["seen"] for run in runs)
    return f"{opens} files were opened with O_DIRECT" + ("" if opens else ", so it would be `on` again")


def sources(found):
    """The machine, kernel, versions and days of everything that is shown."""
    stored = [each for environments in found.values() for runs in environments.values() for each in runs]
    for title, of in [
        ("machine", lambda each: each["machine"]),
        ("kernel", lambda each: each["report"]["kernel"]),
        ("refit", lambda each: f"{each['report']['refit']} (source {each['commit']})"),
        ("measured", lambda each: each["date"]),
    ]:
        yield f"- {title}: {'; '.join(sorted({of(each) for each in stored}))}"


HEAD = """# Power cuts: what each program loses

Written by `make crash-night` (scripts/crash-night); every verdict lies in [bench/crash](../bench/crash), state by state.
A program runs on a disk whose writes and flushes are recorded; images that this disk may hold after a power cut are
mounted, and looked into ([safety.md](safety.md#power-cuts) says what that proves, and what not).

A *lossy* image lacks something that was acknowledged before the cut, or holds it in part. The *oldest loss* is how long
before the cut the oldest lost item was acknowledged. A *hole*: something newer than a lost item was kept.
"""


def page(found, programs):
    yield HEAD
    yield from sources(found)
    for name, program in programs.items():
        for (owner, place), by_environment in found.items():
            if owner != name:
                continue
            versions = {each["version"] for runs in by_environment.values() for each in runs}
            yield f"\n## {name} on {place}\n\n{program['about'][0].upper() + program['about'][1:]} ({', '.join(sorted(versions))})."
            yield f"Promise: {program['acknowledged']}.\n"
            yield from table(by_environment)
            yield ""
            yield from footnotes(by_environment, program)


def cell(counted):
    if not counted.bad_images:
        return f"0 of {counted.images:,}"
    loss = f"{counted.worst[0]:,} lost, {age(counted)} old" if counted.with_loss else otherwise(counted)
    return f"**{counted.bad_images:,}** of {counted.images:,}: {loss}"


def summary(found, programs):
    yield "| program, file system | " + " | ".join(mode.about for mode in modes.MODES) + " |"
    yield "|:--|" + "--:|" * len(modes.MODES)
    for name in programs:
        for (owner, place), by_environment in found.items():
            if owner != name:
                continue
            measured = {mode: tally(recorded) for _, recorded, mode in rows(by_environment) if mode}
            cells = [cell(measured[mode]) if mode in measured else "–" for mode in modes.MODES]
            yield f"| {name}, {place} | " + " | ".join(cells) + " |"


def draw(programs):
    found = load()
    if not found:
        return
    PAGE.write_text("\n".join(page(found, programs)) + "\n")
    text = SAFETY.read_text()
    if not MARKS.search(text):
        raise SystemExit(f"crash-night: {SAFETY} has no <!-- crash --> … <!-- /crash -->")
    drawn = "\n".join(summary(found, programs)) + "\n"
    SAFETY.write_text(MARKS.sub(lambda marks: marks[1] + drawn + marks[2], text))
