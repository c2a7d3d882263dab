"""A part of the kernel reader, and the usual kind of it: a table of lines and what they mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.base import Result
from engine.readers.host.devices import Devices, bdf
from engine.readers.logline import LogLine
from engine.readers.period import Boots, Period

# Different events of one part that are kept apart; what comes after is counted.
MOST_EVENTS = 1_024
# Values of one kind (processors, ports …) that are kept by name.
_KEEP = 16
_MAX_VALUE = 80


class Part(Protocol):
    """Takes the records of one kind.

    Attributes:
        marks: words of which one stands in every line that can be of this kind.
        pattern: what such a line may match instead, a regular expression for `re` and RE2; empty
            if the words are enough.
        open: True while the next lines are wanted whatever they hold.
    """

    marks: ClassVar[tuple[str, ...]]
    pattern: ClassVar[bytes]
    open: bool

    def wants(self, text: str) -> bool:
        """Return whether a line may be of this kind."""

    def take(self, line: LogLine) -> bool:
        """Take one record; return whether it is of this kind."""

    def finish(self) -> Result:
        """Say what all records together show."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One line that the kernel or a daemon prints, and what it means.

    Attributes:
        id: of the finding.
        pattern: searched in the record; its named groups become the finding's data.
        severity: None for a line that is known and reports nothing wrong.
        says: a sentence with the groups in braces; ``{device}`` names the device at the group
            ``pci``, ``{on}`` is " on HOST" where the host is known.
        action: what to do, with the same braces.
        cause: taxonomy id.
        apart: groups that make two lines two different things.
        source: where the line comes from.
    """

    id: str
    pattern: re.Pattern[str]
    severity: Severity | None = None
    says: str = ""
    action: str = ""
    cause: str | None = None
    apart: tuple[str, ...] = ()
    source: str = ""


@dataclass(slots=True)
class Tally:
    """All lines of one rule about one thing."""

    rule: Rule
    host: str | None
    values: dict[str, str]
    line: int
    last_line: int = 0
    count: int = 0
    seen: dict[str, dict[str, None]] = field(default_factory=dict)
    period: Period = field(default_factory=Period)

    def add(self, line: LogLine, values: dict[str, str], boot: int | None) -> None:
        """Count one more line."""
        self.count += 1
        self.last_line = line.number
        self.period.add(line.stamp, boot)
        for name, value in values.items():
            kept = self.seen.setdefault(name, {})
            if len(kept) < _KEEP:
                kept.setdefault(value)


class RulePart:
    """A part that is a table of rules; the first that matches a line has it."""

    kind: ClassVar[str]
    marks: ClassVar[tuple[str, ...]]
    pattern: ClassVar[bytes] = b""
    rules: ClassVar[Sequence[Rule]]

    def __init__(self, devices: Devices, boots: Boots) -> None:
        self.open = False
        self.devices = devices
        self.boots = boots
        self.tallies: dict[tuple[Any, ...], Tally] = {}
        self.overflow = 0

    def wants(self, text: str) -> bool:
        """Return whether one of the part's words stands in a line."""
        return self.open or any(mark in text for mark in self.marks)

    def take(self, line: LogLine) -> bool:
        """Take one record; return whether a rule knows it."""
        for rule in self.rules:
            found = rule.pattern.search(line.text)
            if found:
                if rule.severity is not None:
                    self.add(rule, line, found)
                return True
        return False

    def add(self, rule: Rule, line: LogLine, found: re.Match[str]) -> Tally | None:
        """Count a line of a rule; return its tally, None if there are too many different ones."""
        values = {
            name: bdf(value) if name == "pci" else value.strip()[:_MAX_VALUE]
            for name, value in found.groupdict().items()
            if value is not None
        }
        key = (rule.id, line.host, *(values.get(name) for name in rule.apart))
        tally = self.tallies.get(key)
        if tally is None:
            if len(self.tallies) >= MOST_EVENTS:
                self.overflow += 1
                return None
            tally = self.tallies[key] = Tally(rule, line.host, values, line.number)
        tally.add(line, values, self.boots.of(line.host, line.stamp))
        return tally

    def finish(self) -> Result:
        """Return a finding for each tally, in the order of their first lines."""
        findings = [self.finding(tally) for tally in self.tallies.values()]
        found = [f for f in findings if f is not None]
        notes = []
        if self.overflow:
            notes.append(
                f"{self.overflow} more {self.kind} lines differ from the first {MOST_EVENTS}; they "
                "are counted here only."
            )
        return Result(kinds=[self.kind] if found else [], findings=found, notes=notes)

    def finding(self, tally: Tally) -> Finding | None:
        """Return what a tally says; None for nothing."""
        return self.said(tally)

    def said(
        self,
        tally: Tally,
        *,
        severity: Severity | None = None,
        cause: str | None = "",
        extra: str = "",
        data: dict[str, Any] | None = None,
    ) -> Finding:
        """Put a tally into words.

        Args:
            tally: the lines.
            severity: instead of the rule's.
            cause: instead of the rule's; the empty string keeps it.
            extra: a sentence to add.
            data: values to add.
        """
        rule = tally.rule
        words = self.words(tally)
        parts = [rule.says.format_map(words), extra, repeated(tally)]
        return Finding(
            kind=self.kind,
            id=rule.id,
            severity=severity or rule.severity or Severity.INFO,
            says=" ".join(" ".join(parts).split()),
            action=rule.action.format_map(words),
            entity=self.entity(tally),
            line=tally.line,
            cause=rule.cause if cause == "" else cause,
            data=values_of(tally) | (data or {}) | {"count": tally.count} | tally.period.data(),
            sources=(rule.source,) if rule.source else (),
        )

    def words(self, tally: Tally) -> dict[str, str]:
        """Return what stands for the braces of a rule's sentences."""
        words = {name: ", ".join(kept) for name, kept in tally.seen.items()}
        for name in tally.rule.pattern.groupindex:
            words.setdefault(name, "")
        words["on"] = f" on {tally.host}" if tally.host else ""
        words["of"] = f" of {tally.host}" if tally.host else ""
        pci = tally.values.get("pci")
        words["device"] = self.devices.named(pci) if pci else "a device"
        return words

    def entity(self, tally: Tally) -> Entity | None:
        """Return the GPU at the line's PCI address, else the machine, where known."""
        return entity_of(self.devices, tally.host, tally.values.get("pci"))


