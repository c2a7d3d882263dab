"""Real Nsight Systems, and a stand-in for what it will not do on demand.

Nsight Systems is from Debian's component non-free; ``scripts/system-parts test`` installs it. A
user's sessions are seen by all that the user runs, so every test arms one of a name of its own.
"""

from __future__ import annotations

import contextlib
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_WAIT_S = 30.0
# Opens files, so that a trace of OS calls has something to show; ends when a file is there.
_PROGRAM = """
import os, sys, time
end = time.monotonic() + 300
while time.monotonic() < end and not os.path.exists(sys.argv[1]):
    open("/dev/null").close()
    time.sleep(0.01)
"""


@dataclass(frozen=True)
class Nsys:
    """An installation; ``command`` is what the product is told to call."""

    command: Path

    def free_gpu(self) -> int:
        """Return a GPU index for which there is no session."""
        taken = self.sessions()
        return next(n for n in random.sample(range(64), 64) if f"gpuwhy-{n}" not in taken)

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
    def armed(self, name: str, *, until: Path) -> Iterator[subprocess.Popen[bytes]]:
        """Run a program under ``nsys launch``; yield once its session can be recorded.

        The program ends once the file ``until`` exists, or with the block.
        """
        launch = [self.command, "launch", f"--session-new={name}", "--trace=osrt,nvtx"]
        process = subprocess.Popen(
            [*launch, sys.executable, "-c", _PROGRAM, until],
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
                # The launcher ends the program and the session on this; not if it is killed.
                os.killpg(process.pid, signal.SIGTERM)
            process.wait(_WAIT_S)

    def wait_for(self, name: str, state: str | None) -> None:
        """Wait until a session is in a state; None: until it is gone."""
        deadline = time.monotonic() + _WAIT_S
        while self.sessions().get(name) != state:
            if time.monotonic() > deadline:
                message = f"session {name} did not become {state}: {self.sessions()}"
                raise RuntimeError(message)
            time.sleep(0.05)


def installed() -> Nsys:
    """Return the installed nsys; a missing one is an error, never a skip."""
    found = shutil.which("nsys")
    if found is None:
        message = "nsys is not installed; scripts/system-parts test says how to get it"
        raise RuntimeError(message)
    return Nsys(Path(found))


@dataclass(frozen=True)
class Pretended:
    """A stand-in for nsys with one session, for faults that the real one will not have on demand.

    ``state`` is the session's; a script put in ``hooks`` by the name of a command (``start``,
    ``stop``, ``sessions``) is run instead of it.
    """

    command: Path
    folder: Path

    @property
    def state(self) -> str:
        return (self.folder / "state").read_text().strip()

    def become(self, state: str) -> None:
        (self.folder / "state").write_text(state)

    def hook(self, name: str, script: str) -> None:
        (self.folder / f"on-{name}").write_text(script)

    def unhook(self, name: str) -> None:
        (self.folder / f"on-{name}").unlink()


_PRETENDED = """#!/bin/sh
cd {folder} || exit 1
[ -e "on-$1" ] && . "./on-$1"
state=$(cat state)
case "$1" in
--version) echo "NVIDIA Nsight Systems version 2022.4.2.1-pretended" ;;
sessions) echo "  ID TIME STATE LAUNCH NAME"; echo "  101744 00:01 $state 1 gpuwhy-5" ;;
start)
    [ "$state" = Launched ] || {{ echo "Configuring is not allowed in this state." >&2; exit 1; }}
    echo Collection >state
    echo "${{3#--output=}}" >output ;;
stop)
    [ "$state" = Collection ] || {{
        echo "The request is not applicable in this state: StopRequest." >&2; exit 1; }}
    echo Launched >state
    head -c 1000 /dev/zero >"$(cat output).qdstrm" ;;
esac
"""


def pretend(folder: Path) -> Pretended:
    """Return a stand-in for nsys, its session armed."""
    home = folder / "pretended"
    home.mkdir()
    command = home / "nsys"
    command.write_text(_PRETENDED.format(folder=shlex.quote(str(home))))
    command.chmod(0o755)
    importer = home / "QdstrmImporter"
    importer.write_text('#!/bin/sh\nhead -c 600 "$2" >"$4"\n')
    importer.chmod(0o755)
    made = Pretended(command, home)
    made.become("Launched")
    return made
