"""fio's JSON output (axboe/fio stat.c, show_thread_status_json)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind
from engine.readers.listing import result_of
from engine.readers.quantities import integer, short, size_bytes
from engine.readers.storage.fio_run import DIRECTIONS, Disk, Job
from engine.readers.storage.fio_verdict import judge_fio

MAX_JOBS = 1_024


def _is_fio(value: object) -> bool:
    return isinstance(value, dict) and "fio version" in value


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e30 else None


def _part(value: object, *keys: str) -> tuple[Mapping[str, Any], float]:
    """Return the first of some latency objects with its unit in µs: ``clat_ns``, old ``clat``."""
    for key in keys:
        held = value.get(key) if isinstance(value, dict) else None
        if isinstance(held, dict):
            return held, 1e-3 if key.endswith("_ns") else 1.0
    return {}, 1.0


def _flow(job: Job, direction: str, held: Mapping[str, Any]) -> None:
    kib = _number(held.get("io_kbytes"))
    size = _number(held.get("io_bytes"))
    if not size and not kib:
        return
    flow = job.flow(direction)
    flow.io_bytes = size or (kib or 0) * 1024
    rate = _number(held.get("bw_bytes"))
    slow = _number(held.get("bw"))
    flow.bytes_per_s = rate if rate is not None else slow * 1024 if slow is not None else None
    flow.iops = _number(held.get("iops"))
    flow.runtime_ms = _number(held.get("runtime"))
    latency, unit = _part(held, "clat_ns", "clat", "lat_ns", "lat")
    mean, highest = _number(latency.get("mean")), _number(latency.get("max"))
    flow.mean_us = mean * unit if mean is not None else None
    flow.max_us = highest * unit if highest is not None else None
    points = latency.get("percentile")
    for percent, value in list(points.items())[:32] if isinstance(points, dict) else ():
        held_value = _number(value)
        try:
            at = float(percent)
        except ValueError:
            continue
        if held_value is not None:
            flow.percentiles_us[at] = held_value * unit


def _job(one: Mapping[str, Any], shared: Mapping[str, Any], line: int) -> Job:
    own = one.get("job options")
    options = {**shared, **(own if isinstance(own, dict) else {})}
    texts = {short(str(k), 32): short(str(v), 64) for k, v in list(options.items())[:128]}
    job = Job(
        line,
        short(str(one.get("jobname", "job"))),
        short(str(one["hostname"])) if isinstance(one.get("hostname"), str) else None,
        int(_number(one.get("groupid")) or 0),
        integer(texts.get("numjobs", "1")) or 1 if "numjobs" in texts else 1,
        int(_number(one.get("error")) or 0),
        texts.get("rw") or texts.get("readwrite"),
        size_bytes(texts.get("bs") or texts.get("blocksize") or ""),
        texts.get("ioengine"),
        integer(texts.get("iodepth", "")),
        options=texts,
    )
    for direction in DIRECTIONS:
        held = one.get(direction)
        if isinstance(held, dict):
            _flow(job, direction, held)
    return job


def _disks(value: Mapping[str, Any], line: int) -> list[Disk]:
    listed = value.get("disk_util")
    return [
        Disk(line, None, short(str(one.get("name", "disk")), 40), busy)
        for one in (listed if isinstance(listed, list) else [])[:64]
        if isinstance(one, dict) and (busy := _number(one.get("util"))) is not None
    ]


def _read(value: Mapping[str, Any], _context: Context, line: int) -> Result:
    jobs = value.get("jobs")
    if not isinstance(jobs, list):
        jobs = value.get("client_stats")
    shared = value.get("global options")
    held = [
        _job(one, shared if isinstance(shared, dict) else {}, line)
        for one in (jobs if isinstance(jobs, list) else [])[:MAX_JOBS]
        if isinstance(one, dict)
    ]
    # In client mode fio adds a sum of all.
    held = [job for job in held if job.name != "All clients"] or held
    return (
        result_of(["fio"], judge_fio("fio", [*held, *_disks(value, line)]))
        if held
        else Result(kinds=["fio"])
    )


FIO_JSON = DocumentKind("fio", _is_fio, _read)
