"""What is odd about the names and labels of serving metrics: renamed, relabelled, mis-scaled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.series import Collected, Series
from engine.readers.serving.load import Load
from engine.readers.serving.quantities import Quantities, canonical, server_of
from engine.readers.value_oddities import listed

_PERCENT_FROM = 1.5
_MAX_PAIRS = 6
_RATIOS = ("kv_usage", "prefix_hit_rate", "accept_rate")
_SOURCE = "vllm-project/vllm docs/usage/metrics.md 0.33.0 (deprecation policy)"


def oddities(
    collected: Collected, loads: Sequence[Load], quantities: Quantities, catalogue: Catalogue
) -> Iterator[Finding]:
    """Yield a finding for each oddity of the serving metrics in a text."""
    serving = [s for s in collected.series.values() if server_of(s.name)]
    if not serving:
        return
    yield from _old_names(serving, catalogue)
    yield from _prefixes(serving)
    yield from _no_total(serving, quantities)
    yield from _scales(serving, quantities)
    yield from _impossible(serving, quantities)
    yield from _infinite(loads)
    yield from _processes(serving)


def _old_names(serving: Iterable[Series], catalogue: Catalogue) -> Iterator[Finding]:
    entries: dict[str, Mapping[str, Any]] = {}
    for entry in catalogue.entries.get("vllm_metrics", {}).values():
        facts = entry.get("facts") or {}
        if facts.get("replaced_by") or facts.get("exists") is False:
            entries |= dict.fromkeys(entry.get("names") or (), entry)
    found: dict[str, tuple[Series, Mapping[str, Any]]] = {}
    for series in serving:
        known = entries.get(canonical(series.name))
        if known is not None:
            found.setdefault(_family(series.name), (series, known))
    if not found:
        return
    said = []
    for name, (_, entry) in list(found.items())[:_MAX_PAIRS]:
        facts = entry["facts"]
        new = str(facts.get("replaced_by", "none")).replace("none", "nothing")
        until = f", gone after {facts['until']}" if facts.get("until") else ""
        only = " of the V0 engine" if facts.get("generation") == "V0" else ""
        said.append(f"{name} is a deprecated name{only}; now {new}{until}")
    more = len(found) - _MAX_PAIRS
    yield _finding(
        "deprecated_names",
        f"{'. '.join(said)}.{f' {more} more old names.' if more > 0 else ''}",
        "Use the new names in dashboards and alerts; for a mixed fleet join both with 'or'.",
        next(iter(found.values()))[0],
        {"old_names": list(found)[:64]},
        (_SOURCE,),
    )


def _family(name: str) -> str:
    for part in ("_bucket", "_sum", "_count"):
        if name.endswith(part):
            return name.removesuffix(part)
    return name


def _prefixes(serving: Iterable[Series]) -> Iterator[Finding]:
    odd = [s for s in serving if canonical(s.name) != s.name]
    if not odd:
        return
    ray = any(s.name.startswith("ray_") for s in odd)
    yield _finding(
        "relabelled_names",
        f"{listed(s.name for s in odd)}: written with _ where the server writes a colon "
        f"({canonical(odd[0].name)}). "
        + ("Ray Serve exports them so." if ray else "A relabelling rule or an agent renamed them."),
        "Query the names as they are stored here; dashboards made for the server's own names find "
        "nothing.",
        odd[0],
        {"metrics": list(dict.fromkeys(s.name for s in odd))[:64]},
    )


def _no_total(serving: Iterable[Series], quantities: Quantities) -> Iterator[Finding]:
    odd = [
        s
        for s in serving
        if not s.name.endswith("_total")
        and any(
            n.base.endswith("_total") and not n.part and n.base == canonical(s.name) + "_total"
            for n in quantities.of(s.name)
        )
    ]
    if not odd:
        return
    yield _finding(
        "no_total",
        f"{listed(s.name for s in odd)}: a counter without the _total that the server exports it "
        "with; an agent or a relabelling rule took it off.",
        "Query the name as it is stored here.",
        odd[0],
        {"metrics": list(dict.fromkeys(s.name for s in odd))[:64]},
    )


def _scales(serving: Iterable[Series], quantities: Quantities) -> Iterator[Finding]:
    odd = [
        s
        for s in serving
        if _PERCENT_FROM < s.highest <= 100
        and any(n.quantity in _RATIOS for n in quantities.of(s.name))
    ]
    if not odd:
        return
    yield _finding(
        "ratio_in_percent",
        f"{listed(s.name for s in odd)} is a fraction from 0 to 1 as the server writes it, but "
        f"reads up to {max(s.highest for s in odd):.3g} here: something on the way made it "
        "percent. It is read as percent.",
        "Divide by 100 before comparing it with other servers; look for a scaling rule.",
        odd[0],
        {"metrics": list(dict.fromkeys(s.name for s in odd))[:64]},
    )


def _impossible(serving: Iterable[Series], quantities: Quantities) -> Iterator[Finding]:
    odd = [
        s
        for s in serving
        if s.last is not None
        and (s.last < 0 or s.last > 100)
        and any(n.quantity in _RATIOS for n in quantities.of(s.name))
    ]
    off = [s for s in odd if s.last == -1 and "prefix_cache_hit_rate" in s.name]
    if off:
        yield _finding(
            "prefix_caching_off",
            f"{listed(s.name for s in off)} reads -1: prefix caching is off or not supported "
            "there, which is no hit rate.",
            "Nothing to do; --enable-prefix-caching turns it on where prompts share prefixes.",
            off[0],
            {"metrics": list(dict.fromkeys(s.name for s in off))[:64]},
        )
    odd = [s for s in odd if s not in off]
    if not odd:
        return
    yield _finding(
        "impossible_value",
        f"{listed(s.name for s in odd)} reads {odd[0].last:.3g}, which no fraction can be: the "
        "sample is corrupt and left out.",
        "Read it again; report it to the maker of the server if it stays.",
        odd[0],
        {"metrics": list(dict.fromkeys(s.name for s in odd))[:64], "bad_value": odd[0].last},
        severity=Severity.LOW,
    )


def _infinite(loads: Iterable[Load]) -> Iterator[Finding]:
    names = [
        load.written.get(quantity, quantity)
        for load in loads
        for quantity, histogram in load.histograms.items()
        if histogram.only_infinity
    ]
    if names:
        yield Finding(
            kind="metrics",
            id="only_infinity",
            severity=Severity.INFO,
            says=(
                f"{listed(names)}: only the bucket +Inf is there, so no quantile can be told, the "
                "mean alone."
            ),
            action="Export the other buckets, or do not drop the label le on the way.",
            entity=None,
            line=None,
            cause=None,
            data={"metrics": names[:64]},
        )


def _processes(serving: Iterable[Series]) -> Iterator[Finding]:
    odd = [s for s in serving if s.labels.get("pid")]
    if not odd:
        return
    yield _finding(
        "pid_labels",
        f"{listed(s.name for s in odd)}: one series for each process (label pid), those of ended "
        "processes among them, from prometheus_client's multiprocess mode.",
        "Take the largest value over pid, never the sum; empty PROMETHEUS_MULTIPROC_DIR when the "
        "server starts.",
        odd[0],
        {"processes": len({s.labels["pid"] for s in odd})},
    )


def _finding(
    id_: str,
    says: str,
    action: str,
    first: Series,
    data: dict[str, object],
    sources: tuple[str, ...] = (),
    *,
    severity: Severity = Severity.INFO,
) -> Finding:
    return Finding(
        kind="metrics",
        id=id_,
        severity=severity,
        says=says,
        action=action,
        entity=None,
        line=first.line,
        cause=None,
        data=data,
        sources=sources,
    )
