"""What ``mmdiag`` shows: threads that wait, connections, how long I/O took, settings.

Thresholds on waiters are ours: IBM names none below the deadlock limit (300 s by default); an I/O
of a second is long on any disk, ten are a stall.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding, node
from engine.readers.quantities import listed, median, plural
from engine.units import duration, number

SOURCES: Final = ("IBM Storage Scale documentation, mmdiag",)
LONG_S, STALL_S = 1.0, 10.0
SLOW_IO_MS: Final = 200.0
# Threads that wait for work by design.
_AT_REST: Final = re.compile(
    r"for poll on sock|EventsExporter|FsckClientReaper|waiting for work|"
    r"for time-?out",
    re.IGNORECASE,
)
_WHERE: Final = (
    (
        "for I/O completion",
        "the disk, or the server behind it",
        "iostat -x 1 on the NSD server, mmlsdisk FS -e, and its controller",
    ),
    (
        "RPC wait",
        "another node that has not answered",
        "mmdiag --waiters on that node: the thread it waits for is there",
    ),
    ("NSD I/O", "the NSD server", "mmdiag --waiters and --iohist on that server"),
    ("token", "a lock that another node holds", "mmdiag --waiters on the other nodes"),
    ("sending", "the network to another node", "mmdiag --network, ibstat, ip -s link"),
    ("connection", "the network to another node", "mmdiag --network, ibstat, ip -s link"),
)


@dataclass(frozen=True, slots=True)
class Heading:
    """The line above a section, also of an empty one."""

    line: int
    host: str | None
    section: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A line of ``mmdiag --config``; ``changed`` is the mark of a value that was set."""

    line: int
    host: str | None
    name: str
    value: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Waiter:
    """A thread that waits; ``ignored`` is the daemon's own word."""

    line: int
    host: str | None
    seconds: float
    ignored: bool
    thread: str
    reason: str


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection of the daemon to a node."""

    line: int
    host: str | None
    node: str
    status: str


@dataclass(frozen=True, slots=True)
class Io:
    """One finished I/O; ``ms`` from issue to completion."""

    line: int
    host: str | None
    way: str
    disk: str
    sectors: int
    ms: float


def judge_waiters(waiters: Sequence[Waiter], headings: Sequence[Heading]) -> Iterable[Finding]:
    """Say which waits are long, and for what; an empty section says that nothing waits."""
    if not waiters:
        for one in headings[:1]:
            yield finding(
                "mmdiag",
                "no_waiters",
                Severity.INFO,
                f"{at(one.host)}No thread of Storage Scale waited at that moment.",
                "Take it again while jobs are slow, and on the NSD servers.",
                line=one.line,
                data={"waiters": 0},
                entity=node(one.host),
                sources=SOURCES,
            )
        return
    real = [w for w in waiters if not w.ignored and not _AT_REST.search(f"{w.thread}: {w.reason}")]
    longest = max(real, key=lambda w: w.seconds, default=None)
    if longest is None or longest.seconds < LONG_S:
        yield finding(
            "mmdiag",
            "waiters_short",
            Severity.INFO,
            f"{at(waiters[0].host)}{plural(len(waiters), 'waiting thread')}, none for "
            f"{number(LONG_S)} s or more on I/O"
            + (f" (longest {longest.seconds:.3g} s)." if longest else "."),
            "Nothing stuck at that moment; take it again while jobs are slow, and on the NSD "
            "servers.",
            line=waiters[0].line,
            data={"waiters": len(waiters), "longest_s": longest.seconds if longest else None},
            entity=node(waiters[0].host),
            sources=SOURCES,
        )
        return
    where = next(((w, n) for word, w, n in _WHERE if word in longest.reason), None)
    action = where[1] if where else "mmdiag --waiters on the other nodes, mmhealth node show"
    stuck = longest.seconds >= STALL_S
    same = sum(w.reason == longest.reason and w.seconds >= LONG_S for w in real)
    yield finding(
        "mmdiag",
        "long_waiters",
        Severity.HIGH if stuck else Severity.LOW,
        f"{at(longest.host)}{plural(sum(w.seconds >= LONG_S for w in real), 'thread')} waiting for "
        f"{number(LONG_S)} s or more; longest {longest.thread} for {duration(longest.seconds)}, "
        f"{longest.reason} ({plural(same, 'thread')} with that reason)."
        + (f" It waits for {where[0]}." if where else ""),
        f"Next: {action}.",
        line=longest.line,
        cause="storage_slow" if stuck else None,
        data={
            "longest_s": longest.seconds,
            "thread": longest.thread,
            "reason": longest.reason,
            "waiters_long": sum(w.seconds >= LONG_S for w in real),
        },
        entity=node(longest.host),
        sources=SOURCES,
    )


def judge_connections(connections: Sequence[Connection]) -> Iterable[Finding]:
    """Say which connections are broken."""
    broken = [
        c for c in connections if c.status not in ("connected", "init", "pending", "connecting")
    ]
    if broken:
        yield finding(
            "mmdiag",
            "connection_broken",
            Severity.MEDIUM,
            f"{at(broken[0].host)}{plural(len(broken), 'connection')} of {len(connections)} to "
            f"other nodes {broken[0].status}: {listed(c.node for c in broken)}.",
            "Check that these nodes are up (mmgetstate -a) and the network to them.",
            line=broken[0].line,
            data={"broken": [c.node for c in broken[:64]], "connections": len(connections)},
            entity=node(broken[0].host),
            sources=SOURCES,
        )
    elif connections:
        yield finding(
            "mmdiag",
            "connections",
            Severity.INFO,
            f"{at(connections[0].host)}{plural(len(connections), 'connection')} to other nodes, "
            "none broken.",
            "Nothing to do here.",
            line=connections[0].line,
            data={"connections": len(connections)},
            entity=node(connections[0].host),
            sources=SOURCES,
        )


def judge_ios(ios: Sequence[Io]) -> Iterable[Finding]:
    """Say how long recent I/Os took, and on which disk the longest were."""
    if not ios:
        return
    times = sorted(io.ms for io in ios)
    middle, tail = median(times), times[min(len(times) - 1, int(len(times) * 0.99))]
    worst = max(ios, key=lambda io: io.ms)
    slow = middle >= SLOW_IO_MS and len(ios) >= 8
    disks: dict[str, list[float]] = {}
    for io in ios:
        disks.setdefault(io.disk, []).append(io.ms)
    slowest = max(disks, key=lambda d: median(disks[d]))
    yield finding(
        "mmdiag",
        "io_history",
        Severity.MEDIUM if slow else Severity.INFO,
        f"{at(worst.host)}The last {plural(len(ios), 'I/O')}: half took {number(middle)} ms or "
        f"more, 1 % {number(tail)} ms or more, the longest {number(worst.ms)} ms on disk "
        f"{worst.disk}."
        + (
            f" Slowest disk {slowest} (median {number(median(disks[slowest]))} ms)." if slow else ""
        ),
        "mmdiag --iohist on the NSD server: fast there and slow here is the network, slow on both "
        "the disk.",
        line=worst.line,
        cause="storage_slow" if slow else None,
        data={
            "ios": len(ios),
            "median_ms": middle,
            "p99_ms": tail,
            "longest_ms": worst.ms,
            "disk": slowest if slow else worst.disk,
        },
        entity=node(worst.host),
        sources=SOURCES,
    )


_TELLING: Final = (
    "pagepool",
    "maxMBpS",
    "workerThreads",
    "verbsRdma",
    "verbsPorts",
    "verbsRdmaSend",
)


def judge_settings(settings: Sequence[Setting]) -> Iterable[Finding]:
    """Name the settings on which the speed of a client depends."""
    if not settings:
        return
    first = settings[0]
    held = {s.name: s.value for s in settings}
    shown = {name: held[name] for name in _TELLING if name in held}
    rdma_off = held.get("verbsRdma") == "disable"
    yield finding(
        "mmdiag",
        "settings",
        Severity.INFO,
        f"{at(first.host)}{plural(len(held), 'setting')} of Storage Scale, "
        f"{sum(s.changed for s in settings)} changed from the default"
        + (f": {listed(f'{n} {v}' for n, v in shown.items())}." if shown else ".")
        + (
            " verbsRdma is off: data goes over TCP, also where InfiniBand or RoCE is there."
            if rdma_off
            else ""
        ),
        "Compare with a client that is fast: a small pagepool or a maxMBpS below the link's rate "
        "holds prefetching back.",
        line=first.line,
        data={"settings": shown, "verbs_rdma": held.get("verbsRdma")},
        entity=node(first.host),
        sources=("IBM Storage Scale documentation, mmchconfig",),
    )
