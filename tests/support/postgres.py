"""A real PostgreSQL on loopback, for tests and benchmarks.

A cluster of its own in a new folder, run by an unprivileged user (the server refuses to run as
root), stopped whatever happens: at the end of the block, and by the kernel if the tests are killed.
Missing programs are an error, never a skip: ``make test`` installs what is needed.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.servers import free_port

START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 20.0
_ATTEMPTS = 3
_USER = "gpuwhy"
# Nothing here has to outlive the machine, and the tests should not wait for its disk.
_SETTINGS = (
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=60",
    "shared_buffers=32MB",
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
    "log_min_messages=fatal",
    "lc_messages=C",
)


def program(name: str) -> str:
    """Return the path of one of PostgreSQL's programs, or raise with what to install.

    Debian keeps those of the server out of PATH, in a folder for each major version.
    """
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda f: int(f.parent.name), reverse=True
    )
    path = os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])
    found = shutil.which(name, path=path)
    if found is None:
        message = f"{name} is not installed; on Debian and Ubuntu: apt-get install postgresql"
        raise RuntimeError(message)
    return found


@dataclass
class Postgres:
    """A cluster, running unless `stop` was called.

    Attributes:
        folder: holds the data and the log.
        port: on 127.0.0.1; the same after `stop` and `start`.
        password: of the user ``gpuwhy``, who may do everything.
    """

    folder: Path
    port: int = 0
    password: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    _process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = "postgres") -> str:
        """Return the address of a database."""
        return f"postgresql://{_USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run one statement; return the values of its rows, one row a line."""
        done = subprocess.run(
            [program("psql"), self.url(database), "-qAtXc", statement],
            check=True,
            capture_output=True,
            text=True,
            timeout=START_TIMEOUT_S,
        )
        return done.stdout.strip()

    def create(self, name: str, *, template: str = "template1") -> str:
        """Make a database as a copy of another one; return its address."""
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url(name)

    def drop(self, name: str) -> None:
        """Delete a database, whoever is connected to it."""
        self.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def start(self) -> None:
        """Run the server; return once it lets clients in."""
        for _ in range(1 if self.port else _ATTEMPTS):
            port = self.port or free_port()
            with (self.folder / "log").open("ab") as log:
                options = [word for setting in _SETTINGS for word in ("-c", setting)]
                self._process = subprocess.Popen(
                    [
                        *_unprivileged(die_with_parent=True),
                        program("postgres"),
                        *("-D", str(self.folder / "data"), "-p", str(port)),
                        *options,
                    ],
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            if self._wait_until_ready(port):
                self.port = port
                return
            self.stop()
        message = f"PostgreSQL did not start:\n{(self.folder / 'log').read_text()[-2000:]}"
        raise RuntimeError(message)

    def stop(self) -> None:
        """End the server and its connections at once; harmless when it is stopped."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(signal.SIGINT)  # "fast shutdown"
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(_STOP_TIMEOUT_S)

    def _wait_until_ready(self, port: int) -> bool:
        assert self._process is not None
        end = time.monotonic() + START_TIMEOUT_S
        command = [program("pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
        while time.monotonic() < end and self._process.poll() is None:
            # Something else might listen on the port: our server writes its own into this file.
            told = self.folder / "data" / "postmaster.pid"
            ours = told.exists() and str(self._process.pid) in told.read_text().split()
            if ours and subprocess.run(command, check=False).returncode == 0:
                return True
            time.sleep(0.05)
        return False


@contextlib.contextmanager
def start_postgres() -> Iterator[Postgres]:
    """Make a cluster and run it; yield once it lets clients in."""
    # Not in pytest's folder: that one is closed to the user who runs the server.
    with tempfile.TemporaryDirectory(prefix="gpuwhy-postgres-") as name:
        server = Postgres(Path(name))
        _hand_over(server.folder)
        _make_cluster(server)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _make_cluster(server: Postgres) -> None:
    secret = server.folder / "password"
    secret.write_text(server.password)
    _hand_over(secret)
    done = subprocess.run(
        [
            *_unprivileged(),
            program("initdb"),
            *("-D", str(server.folder / "data"), "-U", _USER, "--pwfile", str(secret)),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"),
        ],
        check=False,
        cwd=server.folder,
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
    )
    secret.unlink()
    if done.returncode:
        message = f"initdb failed: {done.stderr.strip()}"
        raise RuntimeError(message)


def _account() -> pwd.struct_passwd | None:
    """Return the account that the server runs under; None: our own will do."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    message = "PostgreSQL does not run as root, and there is no account to run it under"
    raise RuntimeError(message)


def _hand_over(path: Path) -> None:
    if account := _account():
        os.chown(path, account.pw_uid, account.pw_gid)


def _unprivileged(*, die_with_parent: bool = False) -> Sequence[str]:
    """Return the words before a command that run it without our rights."""
    account = _account()
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        if account is None:
            return ()
        message = "setpriv is not installed; on Debian and Ubuntu: apt-get install util-linux"
        raise RuntimeError(message)
    words = [setpriv]
    if account:
        words += [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    if die_with_parent:
        words.append("--pdeathsig=INT")
    return (*words, "--")
