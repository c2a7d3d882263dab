"""``calc``: the arithmetic behind bandwidth, checkpoints, rooflines, caches and utilisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.answer import Answer, Block, Bullet, Bullets, Heading, Text, code, line, strong
from bot.commands import entry
from engine.lookup.calc import CALCULATORS, Calculator, Input, calculate
from engine.model import to_json

if TYPE_CHECKING:
    from engine.catalogue.types import Catalogue


def run(words: Sequence[str], *, catalogue: Catalogue) -> Answer:
    """Run a calculator, or list them if none is named.

    Args:
        words: the calculator's name and ``input=value`` for each input.
        catalogue: knows GPU models.

    Raises:
        UsageError: no such calculator, or its inputs are not right.
    """
    if not words:
        return _list()
    name, *given = words
    name = name.lower().replace("-", "_")
    if not given and name in CALCULATORS:
        return _describe(CALCULATORS[name])
    found = calculate(name, given, catalogue)
    first = found.results[0]
    return Answer(
        title=line(strong(f"{first.name} {entry.quantity(first)}"), f": {found.title}"),
        blocks=tuple(entry.calculation(found)),
        data=to_json(found),
    )


def _list() -> Answer:
    return Answer(
        title=line(strong("Calculators")),
        blocks=(
            Bullets(tuple(Bullet(line(code(c.id), f": {c.title}")) for c in CALCULATORS.values())),
            Text(line("Inputs of one: ", code("gpuwhy calc NAME"))),
        ),
        data={
            "schema": "gpuwhy/calc-list/1",
            "calculators": [_about(calculator) for calculator in CALCULATORS.values()],
        },
    )


def _describe(calculator: Calculator) -> Answer:
    blocks: tuple[Block, ...] = (
        Text(line("Formula: ", code(calculator.formula))),
        Heading(line("Inputs"), 2),
        Bullets(
            tuple(Bullet(line(code(one.name), f": {_said(one)}")) for one in calculator.inputs)
        ),
    )
    return Answer(
        title=line(strong(calculator.title), " (", code(calculator.id), ")"),
        blocks=blocks,
        data={"schema": "gpuwhy/calc-list/1", "calculators": [_about(calculator)]},
    )


def _said(one: Input) -> str:
    unit = f" ({one.unit})" if one.unit not in {"count", "word"} else ""
    said = f"{one.about}{unit}"
    if one.choices:
        said += f", one of {', '.join(one.choices)}"
    if one.default is not None:
        return f"{said}; {one.default} if not given"
    return f"{said}; optional" if one.optional else said


def _about(calculator: Calculator) -> dict[str, object]:
    return {
        "id": calculator.id,
        "title": calculator.title,
        "formula": calculator.formula,
        "inputs": [
            {
                "name": one.name,
                "unit": one.unit,
                "about": one.about,
                "default": one.default,
                "required": one.default is None and not one.optional,
            }
            for one in calculator.inputs
        ],
        "sources": list(calculator.sources),
    }
