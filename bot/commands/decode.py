"""``decode``: say what one code, mask, field or name means.

Kept light: nothing beyond the standard library is imported on this path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from bot.answer import (
    Align,
    Answer,
    Block,
    Bullet,
    Bullets,
    Fields,
    Heading,
    Level,
    Line,
    Note,
    NoteKind,
    Table,
    Text,
    Tone,
    code,
    line,
    muted,
    strong,
)
from bot.commands import parts
from bot.phrases import some
from engine.model import Candidate, Decode, Item, Number, to_json

if TYPE_CHECKING:
    from engine.catalogue.types import Catalogue

_KINDS = {
    "throttle": "throttle mask",
    "xid": "Xid",
    "sxid": "SXid",
    "dcgm_field": "DCGM field",
    "metric": "metric",
    "nccl_variable": "NCCL variable",
}


def run(text: str, *, catalogue: Catalogue) -> Answer:
    """Decode one thing.

    Args:
        text: what was given, words joined by blanks.
        catalogue: the knowledge; rules are not needed.

    Raises:
        UsageError: the text is empty or too long.
    """
    from engine.decode import decode  # noqa: PLC0415 - keeps the formatting free of the engine

    return answer(decode(text, catalogue))


def answer(decoded: Decode) -> Answer:
    """Return what was decoded as an answer."""
    return Answer(
        title=_title(decoded),
        blocks=tuple(_blocks(decoded)),
        data=to_json(decoded),
        level=Level.CLEAR if decoded.candidates else Level.UNKNOWN,
    )


def _title(decoded: Decode) -> Line:
    if not decoded.candidates:
        return line(strong(decoded.input), ": ", strong("not known", Tone.WARNING))
    first, *others = decoded.candidates
    head = line(strong(decoded.input), " is ", *_named(first))
    if not others:
        return head
    also = some(("".join(s.text for s in _named(other)) for other in others), 4)
    return (*head, *line(f"; it may also be {also}"))


def _named(candidate: Candidate) -> Line:
    kind = _KINDS.get(candidate.kind, candidate.kind.replace("_", " "))
    value = _value(candidate.kind, candidate.value)
    if len(candidate.items) == 1 and candidate.kind != "throttle":
        item = candidate.items[0]
        same = item.name in {value, f"{kind} {value}"}
        title = (item.extra or {}).get("title") or item.meaning
        names = [title.removeprefix(f"{value}: ") if same else item.name]
    else:
        names = [item.id for item in candidate.items]
    return line(f"{kind} ", code(value), f": {some(names)}" if any(names) else "")


def _value(kind: str, value: Number) -> str:
    if kind == "throttle" and isinstance(value, int):
        return f"{value:#x}"
    return "" if value is None else str(value)


def _blocks(decoded: Decode) -> Iterator[Block]:
    several = len(decoded.candidates) > 1
    for candidate in decoded.candidates:
        if several:
            yield Heading(line("As ", *_named(candidate)))
        yield from _candidate(candidate)
    if decoded.nearest:
        yield Text(line("Did you mean: ", ", ".join(decoded.nearest)))


def _candidate(candidate: Candidate) -> Iterator[Block]:
    if candidate.kind == "throttle" and candidate.value == 0:
        yield Text(line("No reason is set: nothing holds the clocks down."))
    if len(candidate.items) == 1:
        yield from _single(candidate.items[0])
    elif candidate.items:
        yield from _several(candidate.items)
    if candidate.unknown_bits:
        said = f"bits {candidate.unknown_bits:#x} have no known meaning"
        yield Note(NoteKind.WARNING, line(said))
    for erratum in candidate.errata:
        yield Note(NoteKind.INFO, line(erratum))
    if candidate.sources:
        yield Text(line(muted("Sources: " + "; ".join(candidate.sources))))


def _single(item: Item) -> Iterator[Block]:
    yield Text(line(strong(item.name), f": {item.meaning}" if item.meaning else ""))
    pairs = tuple(_facts(item))
    if pairs:
        yield Fields(pairs)


def _facts(item: Item) -> Iterator[tuple[str, Line]]:
    if item.severity:
        yield "severity", line(parts.severity(item.severity))
    if item.class_:
        yield "class", line(item.class_)
    if item.bit is not None:
        yield "bit", line(f"{item.bit:#x} ({item.bit})")
    if item.unit:
        yield "unit", line(item.unit)
    if item.action:
        yield "action", line(item.action)
    for name, value in _told(item.extra).items():
        yield name.replace("_", " "), line(words(value))


def _several(items: tuple[Item, ...]) -> Iterator[Block]:
    yield Table(
        columns=("bit", "id", "class", "severity", "meaning"),
        rows=tuple(
            (
                line("" if item.bit is None else f"{item.bit:#x}"),
                line(code(item.id)),
                line(item.class_ or ""),
                line(parts.severity(item.severity or "")),
                line(item.meaning or item.name),
            )
            for item in items
        ),
        align=(Align.RIGHT, Align.LEFT, Align.LEFT, Align.LEFT, Align.LEFT),
    )
    yield Heading(line("What to do"), 2)
    yield Bullets(tuple(_advice(item) for item in items))


def _advice(item: Item) -> Bullet:
    known = [
        f"{name.replace('_', ' ')}: {words(value)}" for name, value in _told(item.extra).items()
    ]
    under = (Bullet(line(muted("; ".join(known)))),) if known else ()
    return Bullet(line(code(item.id), f": {item.action or 'nothing'}"), under)


def _told(extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what is worth showing: empty values say nothing."""
    return {k: v for k, v in (extra or {}).items() if v not in (None, "", [], {}, ())}


def words(value: Any) -> str:
    """Return a JSON value as people read it: lists with commas, mappings as name=value."""
    if isinstance(value, dict):
        return ", ".join(f"{key}={words(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(words(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
