"""``gpuwhy decode xid 79`` from a cold process, beside an interpreter that does nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.cold import measure
from benchmarks.harness import Row, ms

ROUNDS = 20
TARGET_S, TARGET_BYTES = 0.250, 70e6


def rows() -> list[Row]:
    """Measure both."""
    gpuwhy = str(Path(sys.executable).with_name("gpuwhy"))
    ours, bare = measure(
        ROUNDS, [gpuwhy, "decode", "xid", "79"], [sys.executable, "-c", "pass"]
    )
    return [
        Row(
            "decode xid 79, cold process",
            ms(ours.seconds),
            f"{ms(bare.seconds)} (python -c pass)",
            f"+{ms(ours.seconds - bare.seconds)}",
            "< 250 ms",
            ours.seconds < TARGET_S,
        ),
        Row(
            "  peak memory",
            f"{ours.memory / 1e6:.1f} MB",
            f"{bare.memory / 1e6:.1f} MB",
            f"+{(ours.memory - bare.memory) / 1e6:.1f} MB",
            "< 70 MB",
            ours.memory < TARGET_BYTES,
        ),
    ]
