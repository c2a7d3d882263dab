"""What torchrun says of workers that ended: which one failed first, and by which signal.

Forms (pytorch/pytorch torch/distributed/elastic/multiprocessing/api.py, errors/__init__.py)::

    failed (exitcode: -9) local_rank: 2 (pid: 4511) of binary: /usr/bin/python
    Root Cause (first observed failure):
    [0]:
      host      : node-b
      rank      : 10 (local_rank: 2)
      exitcode  : -9 (pid: 4511)

A rank that ends takes the others with it: their errors only follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl.told import ORDER, Told

TRIGGERS: Final = (b"failed (exitcode: ", b"(first observed failure)")
_FAILED = re.compile(
    r"failed \(exitcode: (?P<code>-?\d{1,6})\) local_rank: (?P<local>\d{1,6})"
    r" \(pid: (?P<pid>\d{1,10})\)"
)
_FIELD = re.compile(r"\b(?P<name>host|rank|exitcode) {1,12}: (?P<value>[\w.:-]{1,100})")
_PID = re.compile(r"\(pid: (\d{1,10})\)")
_LOCAL = re.compile(r"\(local_rank: (\d{1,6})\)")
# After "Root Cause" stand seven lines.
_BLOCK: Final = 8
_SOURCES: Final = ("pytorch/pytorch torch/distributed/elastic/multiprocessing/errors/__init__.py",)


@dataclass(frozen=True, slots=True)
class Ending:
    """What an exit code means; ``cause`` where it is as good as sure."""

    means: str
    do: str
    cause: str | None = None


_ENDINGS: Final = {
    -6: Ending(
        "SIGABRT: it ended itself, as PyTorch's watchdog does after a time-out, or a C++ assertion",
        "Read the last lines of that rank before the end, and the first time-out of all ranks.",
    ),
    -7: Ending(
        "SIGBUS: as a rule /dev/shm in the container is too small",
        "df -h /dev/shm; --shm-size or --ipc=host, in Kubernetes an emptyDir of medium Memory.",
        "launch_misconfigured",
    ),
    -9: Ending(
        "SIGKILL: killed from outside, nearly always because host memory ran out (the kernel's OOM"
        " killer, or the memory limit of the container or of Slurm)",
        "dmesg -T | grep -i -e oom -e 'killed process' on that host, kubectl describe pod"
        " (OOMKilled), sacct; then fewer data loader workers, less pinned memory, a higher limit.",
        "host_memory_pressure",
    ),
    -11: Ending(
        "SIGSEGV: it crashed in native code",
        "dmesg | grep segfault names the library; a core dump with gdb (bt) the function.",
    ),
    -15: Ending(
        "SIGTERM: it was told to end, by the scheduler (preemption, time limit) or because another"
        " node's rank had ended",
        "Look at the scheduler's log, and for a rank of another node that ended before.",
    ),
}
_ERROR: Final = Ending(
    "an exception of the program",
    "Read the traceback of that rank, which stands before this; what other ranks print after it"
    " only follows.",
)


class Elastic:
    """The first failure that torchrun names, and how many workers it says failed."""

    def __init__(self) -> None:
        self._line = 0
        self._data: dict[str, Any] = {}
        self._left = 0
        self._count = 0

    @property
    def open(self) -> bool:
        """Whether the next line is wanted."""
        return self._left > 0

    def feed(self, number: int, text: str) -> bool:
        """Take a line; return whether torchrun tells of a failure in it."""
        text = text[:1_024]
        found = _FAILED.search(text)
        if found is not None:
            self._count += 1
            self._keep(number, exitcode=int(found["code"]), local_rank=int(found["local"]),
                       pid=int(found["pid"]))  # fmt: skip
            return True
        if "(first observed failure)" in text:
            # The report is about the first one; what was kept may be another one.
            self._data.clear()
            self._line, self._left = number, _BLOCK
            return True
        if not self._left:
            return False
        self._left -= 1
        return self._field(number, text)

    def tell(self) -> Iterator[Told]:
        """Yield which worker ended first, and why."""
        code = self._data.get("exitcode")
        if code is None:
            return
        ending = _ENDINGS.get(code, _ERROR)
        rank, host = self._data.get("rank"), self._data.get("host")
        who = f"rank {rank}" if rank is not None else f"local rank {self._data.get('local_rank')}"
        yield Told(
            ORDER["root"] if ending.cause else ORDER["symptom"],
            self._line,
            Finding(
                kind="torch",
                id="worker_failed",
                severity=Severity.HIGH,
                says=(
                    f"torchrun: {who}{f' on {host}' if host else ''} ended first, exit code {code}"
                    f" ({ending.means}). Errors of the other ranks follow from that."
                ),
                action=ending.do,
                entity=Entity(Kind.RANK, f"rank {rank}", host=host, rank=rank)
                if rank is not None
                else None,
                line=self._line,
                cause=ending.cause,
                data=dict(self._data),
                sources=_SOURCES,
            ),
        )

    def _field(self, number: int, text: str) -> bool:
        found = _FIELD.search(text)
        if found is None:
            return text.lstrip().startswith(("[", "time ", "error_file", "traceback "))
        name, value = found["name"], found["value"]
        if name == "host":
            self._keep(number, host=value)
        elif re.fullmatch(r"-?\d{1,7}", value):
            extra = _LOCAL.search(text) if name == "rank" else _PID.search(text)
            self._keep(number, **{name: int(value)})
            if extra is not None:
                self._keep(number, **{"local_rank" if name == "rank" else "pid": int(extra[1])})
        return True

    def _keep(self, number: int, **values: int | str) -> None:
        self._line = self._line or number
        for name, value in values.items():
            self._data.setdefault(name, value)
