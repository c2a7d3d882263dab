"""Which boards are there: those that report, those that stopped, those that were replaced.

Silence is not health: a GPU that has sent nothing for the whole window, but did during the last
day, still belongs to its node. A board whose place another one has taken does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from engine.diagnosis.judge import CORE
from engine.samples import Frame
from engine.signals.labels import Place
from engine.signals.normalise import Readings

# A GPU index that changed its UUID (a swapped board) is ambiguous only while both report.
_REPLACED_S = 120.0

_Slot = tuple[str | None, str | None, int | None]


def newest(frame: Frame, i: int) -> float:
    """Return the time of the newest sample of entity i's own (Unix s), -inf if there is none."""
    # What was derived, or belongs to the node, has no origin.
    stamps = [frame.samples(s, i)[0] for s in frame.columns if (s, i) in frame.origins]
    return max((float(ts[-1]) for ts in stamps if ts.size), default=-np.inf)


def silent(frame: Frame, i: int) -> bool:
    """Return whether entity i has no core reading in the window; a sticky Xid is no sign of life."""
    return not any(frame.samples(s, i)[0].size for s in CORE)


def current(readings: Readings, chosen: Sequence[int]) -> list[int]:
    """Leave out boards whose place (cluster, host, index) is taken by one that reports later."""
    frame = readings.frame
    best: dict[_Slot, float] = {}
    for i in chosen:
        slot = _slot_of(frame, i)
        best[slot] = max(best.get(slot, -np.inf), newest(frame, i))
    return [
        i
        for i in chosen
        if frame.entities[i].gpu is None
        or best[_slot_of(frame, i)] == -np.inf
        or best[_slot_of(frame, i)] - newest(frame, i) <= _REPLACED_S
    ]


def gone(known: Iterable[Place], readings: Readings) -> list[Place]:
    """Return the places of GPUs that a source knew of, and of which a frame has no reading.

    Places that another board has taken are left out.
    """
    frame = readings.frame
    seen = [i for i in range(len(frame)) if not silent(frame, i)]
    uuids = {frame.entities[i].uuid for i in seen}
    taken = {_slot_of(frame, i) for i in seen}
    out: dict[tuple[str, str], Place] = {}
    for place in known:
        slot = (place.cluster, place.host, place.gpu)
        there = place.uuid in uuids if place.uuid else slot in taken
        if place.key[1] and not there and (place.gpu is None or slot not in taken):
            out.setdefault(place.key, place)
    return list(out.values())


def _slot_of(frame: Frame, i: int) -> _Slot:
    entity = frame.entities[i]
    return (entity.cluster, entity.host, entity.gpu)
