"""What a suppressed call costs by each backend and its rivals, and what a filter costs everybody else."""

import os
import shutil

import process
import tried
from comparison import Column, Comparison, Goal, Variant
from micro import CHUNKS, SOURCES, compiled, eatmydata_library, loop_ns

AGAIN = " again (noise)"
BARE_NOTIFICATION = "a notification that nothing decides (static program)"


def as_root():
    if os.geteuid() != 0:
        raise process.Skipped("seccomp without no_new_privs needs root")


def static_loop(bench):
    program = os.path.join(bench.disk, "fsync_loop-static")
    if not os.path.exists(program):
        process.output(["gcc", "-std=gnu11", "-O2", "-static", f"{SOURCES}/fsync_loop.c", "-o", program])
    return program


def nspawn(bench):
    """The words before a static program, in a root of its own that has nothing but the bench's directories; or why
    not."""
    command = shutil.which("systemd-nspawn")
    if not command:
        return [], "it is not installed (systemd-container)"
    root = os.path.join(bench.disk, "nspawn")
    os.makedirs(f"{root}/usr/lib", exist_ok=True)  # it wants to see an operating system's release there
    shutil.copy("/usr/lib/os-release", f"{root}/usr/lib/os-release")
    # No machined and no unit: nothing of the machine's own systemd, if there is one, is asked.
    words = [command, "--quiet", "--register=no", "--keep-unit", "--as-pid2", "--pipe", f"--directory={root}",
             "--suppress-sync=yes", f"--bind={bench.disk}", f"--bind={bench.memory}", "--"]
    try:
        process.output([*words, static_loop(bench), os.path.join(bench.disk, "suppressed"), "1", "1", "0"], limit_s=60)
    except (OSError, process.Failed) as error:
        return [], f"it cannot run here: {str(error).strip().splitlines()[-1]}"
    return words, ""


