"""Whose clock is ahead: the newest time of a file must not be one that only a wrong clock shows.

No sample is from after the moment its file was written: hosts whose times lie beyond it have a
clock that is ahead, and where the others go up to that moment their times are moved back to those.
Without that proof nobody can tell such a host from one that goes on where the others stopped: that
is said where a host lies apart as a whole, and the newest time counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.samples import LOOKBACK_S, Floats
from engine.signals.labels import HOST_LABELS, first, host_of_instance
from engine.sources.text import some
from engine.units import duration

Ids = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Scrapes of a minute end as far apart as this without anything being wrong (s).
_TOGETHER_S = 120.0
# So far a clock may be ahead; what lies further apart was rather recorded at another time (s).
_MOST_S = 7200.0
_HOST_LABEL = re.compile(
    rf'(?<![A-Za-z0-9_])({"|".join((*HOST_LABELS, "instance"))})="([^"\\]*)"'.encode()
)


@dataclass(frozen=True, slots=True)
class Told:
    """What the times of all hosts say together.

    Attributes:
        newest: the newest time that counts (Unix s), -inf if there is none.
        shifts: by how much the clock of a host is ahead (s).
        warning: what to say, empty for nothing.
    """

    newest: float = -np.inf
    shifts: Mapping[str, float] = field(default_factory=dict)
    warning: str = ""


class Clocks:
    """The oldest and the newest time (Unix s) that each host's samples have."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._written: dict[tuple[tuple[bytes, bytes], ...], int] = {}
        self._oldest: Floats = np.empty(0)
        self.newest: Floats = np.empty(0)

    @property
    def hosts(self) -> list[str]:
        """The hosts by number; what names none is the host ``""``, which nobody judges."""
        return list(self._numbers)

    def number(self, labels: Mapping[str, str]) -> int:
        """Return the number of the host that some labels name."""
        host = first(labels, HOST_LABELS)
        if host is None or host.isdigit():  # node="0" is a NUMA node
            host = host_of_instance(labels.get("instance")) or ""
        number = self._numbers.setdefault(host, len(self._numbers))
        if number == self.newest.size:
            self._oldest = np.append(self._oldest, np.inf)
            self.newest = np.append(self.newest, -np.inf)
        return number

    def number_in(self, head: bytes) -> int:
        """Return the number of the host that the text of a series names."""
        written = tuple(_HOST_LABEL.findall(head))
        known = self._written.get(written)
        if known is None:
            labels = {label.decode(): host.decode(errors="replace") for label, host in written}
            known = self._written[written] = self.number(labels)
        return known

    def note(self, hosts: Ids, stamps: Floats) -> None:
        """Note times of samples, by the numbers of their hosts."""
        np.fmax.at(self.newest, hosts, stamps)
        np.fmin.at(self._oldest, hosts, stamps)

    def tell(self, written: float | None = None) -> Told:
        """Say which time is now, and whose clock is ahead.

        Args:
            written: when the newest of the files was written (Unix s), None if nobody knows.
        """
        seen = np.isfinite(self.newest)
        latest = float(self.newest.max(where=seen, initial=-np.inf))
        names = self.hosts
        there = np.flatnonzero(seen & np.array([bool(name) for name in names], dtype=np.bool_))
        if there.size < 2:
            return Told(latest)
        oldest, newest = self._oldest[there], self.newest[there]
        if written is not None:
            wrong = newest > written + _TOGETHER_S
            shifts = _proven(oldest, newest, wrong, written)
            if shifts is not None:
                seen[there[wrong]] = False
                moment = float(self.newest.max(where=seen, initial=-np.inf))
                found = {names[there[k]]: float(shifts[k]) for k in np.flatnonzero(wrong)}
                return Told(moment, found, _ahead(found))
        # More than half of the hosts come as far as this, both if there are two.
        common = float(np.sort(newest)[::-1][there.size // 2])
        rest = np.abs(newest - common) <= _TOGETHER_S
        apart = (newest - common > LOOKBACK_S) & _as_a_whole(oldest, newest, rest, common)
        if not apart.any():
            return Told(latest)
        ahead, behind = ([names[k] for k in there[some_]] for some_ in (apart, rest))
        return Told(latest, warning=_either(ahead, behind, latest, common))


def _proven(oldest: Floats, newest: Floats, wrong: Bools, written: float) -> Floats | None:
    """Return how far the clocks that must be wrong are ahead of the others (s).

    None if none is wrong, or it is not told by how much: the others ended long before the files
    were written, or the span of a host is another one than theirs.
    """
    if not wrong.any() or wrong.all():
        return None
    now = float(newest[~wrong].max())
    shifts = newest - now
    if now < written - LOOKBACK_S or float(shifts[wrong].max()) > _MOST_S:
        return None
    together = ~wrong & (now - newest <= _TOGETHER_S)
    whole = _as_a_whole(oldest, newest, together, now)
    return shifts if whole[wrong].all() else None


def _as_a_whole(oldest: Floats, newest: Floats, rest: Bools, end: float) -> Bools:
    """Return which hosts began as much later than the rest as they end after ``end``."""
    began = float(np.median(oldest[rest]))
    whole: Bools = np.abs(oldest - began - (newest - end)) <= _TOGETHER_S
    return whole


def _ahead(shifts: Mapping[str, float]) -> str:
    far = duration(round(max(shifts.values()), -1))
    by = far if len(shifts) == 1 else f"up to {far}"
    return (
        f"the clock of {_named(shifts)} is {by} ahead of all others: its readings are taken as so "
        "much earlier; set its clock right"
    )


def _either(ahead: list[str], behind: list[str], latest: float, common: float) -> str:
    apart = duration(round(latest - common, -1))
    return (
        f"all times of {_named(behind)} lie {apart} before those of {_named(ahead)}: they stopped, "
        "one of the clocks is wrong, or they were not recorded at the same time; the newest counts "
        f"as now, name another with --at {common:.0f}"
    )


def _named(hosts: Iterable[str]) -> str:
    return some(list(hosts))
