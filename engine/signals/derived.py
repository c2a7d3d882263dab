"""Signals that no exporter has: one reading of a GPU set against another of the same moment."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from engine.samples import Column, Floats, Frame, Ints
from engine.signals.columns import column
from engine.signals.pieces import Piece

# What a derived signal is made of.
PARTS: Mapping[str, tuple[str, ...]] = {
    "nvlink_slowest_link": ("nvlink_link_bytes",),
    "busy_clock": ("sm_clock", "gpu_util"),
}
_LINK = re.compile(r"_L(\d+)_(?:TX|RX)_")
# Fewer links than this have no median to speak of.
_MIN_LINKS = 3
# A link that carries less in the median is at rest (B/s).
_RESTING = 1e7
_AT_WORK_PERCENT = 50.0
# Two exporters' samples of one scrape are this close (s).
_SAME_MOMENT_S = 1.0
_MOMENT_BITS = 34  # Unix seconds of five centuries


def add_derived(frame: Frame, pieces: Mapping[str, Sequence[Piece]]) -> None:
    """Add ``busy_clock`` and ``nvlink_slowest_link`` to a frame, where their parts are there."""
    clock, work = frame.columns.get("sm_clock"), frame.columns.get("gpu_util")
    if clock is not None and work is not None and frame.timed:
        _busy_clock(frame, clock, work)
    links = [piece for piece in pieces.get("nvlink_link_bytes", ()) if piece.series.timed]
    if links and frame.timed:
        _slowest_link(frame, links)


def _busy_clock(frame: Frame, clock: Column, work: Column) -> None:
    owners = _owners(clock)
    at_work = work.values >= _AT_WORK_PERCENT
    if not at_work.any():
        return
    # Both ascend, so that each moment has one place where it can be.
    busy = _moments(_owners(work), work.ts)[at_work]
    moments = _moments(owners, clock.ts)
    keep = busy[np.minimum(np.searchsorted(busy, moments), busy.size - 1)] == moments
    if keep.any():
        frame.columns["busy_clock"] = column(
            clock.values[keep], clock.ts[keep], owners[keep], len(frame), merge=False
        )
        for i in np.unique(owners[keep]).tolist():
            origin = frame.origins.get(("sm_clock", i))
            if origin is not None:
                frame.origins[("busy_clock", i)] = origin


def _slowest_link(frame: Frame, pieces: Sequence[Piece]) -> None:
    """Set each link's mean over the window against the median link of its GPU."""
    means: dict[int, dict[str, list[float]]] = {}
    newest: dict[int, float] = {}
    for piece in pieces:
        link = _LINK.search(piece.series.name)
        inside = (piece.series.ts >= frame.at - frame.window_s) & (piece.series.ts <= frame.at)
        values = piece.series.values[inside & np.isfinite(piece.series.values)]
        if link is None or not values.size or values.max() > 1e13:
            continue
        owner, last = piece.tag.owner, float(piece.series.ts[inside][-1])
        means.setdefault(owner, {}).setdefault(link[1], []).append(float(values.mean()))
        newest[owner] = max(newest.get(owner, 0.0), last)
    found: list[tuple[int, float, float]] = []
    for owner, links in sorted(means.items()):
        totals = [sum(directions) for directions in links.values()]
        middle = float(np.median(totals))
        if len(totals) >= _MIN_LINKS and middle > _RESTING:
            found.append((owner, newest[owner], min(1.0, min(totals) / middle)))
    if found:
        who, when, share = (np.array(part) for part in zip(*found, strict=True))
        frame.columns["nvlink_slowest_link"] = column(
            share, when, who.astype(np.int64), len(frame), merge=False
        )


def _moments(owners: Ints, times: Floats) -> Ints:
    """Return one number for each owner and moment (Unix s)."""
    moments: Ints = np.round(times / _SAME_MOMENT_S).astype(np.int64)
    return (owners << _MOMENT_BITS) + moments


def _owners(of: Column) -> Ints:
    counts: Ints = np.diff(of.offsets)
    return np.repeat(np.arange(counts.size), counts)
