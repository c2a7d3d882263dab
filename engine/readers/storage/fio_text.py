"""Reader of fio's normal and terse output (axboe/fio stat.c, HOWTO "Interpreting the output").

Normal output of fio 2.x (``io=…, bw=…KB/s, iops=…``) and 3.x (``IOPS=…, BW=…``); terse formats 3
to 5.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing, result_of
from engine.readers.quantities import decimal, integer, short, size_bytes
from engine.readers.storage.fio_run import DIRECTIONS, Disk, Failure, Flow, GroupTotal, Job
from engine.readers.storage.fio_terse import job_of_terse
from engine.readers.storage.fio_verdict import judge_fio

_DEFINED: Final = re.compile(
    r"^\s{0,4}([^:()]{1,64}): \(g=([0-9]{1,6})\): rw=([a-z]{4,12}), bs="
    r"(?:\(R\) )?([0-9.]{1,10}[KMG]?i?B?)\b"
    r".{0,160}?ioengine=([\w.:/-]{1,40}), iodepth=([0-9]{1,6})"
)
_RESULT: Final = re.compile(
    r"^\s{0,4}([^:()]{1,64}): \(groupid=([0-9]{1,6}), jobs=([0-9]{1,6})\): err=\s{0,3}([0-9]{1,4})"
)
_FLOW: Final = re.compile(
    r"^\s{1,8}(read|write|trim)"
    r"\s{0,2}: IOPS=([0-9.]{1,10})([kMG]?), BW=([0-9.]{1,10}[KMGT]?i?B)/s \([^)]{1,24}\)"
    r"\(([0-9.]{1,10}[KMGTP]?i?B)/([0-9]{1,12})msec\)"
)
_OLD_FLOW: Final = re.compile(
    r"^\s{1,8}(read|write|trim)"
    r"\s{0,2}: io=([0-9.]{1,12}[KMGTP]?B), bw=([0-9.]{1,12}[KMGT]?B)/s, iops=([0-9]{1,12}), "
    r"runt=\s{0,8}([0-9]{1,12})msec"
)
_LATENCY: Final = re.compile(
    r"^\s{1,10}(clat|lat)\s?\(([num]sec)\)\s?: min=\s{0,12}[0-9.]{1,14}[kM]?, max="
    r"\s{0,12}([0-9.]{1,14})([kM]?), avg=\s{0,12}([0-9.]{1,16})"
)
_PERCENTILES: Final = re.compile(r"^\s{1,10}clat percentiles \(([num]sec)\):\s*$")
_POINT: Final = re.compile(r"([0-9]{1,3}\.[0-9]{1,4})th=\[\s{0,12}([0-9]{1,15})\]")
_TOTAL: Final = re.compile(
    r"^\s{0,8}(READ|WRITE|TRIM): (?:bw=([0-9.]{1,10}[KMGT]?i?B)/s|"
    r"io=[0-9.]{1,12}[KMGTP]?B, aggrb=([0-9.]{1,12}[KMGT]?B)/s)"
    r"(?:.{0,160}run=[0-9]{1,12}-([0-9]{1,12})msec)?"
)
_GROUP: Final = re.compile(r"^\s{0,4}Run status group ([0-9]{1,6})")
_TERSE: Final = re.compile(r"^[345];fio-[\w.-]{1,40};")
_IO_ERROR: Final = re.compile(
    r"^fio: io_u error on file .{0,400}: ([A-Z][A-Za-z /-]{2,60}): (?:read|write|sync|trim)"
)
_ENDED: Final = re.compile(r"^fio: pid=[0-9]{1,9}, err=([0-9]{1,4})/")
_INSIDE: Final = re.compile(
    r"^\s{1,12}(?:slat|clat|lat|bw|iops|cpu|IO depths|submit|complete|issued|latency|\||sync|"
    r"cycles|read|write|mixed)|"
    r"^\s{0,4}(?:fio-[0-9]|Starting [0-9]|Run status|Disk stats|\.\.\.|Jobs: [0-9]|"
    r"note: both iodepth)|Laying out IO file|"
    r"^\s{1,8}[\w/-]{2,40}: ios="
)
_UNITS: Final = {"nsec": 1e-3, "usec": 1.0, "msec": 1e3}
_FACTOR: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_DISK: Final = re.compile(
    r"^\s{1,8}(?P<name>[\w/!-]{2,40}): ios=.{0,240}?util=(?P<busy>[0-9.]{1,8})%"
)
Record = Job | GroupTotal | Failure | Disk


class FioReader(Listing[Record]):
    """Reads jobs, their directions and the totals of groups."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b": (groupid=",
        b": (g=",
        b";fio-",
        b"fio: io_u error",
        b"fio: pid=",
        b"Run status group",
    )
    # The sum of a group by itself, as people cut it out.
    pattern: ClassVar[bytes] = rb"(?:READ|WRITE|TRIM): (?:bw|io)=[0-9]"
    PATIENCE = 4

    _job: Job | None = None
    _flow: Flow | None = None
    _group = 0
    _unit: float | None = None

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[Record] | None = None
    ) -> None:
        super().__init__(context, host, kept)
        self._defined: dict[str, re.Match[str]] = {}

    def take(self, number: int, text: str) -> bool:
        """Take a line of fio's output."""
        if _TERSE.match(text):
            job = job_of_terse(number, text, self.host)
            return job is not None and self.kept.add(job)
        if self._header(number, text) or (self.inside and self._body(number, text)):
            return True
        return not self.inside and self._sum(number, text)

    def end(self) -> None:
        """Forget the job: what follows belongs to another run."""
        self._job = self._flow = self._unit = None
        self._defined.clear()

    def judge(self, records: Sequence[Record]) -> Result:
        """Say what the run reached and what it can and cannot tell."""
        return result_of(["fio"], judge_fio("fio", records))

    def _header(self, number: int, text: str) -> bool:
        defined = _DEFINED.match(text)
        if defined:
            if len(self._defined) < 256:
                self._defined[defined[1].strip()] = defined
            self.inside = True
            return True
        result = _RESULT.match(text)
        if result:
            self._job = self._new(number, result)
            self.kept.add(self._job)
            self.inside, self._flow, self._unit = True, None, None
            return True
        group = _GROUP.match(text)
        if group:
            self._group, self.inside, self._unit = int(group[1]), True, None
            return True
        failed, ended = _IO_ERROR.match(text), _ENDED.match(text)
        if failed or ended:
            words = failed[1] if failed else text.rpartition("error=")[2]
            code = int(ended[1]) if ended else 0
            self.kept.add(Failure(number, self.host, code, short(words, 60)))
            return True
        return False

    def _new(self, number: int, found: re.Match[str]) -> Job:
        name = found[1].strip()
        job = Job(number, short(name), self.host, int(found[2]), int(found[3]), int(found[4]))
        defined = self._defined.get(name)
        if defined:
            job.rw, job.engine, job.depth = defined[3], defined[5], int(defined[6])
            job.block_bytes = size_bytes(defined[4])
        return job

    def _body(self, number: int, text: str) -> bool:
        if self._sum(number, text):
            return True
        if self._job is not None and (self._flow_line(text) or self._latency(text)):
            return True
        disk = _DISK.match(text[:320])
        if disk is not None:
            busy = decimal(disk["busy"]) or 0.0
            self.kept.add(Disk(number, self.host, disk["name"], busy))
            return True
        return bool(_INSIDE.search(text[:200]))

    def _sum(self, number: int, text: str) -> bool:
        total = _TOTAL.match(text)
        if total is None:
            return False
        rate = _rate(total[2] or total[3])
        if rate is not None:
            runtime = decimal(total[4] or "")
            self.kept.add(
                GroupTotal(number, self.host, self._group, total[1].lower(), rate, runtime)
            )
        return True

    def _flow_line(self, text: str) -> bool:
        new, old = _FLOW.match(text), _OLD_FLOW.match(text)
        found = new or old
        if found is None or self._job is None or found[1] not in DIRECTIONS:
            return False
        flow = self._flow = self._job.flow(found[1])
        self._unit = None
        if new:
            flow.iops = (decimal(new[2]) or 0.0) * _FACTOR[new[3]]
            flow.bytes_per_s, flow.io_bytes = _rate(new[4]), size_bytes(new[5], binary=False)
            flow.runtime_ms = float(new[6])
        elif old:
            # fio 2 writes KB and MB for powers of 1024.
            flow.io_bytes, flow.bytes_per_s = _rate(old[2]), _rate(old[3])
            flow.iops, flow.runtime_ms = float(integer(old[4]) or 0), float(old[5])
        return True

    def _latency(self, text: str) -> bool:
        flow = self._flow
        if flow is None:
            return False
        heading = _PERCENTILES.match(text)
        if heading:
            self._unit = _UNITS.get(heading[1])
            return True
        if self._unit is not None and text.lstrip().startswith("|"):
            for percent, value in _POINT.findall(text):
                if len(flow.percentiles_us) < 32:
                    flow.percentiles_us[float(percent)] = int(value) * self._unit
            return True
        found = _LATENCY.match(text)
        if found is None:
            return False
        unit = _UNITS[found[2]]
        mean, highest = decimal(found[5]), decimal(found[3])
        if found[1] == "clat" or flow.mean_us is None:
            flow.mean_us = mean * unit if mean is not None else None
            flow.max_us = highest * unit * _FACTOR[found[4]] if highest is not None else None
        return True


def _rate(text: str | None) -> float | None:
    """Return ``2207MiB`` in bytes; ``KB`` of fio 2 counts as 1024 too."""
    if text is None:
        return None
    return size_bytes(text.replace("iB", "B").removesuffix("B"))
