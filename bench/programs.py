"""Whole programs, each in fresh files: SQLite, git, initdb, dpkg. The variants are the same for all."""

import glob
import os
import shutil

import machine
import process
import subjects
import tried
from comparison import Column, Comparison, Goal, Variant

BARE, PEER, AGAIN, REFIT, LIMIT = "bare", "eatmydata", "eatmydata again (noise)", "refit sync=off", "bare on tmpfs"
NOBODY = "65534"


class Program:
    """What is measured of a program: everything between `prepare` and `check`."""

    name = title = ""
    rounds, quick_rounds = 12, 2
    bytes_per_run = 2**20
    suppresses = True  # sync=off has something to suppress
    more = {}  # further rows: name -> settings
    notes = ()

    def unavailable(self, bench):
        """Why it cannot be measured here, or nothing. May prepare what all runs share."""
        return ""

    def prepare(self, place):
        """Makes what one run starts from."""

    def command(self, place):
        """The words to run, and where its stdin comes from."""
        raise NotImplementedError

    def check(self, place):
        """Raises unless the work is there."""

    def seconds(self, bench, prefix, place):
        words, stdin = self.command(place)
        log = os.path.join(place, "log")
        return process.timed([*prefix, *words], bench.env, log, stdin=stdin) / 1e9


def one_run(bench, program, name, prefix, root, round_name):
    place = os.path.join(root, program.name, round_name)
    os.makedirs(place)
    program.prepare(place)
    process.settle()
    report = os.path.join(place, "report.json")
    seconds = program.seconds(bench, prefix(report), place)
    program.check(place)
    facts = {}
    if os.path.exists(report):
        facts = subjects.totals(report)
        if program.suppresses and not facts["suppressed"]:
            raise process.Failed(f"{program.name}: {name} suppressed nothing: {facts}")
    return {name: seconds}, facts


def comparison(bench, program):
    disk, memory = bench.disk, bench.memory
    ways = {
        BARE: (lambda _: [], disk),
        PEER: (lambda _: [bench.eatmydata], disk),
        AGAIN: (lambda _: [bench.eatmydata], disk),
        REFIT: (lambda report: bench.run(report, "sync=off"), disk),
    }
    for name, settings in program.more.items():
        ways[name] = (lambda report, settings=settings: bench.run(report, *settings), disk)
    ways[LIMIT] = (lambda _: [], memory)
    rounds = bench.rounds(program.rounds, program.quick_rounds)
    on_disk = len(ways) - 1
    for directory, runs in ((disk, on_disk * (rounds + 1)), (memory, rounds + 1)):
        need = runs * program.bytes_per_run * 5 // 4
        if not bench.has_room(directory, need):
            free = shutil.disk_usage(directory).free
            raise process.Skipped(f"{program.name}: needs twice {need >> 20} MiB in {directory}, {free >> 20} are free")
    bench.left.append(os.path.join(disk, program.name))

    def one(name, prefix, root):
        return Variant(name, lambda round_name: one_run(bench, program, name, prefix, root, round_name))

    return Comparison(
        program.name, program.title, "s", list(ways), [one(name, *way) for name, way in ways.items()],
        [Column("time ÷ eatmydata", PEER), Column("speed ÷ bare", BARE, "speed"),
         Column("speed ÷ tmpfs", LIMIT, "speed")],
        program_goals(program), rounds, list(program.notes),
    )


def program_goals(program):
    goals = [Goal(REFIT, 0, "not slower than eatmydata beyond noise", noise_row=AGAIN, tried=tried.PROGRAM)]
    goals += [Goal(name, 2, "at least 0.9 × the speed of tmpfs", at_least=0.9) for name in program.more]
    return goals


class Sqlite(Program):
    inserts = 2000

    def __init__(self, name, title, pragmas, rounds):
        self.name, self.title, self.pragmas, self.rounds = name, title, pragmas, rounds

    def prepare(self, place):
        rows = "".join(f"INSERT INTO t(v) VALUES('row {i} of some sixty bytes, as in a small log or queue');\n"
                       for i in range(self.inserts))
        with open(os.path.join(place, "sql"), "w", encoding="ascii") as file:
            file.write(f"{self.pragmas}CREATE TABLE t(id INTEGER PRIMARY KEY, v TEXT);\n{rows}")

    def command(self, place):
        return [shutil.which("sqlite3"), "-batch", f"{place}/db"], f"{place}/sql"

    def check(self, place):
        rows = process.output(["sqlite3", f"{place}/db", "SELECT count(*) FROM t"]).strip()
        if rows != str(self.inserts):
            raise process.Failed(f"{self.name}: {rows} rows, not {self.inserts}")


