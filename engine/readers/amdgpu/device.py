"""What each GPU reported: events with counts and values, page faults, RAS counts. Bounded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from engine.model import Entity, Kind
from engine.readers.amdgpu.aca import AcaDump
from engine.readers.amdgpu.fault import Fault
from engine.readers.amdgpu.line import Message
from engine.readers.amdgpu.ras import RasCount
from engine.readers.quantities import short

_VALUES = 8
# The longest part that a pattern takes is a list of reasons.
_LONGEST = 160
_FAULTS = 64
# A line without an address belongs to a GPU that speaks within so many lines.
_REACH = 32


@dataclass(slots=True)
class Seen:
    """One kind of event on one GPU; ``values`` keeps the first few of each named part."""

    first: int
    last: int
    count: int = 0
    values: dict[str, list[str]] = field(default_factory=dict)

    def value(self, name: str) -> str | None:
        """Return the first value of a part."""
        found = self.values.get(name)
        return found[0] if found else None


@dataclass(slots=True)
class Device:
    """One GPU of one machine; ``pci`` is None for what no line ties to an address."""

    host: str | None
    pci: str | None
    seen: dict[str, Seen] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    faults_total: int = 0
    ras: dict[tuple[str, str], RasCount] = field(default_factory=dict)
    aca: AcaDump | None = None
    event: int | None = None
    last_line: int = 0

    @property
    def name(self) -> str:
        """What to call it in a sentence."""
        gpu = f"GPU {self.pci}" if self.pci else "the GPU"
        return f"{gpu} of {self.host}" if self.host else gpu

    @property
    def entity(self) -> Entity | None:
        """The GPU as an entity; the machine if no line names the GPU."""
        if self.pci is None:
            return Entity(Kind.NODE, self.host, host=self.host) if self.host else None
        name = f"GPU {self.pci}"
        return Entity(
            Kind.GPU,
            f"{self.host} {name}" if self.host else name,
            host=self.host,
            pci=self.pci,
        )

    def add(self, event: str, line: int, values: Mapping[str, str | None]) -> None:
        """Count an event."""
        seen = self.seen.setdefault(event, Seen(line, line))
        seen.count += 1
        seen.last = line
        for name, raw in values.items():
            if raw and (value := short(raw, _LONGEST)):
                kept = seen.values.setdefault(name, [])
                if value not in kept and len(kept) < _VALUES:
                    kept.append(value)

    def add_fault(self, fault: Fault) -> None:
        """Keep a page fault."""
        self.faults_total += 1
        if len(self.faults) < _FAULTS:
            self.faults.append(fault)

    def any(self, events: Iterable[str]) -> Seen | None:
        """Return the earliest of some kinds of event."""
        found = [self.seen[e] for e in events if e in self.seen]
        return min(found, key=lambda s: s.first) if found else None

    def take(self, other: Device) -> None:
        """Take over what was reported without an address."""
        for name, theirs in other.seen.items():
            mine = self.seen.setdefault(name, Seen(theirs.first, theirs.last))
            mine.first, mine.last = min(mine.first, theirs.first), max(mine.last, theirs.last)
            mine.count += theirs.count
            for part, values in theirs.values.items():
                kept = mine.values.setdefault(part, [])
                kept.extend(v for v in values[: _VALUES - len(kept)] if v not in kept)
        for fault in other.faults:
            self.add_fault(fault)
        for key, counts in other.ras.items():
            self.ras.setdefault(key, counts)
        self.aca = self.aca or other.aca
        if self.event is None:
            self.event = other.event


class Devices:
    """All GPUs of a text, in order of appearance."""

    LIMIT = 1_024

    def __init__(self) -> None:
        self._devices: dict[tuple[str | None, str | None], Device] = {}
        self._last: Device | None = None
        self.overflow = 0

    def of(self, message: Message) -> Device | None:
        """Return the GPU that a message is about; None beyond the limit."""
        key = (message.host, message.pci)
        last = self._last
        if message.pci is None:
            near = last is not None and message.number - last.last_line <= _REACH
            if near and last is not None and last.pci is not None and last.host == message.host:
                last.last_line = message.number
                return last
        device = self._devices.get(key)
        if device is None:
            if len(self._devices) >= self.LIMIT:
                self.overflow += 1
                return None
            device = self._devices[key] = Device(message.host, message.pci)
            before = self._devices.get((message.host, None))
            if (
                before is not None
                and before is not device
                and message.number - before.last_line <= _REACH
            ):
                device.take(before)
                del self._devices[before.host, None]
        device.last_line = message.number
        self._last = device
        return device

    def all(self) -> list[Device]:
        """Return the GPUs; what no address was given for goes to the only GPU of its machine."""
        for key in [k for k in self._devices if k[1] is None]:
            host = key[0]
            named = [d for d in self._devices.values() if d.pci and d.host == host]
            if len(named) == 1:
                named[0].take(self._devices.pop(key))
        return list(self._devices.values())
