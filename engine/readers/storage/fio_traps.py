"""What makes a fio run say less than it seems to (axboe/fio HOWTO)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding
from engine.readers.quantities import listed
from engine.readers.storage.fio_run import SYNC_ENGINES, Job
from engine.units import number

# Shorter runs show caches and start-up.
SHORT_MS: Final = 10_000
_SECONDS: Final = re.compile(r"^([0-9]{1,6})([smh]?)$")


def _ended_early(job: Job) -> bool:
    """Tell whether a job was over well before its ``runtime`` (in s, or with a unit)."""
    limit = _SECONDS.match(job.options.get("runtime", ""))
    times = [f.runtime_ms for f in job.flows.values() if f.runtime_ms]
    if limit is None or not times:
        return False
    seconds = int(limit[1]) * {"": 1, "s": 1, "m": 60, "h": 3_600}[limit[2]]
    return max(times) < 900 * seconds


def judge_traps(kind: str, host: str | None, jobs: Sequence[Job]) -> Iterable[Finding]:
    """Name what makes such a run say less than it seems to."""
    traps: list[str] = []
    if not jobs:
        return
    synchronous = [j.name for j in jobs if j.engine in SYNC_ENGINES and (j.depth or 1) > 1]
    if synchronous:
        traps.append(
            "iodepth has no effect with a synchronous engine: one request a job is in flight"
        )
    if any(j.engine == "libaio" and (j.depth or 1) == 1 for j in jobs):
        traps.append("libaio with iodepth=1 keeps one request a job in flight")
    if any(j.options.get("direct", "0") == "0" for j in jobs if j.options and j.engine == "libaio"):
        traps.append("libaio is asynchronous only with direct=1")
    times = [f.runtime_ms for j in jobs for f in j.flows.values() if f.runtime_ms]
    if times and max(times) < SHORT_MS:
        traps.append(
            f"it ran for {number(max(times) / 1000)} s only, which shows caches and start-up"
        )
    if any(_ended_early(j) for j in jobs):
        traps.append(
            "runtime is an upper limit: without time_based the job ends when its size is done"
        )
    shared = [
        j.name
        for j in jobs
        if "filename" in j.options and j.jobs > 1 and "offset_increment" not in j.options
    ]
    if shared:
        traps.append(
            "several jobs with one filename work on the same offsets; directory gives each its "
            "own file"
        )
    written = any("write" in j.flows for j in jobs if j.options)
    if written and not any(
        {"end_fsync", "fsync", "fsync_on_close", "direct"} & j.options.keys() for j in jobs
    ):
        traps.append(
            "buffered writes without end_fsync are not yet on the storage when the clock stops"
        )
    if traps:
        yield finding(
            kind,
            "test_limits",
            Severity.INFO,
            f"{at(host)}Mind of this test: {listed(traps)}.",
            "A shape that says more: fio --name=w --directory=DIR --rw=write --bs=4M --direct=1 "
            "--ioengine=libaio --iodepth=16 --numjobs=16 --size=10G --time_based --runtime=60 "
            "--group_reporting.",
            line=jobs[0].line,
            data={"limits": len(traps)},
            sources=("axboe/fio HOWTO.rst",),
        )
