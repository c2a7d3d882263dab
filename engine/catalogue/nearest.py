"""Names close to a mistyped one, for the "did you mean" of an error.

Uses the standard library, so that ``gpuwhy decode`` needs nothing else to start.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_SHORTEST = 3
_LONGEST = 80


def nearest(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Return up to ``count`` known names that a name begins or resembles, best first.

    Case, hyphens and spaces do not matter. Ties are broken by the alphabet, so that the answer
    never depends on the order of ``known``.
    """
    by_folded: dict[str, str] = {}
    for candidate in sorted(known, reverse=True):
        by_folded[fold(candidate)] = candidate
    folded = sorted(by_folded, key=lambda text: (len(text), text))
    wanted = fold(name)[:_LONGEST]
    begun = [text for text in folded if len(wanted) >= _SHORTEST and text.startswith(wanted)]
    close = get_close_matches(wanted, sorted(folded), n=count, cutoff=0.65)
    best = dict.fromkeys((*begun[:count], *close))
    return tuple(by_folded[text] for text in list(best)[:count])


def fold(name: str) -> str:
    """Return a name without what people vary: case, spaces, hyphens, dots against underscores."""
    return "_".join(name.casefold().translate(_SEPARATORS).split())


_SEPARATORS = str.maketrans({"-": " ", ".": " ", "_": " ", "/": " "})


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str = "") -> str:
    """Return ``did you mean 'x'?`` for the nearest known name, or a text for when there is none."""
    best = nearest(name, known, 1)
    return f"did you mean '{best[0]}'?" if best else otherwise
