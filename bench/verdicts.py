"""`refit compare` itself: how often it is wrong, how long it takes to an answer, what it costs between runs."""

import contextlib
import json
import os
import random
import shutil
import statistics
import sys

import estimate
import machine
import micro
import process
from comparison import Column, Comparison, Variant
from part import Part, compared, effect, kept, timed_output

STATED_ERROR = 0.05  # of a comparison, all looks and candidates included
MOST_ERROR = 0.075  # where the upper end of the share's interval may be
EQUAL = "REFITBENCH"  # set for all, and set again to the same value by the variant
EFFECTS = (0, 2, 20)  # per cent more work
EQUAL_COUNT, EQUAL_BUDGET_S = 304, 3
# Before both baselines and single runs counted.
EARLIER_SAME = ("Before: 28 of 54, 51.9% [37.8%, 65.7%] within 8 s (this part at commit e2290ad, three of these commands, "
                "nothing beside); 24 of 200, 12.0% [7.8%, 17.3%] within 6 s (python, awk, sh and gzip on another machine "
                "of the kind, beside a light load; only these counts are known).")
EARLIER = "e2290ad, 2026-11-21"  # verdict-time, as stored there: the seconds of each repeat
EARLIER_S = {0: [12.47, 12.33], 2: [5.36, 11.90, 5.37, 5.36, 12.47], 20: [5.52, 5.68, 5.72, 5.73, 5.61]}


def _progress(part, number, count):
    if sys.stderr.isatty():
        text = "" if number is None else f"{part.name}: {number + 1} of {count}"
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _grid(head, *rows):
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows), ""]


def _change(value):
    return f"{100 * value:+.1f} %"


def _seconds(values):
    if len(values) == 1:
        return f"{values[0]:.1f} s"
    return f"{estimate.median(values):.1f} s ({min(values):.1f} to {max(values):.1f})"


def burn_for(bench, milliseconds):
    """The words of a program that burns about so much processor time on this machine."""
    program = micro.compiled(bench, "burn")
    empty, full, steps = ([program, "0"], [program, "10000000"], 10_000_000)
    least = [min(process.timed(words, bench.env, "/dev/null") for _ in range(9)) for words in (empty, full)]
    return [program, str(round(milliseconds * 1e6 * steps / (least[1] - least[0])))]


def calibration(bench):
    """Simulated comparisons, of which the true effect is known."""
    count = 200 if bench.quick else 4000
    words = ["cargo", "run", "--locked", "--quiet", "--release", "-p", "refit-stats", "--example", "calibration"]

    def measure(part, _):
        if not shutil.which("cargo"):
            raise process.Skipped("no cargo to build the simulation with")
        output = process.output([*words, "--", str(count)], cwd=machine.REPOSITORY)
        part.lines = [output.rstrip("\n"), ""]
        part.samples = [{"round": 0, "output": output}]
        part.notes = [f"written by `{' '.join([*words, '--', str(count)])}`; its seeds are 0 to {count - 1}"]

    return Part("calibration", "How often a comparison is wrong, on simulated machines", measure)


def equal_variants(bench):
    """Real comparisons of a command with itself, every other group of them beside a load."""
    count, budget = bench.times(EQUAL_COUNT, 8), f"{EQUAL_BUDGET_S}s"
    env = dict(bench.env, **{EQUAL: "1"})
    variant = f"env.{EQUAL}=1"

    def measure(part, seed):
        _expect_equal(bench, variant, env)
        commands, load = _short_commands(bench), _load(bench)
        names = list(commands)
        plan = {"part": part.name, "count": count, "budget": budget}
        part.samples, part.seed = bench.journal.begin(plan, seed)
        if part.samples:
            bench.busy.earlier = part.samples[-1]["busy"]
            part.seconds = bench.busy.earlier[0]
            print(f"bench: {part.name} goes on after {len(part.samples)} of {count}", file=sys.stderr)
        for number in range(len(part.samples), count):
            name, beside = names[number % len(names)], number // len(names) % 2 == 1
            with process.running(load, bench.env) if beside else contextlib.nullcontext():
                took, record = compared(bench, commands[name], variant, part.seed + number, "--budget", budget, env=env)
            sample = {"round": number, "command": name, "beside": beside, "seconds": took, "load": machine.load(),
                      "busy": bench.busy.so_far(), **kept(record)}
            bench.journal.add(sample)
            part.samples.append(sample)
            _told(sample, count)
        bench.journal.end()
        _tell_errors(part, names)
        for sample in part.samples:
            if not _is_false(sample):
                del sample["order"], sample["wall_us"]
        part.notes += [
            f"`refit compare {variant} --budget {budget} -- COMMAND`, where {EQUAL}=1 is in the environment already: "
            "the environments of all runs are the same to the byte, but for the name of the session",
            "commands: " + "; ".join(f"{name}: `{' '.join(words)}`" for name, words in commands.items()),
            f"beside a load: `{' '.join(load)}` runs all the while; it is not among what others used",
            "stored: every run of the false ones, and of all comparisons the seed, the plan and what was found",
        ]

    return Part("aa", f"{count} comparisons of a command with itself, on this machine", measure)


