"""Collectives of several devices on one clock: who comes last, and how long the others wait."""

from __future__ import annotations

import numpy as np

from engine.traces.collect import Collected
from engine.traces.gathered import DeviceData
from engine.traces.intervals import Ints
from engine.traces.model import Meeting

# Point-to-point calls pair two ranks, not all.
_PAIRWISE = ("sendrecv", "send", "recv")
_LEAST = 5
# Members of one collective run at the same time; if fewer do, the order does not match them.
_TOGETHER = 0.9
_NS_PER_MS = 1e6


def meeting(data: Collected) -> Meeting | None:
    """Match the collectives of all devices by name and order; None if they do not match."""
    devices = [d for d in data.devices.values() if d.met]
    if len(devices) < 2:
        return None
    rows = {d.index: _by_name(data, d) for d in devices}
    names = sorted(set.intersection(*(set(found) for found in rows.values())))
    matched: list[tuple[Ints, Ints]] = []
    for name in names:
        columns = [found[name] for found in rows.values()]
        if len({starts.size for starts, _ in columns}) != 1:
            continue
        starts, ends = (np.stack(part) for part in zip(*columns, strict=True))
        matched.append((starts, ends))
    if not matched:
        return None
    starts = np.concatenate([m[0] for m in matched], axis=1)
    ends = np.concatenate([m[1] for m in matched], axis=1)
    together = starts.max(axis=0) < ends.min(axis=0)
    if starts.shape[1] < _LEAST or together.mean() < _TOGETHER:
        return None
    starts, ends = starts[:, together], ends[:, together]
    spread = starts.max(axis=0) - starts.min(axis=0)
    total = int((ends.max(axis=0) - starts.min(axis=0)).sum())
    late = np.argmax(starts, axis=0)
    counts = np.bincount(late, minlength=len(rows))
    last = int(np.argmax(counts))
    waited = (starts.max(axis=0)[None, :] - starts).sum(axis=1)
    waited[last] = 0
    return Meeting(
        collectives=int(starts.shape[1]),
        total_ms=round(total / _NS_PER_MS, 6),
        spread_percent=round(100.0 * int(spread.sum()) / total, 4) if total else 0.0,
        late_device=list(rows)[last],
        late_percent=round(100.0 * int(counts[last]) / starts.shape[1], 4),
        waited_ms=round(int(waited.max()) / _NS_PER_MS, 6),
    )


def _by_name(data: Collected, device: DeviceData) -> dict[int, tuple[Ints, Ints]]:
    """Return the collectives of a device in order, by the number of their kernel."""
    starts, ends, numbers = (np.concatenate(c) for c in zip(*device.meetings, strict=True))
    out = {}
    for number in np.unique(numbers).tolist():
        name = data.names.name(number).lower()
        if any(word in name for word in _PAIRWISE):
            continue
        mine = numbers == number
        order = np.argsort(starts[mine], kind="stable")
        out[number] = (starts[mine][order], ends[mine][order])
    return out
