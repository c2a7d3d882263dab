"""What a calculator is: named inputs with units, a formula, and results with units."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from engine.lookup.model import Quantity

Number = float
Values = Mapping[str, "float | str"]


@dataclass(frozen=True, slots=True)
class Input:
    """One input.

    Attributes:
        name: as it is given: ``ranks=8``.
        unit: the unit of the number that the formula takes; how others are read depends on it
            (`engine.lookup.calc.units`). ``word`` takes one of ``choices``.
        about: what it is, for help.
        default: what holds if it is not given; None: it has to be given.
        words: what people call it in a sentence, besides the name.
        low, high: bounds, inclusive.
        choices: words that it takes.
        optional: it may be missing; the results that need it are then left out.
    """

    name: str
    unit: str
    about: str
    default: float | str | None = None
    words: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 1e21
    choices: tuple[str, ...] = ()
    optional: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Calculator:
    """A formula with its inputs.

    Attributes:
        id: its name.
        title: what it gives.
        formula: for people.
        inputs: in the order in which they are shown.
        work: from values to results and notes.
        sources: where the formula is from.
        words: what in a sentence asks for it.
    """

    id: str
    title: str
    formula: str
    inputs: tuple[Input, ...]
    work: Callable[[Values], tuple[Sequence[Quantity], Sequence[str]]]
    sources: tuple[str, ...]
    words: tuple[str, ...] = ()


def real(values: Values, name: str) -> float:
    """Return an input that is a number."""
    value = values[name]
    assert not isinstance(value, str), "inputs are checked before a calculator works"
    return value


def maybe(values: Values, name: str) -> float | None:
    """Return an optional input that is a number, or None where it was not given."""
    return real(values, name) if name in values else None
