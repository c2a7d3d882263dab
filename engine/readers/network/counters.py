"""The judge of port counters: what rose between two listings, and what one listing cannot show.

Counters are totals since the last reset or boot. A total says that something happened once; only
the difference of two listings says that it happens now. Listings of one port that follow each
other are compared; where there is one, only shares of the packets of the same time are judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding, node
from engine.readers.network.counter_changes import Change, Take, changes_of, figures, part_of
from engine.readers.network.counter_facts import CounterFacts
from engine.readers.network.counter_totals import judge_totals
from engine.readers.quantities import listed, plural

_DEVICE: Final = re.compile(r"^([A-Za-z][\w.-]{1,40})(?:/[0-9]{1,3})?$")


def judge_counters(
    kind: str, takes: Sequence[Take], facts: CounterFacts, again: str
) -> list[Finding]:
    """Say what counters show.

    Args:
        kind: the reader's kind.
        takes: at least one.
        facts: what counters mean.
        again: the command that takes the listing, to take it twice.
    """
    found: list[Finding] = []
    totals: list[Take] = []
    rose: list[Change] = []
    compared: list[Take] = []
    reset: list[Take] = []
    for of_port in _ports(takes):
        first, last = of_port[0], of_port[-1]
        if len(of_port) == 1:
            totals.append(last)
            continue
        compared.append(last)
        growth = {k: v - first.values[k] for k, v in last.values.items() if k in first.values}
        if any(delta < 0 and facts.of(name) for name, delta in growth.items()):
            reset.append(last)
        rose += changes_of(last, {k: v for k, v in growth.items() if v > 0}, facts)
    found += _rising(kind, rose)
    if compared:
        found += _between(kind, compared, rose, reset)
    if totals:
        found += judge_totals(kind, totals, facts, again)
    return found


def _ports(takes: Sequence[Take]) -> list[list[Take]]:
    """Gather the listings of each port; nameless ones only if they can be of the same port."""
    named: dict[tuple[str | None, str], list[Take]] = {}
    ports: list[list[Take]] = []
    nameless: list[Take] | None = None
    for take in takes:
        if take.name is None:
            if nameless is None or not _same(nameless[-1], take):
                nameless = []
                ports.append(nameless)
            nameless.append(take)
            continue
        key = (take.host, take.name)
        if key not in named:
            ports.append(named.setdefault(key, []))
        named[key].append(take)
    return ports


def _same(before: Take, after: Take) -> bool:
    """Tell whether two nameless listings can be of one port: same counters, none fell."""
    return (
        before.host == after.host
        and before.values.keys() == after.values.keys()
        and all(value >= before.values[name] for name, value in after.values.items())
    )


def _verdict(change: Change) -> bool:
    """Tell whether growth is enough to name the group's cause."""
    meaning, share = change.meaning, change.share
    if meaning.cause is None or change.events < meaning.rises:
        return False
    if meaning.class_ == "wait":
        return bool(change.data_words) and change.events >= (change.data_words or 0)
    if meaning.class_ == "mark" and share is None:
        return False
    return meaning.share is None or share is None or share >= meaning.share


def _rising(kind: str, rose: Sequence[Change]) -> Iterable[Finding]:
    groups: dict[tuple[str, bool, str | None], list[Change]] = {}
    for change in rose:
        groups.setdefault((change.meaning.id, _verdict(change), change.host), []).append(change)
    for (_, sure, host), changes in groups.items():
        worst = max(changes, key=lambda c: c.events)
        meaning = worst.meaning
        severity = meaning.severity if sure else Severity.LOW
        if not sure and meaning.class_ in ("wait", "mark", "order", "pause"):
            severity = Severity.INFO
        yield finding(
            kind,
            f"{meaning.id}_rising",
            severity,
            f"{at(host)}{listed(f'{c.port} ({figures(c.values)})' for c in changes)} rose between "
            f"the first and the last listing: {meaning.meaning}{part_of(worst)}."
            + ("" if sure else _mild(worst)),
            meaning.action.replace("DEVICE", _device(worst.port)),
            line=worst.line,
            cause=meaning.cause if sure else None,
            data={
                "device": worst.port,
                "growth": dict(worst.values),
                "packets": worst.packets,
                "share_of_packets": round(worst.share, 8) if worst.share else None,
                "ports": [c.port for c in changes],
            },
            entity=node(host),
            sources=meaning.sources,
        )


def _device(port: str) -> str:
    """Return the device in ``mlx5_0/1`` or ``ens1``, as tools take it; else ``DEVICE``."""
    found = _DEVICE.match(port)
    return found[1] if found else "DEVICE"


def _mild(change: Change) -> str:
    meaning = change.meaning
    if meaning.cause is None or meaning.class_ == "mark":
        return " By itself this names no cause."
    if change.events < meaning.rises:
        return f" Fewer than {meaning.rises:,} are no verdict."
    return " That is too small a part to be what slows a job."


def _between(
    kind: str, compared: Sequence[Take], rose: Sequence[Change], reset: Sequence[Take]
) -> Iterable[Finding]:
    if reset:
        yield finding(
            kind,
            "counters_reset",
            Severity.INFO,
            f"Counters of {listed(t.name or 'the port' for t in reset)} fell between the listings: "
            "they were reset (or the listings are of different ports), so what was counted before "
            "is left out.",
            "Take two more listings without a reset between them.",
            line=reset[0].line,
            data={"ports": [t.name for t in reset]},
        )
    if not rose and not reset:
        yield finding(
            kind,
            "no_growth",
            Severity.INFO,
            f"No error or congestion counter of {plural(len(compared), 'port')} rose between the "
            "first and the last listing.",
            "This holds for that time only: take the two listings while the job is slow.",
            line=compared[0].line,
            data={"ports": [t.name for t in compared], "growth": {}},
        )
