"""What a fio run shows: figures with what they can be held against, errors, and its own traps.

Sources: axboe/fio HOWTO; knowledge/storage (line rates, classes of devices). No rate is healthy for
any storage, so a verdict is given only where every kind of device does better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding, node
from engine.readers.quantities import plural
from engine.readers.storage.ceilings import (
    BELOW_ONE_DISK,
    ENOUGH_S,
    LARGE_BYTES,
    below_one_disk,
    iops_note,
    nic_note,
)
from engine.readers.storage.fio_disks import disk_note, slow_drive
from engine.readers.storage.fio_run import (
    DIRECTIONS,
    SYNC_ENGINES,
    Disk,
    Failure,
    Flow,
    GroupTotal,
    Job,
)
from engine.readers.storage.fio_traps import judge_traps
from engine.units import number

SOURCES: Final = ("axboe/fio HOWTO.rst", "Arithmetic from line rates")
# A read or write that ends so soon never left memory: the fastest drives take 5 µs and more.
_MEMORY_US: Final = 5.0
# A request so much slower than the mean, and over a second, is a stall, not a queue.
_STALL: Final = 10.0
_ERRNO: Final = {
    5: ("io_error", "an I/O error (EIO)", None),
    22: ("invalid", "an invalid argument (EINVAL), mostly direct=1 where it is not allowed", None),
    28: ("no_space", "no space left (ENOSPC): capacity, inodes or one full OST", "storage_full"),
    30: ("read_only", "a read-only file system (EROFS)", None),
    110: ("timed_out", "a time-out (ETIMEDOUT)", "storage_slow"),
    116: ("stale_handle", "a stale file handle (ESTALE)", None),
    122: ("quota", "the quota (EDQUOT)", "storage_full"),
}
_WORDS: Final = {
    "Input/output error": 5,
    "Invalid argument": 22,
    "No space left on device": 28,
    "Read-only file system": 30,
    "Connection timed out": 110,
    "Stale file handle": 116,
    "Disk quota exceeded": 122,
}
_ERROR_ACTION: Final = {
    "storage_full": "df -h and df -i (lfs df, lfs df -i), and the quota: quota -s or lfs quota.",
    None: "dmesg -T: evicted client, NFS 'not responding', errors of the disk.",
}

# Options that hold a job back.
_LIMITS: Final = {"rate", "rate_iops", "thinktime"}

Record = Job | GroupTotal | Failure | Disk


def judge_fio(kind: str, records: Sequence[Record]) -> list[Finding]:
    """Say what a run shows, direction by direction and host by host."""
    jobs = [r for r in records if isinstance(r, Job)]
    totals = [r for r in records if isinstance(r, GroupTotal)]
    found = list(_errors(kind, records))
    hosts = dict.fromkeys([*(j.host for j in jobs), *(t.host for t in totals)])
    for host in hosts:
        own = [j for j in jobs if j.host == host]
        groups = dict.fromkeys(
            [j.group for j in own] or [t.group for t in totals if t.host == host]
        )
        for group in groups:
            of_group = [j for j in own if j.group == group]
            for direction in DIRECTIONS:
                total = [
                    t for t in totals if (t.host, t.group, t.direction) == (host, group, direction)
                ]
                disks = [r for r in records if isinstance(r, Disk) and r.host == host]
                found += _direction(kind, host, direction, of_group, total, disks)
        found += judge_traps(kind, host, own)
    return found


def _errors(kind: str, records: Sequence[Record]) -> Iterable[Finding]:
    seen: dict[int, tuple[Record, int]] = {}
    for record in records:
        code = 0
        if isinstance(record, Job):
            code = record.error
        elif isinstance(record, Failure):
            code = record.code or _WORDS.get(record.words, -1)
        if code:
            first, count = seen.get(code, (record, 0))
            seen[code] = (first, count + 1)
    for code, (record, _) in seen.items():
        id_, words, cause = _ERRNO.get(
            code, ("error", f"error {code}" if code > 0 else "an error", None)
        )
        yield finding(
            kind,
            id_,
            Severity.HIGH if cause or code == 5 else Severity.MEDIUM,
            f"{at(record.host)}fio ended with {words}. Its figures up to then say little.",
            _ERROR_ACTION.get(cause, _ERROR_ACTION[None]),
            line=record.line,
            cause=cause,
            data={"error": code if code > 0 else None},
            entity=node(record.host),
            sources=SOURCES,
        )


def _together(jobs: Sequence[Job], direction: str, totals: Sequence[GroupTotal]) -> Flow | None:
    """Return the figures of all jobs of a group; latencies are those of the slowest job."""
    flows = [j.flows[direction] for j in jobs if direction in j.flows]
    if not flows and not totals:
        return None
    whole = Flow()
    rates = [f.bytes_per_s for f in flows if f.bytes_per_s is not None]
    whole.bytes_per_s = totals[-1].bytes_per_s if totals else sum(rates) if rates else None
    counts = [f.iops for f in flows if f.iops is not None]
    whole.iops = sum(counts) if counts else None
    sizes = [f.io_bytes for f in flows if f.io_bytes is not None]
    whole.io_bytes = sum(sizes) if sizes else None
    times = [f.runtime_ms for f in flows if f.runtime_ms] + [
        t.runtime_ms for t in totals if t.runtime_ms
    ]
    whole.runtime_ms = max(times, default=None)
    slowest = max(flows, key=lambda f: f.mean_us or 0.0, default=None)
    if slowest is not None:
        whole.mean_us, whole.max_us = slowest.mean_us, slowest.max_us
        whole.percentiles_us = slowest.percentiles_us
    return whole


def _direction(
    kind: str,
    host: str | None,
    direction: str,
    jobs: Sequence[Job],
    totals: Sequence[GroupTotal],
    disks: Sequence[Disk],
) -> Iterable[Finding]:
    whole = _together(jobs, direction, totals)
    if whole is None or whole.gbs is None:
        return
    first = jobs[0] if jobs else None
    line = first.line if first else totals[0].line
    count = sum(j.jobs for j in jobs) or None
    data = _data(whole, direction, first, count)
    random = bool(first and first.rw and "rand" in first.rw)
    figures = _figures(whole, direction, first, count)
    cached = (whole.percentiles_us.get(50.0) or whole.mean_us or 1e9) < _MEMORY_US
    seconds = (whole.runtime_ms or 0.0) / 1e3
    enough = seconds >= ENOUGH_S
    block = (first.block_bytes if first else None) or 0.0
    held = random or cached or _limited(jobs)
    if not held and below_one_disk(whole.gbs, seconds=seconds, block=block):
        yield finding(
            kind,
            f"{direction}_slow",
            Severity.MEDIUM,
            f"{at(host)}{figures} {BELOW_ONE_DISK}: something holds this storage back.",
            "Look at the mount's client: nfsiostat 1, lctl get_param osc.*.import, mmdiag "
            "--waiters; for a local disk iostat -x 1 and smartctl; then the link (ethtool).",
            line=line,
            cause="storage_slow",
            data=data,
            entity=node(host),
            sources=SOURCES,
        )
        return
    slow = "" if held or not enough or block < LARGE_BYTES else slow_drive(whole.gbs, disks)
    if slow:
        yield finding(
            kind,
            f"{direction}_disk_slow",
            Severity.MEDIUM,
            f"{at(host)}{figures} {slow}",
            "Look at the drive: nvme smart-log DEV (or smartctl -a), its PCIe link (lspci -vv: "
            "LnkSta against LnkCap), dmesg, what else uses it (iostat -x 1, iotop).",
            line=line,
            cause="storage_slow",
            data=data | {"disk": disks[0].name, "disk_busy_percent": disks[0].busy_percent},
            entity=node(host),
            sources=SOURCES,
        )
        return
    stall = _stalled(whole)
    if stall:
        yield finding(
            kind,
            f"{direction}_stalls",
            Severity.MEDIUM,
            f"{at(host)}{figures} {stall}",
            "See what happens then: dmesg (evictions, time-outs), iostat -x 1, nfsiostat 1, mmdiag "
            "--waiters on the same client.",
            line=line,
            cause="storage_slow",
            data=data,
            entity=node(host),
            sources=SOURCES,
        )
        return
    far = enough and not cached
    note = (disk_note(disks) if disks else nic_note(whole.gbs)) if far else ""
    small = bool(first and first.block_bytes and first.block_bytes <= 8_192)
    if random and direction == "read" and small and whole.iops and not cached:
        note = iops_note(whole.iops, _depth(first))
    if cached:
        note = (
            "So short a latency is the page cache, not the storage: use direct=1, or a size above "
            "the memory."
        )
    yield finding(
        kind,
        direction,
        Severity.INFO,
        f"{at(host)}{figures} {note}".rstrip(),
        "There is no rate that is healthy for any storage: compare with the same run on a node "
        "that works, and with the client's NIC (ethtool, ibstat).",
        line=line,
        data=data,
        entity=node(host),
        sources=SOURCES,
    )


def _data(flow: Flow, direction: str, job: Job | None, count: int | None) -> dict[str, Any]:
    return {
        "direction": direction,
        "bandwidth_gbs": _rounded(flow.gbs, 6),
        "iops": _rounded(flow.iops, 1),
        "runtime_s": _rounded(flow.runtime_ms, 0, 1e-3),
        "io_gb": _rounded(flow.io_bytes, 3, 1e-9),
        "latency_mean_ms": _rounded(flow.mean_us, 5, 1e-3),
        "latency_p50_ms": _rounded(flow.percentiles_us.get(50.0), 5, 1e-3),
        "latency_p99_ms": _rounded(flow.percentiles_us.get(99.0), 5, 1e-3),
        "latency_p99_9_ms": _rounded(flow.percentiles_us.get(99.9), 5, 1e-3),
        "jobs": count,
        "rw": job.rw if job else None,
        "block_bytes": int(job.block_bytes) if job and job.block_bytes else None,
        "ioengine": job.engine if job else None,
        "iodepth": job.depth if job else None,
    }


def _rounded(value: float | None, digits: int, factor: float = 1.0) -> float | None:
    return None if value is None else round(value * factor, digits or 3)


def _figures(flow: Flow, direction: str, job: Job | None, count: int | None) -> str:
    parts = [f"fio {direction}: {number(flow.gbs or 0.0)} GB/s"]
    if flow.iops is not None:
        parts.append(f"{number(round(flow.iops))} IOPS")
    p99, p999 = flow.percentiles_us.get(99.0), flow.percentiles_us.get(99.9)
    if p99 is not None:
        parts.append(
            f"99 % within {_time(p99)}" + (f", 99.9 % within {_time(p999)}" if p999 else "")
        )
    how = [
        f"{plural(count, 'job')}" if count else "",
        f"blocks of {_size(job.block_bytes)}" if job and job.block_bytes else "",
        f"{number(flow.runtime_ms / 1000)} s" if flow.runtime_ms else "",
    ]
    return f"{', '.join(parts)} ({', '.join(h for h in how if h)})."


def _time(us: float) -> str:
    for size, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= size:
            return f"{number(us / size)} {unit}"
    return f"{number(us)} µs"


def _size(value: float) -> str:
    for size, unit in ((1_048_576, "MiB"), (1_024, "KiB")):
        if value >= size:
            return f"{number(value / size)} {unit}"
    return f"{number(value)} B"


def _limited(jobs: Sequence[Job]) -> bool:
    """Tell whether fio was asked to go no faster (``rate``, ``rate_iops``, ``thinktime``)."""
    return any(_LIMITS & job.options.keys() for job in jobs)


def _stalled(flow: Flow) -> str | None:
    tail = flow.percentiles_us.get(99.0)
    if tail is None or not flow.mean_us or tail < 1e6 or tail < _STALL * flow.mean_us:
        return None
    return (
        f"One request in a hundred took {_time(tail)} or more, {number(tail / flow.mean_us)} times "
        "the mean: the storage stalls."
    )


def _depth(job: Job | None) -> int:
    if job is None or job.engine in SYNC_ENGINES:
        return 1
    return job.depth or 1
