"""From truths of symptoms to derived causes, by whichever evaluator is there."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from engine.catalogue.types import CauseRule
from engine.inference.compiled import Program, compile_rules
from engine.inference.reference import ReferenceEvaluator
from engine.model import Truth

_REMEMBERED = 4096
_PREFERENCES = ("auto", "durable_rules", "reference")


@dataclass(frozen=True, slots=True)
class Derived:
    """A cause that was derived, with the indices of the patterns that hold, ascending."""

    cause: str
    patterns: tuple[int, ...]


class Evaluator(Protocol):
    """Decides which compiled rules hold."""

    @property
    def name(self) -> str:
        """Name as shown in answers."""

    def evaluate(self, facts: Iterable[str]) -> set[tuple[str, int]]:
        """Return (cause, pattern index) of every rule that holds, given facts of `Program`."""


class Inferrer:
    """Derives causes from the truths of symptoms. Safe to use from several threads.

    The same facts always derive the same causes, and in a fleet most GPUs show the same few: the
    newest answers are remembered. Whatever is answered was derived by the evaluator named.
    """

    def __init__(self, program: Program, evaluator: Evaluator) -> None:
        self._program = program
        self._evaluator = evaluator
        self._derive = lru_cache(maxsize=_REMEMBERED)(self._evaluate)

    @property
    def name(self) -> str:
        """``durable_rules`` or ``reference``."""
        return self._evaluator.name

    def infer(self, truths: Mapping[str, Truth]) -> tuple[Derived, ...]:
        """Return the causes that hold for one entity, in the order of their ids.

        Args:
            truths: symptom id to its truth; a symptom that is left out is unknown.
        """
        facts = self._program.facts(truths)
        return self._derive(facts) if facts else ()

    def _evaluate(self, facts: tuple[str, ...]) -> tuple[Derived, ...]:
        patterns: dict[str, list[int]] = {}
        for cause, pattern in sorted(self._evaluator.evaluate(facts)):
            patterns.setdefault(cause, []).append(pattern)
        return tuple(Derived(cause, tuple(held)) for cause, held in patterns.items())


def make_inferrer(causes: Mapping[str, CauseRule], prefer: str = "auto") -> Inferrer:
    """Compile cause rules and return what evaluates them.

    Args:
        causes: cause id to its rule.
        prefer: ``auto``, ``durable_rules`` or ``reference``. ``auto`` takes durable_rules, and the
            plain-Python evaluator only where that library cannot be imported; `Inferrer.name`
            says which it is.

    Raises:
        CatalogueError: causes refer to each other in a circle, a pattern is empty or too long, or
            there are more facts than durable_rules holds.
        ImportError: ``durable_rules`` is asked for and cannot be imported.
        ValueError: there is no evaluator called ``prefer``.
    """
    if prefer not in _PREFERENCES:
        msg = f"no evaluator is called {prefer!r}; take one of {', '.join(_PREFERENCES)}"
        raise ValueError(msg)
    program = compile_rules(causes)
    return Inferrer(program, _evaluator(program, prefer))


def _evaluator(program: Program, prefer: str) -> Evaluator:
    if prefer != "reference":
        try:
            durable = importlib.import_module("engine.inference.durable")
        except ImportError as error:
            missing = (error.name or "").partition(".")[0]
            if prefer != "auto" or missing not in {"durable", "durable_rules_engine"}:
                raise
        else:
            evaluator: Evaluator = durable.DurableEvaluator(program)
            return evaluator
    return ReferenceEvaluator(program)
