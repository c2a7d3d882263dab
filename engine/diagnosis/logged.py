"""Events of a kernel log, put to the GPUs of a frame.

By machine and PCI address, or by UUID. They become changes of the Xid signal at their own time, so
that rules ask one signal only. What fits no GPU is told in a warning: it is not lost, and nobody
else is blamed for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from engine.model import Entity, Unknown
from engine.pci import board
from engine.samples import Floats, Frame
from engine.signals.columns import column
from engine.sources.logs.port import LogEvent, Unread
from engine.sources.text import some
from engine.units import duration

_SHOWN = 4
# One fault prints a line for each channel within seconds: a change of the signal each (s).
_BURST_S = 10.0
_MOST_CHANGES = 256
# Two logs of one machine hold the same line with times that differ by less (s).
_SAME_S = 2.0
# The change is written as 0 just before the event; two events of one moment lie that far apart.
_JUST_BEFORE_S = 1e-3


def add_logged(frame: Frame, events: Sequence[LogEvent], end: float | None = None) -> None:
    """Merge the events inside a frame's window into its Xid signal, and remember them.

    Args:
        frame: the readings.
        events: what the log has.
        end: for readings without times, when the window of the log ends (Unix s).
    """
    end = frame.at if frame.timed else end
    if end is None:
        return
    # Readings without times are of the moment 0: so are the events, counted from their end.
    zero = 0.0 if frame.timed else end
    start = end - frame.window_s
    found, _ = owners([e for e in events if start <= e.time <= end], frame.entities)
    changes: dict[int, list[tuple[float, float]]] = {}
    began: dict[tuple[int, int], float] = {}
    before: dict[tuple[int, int], LogEvent] = {}
    for i, event in sorted(found, key=lambda pair: (pair[0], pair[1].order)):
        last = before.get((i, event.xid))
        if last and last.where != event.where and event.time - last.time < _SAME_S:
            continue  # one line, in two logs
        before[i, event.xid] = event
        of = frame.logged.setdefault(i, [])
        of.append((event.time, event.xid, event.where))
        if event.time - began.get((i, event.xid), -np.inf) < _BURST_S or len(of) > _MOST_CHANGES:
            continue
        began[i, event.xid] = event.time
        mine = changes.setdefault(i, [])
        earliest = mine[-1][0] + 2 * _JUST_BEFORE_S if mine else -np.inf
        mine.append((max(event.time - zero, earliest), float(event.xid)))
    if not changes:
        return
    frame.gauge = frame.columns.get("xid")
    stamps, codes, entity = [], [], []
    for i in range(len(frame)):
        ts, values = frame.samples("xid", i)
        if not frame.timed:
            ts, values = ts[-1:], values[-1:]
        if i in changes:
            ts, values = _merged(ts, values, changes[i])
        stamps.append(ts)
        codes.append(values)
        entity.append(np.full(ts.size, i, dtype=np.int64))
    frame.columns["xid"] = column(
        np.concatenate(codes),
        np.concatenate(stamps),
        np.concatenate(entity),
        len(frame),
        merge=True,
    )
    if not frame.timed:
        frame.placed |= {"xid"}


def without_log(frame: Frame) -> Frame:
    """Return a frame as the metrics alone have it."""
    if not frame.logged:
        return frame
    columns = {name: column for name, column in frame.columns.items() if name != "xid"}
    if frame.gauge is not None:
        columns["xid"] = frame.gauge
    return replace(frame, columns=columns, placed=frozenset())


def _merged(
    times: Floats, values: Floats, changes: Sequence[tuple[float, float]]
) -> tuple[Floats, Floats]:
    """Put changes among the samples of a gauge.

    A gauge that did not move since an event missed it: it goes on showing an older code, which
    must not look as if it had come back. From the event on it is taken to hold the event's code,
    as it should, until it moves.
    """
    merged: list[tuple[float, float]] = []
    before: float | None = None
    held: float | None = None
    waiting = list(reversed(changes))
    for when, value in [*zip(times.tolist(), values.tolist(), strict=True), (np.inf, 0.0)]:
        while waiting and waiting[-1][0] <= when:
            came, code = waiting.pop()
            merged += [(came - _JUST_BEFORE_S, 0.0), (came, code)]
            held = code
        if when == np.inf:
            break
        if before is not None and value != before:
            held = None
        before = value
        merged.append((when, value if held is None else held))
    return np.array([t for t, _ in merged]), np.array([v for _, v in merged])


def owners(
    events: Sequence[LogEvent], entities: Sequence[Entity]
) -> tuple[list[tuple[int, LogEvent]], list[LogEvent]]:
    """Put events to entities; return (entity index, event) pairs, and the events of none."""
    by_uuid: dict[str, list[int]] = {}
    by_address: dict[tuple[str, str], list[int]] = {}
    of_address: dict[str, list[int]] = {}
    hosts: dict[str, list[int]] = {}
    for i, entity in enumerate(entities):
        if entity.uuid:
            by_uuid.setdefault(entity.uuid.lower(), []).append(i)
        if entity.host:
            hosts.setdefault(short_host(entity.host), []).append(i)
        address = board(entity.pci)
        if address is not None:
            of_address.setdefault(address, []).append(i)
            if entity.host:
                by_address.setdefault((short_host(entity.host), address), []).append(i)
    found, left = [], []
    for event in events:
        owner = _owner(event, by_uuid, by_address, of_address, hosts)
        if owner is None:
            left.append(event)
        else:
            found.append((owner, event))
    return found, left


def unmatched(
    events: Sequence[LogEvent],
    frame: Frame,
    hosts: Iterable[str | None],
    *,
    end: float | None = None,
) -> list[str]:
    """Return warnings about the events of some hosts that the rules did not get to see.

    Args:
        events: what the log has.
        frame: the readings.
        hosts: the machines asked about.
        end: when the window of the log ends, if the readings have no times (Unix s).
    """
    if not events:
        return []
    wanted = {short_host(host) for host in hosts if host}
    judged = frame.timed or end is not None
    _, left = owners(events, frame.entities) if judged else (None, events)
    why = (
        "which fits no GPU of the metrics by host and PCI address or UUID"
        if judged
        else "which is not judged: the metrics carry no times"
    )
    mine = [e for e in left if e.host is None or short_host(e.host) in wanted]
    said: dict[tuple[str, str, int], list[LogEvent]] = {}
    for event in mine:
        key = (event.host or "", event.pci or event.uuid or "", event.xid)
        said.setdefault(key, []).append(event)
    lines = [
        f"the kernel log has Xid {xid} on GPU {gpu or 'unknown'}"
        f"{f' of {host}' if host else ''} at {moment(some[-1].time)}"
        f"{f' ({len(some)} times)' if len(some) > 1 else ''}, {why}"
        for (host, gpu, xid), some in said.items()
    ]
    more = len(lines) - _SHOWN
    return [*lines[:_SHOWN], *([f"{more} more Xids fit no GPU of the metrics"] if more > 0 else [])]


def strangers(events: Sequence[LogEvent], hosts: Iterable[str | None]) -> list[str]:
    """Return a warning about events of machines that the metrics do not know."""
    known = {short_host(host) for host in hosts if host}
    others = {e.host: e for e in events if e.host and short_host(e.host) not in known}
    if not others:
        return []
    return [f"the kernel logs have Xids of hosts without metrics: {some(sorted(others), _SHOWN)}"]


def elsewhere(events: Sequence[LogEvent], hosts: Iterable[str | None]) -> list[str]:
    """Return a warning about events of machines that an answer is not about."""
    own = {short_host(host) for host in hosts if host}
    others = {e.host for e in events if e.host and short_host(e.host) not in own}
    if not own or not others:
        return []
    named = some(sorted(others), _SHOWN)
    return [f"the kernel logs have Xids of hosts that this answer is not about: {named}"]


def earlier(frame: Frame, chosen: Iterable[int], window_s: float) -> list[str]:
    """Return what the log has of some entities from before the window asked about.

    It is no verdict on now, and often the reason why their readings ended.
    """
    lines = []
    for i in chosen:
        last: dict[int, float] = {}
        for when, xid, _ in frame.logged.get(i, ()):
            if when < frame.at - window_s:
                last[xid] = max(when, last.get(xid, when))
        name = frame.entities[i].name
        lines += [
            f"the kernel log has Xid {xid} on {name} at {moment(when)}, "
            f"{duration(frame.at - when)} before the moment judged"
            for xid, when in sorted(last.items(), key=lambda pair: -pair[1])[:_SHOWN]
        ]
    return lines[:_SHOWN]


def unknown_logs(unread: Iterable[Unread], causes: Sequence[str]) -> list[Unknown]:
    """Return what is not known because a log could not be read; ``causes`` rest on Xids."""
    return [
        Unknown("metrics_missing", "kernel_log", u.one_line(), u.fix, tuple(causes)) for u in unread
    ]


def short_host(host: str) -> str:
    """Return a host's first label in lower case; an address as it is."""
    name = host.lower()
    head = name.partition(".")[0]
    return name if head.isdigit() or ":" in name else head


def moment(seconds: float) -> str:
    """Write a time for people."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _owner(
    event: LogEvent,
    by_uuid: dict[str, list[int]],
    by_address: dict[tuple[str, str], list[int]],
    of_address: dict[str, list[int]],
    hosts: dict[str, list[int]],
) -> int | None:
    boards = by_uuid.get((event.uuid or "").lower(), [])
    if len(boards) > 1 and event.host:  # one UUID on two machines: the log says on which
        here = hosts.get(short_host(event.host), [])
        boards = [i for i in boards if i in here]
    if len(boards) == 1:
        return boards[0]
    address = board(event.pci)
    if address is None:
        return None
    if event.host:
        host = short_host(event.host)
        found = by_address.get((host, address), [])
        # Metrics without addresses: a machine with one GPU leaves no doubt.
        if not found and len(hosts.get(host, ())) == 1 and not of_address:
            found = hosts[host]
    else:
        # A log that names no machine fits only where one GPU of all can be meant.
        found = of_address.get(address, []) if len(hosts) <= 1 else []
    return found[0] if len(found) == 1 else None
