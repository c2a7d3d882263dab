"""One kernel event, however often it was printed: bursts of the same Xid or SXid.

A single fault prints a line for each channel, and a dying switch a line for each port. Lines are
put together by machine, device, code and the parts of the message that tell two faults apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from engine.readers.period import Period
from engine.readers.sxid_line import SxidEvent
from engine.readers.xid_line import XidEvent

# Of values that can differ from line to line (processes, ports …) so many are kept by name.
_KEEP = 64
# Message parts that make two lines of one code on one GPU two different faults.
_TELLING = ("unit", "link", "intrinfo", "error_status", "row", "contained_unit", "uncontained_unit")
# The driver says "has fallen off the bus" once with the number and once without: so near to each
# other (lines, s) both are one event.
_BESIDE_LINES = 8
_BESIDE_S = 5.0


@dataclass(slots=True)
class XidBurst:
    """The same Xid on the same GPU. ``parent`` is the event that it follows from."""

    first: XidEvent
    last: XidEvent
    count: int = 0
    pids: dict[int, None] = field(default_factory=dict)
    processes: dict[str, None] = field(default_factory=dict)
    places: dict[tuple[int, int, int | None], int] = field(default_factory=dict)
    sources: dict[str, None] = field(default_factory=dict)
    caused_by: dict[int, None] = field(default_factory=dict)
    period: Period = field(default_factory=Period)
    parent: Burst | None = None

    @property
    def code(self) -> int:
        """The Xid."""
        return self.first.xid

    @property
    def line(self) -> int:
        """The first line where it stands."""
        return self.first.line

    @property
    def gpu(self) -> tuple[str | None, str | None]:
        """Identity of the GPU: machine, and address or UUID."""
        return (self.first.host, self.first.pci or self.first.uuid)

    @property
    def detail(self) -> dict[str, Any]:
        """What the message says; of an Xid 154 the newest line counts."""
        return self.last.detail if self.code == 154 else self.first.detail

    def add(self, event: XidEvent) -> None:
        """Count one more line."""
        beside = self._beside(event)
        self.count += event.source != "named" and not beside
        if not (beside and event.source == "lost"):
            self.last = event
        self.period.add(event.stamp, event.boot)
        _keep(self.sources, event.source)
        if event.pid is not None:
            _keep(self.pids, event.pid)
        if event.process:
            _keep(self.processes, event.process)
        if event.caused_by is not None:
            _keep(self.caused_by, event.caused_by)
        if "gpc" in event.detail:
            place = (event.detail["gpc"], event.detail["tpc"], event.detail.get("sm"))
            if place in self.places or len(self.places) < _KEEP:
                self.places[place] = self.places.get(place, 0) + 1
        for key, value in event.detail.items():
            self.first.detail.setdefault(key, value)

    def _beside(self, event: XidEvent) -> bool:
        """Whether a line says again, with or without the number, what the one before it said."""
        before = self.last
        if not self.count or (event.source == "lost") == (before.source == "lost"):
            return False
        one, other = before.stamp, event.stamp
        if one is not None and other is not None and one.form == other.form:
            return abs(other.order - one.order) <= _BESIDE_S
        return abs(event.line - before.line) <= _BESIDE_LINES


@dataclass(slots=True)
class SxidBurst:
    """The same SXid on the switches of one machine."""

    first: SxidEvent
    count: int = 0
    switches: dict[int, None] = field(default_factory=dict)
    physical_ids: dict[int, None] = field(default_factory=dict)
    ports: dict[int, None] = field(default_factory=dict)
    severities: dict[str, None] = field(default_factory=dict)
    period: Period = field(default_factory=Period)
    parent: Burst | None = None

    @property
    def code(self) -> int:
        """The SXid."""
        return self.first.sxid

    @property
    def line(self) -> int:
        """The first line where it stands."""
        return self.first.line

    @property
    def fatal(self) -> bool:
        """Whether any line calls it fatal."""
        return any(s.lower() == "fatal" for s in self.severities)

    def add(self, event: SxidEvent) -> None:
        """Count one more line; detail lines add nothing."""
        if event.is_detail:
            return
        self.count += 1
        self.period.add(event.stamp, event.boot)
        for target, value in (
            (self.switches, event.switch),
            (self.physical_ids, event.physical_id),
            (self.ports, event.port),
        ):
            if value is not None:
                _keep(target, value)
        if event.severity:
            _keep(self.severities, event.severity)


Burst = XidBurst | SxidBurst


class Gathering:
    """Collects events into bursts, bounded: hostile logs cannot fill the memory."""

    LIMIT = 1_024

    def __init__(self) -> None:
        self.xids: dict[tuple[Any, ...], XidBurst] = {}
        self.sxids: dict[tuple[Any, ...], SxidBurst] = {}
        self.overflow = 0
        self._uuids: dict[tuple[str | None, str], str] = {}
        self._addresses: dict[str, str] = {}
        self.serials: dict[str, str] = {}

    def add_xid(self, event: XidEvent) -> None:
        """Add one Xid to its burst."""
        if event.uuid and event.pci:
            self.add_uuid(event.pci, event.uuid, event.host)
        elif event.pci:
            event.uuid = self._uuids.get((event.host, event.pci))
        elif event.uuid:
            event.pci = self._addresses.get(event.uuid)
        telling = tuple(event.detail.get(key) for key in _TELLING)
        instance = (event.gpu_instance, event.compute_instance)
        key = (event.host, event.pci or event.uuid, instance, event.xid, str(telling))
        burst = self.xids.get(key)
        if burst is None:
            if len(self.xids) >= self.LIMIT:
                self.overflow += 1
                return
            burst = self.xids[key] = XidBurst(event, event)
        burst.add(event)

    def add_sxid(self, event: SxidEvent) -> None:
        """Add one SXid to its burst."""
        key = (event.host, event.source, event.sxid)
        burst = self.sxids.get(key)
        if burst is None:
            if len(self.sxids) >= self.LIMIT:
                self.overflow += 1
                return
            burst = self.sxids[key] = SxidBurst(event)
        burst.add(event)

    def add_serial(self, uuid: str, serial: str) -> None:
        """Remember the serial number of a board."""
        if len(self.serials) < self.LIMIT:
            self.serials.setdefault(uuid, serial)

    def add_uuid(self, pci: str, uuid: str, host: str | None) -> None:
        """Remember which board sits at an address of a machine."""
        if len(self._uuids) < self.LIMIT:
            self._uuids.setdefault((host, pci), uuid)
            self._addresses.setdefault(uuid, pci)


def _keep(target: dict[Any, None], value: Any) -> None:
    if len(target) < _KEEP:
        target.setdefault(value)
