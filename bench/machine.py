"""What was measured on, and what was measured: a flat table of names and texts."""

import datetime
import glob
import hashlib
import os
import platform
import re
import subprocess

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
    """The commit, and whether what is on disk (but for what this program writes) is that commit."""
    head = output(["git", "rev-parse", "HEAD"])
    changes = ["git", "status", "--porcelain", "--", ".", ":!bench/RESULTS.md", ":!bench/results"]
    dirty = bool(output(changes))
    return head or "unknown", dirty


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


def fingerprint(disk, memory, refit):
    """All but the load, which is read before and after."""
    head, dirty = commit()
    with open(refit, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    ram = re.search(r"MemTotal:\s+(\d+)", read("/proc/meminfo"))
    hypervisor = output(["systemd-detect-virt", "--vm"])
    table = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "commit": head + (" with uncommitted changes" if dirty else ""),
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
