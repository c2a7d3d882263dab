"""One UUID in two places: a board that moved, or two machines that claim the same one.

A board that moved to another slot or node in the window belongs to where it was seen last. What
reports from two hosts at the same time cannot be one board (a cloned machine, labels that a rewrite
of targets put on the wrong series): both are judged, each by its own readings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.samples import Matcher
from engine.signals.labels import HOST_LABELS, Place, first, host_of_instance
from engine.signals.pieces import Identity, Piece

# Seen in two places within this, it is not known which was the later (s).
AT_ONCE_S = 60.0


@dataclass(slots=True)
class _Machine:
    """What speaks for a board on one machine: its names, its exporters, its time (Unix s)."""

    names: set[str] = field(default_factory=set)
    exporters: set[tuple[str, bool]] = field(default_factory=set)
    pieces: list[Piece] = field(default_factory=list)
    oldest: float = np.inf
    newest: float = -np.inf

    def add(self, piece: Piece, addresses: Mapping[str, str]) -> None:
        labels = piece.series.labels
        named = first(labels, HOST_LABELS) is not None
        address = host_of_instance(labels.get("instance")) or ""
        names = {piece.tag.place.host or "", address, addresses.get(address, "")}
        names |= {labels.get(label, "") for label in HOST_LABELS}
        self.names |= {name.lower() for name in names if name}
        self.exporters.add((piece.spelling.exporter, named))
        self.pieces.append(piece)
        if piece.series.ts.size:
            self.oldest = min(self.oldest, float(piece.series.ts[0]))
            self.newest = max(self.newest, float(piece.series.ts[-1]))

    def join(self, other: _Machine) -> None:
        self.names |= other.names
        self.exporters |= other.exporters
        self.pieces += other.pieces
        self.oldest = min(self.oldest, other.oldest)
        self.newest = max(self.newest, other.newest)

    def beside(self, other: _Machine) -> bool:
        """Return whether both report now, by exporters that name their host in the same way."""
        if not self.exporters & other.exporters or self.newest == -np.inf:
            return False
        single = AT_ONCE_S if min(_span(self), _span(other)) == 0 else 0.0
        overlap = max(self.oldest, other.oldest) <= min(self.newest, other.newest) + single
        return overlap and abs(self.newest - other.newest) <= AT_ONCE_S


def _span(machine: _Machine) -> float:
    return machine.newest - machine.oldest


def _same(one: _Machine, other: _Machine) -> bool:
    """Return whether two are one machine: a name of both, or one with and without its domain."""
    return any(
        a == b or a == b.partition(".")[0] or a.partition(".")[0] == b
        for a in one.names
        for b in other.names
    )


def apart(
    pieces: Mapping[str, list[Piece]], places: list[list[Place]], addresses: Mapping[str, str]
) -> list[str]:
    """Make two GPUs of a UUID that two hosts report at the same time, and say so.

    Args:
        pieces: series by signal; ``owner`` is an index into ``places``, and changed here.
        places: what the labels of each GPU's series said; GPUs are added here.
        addresses: scrape address to host (`engine.signals.hosts`).
    """
    several = {i for i, group in enumerate(places) if len({p.host for p in group if p.host}) > 1}
    if not several:
        return []
    found: dict[int, dict[str, _Machine]] = {}
    for some in pieces.values():
        for piece in some:
            if piece.tag.owner in several and piece.tag.place.host:
                by_host = found.setdefault(piece.tag.owner, {})
                by_host.setdefault(piece.tag.place.host, _Machine()).add(piece, addresses)
    said = []
    for owner, by_host in sorted(found.items()):
        machines = _distinct(by_host[host] for host in sorted(by_host))
        latest = max(machines, key=lambda m: m.newest)
        twins = [m for m in machines if m is not latest and m.beside(latest)]
        if not twins or not places[owner][0].uuid:
            continue
        everyone = sorted([latest, *twins], key=lambda m: str(m.pieces[0].tag.place.host))
        for k, machine in enumerate(everyone):
            mine = {id(piece.tag.place): piece.tag.place for piece in machine.pieces}
            if k:
                places[owner] = [p for p in places[owner] if id(p) not in mine]
                places.append(list(mine.values()))
            for tag in {id(piece.tag): piece.tag for piece in machine.pieces}.values():
                tag.owner = len(places) - 1 if k else owner
                tag.identity = _with_host(tag.identity)
        board = places[owner][0].uuid or ""
        said.append(twice(board, [_name(m.pieces[0].tag.place) for m in everyone]))
    return said


def twice(uuid: str, names: Sequence[str]) -> str:
    """Return the warning about a UUID that several GPUs report under."""
    return (
        f"{uuid} reports from {' and '.join(names)} at the same time: they are judged as "
        f"{len(names)} GPUs; look for a cloned machine, or for a host label on the wrong series"
    )


def _distinct(machines: Iterable[_Machine]) -> list[_Machine]:
    """Put together what names the same machine in several ways."""
    out: list[_Machine] = []
    for machine in machines:
        for same in [m for m in out if _same(m, machine)]:
            machine.join(same)
            out.remove(same)
        out.append(machine)
    return out


def _with_host(identity: Identity) -> Identity:
    """Return what gives the same matchers, and one for the host if there is none."""

    def with_host(labels: Mapping[str, str]) -> tuple[Matcher, ...]:
        found = identity(labels)
        label = next((name for name in (*HOST_LABELS, "instance") if labels.get(name)), None)
        if label is None or any(m.label == label for m in found):
            return found
        return (*found, Matcher(label, "=", labels[label]))

    return with_host


def _name(place: Place) -> str:
    return f"{place.host}" if place.gpu is None else f"{place.host}:{place.gpu}"


def moved(pieces: Mapping[str, list[Piece]], places: Sequence[list[Place]]) -> list[str]:
    """Put the place that a board was last seen in first, and say that it moved.

    Args:
        pieces: series by signal; ``owner`` is an index into ``places``.
        places: what the labels of each GPU's series said; put in order here.
    """
    several = {
        i for i, group in enumerate(places) if len({(p.host, p.gpu) for p in group if p.host}) > 1
    }
    if not several:
        return []
    newest: dict[tuple[int, str | None, int | None], float] = {}
    for some in pieces.values():
        for piece in some:
            if piece.tag.owner in several and piece.series.ts.size:
                key = (piece.tag.owner, piece.tag.place.host, piece.tag.place.gpu)
                newest[key] = max(newest.get(key, -np.inf), float(piece.series.ts[-1]))
    said = []
    for i in sorted(several):
        group = places[i]
        group.sort(key=lambda p, i=i: -newest.get((i, p.host, p.gpu), -np.inf))  # type: ignore[misc]
        seats = list(dict.fromkeys((p.host, p.gpu) for p in group if p.host and p.gpu is not None))
        last = [newest.get((i, *seat), -np.inf) for seat in seats]
        if len(seats) > 1 and last[0] - last[1] > AT_ONCE_S and group[0].uuid:
            (host, gpu), (old, index) = seats[0], seats[1]
            said.append(f"{group[0].uuid} moved from {old}:{index} to {host}:{gpu} in the window")
    return said
