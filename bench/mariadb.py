"""MariaDB: small commits by eight clients against a private server, over its socket only."""

import os
import shutil
import socket
import time

import process
from programs import Program

CLIENTS, COMMITS, WARM_UP = 8, 40_000, 2_000
START_LIMIT_S = 60
INSERT = "INSERT INTO t(v) VALUES ('a row of some sixty bytes, as in a small log or queue')"


class Mariadb(Program):
    name = "mariadb"
    title = f"MariaDB, {COMMITS} one-row commits by {CLIENTS} clients, stock settings"
    bytes_per_run = 160 * 2**20
    more = {"refit sync=off odirect=off": ("sync=off", "odirect=off")}
    notes = (f"timed: mariadb-slap alone, after {WARM_UP} commits that are not; data directory copied fresh;"
             " start and stop of the server are not timed",)

    def unavailable(self, bench):
        install = shutil.which("mariadb-install-db")
        if not (install and shutil.which("mariadbd") and shutil.which("mariadb-slap")):
            return "mariadb-server is not installed"
        self.template = os.path.join(bench.disk, "mariadb-template")
        options = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]
        process.output([install, *options, f"--datadir={self.template}", *self._as_root()])
        return ""

    @staticmethod
    def _as_root():
        return ["--user=root"] if os.geteuid() == 0 else []

    def prepare(self, place):
        process.output(["cp", "-a", self.template, f"{place}/data"])

    def seconds(self, bench, prefix, place):
        log, at = f"{place}/server.log", f"{place}/s"
        server = [
            shutil.which("mariadbd"), "--no-defaults", *self._as_root(), f"--datadir={place}/data",
            f"--socket={at}", f"--pid-file={place}/pid", "--skip-networking",
        ]
        pid = process.start([*prefix, *server], bench.env, log)
        try:
            _await_socket(at, pid, log)
            options = ["--no-defaults", f"--socket={at}", "--user=root"]
            client = ["mariadb", *options, "--batch", "--skip-column-names", "-e"]
            process.output([*client, "CREATE DATABASE b; CREATE TABLE b.t"
                            "(id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(100)) ENGINE=InnoDB"])
            slap = [shutil.which("mariadb-slap"), *options, f"--concurrency={CLIENTS}", "--create-schema=b",
                    "--no-drop", f"--query={INSERT}", "--silent"]
            process.output([*slap, f"--number-of-queries={WARM_UP}"])
            words = [*slap, f"--number-of-queries={COMMITS}"]
            took = process.timed(words, bench.env, f"{place}/slap.log") / 1e9
            rows = process.output([*client, "SELECT count(*) FROM b.t"]).strip()
            if rows != str(COMMITS + WARM_UP):
                raise process.Failed(f"mariadb: {rows} rows, not {COMMITS + WARM_UP}")
            process.output([*client, "SHUTDOWN"])
            code = process.wait_limited(pid)
        except BaseException:
            process.kill(pid)
            raise
        if code != 0:
            raise process.Failed(f"mariadbd: exit code {code}, see its log:\n{_end_of(log)}")
        return took


def _end_of(log):
    with open(log, encoding="utf-8", errors="replace") as file:
        return file.read()[-600:]


def _await_socket(at, pid, log):
    """Waits until the server takes connections."""
    deadline = time.monotonic() + START_LIMIT_S
    while True:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                return client.connect(at)
            except OSError:
                pass
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended or time.monotonic() > deadline:
            raise process.Failed(f"mariadbd does not answer:\n{_end_of(log)}")
        time.sleep(0.01)