def calls(bench):
    """What a suppressed fsync costs by each way to suppress it."""
    as_root()
    dynamic, static = compiled(bench, "fsync_loop"), static_loop(bench)
    file, report = os.path.join(bench.disk, "suppressed"), os.path.join(bench.memory, "calls.json")
    count = 500 if bench.quick else 4000
    preload = dict(bench.env, LD_PRELOAD=eatmydata_library())
    strace = [shutil.which("strace"), "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync", "-e", "inject=fsync:retval=0"]
    ways = {
        "eatmydata": ([], preload, dynamic, count),
        "eatmydata" + AGAIN: ([], preload, dynamic, count),
        "refit preload": (bench.run(report, "--backend", "preload", "sync=off"), bench.env, dynamic, count),
        "refit ERRNO (static program)": (bench.run(report, "sync=off"), bench.env, static, count),
        BARE_NOTIFICATION: ([compiled(bench, "bare_notification")], bench.env, static, count),
        "refit notification (static program)":
            (bench.run(report, "--backend", "seccomp", "sync=off"), bench.env, static, count),
        "strace --inject (static program)": ([*strace, "--"], bench.env, static, count // 10),
    }
    notes = [f"{CHUNKS} chunks of {count} calls; strace a tenth of it"]
    contained, reason = nspawn(bench)
    if contained:
        ways["systemd-nspawn --suppress-sync (static program)"] = (contained, bench.env, static, count)
    else:
        notes.append(f"no row of systemd-nspawn --suppress-sync: {reason}")

    def one(name, prefix, env, loop, times):
        def run(round_name):
            words = [*prefix, loop, file, str(CHUNKS), str(times), "0"]
            ns, _ = loop_ns(bench, words, env, f"calls-{round_name}")
            return {name: ns}, {}

        return Variant(name, run)

    return Comparison(
        "calls", "A suppressed fsync, by each way to suppress it (median chunk)", "ns", list(ways),
        [one(name, *way) for name, way in ways.items()],
        [Column("÷ eatmydata", "eatmydata"), Column("÷ a bare notification", BARE_NOTIFICATION)],
        [Goal("refit notification (static program)", 1, "at most 1.3 × a bare notification", at_most=1.3,
              tried=tried.NOTIFICATION)],
        bench.rounds(20, 4), notes,
    )


FILTERS = {
    "bare": None,
    "bare" + AGAIN: None,
    "refit preload": ("--backend", "preload", "sync=off"),
    "refit ERRNO filter": ("sync=off",),
    "refit notification filter": ("sync@exe:nobody-is-called-so=off",),
}


def filtered(bench, settings):
    return bench.quiet(*settings) if settings else []


def unfiltered(bench):
    """What a filter costs a call that it does not ask about."""
    as_root()
    loop = compiled(bench, "call_loop")
    count = 20_000 if bench.quick else 100_000

    def one(name, settings):
        def run(round_name):
            (ns,) = loop_ns(bench, [*filtered(bench, settings), loop, str(CHUNKS), str(count)], bench.env,
                            f"unfiltered-{round_name}")
            return {name: ns}, {}

        return Variant(name, run)

    return Comparison(
        "unfiltered", f"getppid, which no filter asks about ({CHUNKS} × {count} calls, median chunk)", "ns",
        list(FILTERS), [one(*way) for way in FILTERS.items()],
        [Column("over bare", "bare", "over"), Column("÷ bare", "bare")],
        [Goal("refit preload", 1, "not slower than bare beyond noise", noise_row="bare" + AGAIN)], bench.rounds(40, 4),
    )


def repository(bench):
    """Some thousand small files in git, and the same as an archive."""
    place = os.path.join(bench.disk, "repository")
    if not os.path.exists(place):
        files = 1000 if bench.quick else 8000
        for i in range(files):
            directory = f"{place}/{i % 40}"
            os.makedirs(directory, exist_ok=True)
            with open(f"{directory}/{i}", "w", encoding="ascii") as file:
                file.write(f"file {i}\n" * 20)
        env = process.environment(bench.disk, GIT_CONFIG_NOSYSTEM="1")
        for words in (["init", "-q"], ["add", "."],
                      ["-c", "user.name=b", "-c", "user.email=b@example.test", "commit", "-q", "-m", "files"]):
            process.output(["git", "-C", place, *words], env=env)
    return place


def of_files(name, title, words):
    """A program that makes many calls of files and no sync."""

    def part(bench):
        as_root()
        place = repository(bench)

        def one(variant, settings):
            def run(_):
                command = [*filtered(bench, settings), *words(place)]
                return {variant: process.timed(command, bench.env, "/dev/null") / 1e6}, {}

            return Variant(variant, run)

        return Comparison(
            name, title, "ms", list(FILTERS), [one(*way) for way in FILTERS.items()],
            [Column("÷ bare", "bare")], [], bench.rounds(40, 4),
        )

    return part


git_status = of_files("git-status", "git status of 8000 files", lambda place: [
    shutil.which("git"), "-C", place, "-c", "core.fsmonitor=false", "status", "--porcelain"])
tar = of_files("tar", "tar of 8000 files into nothing", lambda place: [
    shutil.which("tar"), "-C", place, "-c", "-f", "/dev/null", "--exclude=.git", "--totals", "."])


def go(bench):
    """A Go program that syncs each line: nothing but a filter reaches it."""
    as_root()
    program, report = os.path.join(bench.disk, "fsync_go"), os.path.join(bench.memory, "go.json")
    if not shutil.which("go"):
        raise process.Skipped("go is not installed")
    if not os.path.exists(program):
        env = process.environment(bench.disk, CGO_ENABLED="0", GOTOOLCHAIN="local", GO111MODULE="off")
        process.output(["go", "build", "-o", program, f"{SOURCES}/fsync_go/main.go"], env=env, limit_s=300)
    lines = 500 if bench.quick else 5000
    ways = {
        "bare": (lambda: [], bench.disk),
        "bare" + AGAIN: (lambda: [], bench.disk),
        "eatmydata": (lambda: [bench.eatmydata], bench.disk),
        "refit sync=off (ERRNO)": (lambda: bench.run(report, "sync=off"), bench.disk),
        "refit --backend seccomp (notification)":
            (lambda: bench.run(report, "--backend", "seccomp", "sync=off"), bench.disk),
        "bare on tmpfs": (lambda: [], bench.memory),
    }

    def one(name, prefix, root):
        def run(round_name):
            file = os.path.join(root, f"go-{round_name}")
            ns = process.timed([*prefix(), program, file, str(lines)], bench.env, "/dev/null")
            written = os.path.getsize(file)
            if written != lines * 61:
                raise process.Failed(f"{name}: {written} bytes, not {lines * 61}")
            return {name: ns / 1e6}, {}

        return Variant(name, run)

    return Comparison(
        "go", f"Go, {lines} lines, each synced", "ms", list(ways), [one(name, *way) for name, way in ways.items()],
        [Column("speed ÷ bare", "bare", "speed"), Column("speed ÷ tmpfs", "bare on tmpfs", "speed")], [],
        bench.rounds(16, 2),
    )


PARTS = {"calls": calls, "unfiltered": unfiltered, "git-status": git_status, "tar": tar, "go": go}
