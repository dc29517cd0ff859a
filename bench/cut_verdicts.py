"""Counts the stored verdicts of `refit crash`, and draws docs/crash-verdicts.md and the table of docs/safety.md."""

import collections
import dataclasses
import pathlib
import re
import tomllib

import cut_modes
import packed

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "crash"
PAGE = ROOT / "docs" / "crash-verdicts.md"
SAFETY = ROOT / "docs" / "safety.md"
# While files are flushed every second: twice that period.
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
    return "**loses**, as its class allows" if may_lose else "**LOSES WHAT ITS CLASS FORBIDS**"


def load():
    """What is stored, by recipe, settings of its baseline and file system, then by environment: the runs in order."""
    found = {}
    for path in sorted(RESULTS.glob("*.packed")):
        stored = packed.read(path)
        filesystem = stored["report"]["filesystem"]
        place = " ".join(filter(None, [filesystem["kind"], filesystem["options"]]))
        key = (stored["recipe"], stored["with"], place)
        found.setdefault(key, {}).setdefault(stored["environment"], []).append(stored)
    return found


def of_mode(runs, name):
    reports = (stored["report"] for stored in runs)
    return [mode for report in reports for mode in report["modes"] if mode["name"] == name]


def rows(by_environment):
    """The control, then what cut_modes.py lists and was measured: about, recorded modes, environment."""
    control = of_mode(by_environment.get("plain", []), "control")
    if control:
        yield "control: a disk that ignores flushes", control, None
    for mode in cut_modes.MODES:
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


def footnotes(by_environment, has_odirect):
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
    if not has_odirect:
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
The program of a recipe with a [promise](recipes.md) runs on a disk whose writes and flushes are recorded; images that
this disk may hold after a power cut are mounted and checked ([safety.md](safety.md#power-cuts) says what that proves, and
what not).

A *lossy* image lacks something that was acknowledged before the cut, or holds it in part. The *oldest loss* is how long
before the cut the oldest lost item was acknowledged. A *hole*: something newer than a lost item was kept.
"""


def recipes():
    """Those with a promise, by name."""
    files = sorted((ROOT / "recipes").glob("*/recipe.toml"))
    parsed = (tomllib.loads(path.read_text()) for path in files)
    return {recipe["name"]: recipe for recipe in parsed if "promise" in recipe}


def tries_odirect(recipe, settings):
    """Whether O_DIRECT is a question there: a variant has it, and the baseline's settings do not take it away."""
    has_it = any("odirect" in variant["settings"] for variant in recipe.get("variant", []))
    return has_it and not settings


def measured(found):
    """In the order of the page: recipe, settings of the baseline, file system, runs by environment."""
    for name, recipe in recipes().items():
        for settings in ["", *recipe["promise"].get("also", [])]:
            for (owner, used, place), by_environment in found.items():
                if (owner, used) == (name, settings):
                    yield recipe, settings, place, by_environment


def page(found):
    yield HEAD
    yield from sources(found)
    for recipe, settings, place, by_environment in measured(found):
        promise = recipe["promise"]
        stored = [each for runs in by_environment.values() for each in runs]
        versions = ", ".join(sorted({each["version"] for each in stored}))
        title = f"{recipe['name']}, {settings}" if settings else recipe["name"]
        yield f"\n## {title} on {place}\n"
        about = promise["about"][0].upper() + promise["about"][1:]
        yield f"{about}{f'; with `{settings}`' if settings else ''} ({versions})."
        yield f"Promise: {promise['acknowledged']}.\n"
        yield from table(by_environment)
        yield ""
        yield from footnotes(by_environment, tries_odirect(recipe, settings))
        if before := {each["measured_as"] for each in stored if each.get("measured_as")}:
            yield f"- measured with the program `{', '.join(sorted(before))}` of crash/, before it became this recipe's promise"


def cell(counted):
    if not counted.bad_images:
        return f"0 of {counted.images:,}"
    loss = f"{counted.worst[0]:,} lost, {age(counted)} old" if counted.with_loss else otherwise(counted)
    return f"**{counted.bad_images:,}** of {counted.images:,}: {loss}"


def summary(found):
    yield "| recipe, file system | " + " | ".join(mode.about for mode in cut_modes.MODES) + " |"
    yield "|:--|" + "--:|" * len(cut_modes.MODES)
    for recipe, settings, place, by_environment in measured(found):
        tallies = {mode: tally(recorded) for _, recorded, mode in rows(by_environment) if mode}
        cells = [cell(tallies[mode]) if mode in tallies else "–" for mode in cut_modes.MODES]
        name = f"{recipe['name']} `{settings}`" if settings else recipe["name"]
        yield f"| {name}, {place} | " + " | ".join(cells) + " |"


def draw():
    found = load()
    if not found:
        return
    PAGE.write_text("\n".join(page(found)) + "\n")
    text = SAFETY.read_text()
    if not MARKS.search(text):
        raise SystemExit(f"crash-night: {SAFETY} has no <!-- crash --> … <!-- /crash -->")
    drawn = "\n".join(summary(found)) + "\n"
    SAFETY.write_text(MARKS.sub(lambda marks: marks[1] + drawn + marks[2], text))
