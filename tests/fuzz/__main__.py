"""Fuzz the readers: ``python -m tests.fuzz [--inputs N] [--seconds S] [--seed K] [--jobs J]``.

Every input is made from its number, so one that fails can be made again: ``--only NUMBER``.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor

from tests.fuzz.check import LONGEST_S, check
from tests.fuzz.mutate import mutate
from tests.fuzz.seeds import seeds

_BATCH = 500


def one(seed: int, number: int) -> bytes:
    """Return the input with a number."""
    return mutate(random.Random(seed * 1_000_003 + number), seeds())


def batch(seed: int, start: int) -> list[tuple[int, str]]:
    """Check a batch; return the numbers that fail, with why."""
    failed = []
    for number in range(start, start + _BATCH):
        # A regular expression that runs away holds the interpreter: the process is ended with
        # the stack of where it hangs.
        faulthandler.dump_traceback_later(LONGEST_S * 6, exit=True)
        try:
            check(one(seed, number))
        except Exception:  # noqa: BLE001 - that is what is looked for
            failed.append((number, traceback.format_exc(limit=-4)))
    faulthandler.cancel_dump_traceback_later()
    return failed


def main() -> int:
    """Run; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    if given.only is not None:
        raw = one(given.seed, given.only)
        sys.stdout.buffer.write(raw)
        sys.stdout.flush()
        check(raw)
        return 0
    began = time.monotonic()
    done = failures = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        starts = range(0, given.inputs, _BATCH)
        for group in range(0, len(starts), given.jobs * 4):
            if time.monotonic() - began > given.seconds:
                break
            running = [
                pool.submit(batch, given.seed, s) for s in starts[group : group + given.jobs * 4]
            ]
            for future in running:
                for number, why in future.result():
                    failures += 1
                    print(f"--only {number} --seed {given.seed}:\n{why}", flush=True)
                done += _BATCH
            if failures > 50:
                break
    took = time.monotonic() - began
    print(f"{done} inputs from {len(seeds())} samples in {took:.0f} s, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
