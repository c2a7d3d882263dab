"""Xids that dcgm-exporter counts by code, told to the Xid gauge as changes.

``DCGM_EXP_XID_ERRORS_COUNT{xid="79"}`` is the number of Xids 79 inside a sliding window, and
``DCGM_EXP_XID_ERRORS_TOTAL`` counts since the exporter started. Both see what the sticky gauge
misses: a second event of the same code. Each rise becomes a change of the ``xid`` signal to that
code, so that rules ask one signal only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from engine.samples import Column, Frame, RawSeries
from engine.signals.columns import column
from engine.signals.pieces import Piece, origin

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
    code = _code(series)
    if code is None or not series.timed:
        return
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


def counted_now(series: RawSeries) -> float | None:
    """Return the code that one scrape without times counts as recent, None for none.

    Only a count over a sliding window says when: within that window.
    """
    if series.name.endswith("_TOTAL") or not series.values.size or not series.values[-1] > 0:
        return None
    return _code(series)


def _code(series: RawSeries) -> float | None:
    label = series.labels.get("xid", "")
    return float(label) if label.isascii() and label.isdigit() and len(label) <= 4 else None


def add_counted(frame: Frame, counters: Sequence[Piece]) -> None:
    """Merge what Xid counters saw into the Xid gauge."""
    start = frame.at - frame.window_s
    gauge = frame.columns.get("xid")
    if frame.timed:
        found = [
            (piece.tag.owner, ts, code)
            for piece in counters
            for ts, code in xid_changes(piece.series, start)
            if start <= ts <= frame.at
        ]
    else:
        found = [
            sample
            for k, piece in enumerate(counters)
            if (code := counted_now(piece.series)) is not None
            for sample in ((piece.tag.owner, k + 0.5, 0.0), (piece.tag.owner, k + 1.0, code))
        ]
        # What a scrape without times tells is of the moment 0, the older code of the gauge first.
        last = len(counters) + 1.0
        found = [(owner, (ts - last) * _JUST_BEFORE_S, code) for owner, ts, code in found]
        struck = {owner for owner, _, _ in found}
        if gauge is not None and struck:
            of = np.repeat(np.arange(len(frame)), np.diff(gauge.offsets))
            gauge.ts[np.isin(of, sorted(struck))] = -last * _JUST_BEFORE_S
            frame.placed |= {"xid"}
        elif struck:
            frame.placed |= {"xid"}
    if not found:
        return
    hidden = _hidden(frame, gauge, found)
    owners, times, codes = (np.array(part) for part in zip(*found, strict=True))
    if gauge is not None:
        counts = np.diff(gauge.offsets)
        owners = np.concatenate([np.repeat(np.arange(len(frame)), counts), owners])
        times = np.concatenate([gauge.ts, times])
        codes = np.concatenate([gauge.values, codes])
    owners = owners.astype(np.int64)
    frame.columns["xid"] = column(codes, times, owners, len(frame), merge=True)
    for piece in counters:
        if piece.tag.owner in hidden:  # the gauge does not show it: the counter is what to look at
            frame.origins[("xid", piece.tag.owner)] = replace(origin(piece), scale=1.0)
        frame.origins.setdefault(("xid", piece.tag.owner), replace(origin(piece), scale=1.0))


def _hidden(
    frame: Frame, gauge: Column | None, found: Iterable[tuple[int, float, float]]
) -> set[int]:
    """Return the GPUs with a code that was counted and that the gauge does not have."""
    return {
        owner
        for owner, _, code in found
        if code and (gauge is None or code not in frame.samples("xid", owner)[1])
    }
