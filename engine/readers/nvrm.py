"""Xid, SXid and lost-GPU lines of a kernel log, and which of them is the root."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from engine.model import Entity, Finding, Kind, Severity
from engine.readers import nvlink5
from engine.readers.base import Context, Result, errata_of
from engine.readers.bursts import Burst, Gathering, SxidBurst, XidBurst
from engine.readers.chain import ECHOES, link
from engine.readers.facts import SEVERITIES, Facts
from engine.readers.logline import LogLine
from engine.readers.overview import overview
from engine.readers.period import Boots
from engine.readers.recurrence import Recurrence, recurrences
from engine.readers.sxid_line import sxid_event
from engine.readers.sxid_words import sxid_action, sxid_says
from engine.readers.xid_actions import xid_action
from engine.readers.xid_cut import CutXids
from engine.readers.xid_detail import detail_of
from engine.readers.xid_line import (
    LostGpu,
    XidEvent,
    serial_of,
    uuid_of,
    xid_events,
)
from engine.readers.xid_names import SAME_ERROR, reference
from engine.readers.xid_words import xid_says

# A program that spans GPUs ends within so many seconds of the one that failed (s).
_PEER_S = 30.0
# Failures of one machine that are looked at for it; more have no single story.
_MOST_PEERS = 16
# The driver's messages are shorter; what follows is not decoded.
_MESSAGE = 1_024


class NvrmPart:
    """Reads NVIDIA driver lines in kernel logs, and what health agents copy from them."""

    marks: ClassVar[tuple[str, ...]] = (
        "Xid",
        "NVRM:",
        "detected NVSwitch",
        "nvidia-nvswitch",
        "marked unhealthy",
        " EventType:8 EventData:",
    )

    def __init__(self, context: Context, boots: Boots) -> None:
        self._facts = Facts(context.catalogue)
        self._boots = boots
        self._events = Gathering()
        self._lost = LostGpu()
        self._cut = CutXids()
        self._last_uuid: str | None = None
        self._repeats: dict[int, Recurrence] = {}
        self._peers: dict[int, XidBurst] = {}

    @property
    def gpus(self) -> Iterator[str]:
        """PCI addresses of GPUs that these lines named."""
        return (b.first.pci for b in self._events.xids.values() if b.first.pci)

    def take(self, line: LogLine) -> bool:
        """Take one record; return whether it holds an event, or what belongs to one."""
        number, text = line.number, line.text
        switch = sxid_event(text, number)
        if switch is not None:
            switch.host, switch.stamp = line.host, line.stamp
            switch.boot = self._boots.of(line.host, line.stamp)
            self._events.add_sxid(switch)
            return True
        events = list(xid_events(text, number))
        for event in events:
            event.message = event.message[:_MESSAGE]
            event.detail |= self._detail(event)
        lost = None if events else self._lost.feed(number, text)
        if lost is not None:
            events = [lost]
        for event in events:
            event.host, event.stamp = line.host, line.stamp
            event.boot = self._boots.of(line.host, line.stamp)
            self._events.add_xid(event)
        if events or self._board(line) or "device marked unhealthy" in text:
            return True
        return self._cut.feed(line)

    def finish(self) -> Result:
        """Order the events, root first, and put them into words."""
        self._add_named()
        facts = self._facts
        bursts = link(
            list(self._events.xids.values()),
            list(self._events.sxids.values()),
            facts.weigh,
            facts.reasons,
        )
        cut = self._cut.findings()
        if not bursts:
            return Result(kinds=["xid"] if cut else [], findings=cut)
        beside: dict[object, dict[int, XidBurst]] = {}
        for burst in self._events.xids.values():
            beside.setdefault(burst.gpu, {}).setdefault(burst.code, burst)
        self._repeats = recurrences(self._events.xids.values(), facts)
        self._peers = self._after_peers(bursts)
        findings = [
            self._xid(b, beside[b.gpu]) if isinstance(b, XidBurst) else self._sxid(b)
            for b in bursts
        ]
        findings[0].data.update(overview(bursts))
        result = Result(
            kinds=list(dict.fromkeys(f.kind for f in findings)),
            findings=findings + cut,
            causes=_roots_first(bursts, findings, self._peers),
        )
        if self._events.overflow:
            result.notes.append(
                f"{self._events.overflow} more events differ from the first "
                f"{Gathering.LIMIT}; they are counted here only."
            )
        return result

    def _detail(self, event: XidEvent) -> dict[str, Any]:
        if event.xid in nvlink5.XIDS:
            return nvlink5.parse(event.message, self._facts.nvlink5, event.xid)
        return detail_of(event.xid, event.message)

    def _board(self, line: LogLine) -> bool:
        found = uuid_of(line.text)
        if found is not None:
            self._last_uuid = found[1]
            self._events.add_uuid(*found, line.host)
            return True
        serial = serial_of(line.text)
        if serial is not None and self._last_uuid is not None:
            self._events.add_serial(self._last_uuid, serial)
        return serial is not None

    def _add_named(self) -> None:
        """Add the Xids that stand only in "caused by previous Xid" of another."""
        bursts = list(self._events.xids.values())
        printed = {(b.gpu, b.code) for b in bursts}
        for burst in bursts:
            first = burst.first
            for code in burst.caused_by:
                if (burst.gpu, code) not in printed:
                    self._events.add_xid(
                        XidEvent(code, first.line, "named", first.host, first.pci, first.uuid)
                    )

    def _cause(self, burst: Burst) -> str | None:
        if isinstance(burst, SxidBurst):
            entry = self._facts.sxid(burst.code)
            if burst.parent is not None or entry is None:
                return None
            return entry.get("taxonomy")
        if burst.parent is not None and burst.code not in SAME_ERROR:
            return None
        if burst.code == 154:
            code = burst.detail.get("recovery_code")
            return "gpu_needs_reset" if code in (1, 2, 4) else None
        entry = self._facts.xid(burst.code)
        if entry is None:
            return None
        repeated = self._repeats.get(id(burst))
        if repeated is not None and repeated.cause is not None:
            return repeated.cause
        if burst.detail.get("unit") == "NETIR_BER_EVENT":
            return "nvlink_errors"
        return entry.get("taxonomy")

    def _after_peers(self, bursts: Sequence[Burst]) -> dict[int, XidBurst]:
        """Return the application faults that came just after another GPU of the machine failed."""
        xids = [b for b in bursts if isinstance(b, XidBurst) and b.parent is None]
        failed: dict[str | None, list[XidBurst]] = {}
        for burst in xids:
            of = failed.setdefault(burst.first.host, [])
            if len(of) < _MOST_PEERS and self._facts.severity(burst) is Severity.CRITICAL:
                of.append(burst)
        found: dict[int, XidBurst] = {}
        for burst in xids:
            if self._cause(burst) != "app_fault_xid" or burst.period.occasions > 1:
                continue
            near = failed[burst.first.host]
            peer = next((b for b in near if _just_before(b, burst)), None)
            if peer is not None:
                found[id(burst)] = peer
        return found

    def _xid(self, burst: XidBurst, beside: Mapping[int, XidBurst]) -> Finding:
        facts = self._facts
        entry = facts.xid(burst.code) or {}
        says, action = xid_says(burst, facts), xid_action(burst, facts, beside)
        severity = facts.severity(burst)
        repeated = self._repeats.get(id(burst))
        if repeated is not None:
            says, action = f"{says} {repeated.says}", f"{action} {repeated.action}".strip()
            severity = min(severity, repeated.severity, key=SEVERITIES.index)
        peer = self._peers.get(id(burst))
        if peer is not None:
            says = (
                f"{says} Another GPU of this machine failed just before it: {reference(peer)}. A "
                "program that runs on both ends like this, so look there first."
            )
        return Finding(
            kind="xid",
            id=str(burst.code),
            severity=severity,
            says=says,
            action=action,
            entity=self._gpu(burst),
            line=burst.line,
            cause=self._cause(burst),
            data=self._xid_data(burst),
            errata=errata_of(entry),
            sources=tuple(entry.get("source", ())),
        )

    def _xid_data(self, burst: XidBurst) -> dict[str, Any]:
        event, detail = burst.first, dict(burst.detail)
        row = detail.pop("table_row", None)
        lost = list(burst.sources) == ["lost"]
        entry = self._facts.xid(burst.code)
        data: dict[str, Any] = {"equivalent_xid" if lost else "xid": burst.code}
        data["known"] = entry is not None
        optional = {
            "pci": event.pci,
            "uuid": event.uuid,
            "serial": self._events.serials.get(event.uuid or ""),
            "gpu_instance": event.gpu_instance,
            "compute_instance": event.compute_instance,
            "pid": next(iter(burst.pids), None),
            "process": next(iter(burst.processes), None),
        }
        data |= {key: value for key, value in optional.items() if value is not None}
        buckets = row or (None if "unit" in detail else entry) or {}
        data |= {k: buckets[k] for k in ("resolution", "investigate") if buckets.get(k)}
        if len(burst.places) > 1:
            for key, values in zip(
                ("gpc", "tpc", "sm"), zip(*burst.places, strict=True), strict=True
            ):
                if len(set(values)) > 1:
                    detail.pop(key, None)
            data["units"] = len(burst.places)
        data |= detail
        data["count"] = burst.count
        data |= burst.period.data()
        repeated = self._repeats.get(id(burst))
        if repeated is not None and repeated.cause is not None:
            data["suspect"] = "hardware"
        if burst.caused_by:
            data["caused_by_xid"] = next(iter(burst.caused_by))
        if burst.code in ECHOES and burst.parent is not None and burst.code != 154:
            data["sympathetic"] = True
        return data

    def _sxid(self, burst: SxidBurst) -> Finding:
        entry = self._facts.sxid(burst.code) or {}
        return Finding(
            kind="sxid",
            id=str(burst.code),
            severity=self._facts.severity(burst),
            says=sxid_says(burst, self._facts),
            action=sxid_action(burst, self._facts),
            entity=Entity(Kind.NODE, burst.first.host, host=burst.first.host)
            if burst.first.host
            else None,
            line=burst.line,
            cause=self._cause(burst),
            data=_sxid_data(burst, entry),
            errata=errata_of(entry),
            sources=tuple(entry.get("source", ())),
        )

    def _gpu(self, burst: XidBurst) -> Entity | None:
        event = burst.first
        if event.pci is None and event.uuid is None:
            return None
        name = f"GPU {event.pci}" if event.pci else str(event.uuid)
        return Entity(
            kind=Kind.GPU,
            name=f"{event.host} {name}" if event.host else name,
            host=event.host,
            uuid=event.uuid,
            pci=event.pci,
            mig=None if event.gpu_instance is None else str(event.gpu_instance),
        )


def _sxid_data(burst: SxidBurst, entry: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"sxid": burst.code, "known": bool(entry)}
    if burst.first.pci:
        data["pci"] = burst.first.pci
    for one, many, values in (
        ("switch", "switches", burst.switches),
        ("physical_id", "physical_ids", burst.physical_ids),
        ("port", "ports", burst.ports),
    ):
        if len(values) == 1:
            data[one] = next(iter(values))
        elif values:
            data[many] = list(values)
    if burst.severities:
        data["severity"] = next(iter(burst.severities))
    if entry.get("resolution"):
        data["resolution"] = entry["resolution"]
    data["count"] = burst.count
    return data | burst.period.data()


def _just_before(peer: XidBurst, burst: XidBurst) -> bool:
    """Return whether a GPU failed seconds before another one of the same machine."""
    one, other = peer.period.first, burst.period.first
    if one is None or other is None or one.form != other.form:
        return False
    if peer.first.host != burst.first.host or peer.gpu == burst.gpu:
        return False
    later = other.order - one.order
    return 0.0 <= later <= _PEER_S and (later > 0 or peer.line < burst.line)


def _roots_first(
    bursts: Sequence[Burst], findings: Sequence[Finding], peers: Mapping[int, XidBurst]
) -> list[str]:
    """Return the causes: of roots, of what follows from them, of programs that a peer took down."""

    def place(pair: tuple[Burst, Finding]) -> tuple[bool, bool]:
        return id(pair[0]) in peers, pair[0].parent is not None

    pairs = sorted(zip(bursts, findings, strict=True), key=place)
    return [f.cause for _, f in pairs if f.cause]