def _told(sample, count):
    """One line for each comparison as it ends."""
    found = sample["effect"]
    interval = " to ".join(map(_change, found["interval"])) if found["interval"] else "no interval"
    beside = ", beside a load" if sample["beside"] else ""
    change = "" if found["change"] is None else f" {_change(found['change'])}"
    print(f"aa: {sample['round'] + 1} of {count}, {sample['command']}{beside}: {found['verdict']}{change} ({interval}) in "
          f"{sample['seconds']:.1f} s", file=sys.stderr, flush=True)


def _load(bench):
    """About half of one processor, in pieces that come and go."""
    burn = " ".join(burn_for(bench, 20))
    return ["/bin/sh", "-c", f"while :; do {burn}; sleep 0.02; done"]


def _expect_equal(bench, variant, env):
    """The variant must change nothing at all, or its verdicts would not be false."""
    def environment(*settings):
        lines = process.output([*bench.run("/dev/null", *settings), "env"], env=env).splitlines()
        return [line for line in lines if not line.startswith("REFIT_SESSION=")]

    if environment() != environment(variant) or f"{EQUAL}=1" not in environment():
        raise process.Failed(f"{variant} changes the environment")


def _short_commands(bench):
    """Of at most 50 ms each: one computes, one writes to disk, one starts programs, one packs a file from memory."""
    file = os.path.join(bench.disk, "written")
    dd = [shutil.which("dd"), "if=/dev/zero", f"of={file}", "bs=4k", "count=40", "oflag=dsync"]
    process.output(dd)
    packed = os.path.join(bench.memory, "numbers")
    with open(packed, "w", encoding="utf-8") as numbers:
        numbers.writelines(f"{number * number}\n" for number in range(40_000))
    return {
        "computes": burn_for(bench, 20),
        "writes": [*dd, "conv=notrunc"],  # in place: the first run does what the last does
        "packs": [shutil.which("gzip"), "-c", packed],
        "starts": ["/bin/sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do {shutil.which('true')}; done"],
    }


def _tell_errors(part, names):
    def row(title, samples):
        word = [sample["effect"]["verdict"] for sample in samples]
        halves = [(high - low) / 2 for low, high in (s["effect"]["interval"] for s in samples if s["effect"]["interval"])]
        return [
            title, str(len(samples)), str(len(_false(samples))),
            str(word.count("same")), str(word.count("inconclusive")),
            str(sum(_covers(sample["effect"]) for sample in samples)),
            str(sum(_covers(sample["hidden"]) for sample in samples)),
            f"± {100 * estimate.median(halves):.1f} %" if halves else "none", f"{statistics.mean(s['seconds'] for s in samples):.1f} s",
        ]

    head = ["", "comparisons", "false faster/slower", "same", "inconclusive", "interval holds 0",
            "hidden baseline's too", "median interval", "mean time"]
    rows = [row(name, [s for s in part.samples if s["command"] == name]) for name in names]
    beside = [[s for s in part.samples if s["beside"] is is_beside] for is_beside in (False, True)]
    rows += [row(title, samples) for title, samples in zip(("with nothing beside", "beside a load"), beside)]
    part.lines = _grid(head, *rows, row("all", part.samples))
    wrong, count = len(_false(part.samples)), len(part.samples)
    low, high = estimate.binomial_interval(wrong, count)
    word = "contradicted" if low > STATED_ERROR else "not contradicted"
    goal = "met" if wrong / count <= STATED_ERROR and high <= MOST_ERROR else "missed"
    slower = sum(s["effect"]["verdict"] == "slower" for s in _false(part.samples))
    changes = [s["effect"]["change"] for s in part.samples if s["effect"]["change"] is not None] or [0.0]
    above = sum(change > 0 for change in changes)
    part.lines += [
        f"False verdicts: **{wrong} of {count}**, {wrong / count:.1%} [{low:.1%}, {high:.1%}] "
        f"(95 %, Clopper and Pearson); stated: at most {STATED_ERROR:.0%}, **{word}**; the goal of an upper end of at "
        f"most {MOST_ERROR:.1%} is {goal}. {slower} of them were `slower`; of all estimates {above} were above zero, "
        f"the mean is {100 * statistics.mean(changes):+.2f} %.", "",
        f"`same` was earned by {_share(sum(s['effect']['verdict'] == 'same' for s in part.samples), count)} within "
        f"{EQUAL_BUDGET_S} s. {EARLIER_SAME}", ""]
    part.notes += [
        f"false: {s['command']}, seed {s['seed']}: {s['effect']['verdict']}, {_change(s['effect']['change'])} "
        f"[{', '.join(map(_change, s['effect']['interval']))}] after {s['plan']['pairs']} round pairs"
        for s in _false(part.samples)
    ]
    if settling := sum("did not settle" in text for s in part.samples for text in s["warnings"]):
        part.notes.append(f"in {settling} of them something else was writing to the disk")


