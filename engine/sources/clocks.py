"""Whose clock is ahead: the newest time of a file must not be one that only a wrong clock shows.

A host that stopped ends before the others but began with them; one whose clock is wrong lies apart
as a whole. Where few hosts lie ahead of the rest, their times are moved back to those of the rest.
Where the halves are equal nobody can tell: that is said, and the newest time counts.
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

    def tell(self) -> Told:
        """Say which time is now, and whose clock is ahead."""
        seen = np.isfinite(self.newest)
        latest = float(self.newest.max(where=seen, initial=-np.inf))
        names = self.hosts
        there = np.flatnonzero(seen & np.array([bool(name) for name in names], dtype=np.bool_))
        if there.size < 2:
            return Told(latest)
        oldest, newest = self._oldest[there], self.newest[there]
        # More than half of the hosts come as far as this, both if there are two.
        common = float(np.sort(newest)[::-1][there.size // 2])
        rest = np.abs(newest - common) <= _TOGETHER_S
        shifts = newest - common
        began = float(np.median(oldest[rest]))
        ahead = (shifts > LOOKBACK_S) & (np.abs(oldest - began - shifts) <= _TOGETHER_S)
        if not ahead.any():
            return Told(latest)
        found = {names[there[k]]: float(shifts[k]) for k in np.flatnonzero(ahead)}
        if len(found) >= np.count_nonzero(rest) or max(found.values()) > _MOST_S:
            behind = [names[k] for k in there[rest]]
            return Told(latest, warning=_either(found, behind, latest, common))
        seen[there[ahead]] = False
        moment = float(self.newest.max(where=seen, initial=-np.inf))
        return Told(moment, found, _ahead(found))


def _ahead(shifts: Mapping[str, float]) -> str:
    far = duration(round(max(shifts.values()), -1))
    by = far if len(shifts) == 1 else f"up to {far}"
    return (
        f"the clock of {_named(shifts)} is {by} ahead of all others: its readings are taken as so "
        "much earlier; set its clock right"
    )


def _either(ahead: Mapping[str, float], behind: list[str], latest: float, common: float) -> str:
    apart = duration(round(latest - common, -1))
    return (
        f"all times of {_named(behind)} lie {apart} before those of {_named(ahead)}: one of the "
        "clocks is wrong, or they were not recorded at the same time; the newest counts as now, "
        f"name another with --at {common:.0f}"
    )


def _named(hosts: Iterable[str]) -> str:
    return some(list(hosts))
