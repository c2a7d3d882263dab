"""What knowledge and rules look like once loaded: plain, frozen, free of YAML.

Third-party imports are kept out, so that ``gpuwhy decode`` starts fast. Every class mirrors one
kind of YAML entry; ``engine.catalogue.schema`` holds the validation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from engine.catalogue.nearest import fold
from engine.errors import Problem
from engine.model import Class, Confidence, Severity

_SHOWN_PROBLEMS = 3


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written: file (relative to its root), line and column from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


def is_packaged(file: str) -> bool:
    """Return whether a file as messages name it is one that was shipped, not one of an overlay."""
    parts = file.split("/")
    shipped = parts[0] in {"knowledge", "rules"}
    return shipped and not {"knowledge", "rules"} & set(parts[1:])


@dataclass(frozen=True, slots=True)
class CauseInfo:
    """An entry of the taxonomy: the permanent id of a cause, its class, scope and meaning."""

    id: str
    class_: Class
    scope: str
    title: str
    is_: str


@dataclass(frozen=True, slots=True)
class Spelling:
    """One metric name under which a signal is found. canonical value = reading * scale.

    ``counts`` names a label whose listed names are counted instead (`engine.signals.service`).
    """

    name: str
    unit: str
    scale: float = 1.0
    match: Mapping[str, str] = field(default_factory=dict)
    exporter: str = "dcgm-exporter"
    vendor: str = "nvidia"
    since: str | None = None
    counts: str | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """A quantity under the product's own name, with unit, range and spellings."""

    id: str
    title: str
    unit: str
    kind: str
    scope: str
    spellings: tuple[Spelling, ...]
    low: float | None = None
    high: float | None = None
    core: bool = False
    bits: str | None = None
    field: int | None = None
    default_exported: bool = False
    export: str = ""
    source: tuple[str, ...] = ()
    status: str = "single"
    combine: str = "max"


@dataclass(frozen=True)
class GpuModel:
    """A GPU product: which ``modelName`` values mean it, and its limits (units in the names)."""

    id: str
    title: str
    match: tuple[str, ...]
    pattern: str
    vendor: str
    architecture: str
    attrs: Mapping[str, float]
    source: tuple[str, ...] = ()

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """The anchored pattern for model names."""
        return re.compile(self.pattern)


@dataclass(frozen=True, slots=True)
class Limit:
    """A threshold: the number that ``limit.ID`` is in a condition.

    ``source`` says where it comes from, "site default: ..." first where no vendor gives one;
    ``file`` is where it stands, below its overlay folder if a site replaced it.
    """

    id: str
    title: str
    value: float
    unit: str
    site_default: bool
    source: tuple[str, ...]
    file: str = ""

    @property
    def origin(self) -> str:
        """Where the number comes from, by which name it is changed, and who changed it."""
        where = f" in {self.file}" if self.file and not is_packaged(self.file) else ""
        return f"{self.source[0]} (limit.{self.id}{where})"


