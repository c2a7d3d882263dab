"""Real Nsight Systems, in a world of its own: sessions are found by TMPDIR, so tests see only theirs.

Nsight Systems is from Debian's component non-free; ``scripts/system-parts test`` installs it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers import binary

_WAIT_S = 30.0
# Opens files, so that a trace of OS calls has something to show.
_PROGRAM = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    open("/dev/null").close()
    time.sleep(0.01)
"""


@dataclass(frozen=True)
class Nsys:
    """An installation with its own sessions; ``command`` is what the product is told to call."""

    command: Path

    def sessions(self) -> dict[str, str]:
        """Return the state of every session, by name."""
        listed = self.run("sessions", "list", "--show-header=false").stdout
        rows = (line.split(maxsplit=4) for line in listed.splitlines())
        return {row[4]: row[2] for row in rows if len(row) == 5}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run nsys and return what it wrote."""
        return subprocess.run(
            [self.command, *words], capture_output=True, text=True, timeout=_WAIT_S, check=False
        )

    @contextlib.contextmanager
    def armed(self, name: str, *, seconds: float = 300.0) -> Iterator[subprocess.Popen[bytes]]:
        """Run a program under ``nsys launch``; yield once its session can be recorded."""
        process = subprocess.Popen(
            [self.command, "launch", f"--session-new={name}", "--trace=osrt,nvtx"]
            + [sys.executable, "-c", _PROGRAM, str(seconds)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            self.wait_for(name, "Launched")
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(_WAIT_S)

    def wait_for(self, name: str, state: str) -> None:
        """Wait until a session is in a state."""
        deadline = time.monotonic() + _WAIT_S
        while self.sessions().get(name) != state:
            if time.monotonic() > deadline:
                message = f"session {name} did not become {state}: {self.sessions()}"
                raise RuntimeError(message)
            time.sleep(0.05)


def install(folder: Path) -> Nsys:
    """Return nsys with sessions of its own, kept below a folder."""
    home = folder / "nsys-home"
    home.mkdir()
    command = folder / "nsys"
    real = shlex.quote(binary("nsys"))
    command.write_text(f'#!/bin/sh\nTMPDIR={shlex.quote(str(home))} exec {real} "$@"\n')
    command.chmod(0o755)
    return Nsys(command)


def pretend(folder: Path, script: str) -> Path:
    """Return a stand-in for nsys that runs a shell script."""
    command = folder / "pretended-nsys"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return command
