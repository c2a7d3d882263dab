"""One board in two places: one that moved to another slot or node belongs to where it was last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.signals.labels import Place
from engine.signals.pieces import Piece

# Seen in two places within this, it is not known which was the later (s).
_AT_ONCE_S = 60.0


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
            if piece.owner in several and piece.series.ts.size:
                key = (piece.owner, piece.place.host, piece.place.gpu)
                newest[key] = max(newest.get(key, -np.inf), float(piece.series.ts[-1]))
    said = []
    for i in sorted(several):
        group = places[i]
        group.sort(key=lambda p, i=i: -newest.get((i, p.host, p.gpu), -np.inf))  # type: ignore[misc]
        seats = list(dict.fromkeys((p.host, p.gpu) for p in group if p.host and p.gpu is not None))
        last = [newest.get((i, *seat), -np.inf) for seat in seats]
        if len(seats) > 1 and last[0] - last[1] > _AT_ONCE_S and group[0].uuid:
            (host, gpu), (old, index) = seats[0], seats[1]
            said.append(f"{group[0].uuid} moved from {old}:{index} to {host}:{gpu} in the window")
    return said
