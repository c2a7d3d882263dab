"""Cases from the field (tests/data/cases): load a family and hold an answer against its cases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from engine.catalogue import Catalogue
from engine.model import Class, Read
from tests.support.yamlfiles import parse

FOLDER = Path(__file__).parent.parent / "data" / "cases"
# Input lines at least this long are taken out of the text before the patterns are tried: an answer
# that only repeats its input has said nothing.
LONG_LINE = 40


@dataclass(frozen=True)
class Case:
    """One case: what was pasted, what the answer must hold, and the patterns on its text."""

    id: str
    kind: str
    input: str
    decode: Mapping[str, Any]
    causes: Sequence[str]
    causes_not: Sequence[str]
    all_of: Sequence[str]
    none_of: Sequence[str]
    target: str | None
    metrics: str | None

    def __str__(self) -> str:
        return self.id


@cache
def family(name: str) -> tuple[Case, ...]:
    """Load all cases of a family."""
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return tuple(_case(c) for c in parse(text)["cases"])


def case(family_name: str, id_: str) -> Case:
    """Load one case."""
    return next(c for c in family(family_name) if c.id == id_)


def plain(read: Read) -> str:
    """Return the text of an answer as a person reads it, without layout."""
    parts: list[str] = []
    for finding in read.findings:
        parts += [finding.says, finding.action]
    for diagnosis in read.diagnoses:
        parts.append(diagnosis.says)
        parts += [e.says for e in (*diagnosis.evidence, *diagnosis.against)]
        parts += [step.do for step in diagnosis.next]
    return "\n".join([*parts, *read.notes, *read.errata])


def check(one: Case, read: Read, text: str, catalogue: Catalogue) -> list[str]:
    """Return everything in which an answer falls short of a case.

    Args:
        one: the case.
        read: the answer as data.
        text: the answer as a person reads it.
        catalogue: its taxonomy says which causes are benign.
    """
    return [
        *decode_faults(one, read),
        *cause_faults(one, read.causes, catalogue),
        *text_faults(one, text),
    ]


def decode_faults(one: Case, read: Read) -> Iterator[str]:
    """Yield what the findings' data lacks."""
    for key, wanted in one.decode.items():
        name = key.removesuffix("_any")
        found = [f.data[name] for f in read.findings if f.data.get(name) is not None]
        if wanted is None:
            good = not found
        elif key.endswith("_any"):
            good = any(value in wanted for value in found)
        else:
            good = wanted in found
        if not good:
            yield f"data {name}: wanted {wanted!r}, found {found!r}"


def cause_faults(one: Case, causes: Sequence[str], catalogue: Catalogue) -> Iterator[str]:
    """Yield a wrong first cause, and causes that must not be named."""
    benign = all(catalogue.taxonomy[c].class_ is Class.BENIGN for c in one.causes)
    if one.causes and not (benign and not causes) and causes[:1] not in [(c,) for c in one.causes]:
        yield f"first cause: wanted one of {list(one.causes)}, found {list(causes)}"
    for cause in causes:
        if cause in one.causes_not:
            yield f"cause {cause} must not be named"


def text_faults(one: Case, text: str) -> Iterator[str]:
    """Yield patterns that are missing from a text, or must not be in it."""
    collapsed = without_input(one.input, text)
    for pattern in one.all_of:
        if not re.search(pattern, collapsed, re.IGNORECASE):
            yield f"text lacks {pattern!r}"
    for pattern in one.none_of:
        if found := re.search(pattern, collapsed, re.IGNORECASE):
            yield f"text must not hold {pattern!r}, holds {found[0]!r}"


def without_input(pasted: str, text: str) -> str:
    """Collapse white space and take out long input lines that the text only repeats."""
    collapsed = " ".join(text.split())
    for raw in pasted.splitlines():
        line = " ".join(raw.split())
        if len(line) >= LONG_LINE:
            collapsed = collapsed.replace(line, " ")
    return collapsed


def _case(raw: Mapping[str, Any]) -> Case:
    expected, patterns = raw["expected"], raw.get("check") or {}
    return Case(
        id=raw["id"],
        kind=raw["kind"],
        input=raw["input"],
        decode=expected.get("decode") or {},
        causes=tuple(expected.get("causes") or ()),
        causes_not=tuple(expected.get("causes_not") or ()),
        all_of=tuple(patterns.get("all_of") or ()),
        none_of=tuple(patterns.get("none_of") or ()),
        target=raw.get("target"),
        metrics=raw.get("metrics"),
    )
