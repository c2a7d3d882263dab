"""A knowledge entry as blocks of an answer: text, commands, metrics, cautions, errata, sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.answer import (
    Align,
    Block,
    Code,
    Fields,
    Heading,
    Note,
    NoteKind,
    Steps,
    Table,
    Text,
    bullets,
    code,
    line,
    muted,
)
from engine.lookup.card import Card
from engine.lookup.model import AskAnswer, Calculation, Quantity, Reading, Run
from engine.lookup.placeholders import fill
from engine.model import Step
from engine.units import number


def blocks(
    answer: AskAnswer,
    card: Card,
    values: Mapping[str, str] | None = None,
    *,
    brief: bool = False,
) -> Iterator[Block]:
    """Yield an entry, the things to do and to look at first; ``brief`` leaves out bare facts."""
    yield Text(line(answer.text))
    yield from commands(answer.runs)
    if answer.readings:
        yield Heading(line("Look at"), 2)
        yield bullets(line(code(r.name), reading(r)) for r in answer.readings)
    yield from _structured(card, values, brief=brief)
    yield from notes(answer)


def commands(runs: Sequence[Run]) -> Iterator[Block]:
    """Yield commands to paste, each with what it does, needs and costs."""
    if runs:
        yield Heading(line("Run"), 2)
        yield Steps(tuple(Step(_does(run), run.command, run.argv, run.risk) for run in runs))


def notes(answer: AskAnswer) -> Iterator[Block]:
    """Yield what to beware of, what replaced it, what is told wrongly, and the sources."""
    if answer.caution:
        yield Note(NoteKind.WARNING, line(_flat(answer.caution)))
    if answer.instead:
        yield Note(NoteKind.INFO, line(f"Instead: {_flat(answer.instead)}"))
    if answer.versions:
        yield Note(NoteKind.INFO, line(f"Versions: {_flat(answer.versions)}"))
    for erratum in answer.errata:
        yield Note(NoteKind.INFO, line(f"Often told otherwise: {erratum}"))
    if answer.status != "confirmed":
        doubt = "Rests on one source" if answer.status == "single" else "Sources disagree on this"
        yield Note(NoteKind.INFO, line(doubt))
    if answer.sources:
        yield Text(line(muted("Sources: " + "; ".join(answer.sources))))


def reading(found: Reading) -> str:
    """Return what stands behind a metric's name: field, unit, healthy and problem values."""
    about = [f"DCGM field {found.field}"] if found.field is not None else []
    about += [found.unit] if found.unit else []
    said = f" ({', '.join(about)})" if about else ""
    said += f"; healthy: {_flat(found.healthy)}" if found.healthy else ""
    said += f"; problem: {_flat(found.problem)}" if found.problem else ""
    return said


def calculation(found: Calculation) -> Iterator[Block]:
    """Yield a calculation: results, formula, what went in."""
    yield Fields(tuple((q.name, line(quantity(q))) for q in found.results))
    yield Text(line("Formula: ", code(found.formula)))
    yield Text(line("With ", ", ".join(f"{q.name} = {quantity(q)}" for q in found.inputs)))
    for note in found.notes:
        yield Note(NoteKind.INFO, line(note))
    if found.sources:
        yield Text(line(muted("Sources: " + "; ".join(found.sources))))


def quantity(found: Quantity) -> str:
    """Return a quantity with its unit."""
    value = found.value if isinstance(found.value, str) else number(found.value)
    if isinstance(found.value, float) and 0 < abs(found.value) < 0.01:
        value = f"{found.value:.4g}"
    # The name of a count says what is counted: "ranks = 8".
    return value if found.unit in {"", "count"} else f"{value} {found.unit}"


def _does(run: Run) -> str:
    about = [
        _flat(said)
        for said in (
            f"needs {run.privilege}" if run.privilege else None,
            f"overhead: {run.overhead}" if run.overhead else None,
            run.versions,
        )
        if said
    ]
    return _flat(run.does) + (f" ({'; '.join(about)})" if about else "")


def _structured(card: Card, values: Mapping[str, str] | None, *, brief: bool) -> Iterator[Block]:
    """Yield what only some entries have: steps, flags, numbers, queries, code, facts."""
    if steps := card.get("steps"):
        yield Heading(line("Steps"), 2)
        yield bullets(line(_flat(step)) for step in steps)
    if flags := card.get("flags"):
        yield Heading(line("Flags"), 2)
        yield bullets(line(code(flag["flag"]), f": {_flag(flag)}") for flag in flags)
    if card.get("value") is not None:
        origin = " (site default)" if card.get("site_default") else ""
        said = f"{_plain(card.get('value'))} {card.get('unit') or ''}".rstrip()
        yield Fields((("limit", line(f"{said}{origin}")),))
    if numbers := card.get("values"):
        yield Heading(line("Values"), 2)
        yield bullets(line(_value(value)) for value in numbers)
    for query in card.get("queries") or ():
        yield Text(line(f"PromQL: {_flat(query['shows'])}{_needs(query)}"))
        yield Code(query["promql"], "promql")
    if expr := card.get("expr"):
        yield Text(line(f"Alert, {card.get('severity')}, for {card.get('for')}"))
        yield Code(expr, "promql")
    for snippet in card.get("code") or ():
        yield Text(line(_flat(snippet["does"])))
        yield Code(fill(snippet["text"].rstrip("\n"), values), snippet["language"])
    facts = card.get("facts")
    if facts and not brief:
        yield Table(
            ("fact", "value"),
            tuple(
                (line(name.replace("_", " ")), line(_plain(fact))) for name, fact in facts.items()
            ),
            (Align.LEFT, Align.LEFT),
        )


def _flag(flag: Mapping[str, Any]) -> str:
    said = _flat(flag["does"])
    for key, word in (
        ("default", "default"),
        ("since", "since"),
        ("until", "until"),
        ("replaced_by", "replaced by"),
    ):
        said += f"; {word} {_flat(flag[key])}" if flag.get(key) else ""
    return said


def _value(value: Mapping[str, Any]) -> str:
    said = f"{value['name']}: {_plain(value['value'])} {value.get('unit') or ''}".rstrip()
    return f"{said} ({_flat(value['note'])})" if value.get("note") else said


def _needs(query: Mapping[str, Any]) -> str:
    said = f" [{query['unit']}]" if query.get("unit") else ""
    return said + (f"; needs {_flat(query['needs'])}" if query.get("needs") else "")


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | int):
        return number(value)
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    return _flat(str(value))


def _flat(text: str) -> str:
    return " ".join(text.split())
