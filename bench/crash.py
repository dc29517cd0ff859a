"""What recording a disk costs, and how fast the crash lab looks at states."""

import json
import os
import shutil

import process
import tried
from backends import as_root
from comparison import Column, Comparison, Goal, Variant
from micro import compiled
from part import Part

PLAIN = """
set -e
truncate -s 1G "$1"
mount=$2 device=$(losetup --find --show --direct-io=on "$1")
trap 'umount "$mount" || true; losetup -d "$device"' EXIT
mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$device"
mount -o noatime "$device" "$mount"
shift 2
"$@"
"""


def plain(bench, root, name, words):
    """The loop on ext4 on a loop device over a file in `root`, in a mount namespace of its own."""
    image, mount = os.path.join(root, f"{name}.image"), os.path.join(bench.memory, f"{name}.mount")
    os.makedirs(mount)
    try:
        process.output(["unshare", "--mount", "--propagation", "private", "sh", "-c", PLAIN, "sh", image, mount,
                        *words(mount)], env=bench.env, limit_s=120)
    finally:
        os.unlink(image)
        os.rmdir(mount)


def recorded(bench, name, words):
    """The loop on the recorded disk. Any check finds its one acknowledgement: the verdict is not the question."""
    loop = " ".join(words("$REFIT_MOUNT"))
    report = os.path.join(bench.memory, f"{name}.json")
    records = os.path.join(bench.disk, f"{name}.records")
    try:
        process.output([bench.refit, "crash", "--quiet", "--json", report, "--record", records, "--cuts", "10",
                        "--check", "test -s $REFIT_MOUNT/f && echo done; true", "--ack", "fd:1", "--", "sh", "-c", loop],
                       env=bench.env, limit_s=120, codes=(0, 1, 2))
    finally:
        shutil.rmtree(records, ignore_errors=True)


def slowdown(name, title, count, size, every, goal):
    def part(bench):
        as_root()
        loop = compiled(bench, "append_loop")
        times = max(1, count // 8) if bench.quick else count

        def one(variant, run_one):
            def run(round_name):
                out = os.path.join(bench.memory, f"{name}-{round_name}.ns")

                def words(mount):
                    return [loop, f"{mount}/f", str(times), str(size), str(every), out]

                run_one(f"{name}-{round_name}", words)
                with open(out, encoding="ascii") as file:
                    ns = int(file.read())
                os.unlink(out)
                return {variant: ns / times}, {}

            return Variant(variant, run)

        ways = {
            "loop on tmpfs": lambda at, words: plain(bench, bench.memory, at, words),
            "loop on tmpfs again (noise)": lambda at, words: plain(bench, bench.memory, at, words),
            "loop on this disk": lambda at, words: plain(bench, bench.disk, at, words),
            "recorded": lambda at, words: recorded(bench, at, words),
        }
        return Comparison(
            name, title, "ns", list(ways), [one(*way) for way in ways.items()],
            [Column("÷ tmpfs", "loop on tmpfs"), Column("÷ disk", "loop on this disk")],
            [Goal("recorded", 0, f"recording ≤ {goal} × a loop device on tmpfs", at_most=goal, tried=tried.RECORDING)],
            bench.rounds(12, 2),
        )

    return part


# States a minute that are wished for: recipe, settings of its baseline.
RECIPES = {("append-log", None): 2000, ("sqlite-insert", "conf.journal=wal"): 2000, ("postfix-cleanup", None): 300,
           ("postgres-pgbench", None): 60}


def baseline(bench, recipe, settings, cuts, seed):
    """The baseline of a recipe, cut."""
    place = os.path.join(bench.disk, f"states-{recipe}")
    records, report = (os.path.join(place, part) for part in ("records", "report.json"))
    os.makedirs(place)
    words = [bench.refit, "crash", "--quiet", "--cuts", str(cuts), "--seed", str(seed), "--record", records, "--json", report]
    if settings:
        words += ["--with", settings]
    # Without a variant all of the recipe's would be cut as well.
    process.output([*words, recipe, "tz=UTC"], env=bench.env, limit_s=900, codes=(0, 1))
    with open(report, encoding="utf-8") as file:
        found = json.load(file)
    shutil.rmtree(place)
    return next(mode for mode in found["modes"] if mode["role"] == "baseline")


def states(bench):
    """States per minute of recipes with a promise."""
    as_root()
    def measure(part, seed):
        for (recipe, settings), goal in RECIPES.items():
            name = f"{recipe} {settings}" if settings else recipe
            mode = baseline(bench, recipe, settings, 60 if bench.quick else 400, seed)
            seconds, record, count = mode["checked_ns"] / 1e9, mode["record"], len(mode["states"])
            acknowledged = len(record["acknowledged_ns"])
            part.lines.append(
                f"{name}: {count / seconds * 60:,.0f} states a minute (goal: {goal:,}); "
                f"{record['stored_bytes'] / acknowledged:,.0f} bytes of record for each of {acknowledged:,} acknowledgements")
            part.samples.append({"recipe": name, "states": count, "seconds": seconds,
                                 "stored_bytes": record["stored_bytes"], "acknowledged": acknowledged})

    return Part("crash-states", "Crash states a minute, mounted and checked", measure)


PARTS = {
    "crash-fsync": slowdown("crash-fsync", "4 KiB written and synced, in ns", 1000, 4096, 1, 2.0),
    "crash-bulk": slowdown("crash-bulk", "1 MiB written, in ns", 256, 1 << 20, 1 << 30, 1.3),
    "crash-states": states,
}
