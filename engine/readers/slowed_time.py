"""Clock events in exporter text that are counted over time: samples in a window, and durations."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.series import Collected, Series
from engine.signals.labels import gpu_entity
from engine.units import duration, number

_EVENTS = ("DCGM_EXP_CLOCK_EVENTS_COUNT", "DCGM_EXP_CLOCK_EVENTS_TOTAL")


def slowed_time(collected: Collected, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield what counts of clock events and counters of slowed time say, and what they do not."""
    yield from _events(collected, catalogue)
    yield from _violations(collected)


def _events(collected: Collected, catalogue: Catalogue) -> Iterator[Finding]:
    entries = {
        str(e["exporter_label"]): e
        for e in catalogue.entries["throttle_reasons"].values()
        if e.get("exporter_label")
    }
    found: dict[tuple[tuple[str, str], str], list[Series]] = {}
    for series in collected.series.values():
        counted = series.last is not None and isfinite(series.last)
        if series.name in _EVENTS and series.labels.get("clock_event") and counted:
            found.setdefault((series.place.key, series.name), []).append(series)
    for (_, name), group in found.items():
        seen = [s for s in group if s.last]
        first = group[0]
        entity = gpu_entity([first.place])
        total = name.endswith("_TOTAL")
        window = first.labels.get("window_size_in_ms", "")
        seconds = int(window[:12]) / 1000 if window.isdecimal() else None
        when = "since the exporter started" if total else "in its window"
        if seconds is not None and not total:
            when = f"in the last {duration(seconds)} (window of {number(seconds)} s)"
        parts = []
        for s in seen:
            label = s.labels["clock_event"]
            title = str(entries[label]["title"]) if label in entries else "not documented"
            parts.append(f"{label} ({title}) in {number(s.last or 0.0)}")
        reasons = [str(entries[e]["id"]) for s in seen if (e := s.labels["clock_event"]) in entries]
        bad = [r for r in reasons if catalogue.entries["throttle_reasons"][r].get("bad")]
        says = (
            f"Clock events of {entity.name} {when}: {', '.join(parts)} samples. It counts samples "
            "with the bit set, not seconds and not transitions."
            if parts
            else f"No clock event of {entity.name} was seen {when}: nothing throttled it."
        )
        if seen and len(reasons) == len(seen) and not bad:
            says += " None of them is a fault: " + " ".join(
                str(catalogue.entries["throttle_reasons"][r]["meaning"]) for r in reasons[:2]
            )
        data: dict[str, object] = {"reasons": reasons}
        if seconds is not None:
            data["window_s"] = int(seconds) if seconds == int(seconds) else seconds
        if len(seen) == 1:
            data["count"] = int(seen[0].last or 0)
        yield Finding(
            kind="metrics",
            id="clock_events",
            severity=Severity.MEDIUM if bad else Severity.INFO,
            says=says,
            action="Divide by the samples in the window for the share of time"
            + ("." if total else ", and never apply rate() to it: it is a gauge."),
            entity=entity,
            line=first.line,
            cause=None,
            data=data,
            sources=("NVIDIA/dcgm-exporter internal/pkg/collector/clock_events_collector.go",),
        )


def _violations(collected: Collected) -> Iterator[Finding]:
    """Time below the wanted clocks: a counter since the driver was loaded."""
    found: dict[tuple[str, str], list[Series]] = {}
    for series in collected.series.values():
        counts = series.signal is not None and series.signal.unit == "ns"
        if counts and series.signal is not None and series.signal.kind == "counter" and series.last:
            found.setdefault(series.place.key, []).append(series)
    if not found:
        return
    most = max(found.values(), key=lambda group: max(s.value or 0.0 for s in group))
    entity = gpu_entity([s.place for s in most])
    parts, rose = [], []
    for s in most:
        assert s.signal is not None  # filtered above
        parts.append(f"{s.signal.title} {number((s.value or 0.0) / 1e9)} s")
        if s.count > 1:
            grown = s.increase * s.scale / 1e9
            rose.append(f"{s.signal.title} rose by {number(grown)} s" if grown else "")
    says = (
        f"{entity.name}: {', '.join(parts)}, in total since the driver was loaded: such a counter "
        "in ns says that it happened, not when."
    )
    if rose:
        text = ", ".join(r for r in rose if r)
        says += f" Between the samples {text or 'it did not rise: it is past'}."
    if len(found) > 1:
        says += f" {len(found) - 1} more GPU{'s' if len(found) > 2 else ''} stand above 0."
    yield Finding(
        kind="metrics",
        id="slowed_time",
        severity=Severity.INFO,
        says=says,
        action="Take its rise: rate(x[5m]) / 1e9 is the share of time slowed. The value is ns in "
        "every version, although help texts before 4.7.1 say us.",
        entity=entity,
        line=most[0].line,
        cause=None,
        data={"gpus": len(found)},
        sources=("NVIDIA/dcgm-exporter pull request 589", "NVIDIA/DCGM dcgmlib/dcgm_fields.h"),
    )