class Git(Program):
    commits = 200
    rounds = 24

    def __init__(self, name, title, config, suppresses):
        self.name, self.title, self.config, self.suppresses = name, title, config, suppresses

    def _git(self, place, *words):
        return process.output(["git", "-C", f"{place}/repository", *words], env=self._env(place))

    @staticmethod
    def _env(place):
        return process.environment(place, GIT_CONFIG_NOSYSTEM="1")

    def prepare(self, place):
        process.output(["git", "init", "-q", f"{place}/repository"], env=self._env(place))
        for name, value in {"user.name": "b", "user.email": "b@example.test", "gc.auto": "0", **self.config}.items():
            self._git(place, "config", name, value)
        with open(f"{place}/commits.sh", "w", encoding="ascii") as file:
            file.write(
                f"cd {place}/repository && : >f && git add f || exit\n"
                f"i=0; while [ $i -lt {self.commits} ]; do i=$((i+1)); echo $i >>f\n"
                "git commit -q -a -m $i || exit; done\n"
            )

    def command(self, place):
        return ["/bin/sh", f"{place}/commits.sh"], "/dev/null"

    def check(self, place):
        count = self._git(place, "rev-list", "--count", "HEAD").strip()
        if count != str(self.commits):
            raise process.Failed(f"{self.name}: {count} commits, not {self.commits}")


class Initdb(Program):
    name, title = "initdb", "PostgreSQL initdb"
    rounds = 24
    bytes_per_run = 48 * 2**20

    def unavailable(self, bench):
        return "" if machine.initdb() else "no initdb below /usr/lib/postgresql"

    def prepare(self, place):
        if os.geteuid() == 0:
            os.chown(place, int(NOBODY), int(NOBODY))

    def command(self, place):
        other = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
        drop = [shutil.which("setpriv"), *other] if os.geteuid() == 0 else []
        settings = ["--username=b", "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-instructions"]
        return [*drop, machine.initdb(), *settings, "-D", f"{place}/data"], "/dev/null"

    def check(self, place):
        control = f"{os.path.dirname(machine.initdb())}/pg_controldata"
        if "shut down" not in process.output([control, "-D", f"{place}/data"], env={"LC_ALL": "C"}):
            raise process.Failed("initdb: not a cluster that was shut down")


class Dpkg(Program):
    name, title = "dpkg", "dpkg --unpack of libboost1.74-dev and manpages-dev, fresh root"
    packages = ("libboost1.74-dev", "manpages-dev")
    rounds = 14
    bytes_per_run = 180 * 2**20
    files = 10_000

    def unavailable(self, bench):
        if os.geteuid() != 0:
            return "unpacking with owners needs root"
        os.makedirs(bench.cache, exist_ok=True)
        if not self._cached(bench):
            words = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *self.packages]
            try:
                process.output(words, limit_s=300, cwd=bench.cache)
            except (OSError, process.Failed) as error:
                return str(error)
        self.archives = self._cached(bench)
        return "" if self.archives else "the packages are not there"

    def _cached(self, bench):
        found = [sorted(glob.glob(f"{bench.cache}/{name}_*.deb")) for name in self.packages]
        return [archives[-1] for archives in found] if all(found) else []

    def prepare(self, place):
        for directory in ("info", "updates"):
            os.makedirs(f"{place}/root/var/lib/dpkg/{directory}")
        for file in ("status", "available"):
            open(f"{place}/root/var/lib/dpkg/{file}", "w", encoding="ascii").close()

    def command(self, place):
        options = [f"--root={place}/root", "--log=/dev/null", "--force-depends"]
        return [shutil.which("dpkg"), *options, "--unpack", *self.archives], "/dev/null"

    def check(self, place):
        files = sum(len(names) for _, _, names in os.walk(f"{place}/root/usr"))
        if files < self.files:
            raise process.Failed(f"dpkg: {files} files, fewer than {self.files}")
        words = ["dpkg-query", f"--admindir={place}/root/var/lib/dpkg", "-W", "-f", "${db:Status-Status}\n"]
        if process.output(words).split() != ["unpacked"] * len(self.packages):
            raise process.Failed("dpkg: not every package is unpacked")


PROGRAMS = [
    Sqlite("sqlite", "SQLite, 2000 one-row INSERTs, rollback journal", "", 12),
    Sqlite("sqlite-wal", "SQLite, the same, WAL and synchronous=FULL",
           "PRAGMA journal_mode=WAL;\nPRAGMA synchronous=FULL;\n", 24),
    Git("git", "200 git commits, core.fsync=all, core.fsyncMethod=fsync",
        {"core.fsync": "all", "core.fsyncMethod": "fsync"}, True),
    Git("git-default", "200 git commits, git's own defaults", {}, False),
    Initdb(),
    Dpkg(),
]
