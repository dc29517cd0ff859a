"""What was measured on, and what was measured: a flat table of names and texts."""

import glob
import hashlib
import os
import platform
import re
import resource
import subprocess
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VERSIONS = {
    "eatmydata": ["dpkg-query", "-W", "-f", "${Version}", "eatmydata"],
    "sqlite3": ["sqlite3", "--version"],
    "git": ["git", "--version"],
    "dpkg": ["dpkg", "--version"],
    "PostgreSQL": ["@initdb", "--version"],
    "MariaDB": ["mariadbd", "--version"],
    "hyperfine": ["hyperfine", "--version"],
    "strace": ["strace", "--version"],
    "gcc": ["gcc", "--version"],
    "glibc": ["ldd", "--version"],
}


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def output(words):
    """The first line of a command's output, or nothing."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=REPOSITORY)
    except OSError:
        return ""
    return done.stdout.strip().split("\n")[0] if done.returncode == 0 else ""


def initdb():
    """The newest installed initdb, or nothing."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    return max(found, key=lambda path: int(path.split("/")[4].split(".")[0]), default="")


def commit():
    """The last commit that changed anything but what this program writes, so that storing results does not make them
    old; and whether what is on disk is that commit."""
    but_results = ["--", ".", ":!bench/RESULTS.md", ":!bench/results"]
    head = output(["git", "log", "-1", "--format=%H", *but_results]) or "unknown"
    return head + (" with uncommitted changes" if output(["git", "status", "--porcelain", *but_results]) else "")


def mount(path):
    options = output(["findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", path])
    return re.sub(r"\s+", " ", options) or "unknown"


def block_device(path):
    device = os.stat(path).st_dev
    place = os.path.realpath(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    for queue in (f"{place}/queue", f"{os.path.dirname(place)}/queue"):
        scheduler = re.search(r"\[(.+)\]", read(f"{queue}/scheduler"))
        if scheduler:
            cache = read(f"{queue}/write_cache").strip() or "unknown cache"
            return f"{os.path.basename(os.path.dirname(queue))}, {scheduler[1]}, {cache}"
    return "unknown"


def processor():
    for name in ("model name", "Hardware"):
        found = re.search(rf"^{name}\s*:\s*(.+)$", read("/proc/cpuinfo"), re.MULTILINE)
        if found:
            return found[1]
    return platform.machine()


def load():
    return read("/proc/loadavg").strip()


class Busy:
    """How much of the processors others use, from now on. The load average would count what is measured."""

    def __init__(self):
        self.before = self._now()
        self.average = load()
        # Of earlier sittings of the same part: their length, and what others used in it, in seconds.
        self.earlier = [0.0, 0.0, 0.0]

    @staticmethod
    def _now():
        """In seconds: the time; the processors' time in use, without and of what the hypervisor gave to other machines;
        the own processor time, of all that was started and waited for besides."""
        # proc(5): user nice system idle iowait irq softirq steal, in USER_HZ.
        ticks = [int(word) / os.sysconf("SC_CLK_TCK") for word in read("/proc/stat").split("\n")[0].split()[1:9]]
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        used = sum(ticks[:3]) + sum(ticks[5:7])
        return time.monotonic(), used, ticks[7], sum(usage.ru_utime + usage.ru_stime for usage in own)

    def so_far(self):
        """The seconds that it measured, and those of processors that others used, and that were stolen."""
        span, used, stolen, own = (now - before for now, before in zip(self._now(), self.before))
        here = [span, max(0.0, used - own), stolen]
        return [now + before for now, before in zip(here, self.earlier)]

    def shares(self):
        """For a part's record: the load averages, and the shares of all processors."""
        span, others, stolen = self.so_far()
        capacity = span * os.cpu_count()
        return {"before": self.average, "after": load(), "others": others / capacity, "stolen": stolen / capacity}


def fingerprint(disk, memory, refit):
    """What stays the same from part to part."""
    with open(refit, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    ram = re.search(r"MemTotal:\s+(\d+)", read("/proc/meminfo"))
    hypervisor = output(["systemd-detect-virt", "--vm"])
    table = {
        "refit": f"{output([refit, '--version'])}, sha256 {digest[:16]}",
        "CPU": processor() + (f" (virtual machine: {hypervisor})" if hypervisor else ""),
        "cores": str(os.cpu_count()),
        "memory": f"{int(ram[1]) / 2**20:.1f} GiB" if ram else "unknown",
        "kernel": f"{platform.release()} {platform.version()}",
        "Debian": read("/etc/debian_version").strip() or "not Debian",
        "disk": f"{disk}: {mount(disk)}; device {block_device(disk)}",
        "tmpfs": f"{memory}: {mount(memory)}",
        "user": "root" if os.geteuid() == 0 else "not root",
    }
    for name, words in VERSIONS.items():
        table[name] = output([initdb() if word == "@initdb" else word for word in words]) or "not there"
    return table
