"""Xids in exporter text: the exporter's counts by code, and the sticky gauge of the last code."""

from __future__ import annotations

from collections.abc import Iterator

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.bursts import XidBurst
from engine.readers.chain import link
from engine.readers.facts import Facts
from engine.readers.series import Collected, Series
from engine.readers.xid_actions import xid_action
from engine.readers.xid_line import XidEvent
from engine.signals.labels import gpu_entity
from engine.units import duration, number


def xid_counts(collected: Collected, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield what ``DCGM_EXP_XID_ERRORS_COUNT`` says: the code is a label, the value a count."""
    facts = Facts(catalogue)
    found: dict[tuple[object, int], tuple[XidBurst, Series]] = {}
    for series in collected.series.values():
        code = series.labels.get("xid", "")
        if "XID_ERRORS_" not in series.name or not series.last or not code.isdecimal():
            continue
        event = XidEvent(int(code[:9]), series.line, "metric", pci=str(series.place.key))
        burst = XidBurst(event, event, count=int(series.last))
        found.setdefault((series.place.key, event.xid), (burst, series))
    series_of = {id(burst): series for burst, series in found.values()}
    ordered = link([burst for burst, _ in found.values()], [], facts.weigh, facts.reasons)
    primary = ordered[0].code if len(ordered) > 1 else None
    for burst in (b for b in ordered if isinstance(b, XidBurst)):
        finding = _count(burst, series_of[id(burst)], facts)
        if primary is not None and burst is ordered[0]:
            finding.data["primary_xid"] = primary
            finding.data["xids"] = list(dict.fromkeys(b.code for b in ordered))
        yield finding


def xid_gauges(collected: Collected, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield the last Xid of each GPU: sticky, so without a change its time is unknown."""
    facts = Facts(catalogue)
    last = {s.place.key: s for s in collected.of("xid") if s.last}
    for series in last.values():
        code = int(series.last or 0)
        entry = facts.xid(code)
        meaning = entry["title"] if entry else "not a documented code"
        entity = gpu_entity([series.place])
        event = XidEvent(code, series.line, "metric")
        asks = xid_action(XidBurst(event, event), facts, {})
        yield Finding(
            kind="xid",
            id=str(code),
            severity=Severity.LOW,
            says=(
                f"Xid {code} is the last one that {entity.name} reported: {meaning}. The gauge "
                "holds the code of the last Xid, not a count, and keeps it until the exporter or "
                "driver restarts, so its time is unknown."
            ),
            action=(
                "Look in the kernel log (dmesg) for its time and for others: only a change is an "
                "event, the same code again changes nothing, and some Xids never reach this gauge "
                "(62 for one). "
                f"If it is recent: {asks}"
            ),
            entity=entity,
            line=series.line,
            cause=None,
            data={"xid": code, "known": entry is not None},
            sources=tuple(entry.get("source", ())) if entry else (),
        )


def _count(burst: XidBurst, series: Series, facts: Facts) -> Finding:
    entry = facts.xid(burst.code)
    entity = gpu_entity([series.place])
    window = series.labels.get("window_size_in_ms", "")
    times = f"{burst.count} time{'' if burst.count == 1 else 's'}"
    data: dict[str, object] = {"xid": burst.code, "count": burst.count, "known": entry is not None}
    if window.isdecimal():
        seconds = int(window[:12]) / 1000
        data["window_s"] = int(seconds) if seconds == int(seconds) else seconds
        when = f"in the last {duration(seconds)} (window of {number(seconds)} s)"
    else:
        when = "since the exporter started"
    what = entry["title"] if entry else "not a documented code, so no meaning is guessed"
    says = (
        f"Xid {burst.code} was counted {times} on {entity.name} {when}: {what}. The code stands in "
        "the label, the value is a count."
    )
    if entry:
        says += f" {entry['meaning']}"
    if burst.parent is not None:
        says += f" It follows from Xid {burst.parent.code}."
    return Finding(
        kind="xid",
        id=str(burst.code),
        severity=facts.severity(burst),
        says=says,
        action=xid_action(burst, facts, {}) if burst.parent is None else "Act on its reason.",
        entity=entity,
        line=series.line,
        cause=entry.get("taxonomy") if entry and burst.parent is None else None,
        data=data,
        sources=tuple(entry.get("source", ())) if entry else (),
    )
