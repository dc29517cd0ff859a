"""Places to work in, programs to start, and a machine that has come to rest between two runs.

Everything lies in one fresh directory on disk and one in memory; both go at the end, also after
Ctrl-C. What was started is known by its pid and ends before its files do.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

DISK, MEMORY = "/var/tmp", "/dev/shm"
RUN_LIMIT_S = 600
SETTLE_CAP_S = 5.0
SETTLED_KB = 4096
DISCARDS_CAP_S = 180
DISCARDS_OVER_S = 5  # without a new one

_alive = set()  # process groups that this program started and has not waited for


class Failed(Exception):
    """A run that did not do its work: its time means nothing."""


class Skipped(Failed):
    """Something that this machine or this user cannot do at all."""


class Scratch:
    """The two directories of one bench run."""

    def __enter__(self):
        self.disk = tempfile.mkdtemp(prefix="refit-bench-", dir=DISK)
        self.memory = tempfile.mkdtemp(prefix="refit-bench-", dir=MEMORY)
        for directory in (self.disk, self.memory):
            os.chmod(directory, 0o755)  # initdb runs as another user
        return self

    def __exit__(self, *_):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # once asked to end is enough
        for group in list(_alive):
            kill(group)
        with contextlib.suppress(OSError):  # a closed stderr keeps nothing from being removed
            print("bench: removing its files", file=sys.stderr)
        words = ["rm", "-rf", "--", self.disk, self.memory]
        subprocess.run(words, check=False, start_new_session=True)


def environment(home, **more):
    keep = {name: os.environ[name] for name in ("PATH", "XDG_RUNTIME_DIR") if name in os.environ}
    return {**keep, "HOME": home, "LC_ALL": "C.UTF-8", **more}


def start(words, env, log="/dev/null", stdin="/dev/null", stdout=None):
    """Starts a program, by its absolute path, in a process group of its own."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, stdout or log, flags, 0o644),
        (os.POSIX_SPAWN_OPEN, 2, log, flags, 0o644),
    ]
    pid = os.posix_spawn(words[0], words, env, file_actions=actions, setpgroup=0)
    _alive.add(pid)
    return pid


def wait(pid):
    """Its exit code; minus the signal that killed it."""
    info = os.waitid(os.P_PID, pid, os.WEXITED)
    _alive.discard(pid)
    return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status


def wait_limited(pid, limit_s=RUN_LIMIT_S):
    def late(*_):
        raise Failed(f"pid {pid} still ran after {limit_s} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(limit_s)
    try:
        return wait(pid)
    except Failed:
        kill(pid)
        raise
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def kill(group):
    """Ends what `start` started and was not waited for."""
    try:
        os.killpg(group, signal.SIGKILL)
        wait(group)
    except (ProcessLookupError, ChildProcessError):
        _alive.discard(group)


@contextlib.contextmanager
def running(words, env):
    """A program that runs until it is not needed any more."""
    pid = start(words, env)
    try:
        yield
    finally:
        kill(pid)


def timed(words, env, log, **places):
    """Nanoseconds from before the start of a program that must succeed until its end."""
    began = time.perf_counter_ns()
    pid = start(words, env, log, **places)
    code = wait_limited(pid)
    ended = time.perf_counter_ns()
    if code != 0:
        with open(log, encoding="utf-8", errors="replace") as file:
            last = file.read()[-600:]
        raise Failed(f"{' '.join(words)}: exit code {code}\n{last}")
    return ended - began


def output(words, env=None, limit_s=RUN_LIMIT_S, codes=(0,), **more):
    """The output of a command, outside of any timing; it has to end with one of the codes."""
    child = subprocess.Popen(
        words, env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, process_group=0, **more
    )
    _alive.add(child.pid)
    try:
        stdout, stderr = child.communicate(timeout=limit_s)
    except BaseException as error:
        kill(child.pid)  # with all its children
        if isinstance(error, subprocess.TimeoutExpired):
            raise Failed(str(error)) from error
        raise
    _alive.discard(child.pid)
    if child.returncode not in codes:
        raise Failed(f"{' '.join(words)}: exit code {child.returncode}\n{stderr[-600:]}")
    return stdout


def settle():
    """One sync, then waits, at most SETTLE_CAP_S, until little is left to be written."""
    os.sync()
    deadline = time.monotonic() + SETTLE_CAP_S
    while True:
        with open("/proc/meminfo", encoding="ascii") as file:
            sizes = re.findall(r"^(?:Dirty|Writeback):\s+(\d+)", file.read(), re.MULTILINE)
        if sum(map(int, sizes)) <= SETTLED_KB or time.monotonic() > deadline:
            return
        time.sleep(0.02)


def settle_discards(directory):
    """Waits, at most DISCARDS_CAP_S, until the disk beneath was told of everything that was deleted: a file system
    mounted with `discard` does so after its commits (Documentation/admin-guide/iostats.rst, field 12)."""
    os.sync()
    device = os.stat(directory).st_dev
    counts = f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat"
    deadline, since, last = time.monotonic() + DISCARDS_CAP_S, time.monotonic(), None
    while os.path.exists(counts) and time.monotonic() < min(deadline, since + DISCARDS_OVER_S):
        with open(counts, encoding="ascii") as file:
            fields = file.read().split()
        if len(fields) < 12:
            return
        if fields[11] != last:
            since, last = time.monotonic(), fields[11]
        time.sleep(0.2)
