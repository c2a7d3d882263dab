"""fio's terse output: a line of fields in a fixed order (axboe/fio HOWTO, "Terse output")."""

from __future__ import annotations

from typing import Final

from engine.readers.quantities import decimal, integer, short
from engine.readers.storage.fio_run import Job

# First field of a direction: read, write (and trim in versions 4 and 5, not read here).
_READ: Final = 5
_WRITE: Final = 46
# Version 5 adds the samples of bandwidth and five fields of IOPS to each direction.
_WRITE_5: Final = _WRITE + 6
# Offsets in a direction: KiB of I/O, KiB/s, IOPS, ms; mean of clat in µs; its percentiles.
_KIB, _RATE, _IOPS, _RUNTIME, _MAX, _MEAN, _POINTS = 0, 1, 2, 3, 9, 10, 12
_COUNT: Final = 20


def job_of_terse(line: int, text: str, host: str | None) -> Job | None:
    """Return the job that a terse line reports, None if fields are missing."""
    fields = text[:16_384].split(";")
    if len(fields) < 87:
        return None
    job = Job(
        line,
        short(fields[2]),
        host,
        integer(fields[3]) or 0,
        error=integer(fields[4]) or 0,
    )
    write = _WRITE_5 if fields[0].strip() == "5" else _WRITE
    for direction, start in (("read", _READ), ("write", write)):
        kib = decimal(fields[start + _KIB])
        if not kib:
            continue
        flow = job.flow(direction)
        rate = decimal(fields[start + _RATE])
        flow.io_bytes = kib * 1024
        flow.bytes_per_s = rate * 1024 if rate is not None else None
        flow.iops = decimal(fields[start + _IOPS])
        flow.runtime_ms = decimal(fields[start + _RUNTIME])
        flow.mean_us = decimal(fields[start + _MEAN])
        flow.max_us = decimal(fields[start + _MAX])
        for point in fields[start + _POINTS : start + _POINTS + _COUNT]:
            percent, _, value = point.partition("%=")
            at, held = decimal(percent), decimal(value)
            if at and held is not None:
                flow.percentiles_us[at] = held
    return job
