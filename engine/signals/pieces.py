"""Series on their way into columns, and where each column of an entity was found."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from engine.catalogue.types import Spelling
from engine.samples import Matcher, Origin, RawSeries
from engine.signals.labels import Place

_Key = tuple[str, int]
# Gives, for the labels of a series, the fewest label matchers that find its GPU again.
Identity = Callable[[Mapping[str, str]], tuple[Matcher, ...]]


@dataclass(slots=True)
class Tag:
    """What a set of labels tells, learnt once for all series that carry it.

    Attributes:
        owner: index of its GPU.
        place: what the labels say.
        exporter: what they were scraped from, as warnings call it.
        identity: gives, for such labels, the fewest label matchers that find the GPU again.
        newest: the time of the newest sample of all its series (Unix s), once that was looked up.
    """

    owner: int
    place: Place
    exporter: str
    identity: Identity
    newest: float = -math.inf


@dataclass(slots=True)
class Piece:
    """One series on its way into a column.

    Attributes:
        tag: what its labels tell.
        series: the samples.
        spelling: the name and unit it was found under.
        scale: factor to the signal's unit.
    """

    tag: Tag
    series: RawSeries
    spelling: Spelling
    scale: float


def origin(piece: Piece) -> Origin:
    """Return the name and the labels that find a series again."""
    matchers, match = piece.tag.identity(piece.series.labels), piece.spelling.match
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
        self._pieces = pieces
        self._firsts: dict[str, dict[int, Piece]] = {}

    def _of(self, signal: str) -> dict[int, Piece]:
        found = self._firsts.get(signal)
        if found is None:
            some = self._pieces.get(signal, ())
            found = self._firsts[signal] = {piece.tag.owner: piece for piece in reversed(some)}
        return found

    def __getitem__(self, key: _Key) -> Origin:
        found = self._known.get(key)
        if found is None:
            name, owner = key
            found = self._known[key] = origin(self._of(name)[owner])
        return found

    def __setitem__(self, key: _Key, value: Origin) -> None:
        self._known[key] = value

    def __delitem__(self, key: _Key) -> None:
        name, owner = key
        made = self._known.pop(key, None)
        if self._of(name).pop(owner, None) is None and made is None:
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        if key in self._known:
            return True
        return isinstance(key, tuple) and key[1] in self._of(key[0])

    def __iter__(self) -> Iterator[_Key]:
        yield from self._known
        for name in self._pieces:
            for owner in self._of(name):
                if (name, owner) not in self._known:
                    yield name, owner

    def __len__(self) -> int:
        return sum(1 for _ in self)