def entity_of(devices: Devices, host: str | None, pci: str | None) -> Entity | None:
    """Return the GPU at an address, else the machine; None if neither is known."""
    if pci is not None and devices.kind(pci) == "GPU":
        address = bdf(pci).partition(".")[0]
        name = f"GPU {address}"
        return Entity(Kind.GPU, f"{host} {name}" if host else name, host=host, pci=address)
    return Entity(Kind.NODE, host, host=host) if host else None


def values_of(tally: Tally) -> dict[str, Any]:
    """Return the values of a tally's lines: one as it is, several as a list."""
    data: dict[str, Any] = {}
    for name, kept in tally.seen.items():
        values = [typed(name, value) for value in kept]
        data[name] = values[0] if len(values) == 1 else values
    return data


def typed(name: str, value: str) -> int | float | str:
    """Return a decimal number as such, other text as it is; versions look like numbers too."""
    if not value.isascii() or len(value) > 15:
        return value
    if value.isdigit():
        return int(value)
    whole, dot, fraction = value.partition(".")
    is_number = dot and whole.isdigit() and fraction.isdigit() and name.endswith("_s")
    return float(value) if is_number else value


def repeated(tally: Tally) -> str:
    """Say how often and when."""
    times = tally.period.says(tally.count)
    if tally.count < 2:
        return times
    count = f"{tally.count} lines ({tally.line} to {tally.last_line})."
    return f"{count} {times}".rstrip()
