"""What port counters show of which there is one listing: shares, ceilings, and what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding, node
from engine.readers.network.counter_changes import Change, Take, changes_of, figures, part_of
from engine.readers.network.counter_facts import CounterFacts, at_ceiling
from engine.readers.quantities import listed, plural

# Of more ports that lose packets, the worst are told one by one; the rest stand in the totals.
_MOST: Final = 64
# Groups of counters that one sentence tells.
_TOLD: Final = 5
_EACH: Final = 3
# What a listing without the name of its port is called.
_NAMELESS: Final = "the port"


def _by_port(changes: Sequence[Change]) -> dict[str, object]:
    """Return counters by port; those of one port alone without its name."""
    ports: dict[str, dict[str, int]] = {}
    for change in changes:
        ports.setdefault(change.port, {}).update(change.values)
    return dict(ports) if len(ports) > 1 else dict(next(iter(ports.values()), {}))


def _told(noisy: Sequence[Change]) -> str:
    """The counters that were looked at first, each port named once."""
    ports: dict[str, list[str]] = {}
    for change in noisy[:_TOLD]:
        largest = sorted(change.values.items(), key=lambda item: -item[1])[:_EACH]
        ports.setdefault(change.port, []).extend(f"{name} {value:,}" for name, value in largest)
    alone = list(ports) == [_NAMELESS]
    said = "; ".join(f"{'' if alone else f'{port}: '}{', '.join(c)}" for port, c in ports.items())
    told = sum(map(len, ports.values()))
    more = sum(len(change.values) for change in noisy) - told
    return f"{said}{f' and {more} more' if more > 0 else ''}"


def _worst(shares: Sequence[Change]) -> Sequence[Change]:
    """Return the ports whose packets suffer most, in the order of the text."""
    if len(shares) <= _MOST:
        return shares
    worst = {id(c) for c in sorted(shares, key=lambda c: -(c.share or 0.0))[:_MOST]}
    return [c for c in shares if id(c) in worst]


def judge_totals(
    kind: str, takes: Sequence[Take], facts: CounterFacts, again: str
) -> Iterable[Finding]:
    """Say what totals show; by themselves they name no cause."""
    changes = [c for take in takes for c in changes_of(take, take.values, facts)]
    bad = [c for c in changes if c.meaning.class_ not in ("wait", "mark", "pause", "order")]
    full = {
        f"{take.name or 'the port'} {name}": value
        for take in takes
        if take.narrow
        for name, value in take.values.items()
        if at_ceiling(name, value) and (m := facts.of(name)) is not None and m.counts
    }
    shares = [c for c in bad if c.meaning.share and (c.share or 0) >= c.meaning.share]
    twice = f"Take it twice, a minute apart, under load, and read both: {again}; sleep 60; {again}"
    first = takes[0]
    known = sum(facts.of(name) is not None for take in takes for name in take.values)
    if not known:
        return
    for change in _worst(shares):
        yield finding(
            kind,
            f"{change.meaning.id}_share",
            change.meaning.severity,
            f"{at(change.host)}{change.port}: {figures(change.values).replace('+', '')} since the "
            f"counters were reset: {change.meaning.meaning}{part_of(change)}. When they happened "
            "is not shown.",
            f"{change.meaning.action} {twice}",
            line=change.line,
            cause=change.meaning.cause,
            data={
                "device": change.port,
                "totals": dict(change.values),
                "share_of_packets": round(change.share or 0, 8),
            },
            entity=node(change.host),
            sources=change.meaning.sources,
        )
    if full:
        yield finding(
            kind,
            "counter_at_ceiling",
            Severity.MEDIUM,
            f"{at(first.host)}{listed(full)} stands at its highest value: the counter stopped, "
            "there were more events than it can show, and further ones will not be seen.",
            "Read the 64-bit counters (perfquery -x), or have the owner of the fabric reset them "
            "(perfquery -R) and read them again.",
            line=first.line,
            data={"counters_at_ceiling": full},
            sources=("InfiniBand Architecture Specification 1.4, PortCounters",),
        )
    if changes:
        harmful = {id(c) for c in bad}
        noisy = sorted(changes, key=lambda c: (id(c) not in harmful, -c.events))
        yield finding(
            kind,
            "totals_only",
            Severity.LOW if bad else Severity.INFO,
            f"{at(first.host)}Totals since the last reset or boot: "
            f"{_told(noisy)}. One listing "
            "cannot show whether they rise, so this names no cause.",
            twice,
            line=noisy[0].line,
            data={
                "device": noisy[0].port,
                "totals": _by_port(noisy[:64]),
            },
            entity=node(first.host),
            sources=noisy[0].meaning.sources,
        )
    else:
        yield finding(
            kind,
            "no_errors_counted",
            Severity.INFO,
            f"{at(first.host)}No error or congestion was counted on "
            f"{listed(t.name or 'the port' for t in takes)} since the last reset "
            f"({plural(known, 'known counter')} read).",
            "Nothing to do for these counters; a slow link shows in state and rate (ibstat).",
            line=first.line,
            data={"ports": [t.name for t in takes], "totals": {}},
        )
