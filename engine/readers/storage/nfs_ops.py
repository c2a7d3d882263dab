"""What NFS operations of a mount show: time at the server, time at the client, sent again.

Per operation: RTT is server and network, execute time is all, the queue is the client's own wait.
Source: nfsiostat(8), mountstats(8), nfs-utils; Linux kernel, Documentation/filesystems/nfs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, filesystem, finding
from engine.readers.quantities import listed
from engine.units import number

SOURCES: Final = ("nfs-utils 2.6.2 nfsiostat(8), mountstats(8), nfs(5)",)
# Means in ms. Ours: an answer takes 0.2 to 20 ms on sound storage, also for 1 MiB.
SLOW_MS: Final = 100.0
QUEUE_MS: Final = 50.0


@dataclass(slots=True)
class Op:
    """One operation of one mount, averaged; ``ops`` is a number, ``per_s`` a rate."""

    line: int
    mount: str
    name: str
    host: str | None = None
    ops: float = 0.0
    per_s: float | None = None
    kb_per_s: float | None = None
    kb_per_op: float | None = None
    retrans: int = 0
    timeouts: int = 0
    rtt_ms: float | None = None
    exe_ms: float | None = None
    queue_ms: float | None = None
    errors: int = 0
    recent: bool = False


def judge_ops(kind: str, ops: Sequence[Op]) -> Iterable[Finding]:
    """Say what the operations of each mount show.

    Args:
        kind: the reader's kind.
        ops: of one interval (``recent``), or means since the mount.
    """
    mounts = dict.fromkeys((o.host, o.mount) for o in ops)
    for host, mount in mounts:
        own = [o for o in ops if (o.host, o.mount) == (host, mount) and (o.ops or o.per_s)]
        yield from _mount(kind, host, mount, own)


def _mount(kind: str, host: str | None, mount: str, ops: Sequence[Op]) -> Iterable[Finding]:
    if not ops:
        return
    recent = any(o.recent for o in ops)
    since = "in this interval" if recent else "on average since the mount"
    timeouts, retrans = sum(o.timeouts for o in ops), sum(o.retrans for o in ops)
    main = [o for o in ops if o.name in ("READ", "WRITE", "COMMIT")] or list(ops)
    slow = [o for o in main if (o.rtt_ms or 0) >= SLOW_MS]
    queued = [o for o in main if _queue(o) >= QUEUE_MS and _queue(o) > (o.rtt_ms or 0)]
    data = _data(mount, ops, timeouts, retrans)
    if timeouts or (recent and retrans):
        yield finding(
            kind,
            "time_outs" if timeouts else "retransmissions",
            Severity.HIGH if recent and timeouts else Severity.MEDIUM,
            f"{at(host)}{mount}: {timeouts:,} time-outs and {retrans:,} requests sent again "
            f"{'in this interval' if recent else 'since the mount'}. Over TCP a request is sent "
            "again only after 60 s without an answer: the server or the network was away."
            + ("" if recent else " When that was, a total does not show."),
            "dmesg -T | grep 'not responding' has the times; then the server's load and the "
            "network to it (ss -ti, ip -s link).",
            line=ops[0].line,
            cause="storage_slow" if recent or timeouts else None,
            data=data,
            entity=filesystem(mount, host),
            sources=SOURCES,
        )
    if slow:
        yield finding(
            kind,
            "server_slow",
            Severity.MEDIUM,
            f"{at(host)}{mount}: {listed(_waits(o) for o in slow)} "
            f"for the server's answer {since}: server or network are slow.",
            "Compare with another client of the same server: slow there too is the server, else "
            "this client's network.",
            line=slow[0].line,
            cause="storage_slow",
            data=data,
            entity=filesystem(mount, host),
            sources=SOURCES,
        )
    if queued:
        yield finding(
            kind,
            "client_queue",
            Severity.MEDIUM,
            f"{at(host)}{mount}: {listed(_queued(o) for o in queued)} {since}: requests queue in "
            "this client for a free slot or connection.",
            "Mount with nconnect=8 (TCP, up to 16) or proto=rdma, and look at the client's link: "
            "if it is full, no option helps.",
            line=queued[0].line,
            cause="storage_slow",
            data=data,
            entity=filesystem(mount, host),
            sources=SOURCES,
        )
    if not (timeouts or slow or queued or (recent and retrans)):
        yield finding(
            kind,
            "operations",
            Severity.INFO,
            f"{at(host)}{mount}: {listed(_figure(o) for o in main[:3])} {since}."
            + (f" {retrans:,} requests were sent again since the mount." if retrans else ""),
            "Means hide stalls: run nfsiostat 1 (or mountstats iostat 1) while the job is slow."
            if not recent
            else "Nothing here points at the server or at a queue in the client.",
            line=ops[0].line,
            data=data,
            entity=filesystem(mount, host),
            sources=SOURCES,
        )


def _queue(op: Op) -> float:
    if op.queue_ms is not None:
        return op.queue_ms
    return max((op.exe_ms or 0.0) - (op.rtt_ms or 0.0), 0.0)


def _queued(op: Op) -> str:
    return (
        f"{op.name} takes {number(round(op.exe_ms or 0, 1))} ms, of which the server has "
        f"{number(round(op.rtt_ms or 0, 1))} ms"
    )


def _waits(op: Op) -> str:
    return f"{op.name} waits {number(round(op.rtt_ms or 0, 1))} ms"


def _figure(op: Op) -> str:
    rate = f"{number(op.per_s)}/s, " if op.per_s is not None else ""
    size = f"{number(round(op.kb_per_op))} kB, " if op.kb_per_op else ""
    return f"{op.name} {rate}{size}RTT {number(round(op.rtt_ms or 0, 2))} ms"


def _data(mount: str, ops: Sequence[Op], timeouts: int, retrans: int) -> dict[str, object]:
    data: dict[str, object] = {
        "mount": mount,
        "retransmissions": retrans,
        "major_timeouts": timeouts or None,
    }
    for op in ops:
        if op.name in ("READ", "WRITE"):
            key = op.name.lower()
            data[f"{key}_rtt_ms"] = op.rtt_ms
            data[f"{key}_exe_ms"] = op.exe_ms
            data[f"{key}_queue_ms"] = op.queue_ms
            data[f"{key}_ops_per_s"] = op.per_s
            data[f"{key}_mbs"] = round(op.kb_per_s / 1000, 3) if op.kb_per_s is not None else None
    return data
