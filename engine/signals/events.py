"""Xids that dcgm-exporter counts by code, told to the Xid gauge as changes.

``DCGM_EXP_XID_ERRORS_COUNT{xid="79"}`` is the number of Xids 79 inside a sliding window, and
``DCGM_EXP_XID_ERRORS_TOTAL`` counts since the exporter started. Both see what the sticky gauge
misses: a second event of the same code. Each rise becomes a change of the ``xid`` signal to that
code, so that rules ask one signal only.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.samples import RawSeries

# A total that appears this long after the window began was made by its first event.
_LATE_S = 60.0
# The change is written as 0 just before the event: any time between two collections will do.
_JUST_BEFORE_S = 1e-3


def xid_changes(series: RawSeries, start: float) -> Iterable[tuple[float, float]]:
    """Yield (time, code) samples that say when an Xid counter of one code rose.

    Args:
        series: a counter with its ``xid`` label; without one it counts nothing.
        start: when the window begins (Unix s).
    """
    label = series.labels.get("xid", "")
    if not (label.isascii() and label.isdigit() and len(label) <= 4) or not series.timed:
        return
    code = float(label)
    before = 0.0
    total = series.name.endswith("_TOTAL")
    for k, (ts, value) in enumerate(zip(series.ts.tolist(), series.values.tolist(), strict=True)):
        if not np.isfinite(value):
            continue
        known_before = total and k == 0 and ts < start + _LATE_S
        if value > before and not known_before:
            yield ts - _JUST_BEFORE_S, 0.0
            yield ts, code
        before = value