def _share(successes, trials):
    low, high = estimate.binomial_interval(successes, trials)
    return f"{successes} of {trials}, {successes / trials:.1%} [{low:.1%}, {high:.1%}]"


def _is_false(sample):
    return sample["effect"]["verdict"] in ("faster", "slower")


def _false(samples):
    return [sample for sample in samples if _is_false(sample)]


def _covers(found):
    if not found["interval"]:
        return True  # unbounded
    return found["interval"][0] <= 0 <= found["interval"][1]


def verdict_time(bench):
    """An effect of a known size: which tool reports it, and when."""
    repeats, milliseconds = bench.times(5, 1), 30 if bench.quick else 100

    def measure(part, seed):
        hyperfine = shutil.which("hyperfine")
        if not hyperfine:
            raise process.Skipped("no hyperfine: apt-get install hyperfine")
        command = burn_for(bench, milliseconds)
        chance = random.Random(f"{seed} {part.name}")
        for repeat in range(repeats):
            # Without an effect it goes on for minutes: twice shows it.
            sizes = [more for more in EFFECTS if more or repeat < 2]
            tasks = [(more, tool) for more in sizes for tool in (_by_refit, _by_hyperfine)]
            for more, tool in chance.sample(tasks, len(tasks)):
                _progress(part, len(part.samples), repeats * len(EFFECTS) * 2)
                answer = tool(bench, command, more, seed + repeat, hyperfine)
                part.samples.append({"round": repeat, "more": more, **answer})
        _progress(part, None, 0)
        _tell_times(part)
        if not bench.quick:  # the same command as then
            _tell_goals(part)
        part.notes += [
            f"the command: `{' '.join(command)}`, about {milliseconds} ms; MORE=2 in its environment makes its loop"
            " 2 % longer",
            "refit: `refit compare env.MORE=N -- COMMAND`, all else by default (3 min, δ = 1 %, three variants, since"
            " the baseline runs twice)",
            "hyperfine: `hyperfine -N 'env MORE=0 COMMAND' 'env MORE=N COMMAND'`, all else by default (3 s or 10 runs"
            " of each); its summary always names a faster one; its ± is a standard deviation of single runs, so it"
            " does not shrink with their number; it has no word for `same`",
        ]

    return Part("verdict-time", "The time to an answer, for an effect of known size", measure)


def _by_refit(bench, command, more, seed, _):
    options = ("--budget", "10s") if bench.quick else ()
    seconds, record = compared(bench, command, f"env.MORE={more}", seed, *options)
    measuring_s = sum(run["metrics"]["wall_ns"] for run in record["runs"]) / 1e9
    return {"tool": "refit compare", "seconds": seconds, "busy_share": measuring_s / seconds, **kept(record)}


def _by_hyperfine(bench, command, more, _seed, hyperfine):
    """Both means, and the ratio with the ± that its summary prints (src/benchmark/relative_speed.rs)."""
    result = os.path.join(bench.memory, "hyperfine.json")
    env_command = shutil.which("env")
    commands = [" ".join([env_command, f"MORE={n}", *command]) for n in (0, more)]
    words = [hyperfine, "-N", "--style", "none", "--export-json", result, *commands]
    seconds = timed_output(words, bench.env, bench.disk)
    with open(result, encoding="utf-8") as file:
        results = json.load(file)["results"]
    base, other = ({key: r[key] for key in ("mean", "stddev", "times")} for r in results)
    slow, fast = (other, base) if other["mean"] > base["mean"] else (base, other)
    ratio = slow["mean"] / fast["mean"]
    sigma = ratio * ((slow["stddev"] / slow["mean"]) ** 2 + (fast["stddev"] / fast["mean"]) ** 2) ** 0.5
    return {"tool": "hyperfine", "seconds": seconds, "slower": slow is other, "ratio": ratio, "sigma": sigma,
            "results": [base, other]}


