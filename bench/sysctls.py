"""Sysctls of vm for a while. Whatever ends this process, they are put back."""

import contextlib
import pathlib
import subprocess

VM = pathlib.Path("/proc/sys/vm")

# The guard waits for the end of its input, which comes with the end of this process, and then writes the values that it
# was given. It is in a session of its own: the terminal's signals do not reach it.
GUARD = 'trap "" HUP INT TERM; cat >/dev/null; while [ $# -gt 0 ]; do echo "$2" >"$1"; shift 2; done'


@contextlib.contextmanager
def changed(wanted):
    """Sets vm.NAME for each NAME in `wanted`. The guard puts them back, also when this process is killed."""
    if not wanted:
        yield
        return
    before = [word for name in wanted for word in (VM / name, (VM / name).read_text().strip())]
    guard = subprocess.Popen(
        ["sh", "-c", GUARD, "refit-sysctls", *before], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        for name, value in wanted.items():
            (VM / name).write_text(f"{value}\n")
        yield
    finally:
        guard.stdin.close()
        guard.wait()
    for path, value in zip(before[::2], before[1::2]):
        if path.read_text().strip() != value:
            raise SystemExit(f"crash-night: {path} is not {value} again; set it: echo {value} >{path}")
