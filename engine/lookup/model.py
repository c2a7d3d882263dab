"""What ``ask`` answers, as it goes into JSON."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Run:
    """A command to paste, and what is to be known before.

    ``risk``: ``none``, ``disturbs`` (slows or perturbs a job) or ``disrupts`` (stops work).
    """

    command: str
    argv: tuple[str, ...]
    does: str
    risk: str = "none"
    privilege: str | None = None
    overhead: str | None = None
    versions: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric to look at first; ``healthy`` and ``problem`` are text with units."""

    name: str
    unit: str
    healthy: str | None = None
    problem: str | None = None
    field: int | None = None


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its name and unit; ``value`` may be a word (a collective, a data type)."""

    name: str
    value: float | str
    unit: str


@dataclass(frozen=True, slots=True)
class Calculation:
    """A formula that was worked out, with what went in and what came out."""

    calculator: str
    title: str
    formula: str
    inputs: tuple[Quantity, ...]
    results: tuple[Quantity, ...]
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    schema: str = field(default="gpuwhy/calc/1")


@dataclass(frozen=True, slots=True)
class AskAnswer:
    """One entry as an answer. ``id`` is ``concern/id``; ``score`` is from 0 to 1.

    ``queries`` are PromQL, those of an alert included; ``snippets`` code and configuration;
    ``flags`` and ``values`` a sentence each, numbers with their units.
    """

    id: str
    title: str
    score: float
    text: str
    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    errata: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    runs: tuple[Run, ...] = ()
    readings: tuple[Reading, ...] = ()
    queries: tuple[str, ...] = ()
    snippets: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    caution: str | None = None
    instead: str | None = None
    vendor: str = "any"
    versions: str | None = None
    status: str = "single"
    see: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """The answer to ``gpuwhy ask``: entries best first, and whether the first is meant.

    ``sure`` is False where the question lies outside the knowledge base, or no entry stands out;
    the entries are then only the nearest ones. ``after`` is the question that this one follows.
    """

    question: str
    answers: tuple[AskAnswer, ...]
    sure: bool
    calculation: Calculation | None = None
    after: str | None = None
    schema: str = field(default="gpuwhy/ask/1")
