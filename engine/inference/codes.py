"""How a program is written for durable_rules: facts as short numbers, patterns as conditions.

The library keeps fixed tables: 512 values that a property is compared with, 256 conditions on one
value, 64 choices that one value is part of, 16 facts held by one rule, 32 parts in one choice. Some
it checks, some it checks one too late, some it does not; then facts are lost or it hangs. Here a
fact gets a further number where a table would fill up (to assert the fact is to assert all its
numbers); what cannot be spread in this way is refused. The limits used lie a little below.

The library also tells facts apart by a 32-bit hash of their ids, and loses one of two that
collide. Numbers up to the limit do not collide (a test compares all of them); words might.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from engine.errors import CatalogueError, Problem
from engine.inference.compiled import CompiledRule, Program
from engine.inference.strata import problem_at

MAX_CODES = 500
MAX_CONDITIONS = 240
MAX_CHOICES = 56
MAX_FACTS_IN_RULE = 15
MAX_PARTS = 28

PROBE = "gate/probe"

Conditions = list[dict[str, Any]]


class Codes:
    """The numbers of all facts of a program.

    Attributes:
        gates: for each stratum that rules anything out, the numbers of its gate fact.
        digest: a hash of the encoded rules, the same for the same rules.
    """

    def __init__(self) -> None:
        self.gates: list[list[str]] = []
        self.digest = ""
        self._codes: dict[str, list[str]] = {}
        self._conditions: dict[str, int] = {}
        self._choices: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._conditions)

    def of(self, fact: str) -> list[str]:
        """Return all numbers of a fact; none if no rule refers to it."""
        return self._codes.get(fact, [])

    def present(self, fact: str) -> dict[str, Any]:
        """Return a condition: the fact is there."""
        return {"w": self._use(fact, self._conditions, MAX_CONDITIONS)}

    def one_of(self, facts: tuple[str, ...]) -> dict[str, Any]:
        """Return a condition: at least one of the facts is there."""
        if len(facts) == 1:
            return self.present(facts[0])
        return {"$or": [{"w": self._use(fact, self._choices, MAX_CHOICES)} for fact in facts]}

    def _use(self, fact: str, uses: dict[str, int], limit: int) -> str:
        codes = self._codes.setdefault(fact, [])
        code = next((c for c in codes if uses[c] < limit), None)
        if code is None:
            code = str(len(self))
            codes.append(code)
            self._conditions[code] = self._choices[code] = 0
        uses[code] += 1
        return code


def encode(program: Program) -> tuple[Codes, list[Conditions]]:
    """Return the numbers of all facts, and the conditions of each rule in the program's order.

    Raises:
        CatalogueError: more facts than the library tells apart, or a pattern that is too long.
    """
    problems = [p for rule in program.rules for p in _too_long(rule)]
    if problems:
        raise CatalogueError(problems)
    codes = Codes()
    codes.present(PROBE)
    conditions = [_conditions(rule, codes) for rule in program.rules]
    if len(codes) > MAX_CODES:
        message = f"the rules refer to {len(codes)} facts; durable_rules holds {MAX_CODES}"
        hint = "disable causes that this site does not need"
        raise CatalogueError([Problem("rules", 1, 1, message, hint)])
    codes.gates = [gate for k in range(program.strata) if (gate := codes.of(_gate(k)))]
    content = json.dumps([conditions, [(rule.cause, rule.pattern) for rule in program.rules]])
    codes.digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    return codes, conditions


def _gate(stratum: int) -> str:
    return f"gate/{stratum}"


def _conditions(rule: CompiledRule, codes: Codes) -> Conditions:
    """Return the gate if anything is ruled out, then what must be there, then what must not."""
    present = [codes.present(fact) for fact in rule.all]
    if rule.absent:
        present.insert(0, codes.present(_gate(rule.stratum)))
    if rule.any:
        present.append(codes.one_of(rule.any))
    absent = [
        codes.one_of(rule.absent[start : start + MAX_PARTS])
        for start in range(0, len(rule.absent), MAX_PARTS)
    ]
    return [
        *({f"c{index}": condition} for index, condition in enumerate(present)),
        *({f"n{index}$not": condition} for index, condition in enumerate(absent)),
    ]


def _too_long(rule: CompiledRule) -> list[Problem]:
    """Return a problem for each list of references that is longer than the library holds."""
    longest_all = MAX_FACTS_IN_RULE - 2  # a gate and one of `any` may come on top
    problems = []
    for key, refs, limit in (("all", rule.all, longest_all), ("any", rule.any, MAX_PARTS)):
        if len(refs) > limit:
            message = (
                f"pattern {rule.pattern + 1} of cause '{rule.cause}' has {len(refs)} references "
                f"in `{key}`; at most {limit} are possible"
            )
            hint = "make one symptom of those that belong together"
            problems.append(problem_at(rule.cause, rule.place, message, hint))
    return problems
