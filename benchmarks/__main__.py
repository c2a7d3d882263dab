"""Measure, and print one table: ``python -m benchmarks [NAME ...]``.

The exit status says only whether everything could be measured; the table says which targets were
met. On a busy machine absolute times mean little, ratios and differences a little more.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import time

from benchmarks.harness import Row, table
from bot.demo.prometheus import installed

BENCHES = (
    "decode",
    "ask",
    "read",
    "traces",
    "why",
    "job",
    "verdicts",
    "accuracy",
    "inference",
    "files",
    "sweep",
    "ack",
)
_WITH_SERVER = frozenset({"why", "job", "sweep", "ack"})


def main() -> None:
    """Run the benchmarks that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHES))
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in BENCHES]:
        parser.error(f"no benchmark {unknown[0]!r}; choose from {', '.join(BENCHES)}")
    wanted = names or BENCHES
    if _WITH_SERVER.intersection(wanted) and not installed():
        sys.exit(
            "prometheus and promtool are needed; on Debian and Ubuntu: apt-get install prometheus"
        )
    rows: list[Row] = []
    for name in wanted:
        began = time.perf_counter()
        print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"benchmarks.bench_{name}").rows()
        print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores\n")
    print(table(rows))


if __name__ == "__main__":
    main()
