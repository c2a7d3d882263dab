"""One sweep in a process of its own, so that its memory and CPU time are its own.

Run as ``python -m benchmarks.sweeper URL AT``; prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from engine.catalogue import load_catalogue
from engine.diagnosis import Engine
from engine.sources import PrometheusConfig, PrometheusSource

_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep took, and found.

    Attributes:
        seconds: wall time.
        cpu: CPU time of the engine (s).
        memory: largest resident set of the process (bytes), with the interpreter and the rules.
        asked: the queries it sent, with their moment (ms).
        answered: bytes of all answers.
        gpus: how many were judged.
        nodes: the nodes with an incident, sorted.
        warnings: what the sweep had to say.
    """

    seconds: float
    cpu: float
    memory: int
    asked: list[tuple[str, int]]
    answered: int
    gpus: int
    nodes: list[str]
    warnings: list[str]


class _Recorded(PrometheusSource):
    """A source that remembers what it asked."""

    def __init__(self, url: str) -> None:
        super().__init__(PrometheusConfig(url, timeout_s=_TIMEOUT_S))
        self.asked: list[tuple[str, int]] = []
        self.answered = 0

    async def _ask(self, query: str, end_ms: int) -> bytes:
        self.asked.append((query, end_ms))
        body = await super()._ask(query, end_ms)
        self.answered += len(body)
        return body


def swept(url: str, at: float) -> Swept:
    """Sweep in a new process, and return what it took.

    Raises:
        subprocess.CalledProcessError: the sweep failed.
    """
    command = [sys.executable, "-m", "benchmarks.sweeper", url, str(at)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return Swept(**{**found, "asked": [(query, end) for query, end in found["asked"]]})


async def _sweep(url: str, at: float) -> Swept:
    engine = Engine(load_catalogue())
    source = _Recorded(url)
    try:
        began, worked = time.perf_counter(), time.process_time()
        found = await engine.sweep(source, at=at)
        seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    finally:
        await source.aclose()
    return Swept(
        seconds=seconds,
        cpu=cpu,
        memory=_peak(),
        asked=source.asked,
        answered=source.answered,
        gpus=found.checked["gpu"],
        nodes=sorted({m.host or "" for i in found.incidents for m in i.members}),
        warnings=list(found.warnings),
    )


def _peak() -> int:
    """Return the largest resident set so far (bytes), as Linux tells it.

    Not that of ``getrusage``: it counts what the parent held at the fork.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(asdict(asyncio.run(_sweep(sys.argv[1], float(sys.argv[2]))))))
