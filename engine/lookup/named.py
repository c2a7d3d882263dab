"""What a question names outright: an Xid, a field, a bit of a mask, a metric, a flag."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from engine.catalogue.nearest import fold
from engine.lookup.card import Card

_CODE = re.compile(
    r"\b(?P<kind>sxids?|(?:\w*_)?xid_errors|xids?|fields?(?:\s+ids?)?|throttle|throttling"
    r"|clocks?[ _-]events?|mask|bitmask|reasons?|bit)"
    r"(?:[\s:=#,]+|\s+(?:is|of|id|code|number|errors?|bit|mask|reasons?|value)\b[\s:=#]*){1,3}"
    r"(?P<number>0x[0-9a-f]{1,16}|\d{1,6})\b"
    r"(?P<more>(?:\s*(?:,|/|and|or|vs\.?|versus|&)\s*(?:0x[0-9a-f]{1,16}|\d{1,6})\b)*)",
    re.IGNORECASE,
)
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+", re.IGNORECASE)
_HEX = re.compile(r"\b0x[0-9a-f]{1,16}\b", re.IGNORECASE)
# Names that nobody writes by chance: with an underscore, a colon or a leading dash.
_IDENTIFIER = re.compile(r"--[a-z][\w-]+|\b[A-Za-z][\w.]*(?:[_:][\w.]+)+")
_SHORTEST = 5
_SUFFIXES = ("_bucket", "_sum", "_count", "_total")


class Names:
    """Finds the cards that a question names."""

    def __init__(self, cards: Iterable[Card]) -> None:
        self._by_name: dict[str, list[int]] = {}
        self._by_key: dict[str, int] = {}
        self._bits: dict[int, int] = {}
        for number, card in enumerate(cards):
            self._by_key[card.key] = number
            for name in card.names:
                self._by_name.setdefault(fold(name), []).append(number)
            if card.concern == "throttle_reasons":
                self._bits[int(card.raw["bit"])] = number

    def codes(self, question: str) -> frozenset[int]:
        """Return the cards whose number a question gives: an Xid, a field, the bits of a mask."""
        return frozenset(self._codes(question))

    def identifiers(self, question: str) -> frozenset[int]:
        """Return the cards with a name in a question that nobody writes by chance."""
        return frozenset(self._identifiers(question))

    def _codes(self, question: str) -> Iterator[int]:
        for found in _CODE.finditer(question):
            kind = found["kind"].lower()
            for number in _NUMBERS.findall(f"{found['number']} {found['more']}"):
                yield from self._coded(kind, int(number, 0) if "x" in number else int(number))
        for hexadecimal in _HEX.findall(question):
            yield from self._of_mask(int(hexadecimal, 16))

    def _coded(self, kind: str, value: int) -> Iterator[int]:
        """Yield the cards that a number of a kind means."""
        concern = ""
        if kind.startswith("sxid"):
            concern = "sxid"
        elif "xid" in kind:
            concern = "xid"
        elif kind.startswith("field"):
            concern = "dcgm_fields"
        if not concern:
            yield from self._of_mask(value)
        elif f"{concern}/{value}" in self._by_key:
            yield self._by_key[f"{concern}/{value}"]

    def _of_mask(self, value: int) -> Iterator[int]:
        """Yield the bits of a mask, if all of them are known."""
        bits = [number for bit, number in self._bits.items() if bit & value]
        if value and not value & ~sum(self._bits):
            yield from bits

    def _identifiers(self, question: str) -> Iterator[int]:
        for word in _IDENTIFIER.findall(question):
            name = fold(word.rstrip(".:"))
            if len(name) < _SHORTEST:
                continue
            for form in (name, *(name.removesuffix(s) for s in _SUFFIXES if name.endswith(s))):
                if form in self._by_name:
                    yield from self._by_name[form]
                    break
