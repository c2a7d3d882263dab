"""Which boards are there: those that report, those that stopped, those that were replaced.

Silence is not health: a GPU that has sent nothing for the whole window, but did during the last
day, still belongs to its node. A board whose place another one has taken does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from engine.diagnosis.core import CORE
from engine.samples import Frame
from engine.signals.labels import Place
from engine.signals.normalise import Readings

# A GPU index that changed its UUID (a swapped board) is ambiguous only while both report.
_REPLACED_S = 120.0
# A scrape of a minute and some: with readings older than this, ask whether the exporter answers.
_LATE_S = 75.0

_Slot = tuple[str | None, str | None, int | None]


def newest(frame: Frame, i: int) -> float:
    """Return the time of the newest sample of entity i's own (Unix s), -inf if there is none."""
    latest = -np.inf
    for name, column in frame.columns.items():
        end = column.offsets.item(i + 1)
        # What was derived, or belongs to the node, has no origin.
        if end > column.offsets.item(i) and (name, i) in frame.origins:
            latest = max(latest, column.ts.item(end - 1))
    return latest


def late(frame: Frame, i: int) -> bool:
    """Return whether the newest sample of entity i is older than a usual scrape."""
    return frame.timed and frame.at - newest(frame, i) > _LATE_S


def silent(frame: Frame, i: int) -> bool:
    """Return whether entity i has no core reading in the window; an Xid is no sign of life."""
    return not any(frame.samples(s, i)[0].size for s in CORE)


def current(readings: Readings, chosen: Sequence[int]) -> list[int]:
    """Leave out boards whose place (cluster, host, index) is taken by one that reports later."""
    frame = readings.frame
    seen = {i: newest(frame, i) for i in chosen}
    best: dict[_Slot, float] = {}
    for i, latest in seen.items():
        slot = _slot_of(frame, i)
        best[slot] = max(best.get(slot, -np.inf), latest)
    return [
        i
        for i, latest in seen.items()
        if frame.entities[i].gpu is None
        or best[_slot_of(frame, i)] == -np.inf
        or best[_slot_of(frame, i)] - latest <= _REPLACED_S
    ]


def gone(day: Iterable[Place], now: Sequence[Place]) -> list[Place]:
    """Return the GPUs that were seen during the last day and are not now.

    One whose place (cluster, host, index) another board has taken is left out, and so is one that
    is known under another host name since.
    """
    there = {p.key for p in now}
    taken = {(p.cluster, p.host, p.gpu) for p in now if p.gpu is not None}
    found = {
        p.key: p
        for p in day
        if p.key[1] and p.key not in there and (p.cluster, p.host, p.gpu) not in taken
    }
    return list(found.values())


def _slot_of(frame: Frame, i: int) -> _Slot:
    entity = frame.entities[i]
    return (entity.cluster, entity.host, entity.gpu)