@dataclass(frozen=True, slots=True)
class RuleTest:
    """A test that sits in a rule file. ``given`` keeps the YAML values (see the rule format).

    ``rail`` are the same ports of other hosts.
    """

    name: str
    given: Mapping[str, Any]
    expect: str
    model: str | None = None
    siblings: Mapping[str, Any] | None = None
    rail: Mapping[str, Any] | None = None
    confidence: str | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class SymptomRule:
    """Numbers become a word: a condition over signals that is true, false or unknown.

    ``basis`` links to the knowledge entries (``CONCERN/ID``) that codes and flags come from.
    """

    id: str
    title: str
    version: int
    status: str
    scope: str
    when: str
    when_place: Place
    threshold: str
    basis: tuple[str, ...] = ()
    hold_s: float = 0.0
    references: tuple[str, ...] = ()
    false_positives: tuple[str, ...] = ()
    tests: tuple[RuleTest, ...] = ()
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way in which a cause shows. References are symptom ids, or ``cause/ID``.

    all: must be true; any: at least one true (if not empty); none: must be known to be false;
    unless: must not be true (unknown does not block). A cause that shows by patterns marked
    ``note`` alone is a note, not a diagnosis.
    """

    all: tuple[str, ...] = ()
    any: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    confidence: Confidence = Confidence.POSSIBLE
    note: bool = False

    @property
    def refs(self) -> tuple[str, ...]:
        """All references, in written order."""
        return self.all + self.any + self.none + self.unless


@dataclass(frozen=True, slots=True)
class NextStep:
    """A step template; placeholders are filled for the target."""

    do: str
    command: str | None = None
    risk: str = "none"
    capture: str | None = None
    vendor: str | None = None


@dataclass(frozen=True, slots=True)
class AlternativeRule:
    """A competing hypothesis and what tells it apart."""

    cause: str
    told_apart_by: str
    command: str | None = None


@dataclass(frozen=True, slots=True)
class CauseRule:
    """Words become a verdict: patterns of symptoms that mean a cause of the taxonomy."""

    id: str
    title: str
    version: int
    status: str
    severity: Severity
    patterns: tuple[Pattern, ...]
    says: str
    class_: Class
    scope: str
    explains: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    next: tuple[NextStep, ...] = ()
    alternatives: tuple[AlternativeRule, ...] = ()
    references: tuple[str, ...] = ()
    false_positives: tuple[str, ...] = ()
    tests: tuple[RuleTest, ...] = ()
    place: Place | None = None

    @property
    def name(self) -> str:
        """``id@version``, as shown in answers."""
        return f"{self.id}@{self.version}"


@dataclass(frozen=True)
class Catalogue:
    """All knowledge and rules that were loaded, and a hash of their content.

    ``entries`` maps a concern (``xid``, ``dcgm_fields``, ``throttle_reasons`` …) to its entries by
    id, each a plain mapping as in the YAML. ``spellings`` maps a metric name to the signals it
    may be, ``bits`` a mask table to bit names and values. ``problems`` tells what was left out; of
    these ``own_problems`` are faults of their own, the rest may only follow from what they took
    away. ``thinned`` is what the patterns of causes refer to and an overlay switches off.
    """

    hash: str
    entries: Mapping[str, Mapping[str, Mapping[str, Any]]]
    taxonomy: Mapping[str, CauseInfo]
    signals: Mapping[str, Signal]
    models: tuple[GpuModel, ...]
    symptoms: Mapping[str, SymptomRule] = field(default_factory=dict)
    causes: Mapping[str, CauseRule] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    own_problems: tuple[Problem, ...] = ()
    thinned: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def spellings(self) -> dict[str, tuple[tuple[Signal, Spelling], ...]]:
        """Metric name to every (signal, spelling) that it may be."""
        found: dict[str, list[tuple[Signal, Spelling]]] = {}
        for signal in self.signals.values():
            for spelling in signal.spellings:
                found.setdefault(spelling.name, []).append((signal, spelling))
        return {name: tuple(pairs) for name, pairs in found.items()}

    @cached_property
    def lookup_names(self) -> dict[str, tuple[tuple[str, str, Mapping[str, Any]], ...]]:
        """Folded name to every lookup entry that goes by it: concern, name as written, entry.

        The entries of one concern have one shape, so the first tells whether it has names.
        """
        found: dict[str, list[tuple[str, str, Mapping[str, Any]]]] = {}
        for concern, entries in self.entries.items():
            first = next(iter(entries.values()), {})
            if "kind" in first and "text" in first:
                for entry in entries.values():
                    names = {fold(name): name for name in (*entry.get("names", ()), entry["title"])}
                    for folded, name in names.items():
                        found.setdefault(folded, []).append((concern, name, entry))
        return {name: tuple(entries) for name, entries in found.items()}

    @cached_property
    def bits(self) -> dict[str, dict[str, int]]:
        """Mask table (``throttle_reasons``) to bit name to bit value."""
        tables = {s.bits for s in self.signals.values() if s.bits}
        return {
            table: {str(e["id"]): int(e["bit"]) for e in self.entries.get(table, {}).values()}
            for table in sorted(tables)
        }

    @cached_property
    def limits(self) -> dict[str, Limit]:
        """Id to threshold: what conditions may compare with as ``limit.ID``."""
        return {
            key: Limit(
                id=key,
                title=entry["title"],
                value=float(entry["value"]),
                unit=entry["unit"],
                site_default=entry.get("site_default", False),
                source=tuple(entry["source"]),
                file=self.origins.get(f"thresholds/{key}", ""),
            )
            for key, entry in self.entries.get("thresholds", {}).items()
        }

    @property
    def left_out(self) -> tuple[str, ...]:
        """What was left out while loading, and which rules are off, for people.

        At most three of each, and how many more.
        """
        said = [f"left out: {problem}" for problem in self.own_problems[:_SHOWN_PROBLEMS]]
        more = len(self.problems) - len(said)
        return (
            *said,
            *((f"{more} more left out; run: gpuwhy kb lint",) if more else ()),
            *self.switched_off,
        )

    @property
    def switched_off(self) -> tuple[str, ...]:
        """Which rules are off, for people: one line, or none."""
        off = [f"{name.partition('/')[2]} ({file})" for name, file in self.disabled.items()]
        others = len(off) - _SHOWN_PROBLEMS
        rest = f" and {others} more; see: gpuwhy rules list" if others > 0 else ""
        return (f"rules switched off: {', '.join(off[:_SHOWN_PROBLEMS])}{rest}",) if off else ()

    @cached_property
    def disabled(self) -> dict[str, str]:
        """``symptom/ID`` or ``rule/ID`` (a cause) to the file that switches it off, sorted."""
        prefix = "disabled/"
        found = {k.removeprefix(prefix): f for k, f in self.origins.items() if k.startswith(prefix)}
        return dict(sorted(found.items()))

    @cached_property
    def of_overlays(self) -> dict[str, str]:
        """What an overlay adds or replaces (``symptom/ID``, ``rule/ID``, ``CONCERN/ID``): its file.

        Sorted; rules that are only switched off are in ``disabled``.
        """
        known = set(self.origins) - {f"disabled/{name}" for name in self.disabled}
        return {k: self.origins[k] for k in sorted(known) if not is_packaged(self.origins[k])}

    def xids(self, cause: str) -> frozenset[int]:
        """Return the XID numbers whose knowledge entry maps to a cause of the taxonomy."""
        entries = self.entries.get("xid", {}).values()
        return frozenset(int(e["id"]) for e in entries if e.get("taxonomy") == cause)

    def model_for(self, name: str | None) -> GpuModel | None:
        """Return the GPU model that an exporter's ``modelName`` means, exact names first."""
        return self._model_of(name) if name else None

    @cached_property
    def _model_of(self) -> Callable[[str], GpuModel | None]:
        """The same, remembered: a fleet has few models, and each question names its own again."""
        return lru_cache(maxsize=256)(self._find_model)

    def _find_model(self, name: str) -> GpuModel | None:
        for model in self.models:
            if name in model.match:
                return model
        return next((m for m in self.models if m.regex.fullmatch(name)), None)
