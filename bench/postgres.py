"""PostgreSQL: pgbench's transactions by one client and by eight, against a private server over its socket only."""

import os
import shutil
import time

import machine
import process
from programs import NOBODY, Program

SCALE, WARM_UP = 10, 200  # a branch for each client, or they wait for each other's rows
START_LIMIT_S = 60
OPTIONS = {"listen_addresses": "", "wal_level": "minimal", "max_wal_senders": "0", "min_wal_size": "32MB"}


class Pgbench(Program):
    rounds = 10
    bytes_per_run = 320 * 2**20

    def __init__(self, clients, transactions):
        self.clients, self.transactions = clients, transactions
        self.name = f"pgbench-{clients}"
        self.title = (f"PostgreSQL, {clients * transactions} pgbench transactions by "
                      f"{'one client' if clients == 1 else f'{clients} clients'}, scale {SCALE}, stock settings")
        self.notes = (f"timed: pgbench alone, after {WARM_UP} transactions of each client that are not; data directory "
                      "copied fresh; start and stop of the server are not timed",)

    def unavailable(self, bench):
        if not machine.initdb():
            return "no initdb below /usr/lib/postgresql"
        self.programs = os.path.dirname(machine.initdb())
        if not os.path.exists(self._program("pgbench")):
            return "no pgbench beside initdb"
        self.template = os.path.join(bench.disk, "pgbench-template")
        if not os.path.exists(self.template):
            self._fill(bench)
        return ""

    def _program(self, name):
        return os.path.join(self.programs, name)

    @staticmethod
    def _as_user():
        other = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
        return [shutil.which("setpriv"), *other] if os.geteuid() == 0 else []

    def _fill(self, bench):
        os.makedirs(self.template)
        if os.geteuid() == 0:
            os.chown(self.template, int(NOBODY), int(NOBODY))
        data = f"{self.template}/data"
        settings = ["--username=b", "--auth=trust", "--no-locale", "--encoding=UTF8", "--no-instructions", "--no-sync"]
        process.output([*self._as_user(), self._program("initdb"), *settings, "-D", data])
        with open(f"{data}/postgresql.conf", "a", encoding="ascii") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in OPTIONS.items())
        with self._server(bench, [], self.template):
            self._client(self.template, "pgbench", "--initialize", "--quiet", f"--scale={SCALE}", "postgres")
            self._client(self.template, "psql", "--quiet", "-c", "CHECKPOINT", "postgres")

    def _server(self, bench, prefix, place):
        words = [*prefix, *self._as_user(), self._program("postgres"), "-D", f"{place}/data", "-k", place]
        return Server(self, bench, words, place)

    def _client(self, place, name, *words):
        return process.output([self._program(name), "-h", place, "-U", "b", *words])

    def prepare(self, place):
        if os.geteuid() == 0:
            os.chown(place, int(NOBODY), int(NOBODY))
        process.output(["cp", "-a", f"{self.template}/data", f"{place}/data"])

    def seconds(self, bench, prefix, place):
        with self._server(bench, prefix, place):
            load = ["--no-vacuum", f"--client={self.clients}", "postgres"]
            self._client(place, "pgbench", f"--transactions={WARM_UP}", *load)
            words = [self._program("pgbench"), "-h", place, "-U", "b", f"--transactions={self.transactions}", *load]
            took = process.timed(words, bench.env, f"{place}/pgbench.log") / 1e9
            count = "SELECT count(*) FROM pgbench_history"
            rows = self._client(place, "psql", "--tuples-only", "--no-align", "-c", count, "postgres").strip()
            wanted = self.clients * (self.transactions + WARM_UP)
            if rows != str(wanted):
                raise process.Failed(f"{self.name}: {rows} transactions, not {wanted}")
        return took

    def check(self, place):
        control = self._program("pg_controldata")
        if "shut down" not in process.output([control, "-D", f"{place}/data"], env={"LC_ALL": "C"}):
            raise process.Failed(f"{self.name}: the server did not shut down")


class Server:
    """Runs for as long as the block does."""

    def __init__(self, program, bench, words, place):
        self.program, self.env, self.words, self.place = program, bench.env, words, place

    def __enter__(self):
        self.log = f"{self.place}/server.log"
        self.pid = process.start(self.words, self.env, self.log)
        try:
            self._await_ready()
        except BaseException:
            process.kill(self.pid)
            raise

    def _await_ready(self):
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            try:
                return self.program._client(self.place, "pg_isready", "--quiet")
            except process.Failed:
                pass
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended or time.monotonic() > deadline:
                raise process.Failed(f"postgres does not answer:\n{self._end_of_log()}")
            time.sleep(0.01)

    def __exit__(self, kind, *_):
        if kind:
            return process.kill(self.pid)
        stop = [self.program._program("pg_ctl"), "stop", "--silent", "--mode=fast", "-D", f"{self.place}/data"]
        process.output([*self.program._as_user(), *stop], cwd="/")
        code = process.wait_limited(self.pid)
        if code != 0:
            raise process.Failed(f"postgres: exit code {code}, see its log:\n{self._end_of_log()}")

    def _end_of_log(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()[-600:]


PROGRAMS = [Pgbench(1, 3000), Pgbench(8, 1500)]