def _tell_times(part):
    rows = []
    for more in EFFECTS:
        for tool, answers in (("refit compare", _refit_answers), ("hyperfine", _hyperfine_answers)):
            samples = [s for s in part.samples if s["more"] == more and s["tool"] == tool]
            rows.append([f"+{more} %" if more else "none", tool, _seconds([s["seconds"] for s in samples]),
                         *answers(samples)])
    head = ["true effect", "tool", "time, median (range)", "answers", "the first of them"]
    part.lines = _grid(head, *rows)
    busy = estimate.median([s["busy_share"] for s in part.samples if s["tool"] == "refit compare"])
    part.notes.append(f"the runs themselves are {busy:.1%} of a comparison's time (median); the rest are refit's start, "
                      "what comes between two runs, and the report")


def _tell_goals(part):
    by_refit = [s for s in part.samples if s["tool"] == "refit compare"]
    for more, earlier in EARLIER_S.items():
        now = [s["seconds"] for s in by_refit if s["more"] == more]
        ratio = estimate.median(now) / estimate.median(earlier)
        part.notes.append(f"goal, half the time of {EARLIER}, +{more} %: {_seconds(now)}, then {_seconds(earlier)}, "
                          f"÷ {ratio:.2f}: **{_halved(now, earlier)}** (not side by side)")


def _halved(now, earlier):
    """By the ranges: there are few repeats."""
    if max(now) <= 0.5 * min(earlier):
        return "met"
    return "missed" if min(now) > 0.5 * max(earlier) else "undecided"


def _refit_answers(samples):
    words = [sample["effect"]["verdict"] for sample in samples]
    first = samples[0]["effect"]
    interval = ", ".join(map(_change, first["interval"])) if first["interval"] else "no interval"
    counted = ", ".join(f"{word} {words.count(word)} of {len(words)}" for word in sorted(set(words)))
    return counted, f"{_change(first['change'])} [{interval}] {first['verdict']}"


def _hyperfine_answers(samples):
    slower = sum(sample["slower"] for sample in samples)
    apart = sum(sample["ratio"] - sample["sigma"] > 1 for sample in samples)
    first = samples[0]
    ran = "MORE=0 ran" if first["slower"] else "MORE=N ran"
    return (f"MORE=0 named faster {slower} of {len(samples)}; its ± leaves out 1.00 in {apart} of {len(samples)}",
            f"{ran} {first['ratio']:.2f} ± {first['sigma']:.2f} times faster")


def harness(bench):
    """What goes by between two runs."""
    true = shutil.which("true")
    refit, gap, again = "refit compare", "… the median gap between its runs", "refit compare again (noise)"
    pairs = 10 if bench.quick else 30
    runs = 6 * (pairs + 1)  # three variants, twice in a pair; one pair is warm-up

    def by_refit(row):
        def run(_):
            # No interval gets that narrow: it goes on to the last planned round.
            options = ("--rounds", str(2 * pairs), "--precision", "0.0001%", "--budget", "5m")
            seconds, record = compared(bench, [true], f"env.{EQUAL}=1", 1, *options)
            made = record["runs"]
            if len(made) != runs:
                raise process.Failed(f"{len(made)} runs, not {runs}")
            walls = [one["metrics"]["wall_ns"] / 1e9 for one in made]
            gaps = [1e3 * (b["at_s"] - a["at_s"] - wall) for a, b, wall in zip(made, made[1:], walls)]
            values = {row: 1e3 * (seconds - sum(walls)) / runs}
            if row == refit:
                values[gap] = estimate.median(gaps)
            return values, {"seconds": seconds, "runs": runs, "longest gap": max(gaps)}

        return Variant(row, run)

    def by_hyperfine(_):
        hyperfine = shutil.which("hyperfine")
        if not hyperfine:
            raise process.Skipped("no hyperfine: apt-get install hyperfine")
        result = os.path.join(bench.memory, "harness.json")
        words = [hyperfine, "-N", "--style", "none", "--runs", str(runs), "--export-json", result, true]
        seconds = timed_output(words, bench.env, bench.disk)
        with open(result, encoding="utf-8") as file:
            times = json.load(file)["results"][0]["times"]
        return {"hyperfine -N": 1e3 * (seconds - sum(times)) / runs}, {"seconds": seconds, "runs": runs}

    return Comparison(
        "harness", "Time between runs: a whole comparison of `true`, minus its runs, for each run", "ms",
        [refit, again, gap, "hyperfine -N"],
        [by_refit(refit), by_refit(again), Variant("hyperfine -N", by_hyperfine)],
        [Column("over hyperfine", "hyperfine -N", "over")], [], bench.rounds(12, 2),
        [f"{runs} runs in each; refit's start, the write-back of dirty pages before each run (settle), its report and "
         "its files are in it, in the median gap only what comes between two runs"],
    )


VERDICTS = {"calibration": calibration, "aa": equal_variants, "verdict-time": verdict_time, "harness": harness}
# In seconds, where the plan says more than the last time. A comparison ends soon after its budget, or long before.
EXPECTED_S = {"aa": EQUAL_COUNT * EQUAL_BUDGET_S * 1.05}
