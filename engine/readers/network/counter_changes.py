"""Listings of port counters, and what one group of counters shows on one port."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from engine.readers.network.counter_facts import CounterFacts, Meaning
from engine.readers.quantities import listed

_DATA: Final = ("portxmitdata", "port_xmit_data", "xmtdata")


@dataclass(slots=True)
class Take:
    """One listing of one port: counter by its printed name, value as printed.

    ``name`` is None where the tool does not say which port it is. ``narrow`` marks counters that
    stop at 4 to 32 bits.
    """

    line: int
    name: str | None
    host: str | None = None
    values: dict[str, int] = field(default_factory=dict)
    narrow: bool = False

    MAX_COUNTERS = 4_096

    def add(self, name: str, value: int) -> None:
        """Keep a counter; more than `MAX_COUNTERS` of a port are left out."""
        if len(self.values) < self.MAX_COUNTERS or name in self.values:
            self.values[name] = value


@dataclass(frozen=True, slots=True)
class Change:
    """What one group of counters shows on one port."""

    port: str
    host: str | None
    line: int
    meaning: Meaning
    values: Mapping[str, int]
    packets: int | None
    data_words: int | None = None

    @property
    def events(self) -> int:
        """The largest counter: several count the same events."""
        return max(self.values.values())

    @property
    def share(self) -> float | None:
        """Events as a part of the packets of the same time."""
        return self.events / self.packets if self.packets else None


def changes_of(take: Take, values: Mapping[str, int], facts: CounterFacts) -> list[Change]:
    """Gather counters of one port by what they mean; those that are 0 are left out."""
    groups: dict[str, tuple[Meaning, dict[str, int]]] = {}
    packets = 0
    for name, value in values.items():
        meaning = facts.of(name)
        if meaning is None or value <= 0:
            continue
        if meaning.id == "packets":
            packets = max(packets, value)
        elif meaning.counts:
            groups.setdefault(meaning.id, (meaning, {}))[1][name] = value
    data = next((v for k, v in values.items() if k.lower() in _DATA), None)
    port = take.name or "the port"
    return [
        Change(port, take.host, take.line, meaning, counters, packets or None, data)
        for meaning, counters in groups.values()
    ]


def figures(values: Mapping[str, int]) -> str:
    """Write the three largest counters of a group with what they rose by."""
    ordered = sorted(values.items(), key=lambda item: -item[1])
    return listed((f"{name} +{value:,}" for name, value in ordered), 3)


def part_of(change: Change) -> str:
    """Write events as a part of the traffic, in brackets, where that says something."""
    if change.meaning.class_ == "wait" and change.data_words:
        return f" ({change.events / change.data_words:.2g} ticks for each 4-byte word sent)"
    # What counts from the first event on has nothing to do with the number of packets.
    if change.share is None or change.meaning.rises <= 1:
        return ""
    return f" ({100 * change.share:.2g} % of {change.packets:,} packets)"
