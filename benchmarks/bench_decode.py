"""``gpuwhy decode xid 79`` from a cold process, beside an interpreter that does nothing."""

from __future__ import annotations

import sys

from benchmarks.cold import measure
from benchmarks.harness import Row, ms

ROUNDS = 20
TARGET_S, TARGET_BYTES = 0.250, 70e6
# What the installed command does, so that nothing need be installed.
_GPUWHY = "import sys; from bot.surfaces.cli.main import main; sys.exit(main())"


def rows() -> list[Row]:
    """Measure both."""
    gpuwhy = [sys.executable, "-c", _GPUWHY]
    bare = [sys.executable, "-c", "pass"]
    ours, floor = measure(ROUNDS, [*gpuwhy, "decode", "xid", "79"], bare)
    return [
        Row(
            "decode xid 79, cold process",
            ms(ours.seconds),
            f"{ms(floor.seconds)} (python -c pass)",
            f"+{ms(ours.seconds - floor.seconds)}",
            "< 250 ms",
            ours.seconds < TARGET_S,
        ),
        Row(
            "  peak memory",
            f"{ours.memory / 1e6:.1f} MB",
            f"{floor.memory / 1e6:.1f} MB",
            f"+{(ours.memory - floor.memory) / 1e6:.1f} MB",
            "< 70 MB",
            ours.memory < TARGET_BYTES,
        ),
    ]
