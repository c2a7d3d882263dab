"""Messages that NCCL, RCCL and PyTorch print, found by the knowledge base and put into its words.

An entry of ``nccl_messages`` or ``torch_messages`` names texts that stand in the message
(``match``; all of ``also``), where in the source it is printed (``place``), and an expression whose
named groups are decoded. Groups called ``NAME_1``, ``NAME_2`` become the list ``NAME``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from engine.catalogue.types import Catalogue
from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl.lines import NcclLine, Places
from engine.readers.nccl.told import ORDER, Told

# What is decoded is quoted in answers, so no longer than this; a message has 1 KiB at most.
_LONGEST = 200
_MESSAGE = 4_096
# For what a line leaves out: in a sentence, and in a command.
_UNNAMED: Final = {
    "hca": "an RDMA device",
    "peer": "a peer",
    "error_text": "no reason is given",
}
_TO_FILL_IN: Final = {"hca": "HCA", "peer": "PEER", "rank": "RANK"}
_FIELD = re.compile(r"\{(\w{1,40})\}")
_NUMBERED = re.compile(r"(\w{1,40})_(\d)")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


@dataclass(frozen=True, slots=True)
class Message:
    """One kind of message."""

    id: str
    match: tuple[str, ...]
    also: tuple[str, ...]
    places: tuple[str, ...]
    pattern: re.Pattern[str] | None
    strict: bool
    texts: frozenset[str]
    entry: Mapping[str, Any]

    @property
    def role(self) -> str:
        """``root``, ``symptom``, ``effect`` or ``note``: in which order it is told."""
        return str(self.entry["role"])


@dataclass(slots=True)
class Seen:
    """A message that was printed, how often and where, with the values of its first line."""

    message: Message
    values: dict[str, Any]
    places: Places
    others: dict[str, None] = field(default_factory=dict)


class Messages:
    """Finds messages and gathers them, one record a kind (and value of ``per``), bounded."""

    LIMIT = 1_024

    def __init__(self, catalogue: Catalogue, concern: str) -> None:
        self._known = [_message(e) for e in catalogue.entries.get(concern, {}).values()]
        self.seen: dict[tuple[str, str], Seen] = {}
        self.overflow = 0
        self._memo: dict[tuple[str, str], Message | None] = {}

    def feed(self, line: NcclLine) -> bool:
        """Take a line; return whether the knowledge base has its message."""
        text = line.text[:_MESSAGE]
        message = self._message_of(text, line.place)
        if message is not None:
            self._add(message, line, text)
        return message is not None

    def _message_of(self, text: str, place: str) -> Message | None:
        """Return the message that a text is; the same text comes again and again."""
        key = (text, place)
        if key in self._memo:
            return self._memo[key]
        found = next((m for m in self._known if _is(m, text, place)), None)
        if len(self._memo) < self.LIMIT:
            self._memo[key] = found
        return found

    def has(self, *ids: str) -> bool:
        """Whether a message of one of these ids was printed."""
        return any(id_ in ids for id_, _ in self.seen)

    def tell(self) -> Iterator[Told]:
        """Yield a finding for every kind of message."""
        for seen in self.seen.values():
            yield Told(ORDER[seen.message.role], seen.places.line, _finding(seen))

    def _add(self, message: Message, line: NcclLine, text: str) -> None:
        values = _values(message, text)
        per = str(values.get(str(message.entry.get("per", "")), ""))
        key = (message.id, per)
        seen = self.seen.get(key)
        if seen is None:
            if len(self.seen) >= self.LIMIT:
                self.overflow += 1
                return
            seen = self.seen[key] = Seen(message, values, Places(line.number))
        seen.places.add(line)
        for name in ("peer", "rank"):
            other = values.get(name)
            if other is not None and len(seen.others) < self.LIMIT:
                seen.others.setdefault(str(other))
        for name, value in values.items():
            seen.values.setdefault(name, value)


def printable(text: str, longest: int = _LONGEST) -> str:
    """Return a piece of the input that may be quoted: one line, no control characters, short."""
    clean = _UNPRINTABLE.sub(" ", text).strip()
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def number(text: str) -> int | None:
    """Return a decimal number of at most 18 digits, None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def filled(
    template: str, values: Mapping[str, Any], unnamed: Mapping[str, str] | None = None
) -> str:
    """Put values into ``{name}`` fields.

    Args:
        template: the text.
        values: by name.
        unnamed: words for fields without a value; others are left as ``?``.
    """
    without = unnamed or {}
    return _FIELD.sub(
        lambda m: str(values.get(m[1], without.get(m[1], "?"))), " ".join(template.split())
    )


def _message(entry: Mapping[str, Any]) -> Message:
    pattern = entry.get("pattern")
    return Message(
        id=str(entry["id"]),
        match=tuple(entry["match"]),
        also=tuple(entry.get("also", ())),
        places=tuple(entry.get("place", ())),
        pattern=re.compile(pattern) if pattern else None,
        strict=bool(entry.get("strict")),
        texts=frozenset(entry.get("texts", ())),
        entry=entry,
    )


def _is(message: Message, text: str, place: str) -> bool:
    return (
        any(word in text for word in message.match)
        and all(word in text for word in message.also)
        and (not message.places or any(p in place for p in message.places))
        and not (message.strict and (not message.pattern or not message.pattern.search(text)))
    )


def _values(message: Message, text: str) -> dict[str, Any]:
    found = message.pattern.search(text) if message.pattern else None
    values: dict[str, Any] = {}
    for name, raw in (found.groupdict() if found else {}).items():
        if raw is None:
            continue
        as_number = None if name in message.texts else number(raw)
        values[name] = printable(raw) if as_number is None else as_number
    return values


def _finding(seen: Seen) -> Finding:
    entry, places = seen.message.entry, seen.places
    says = filled(str(entry["says"]), seen.values, _UNNAMED)
    where = places.words()
    if where:
        says += f" Printed {where}."
    if places.count > 1:
        says += f" Seen {places.count} times."
    if len(seen.others) > 1:
        says += f" Others named: {', '.join(list(seen.others)[1:6])}."
    data: dict[str, Any] = {}
    for name, value in seen.values.items():
        numbered = _NUMBERED.fullmatch(name)
        if numbered:
            data.setdefault(numbered[1], []).append(value)
        else:
            data[name] = value
    data.update(entry.get("data", {}))
    data["count"] = places.count
    return Finding(
        kind="torch" if seen.message.id.startswith("torch_") else "nccl",
        id=seen.message.id,
        severity=Severity(entry["severity"]),
        says=says,
        action=filled(str(entry["action"]), seen.values, _TO_FILL_IN),
        entity=entity(places, seen.values.get("rank")),
        line=places.line,
        cause=entry.get("cause"),
        data=data,
        sources=tuple(entry["source"]),
    )


def entity(places: Places, rank: object = None) -> Entity | None:
    """Return the rank or the machine that a message is about, None if the lines do not say."""
    if isinstance(rank, int):
        return Entity(Kind.RANK, f"rank {rank}", host=places.host, rank=rank)
    host = places.host
    return Entity(Kind.NODE, host, host=host) if host else None
