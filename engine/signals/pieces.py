"""Series on their way into columns, and where each column of an entity was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from engine.catalogue.types import Spelling
from engine.samples import Matcher, Origin, RawSeries
from engine.signals.labels import Place

_Key = tuple[str, int]


@dataclass(slots=True)
class Piece:
    """One series on its way into a column.

    Attributes:
        owner: index of its GPU.
        series: the samples.
        spelling: the name and unit it was found under.
        exporter: what it was scraped from, as warnings call it.
        place: what its labels say.
        identity: the fewest label matchers that find its GPU again.
        scale: factor to the signal's unit.
    """

    owner: int
    series: RawSeries
    spelling: Spelling
    exporter: str
    place: Place
    identity: tuple[Matcher, ...]
    scale: float


def origin(piece: Piece) -> Origin:
    """Return the name and the labels that find a series again."""
    matchers, match = piece.identity, piece.spelling.match
    if match:
        matchers += tuple(Matcher(name, "=", value) for name, value in match.items())
    return Origin(piece.series.name, matchers, piece.scale)


class Origins(MutableMapping[_Key, Origin]):
    """Where each signal of each entity was found: (signal, entity index) to `Origin`.

    Of a fleet's tens of thousands of origins the queries of an answer show a few: each is made when
    it is asked for.
    """

    def __init__(self, known: Mapping[_Key, Origin], pieces: Mapping[str, Sequence[Piece]]) -> None:
        """Take what is known, and of each signal the first piece of every owner."""
        self._known = dict(known)
        self._pieces = {
            name: {piece.owner: piece for piece in reversed(some)} for name, some in pieces.items()
        }

    def __getitem__(self, key: _Key) -> Origin:
        found = self._known.get(key)
        if found is None:
            name, owner = key
            found = self._known[key] = origin(self._pieces[name][owner])
        return found

    def __setitem__(self, key: _Key, value: Origin) -> None:
        self._known[key] = value

    def __delitem__(self, key: _Key) -> None:
        name, owner = key
        made = self._known.pop(key, None)
        if self._pieces.get(name, {}).pop(owner, None) is None and made is None:
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        if key in self._known:
            return True
        return isinstance(key, tuple) and key[1] in self._pieces.get(key[0], ())

    def __iter__(self) -> Iterator[_Key]:
        yield from self._known
        for name, some in self._pieces.items():
            for owner in some:
                if (name, owner) not in self._known:
                    yield name, owner

    def __len__(self) -> int:
        return sum(1 for _ in self)
