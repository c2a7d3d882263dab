"""Wall time and peak memory of whole processes.

Linux counts the memory of a parent at the moment of the fork as the child's own peak, so the
processes are started from a small one: `measure` runs this file as a program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True, slots=True)
class Cost:
    """Median wall time (s), largest resident set (bytes) and median CPU time (s) of one command."""

    seconds: float
    memory: int
    cpu: float


def measure(rounds: int, *commands: Sequence[str]) -> list[Cost]:
    """Run commands in turn, their output dropped, after one unmeasured round.

    Raises:
        subprocess.CalledProcessError: a command failed.
    """
    asked = json.dumps({"rounds": rounds, "commands": commands})
    done = subprocess.run(
        [sys.executable, __file__], input=asked, capture_output=True, text=True, check=True
    )
    return [Cost(**cost) for cost in json.loads(done.stdout)]


def _run(command: Sequence[str]) -> tuple[float, int, float]:
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return took, usage.ru_maxrss * _RSS_UNIT, usage.ru_utime + usage.ru_stime


def _main() -> None:
    asked = json.load(sys.stdin)
    commands = asked["commands"]
    for command in commands:
        _run(command)
    runs = [[_run(command) for command in commands] for _ in range(asked["rounds"])]
    costs = [
        {
            "seconds": median(took for took, _, _ in column),
            "memory": max(rss for _, rss, _ in column),
            "cpu": median(cpu for _, _, cpu in column),
        }
        for column in zip(*runs, strict=True)
    ]
    json.dump(costs, sys.stdout)


if __name__ == "__main__":
    _main()
