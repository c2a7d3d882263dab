"""Who a sweep asks about: which GPUs report, which fell silent, and how their series are labelled.

Exporters name hosts and GPUs by different labels. The hosts of one way of labelling make a
`Roster`, about which a server can be asked as a whole; a host whose labels are mixed up (two
exporters, a name in two clusters, a board that was swapped) is left to the raw samples.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.samples import Matcher
from engine.signals.labels import GPU_LABELS, HOST_LABELS, UUID_LABELS, Place, locate

# Which label names the host of a series: the first of these that it has.
WHERE = (*HOST_LABELS, "instance")

# A host as a server knows it: a label and its value.
Where = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """One combination of identifying labels, and what they say."""

    labels: Mapping[str, str]
    place: Place
    where: Where | None


def rows_of(found: Iterable[Mapping[str, str]]) -> list[Row]:
    """Read what the label sets of a source say."""
    return [Row(labels, locate(labels), _where(labels)) for labels in found]


def _where(labels: Mapping[str, str]) -> Where | None:
    label = next((name for name in WHERE if labels.get(name)), None)
    return (label, labels[label]) if label else None


@dataclass(slots=True)
class Roster:
    """The hosts and GPUs of one way of labelling.

    Attributes:
        entity: the labels that together name a GPU.
        host: the label that names its host.
        absent: labels that would count before these, and that no series of the roster has.
        keys: values of ``entity`` to the GPU's number.
        hosts: host to the numbers of its GPUs.
    """

    entity: tuple[str, ...]
    host: str
    absent: tuple[str, ...]
    keys: dict[tuple[str, ...], int] = field(default_factory=dict)
    hosts: dict[str, list[int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def matchers(self) -> tuple[Matcher, ...]:
        """What keeps series that are labelled otherwise out of a selector."""
        return tuple(Matcher(label, "=", "") for label in self.absent)

    def add(self, row: Row) -> None:
        """Take a GPU in."""
        key = tuple(row.labels[label] for label in self.entity)
        if key not in self.keys:
            self.keys[key] = len(self.keys)
            assert row.where is not None, "a roster is of named hosts"
            self.hosts.setdefault(row.where[1], []).append(self.keys[key])


_Shape = tuple[tuple[str, ...], str]


def _shape(row: Row) -> _Shape | None:
    """Return the labels that name the GPU and the host of a row; None if it names either not."""
    if row.where is None or row.place.host is None or not row.place.key[1]:
        return None
    host = row.where[0]
    for name in UUID_LABELS:
        if row.labels.get(name):
            return (name,), host
    index = next((name for name in GPU_LABELS if row.labels.get(name)), None)
    return ((index, host), host) if index else None


def _absent(shape: _Shape) -> tuple[str, ...]:
    (gpu, *_), host = shape
    before = WHERE[: WHERE.index(host)]
    if gpu in UUID_LABELS:
        return (*before, *UUID_LABELS[: UUID_LABELS.index(gpu)])
    return (*before, *UUID_LABELS, *GPU_LABELS[: GPU_LABELS.index(gpu)])


def rosters(rows: Sequence[Row], odd: Collection[Where]) -> list[Roster]:
    """Return the rosters of all hosts but the odd ones, the way with most hosts first."""
    found: dict[_Shape, Roster] = {}
    for row in rows:
        shape = _shape(row)
        if shape is None or row.where in odd:
            continue
        if shape not in found:
            found[shape] = Roster(*shape, _absent(shape))
        found[shape].add(row)
    return sorted(found.values(), key=lambda r: (-len(r.hosts), r.host, r.entity))


def odd_hosts(rows: Iterable[Row]) -> set[Where]:
    """Return the hosts about which a server cannot be asked as a whole.

    Those with several ways of labelling, a GPU in two places, two GPUs in one place, a GPU that
    two addresses tell of, an address or a name that stands for several hosts.
    """
    shapes, names, boards, slots, told, served = (_Ambiguous() for _ in range(6))
    odd: set[Where] = set()
    for row in rows:
        if row.where is None:
            continue
        place, shape = row.place, _shape(row)
        if shape is None:
            odd.add(row.where)
            continue
        shapes.note(row.where, shape, row.where)
        names.note(place.host, (row.where, place.cluster), row.where)
        boards.note(place.key[1], (row.where, place.gpu), row.where)
        told.note(place.key, place.instance, row.where)
        if place.gpu is not None:
            slots.note((row.where, place.gpu), place.key, row.where)
        if place.instance:
            served.note(place.instance, row.where, row.where)
    for each in (shapes, names, boards, slots, told, served):
        odd |= each.hosts()
    return odd


class _Ambiguous:
    """Names that should mean one thing each, and the hosts of those that mean several."""

    def __init__(self) -> None:
        self._meanings: dict[object, set[object]] = {}
        self._hosts: dict[object, set[Where]] = {}

    def note(self, name: object, meaning: object, where: Where) -> None:
        """Note one meaning of a name, found at a host."""
        self._meanings.setdefault(name, set()).add(meaning)
        self._hosts.setdefault(name, set()).add(where)

    def hosts(self) -> set[Where]:
        """Return the hosts of all names with several meanings."""
        several = [name for name, meanings in self._meanings.items() if len(meanings) > 1]
        return {where for name in several for where in self._hosts[name]}
