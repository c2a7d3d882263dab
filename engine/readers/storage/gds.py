"""Readers of GPUDirect Storage: what it can do, what it did, what it complained of.

``gdscheck -p``, nvidia-fs statistics, ``gds_stats``, cufile.log and ``gdsio``.

Sources: NVIDIA GPUDirect Storage Installation and Troubleshooting Guide; NVIDIA/gds-nvidia-fs
src/nvfs-stat.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from engine.readers.base import Result
from engine.readers.listing import Listing, result_of
from engine.readers.quantities import decimal, short
from engine.readers.storage.gds_use import Log, Run, judge_log, judge_runs
from engine.readers.storage.gds_verdict import Check, Stats, judge_checks, judge_stats

_PAIR: Final = re.compile(r"^\s{0,4}(?:--)?([A-Za-z][\w ./-]{1,40}?)\s{0,20}: {1,2}(\S.{0,120})$")
_GPU: Final = re.compile(
    r"^\s{0,4}GPU index ([0-9]{1,3}) (.{1,60}?) bar:[0-9]{1,2} .{0,60}?(supports GDS|"
    r"does not support GDS)?(?:, IOMMU State: ([\w -]{2,24}))?\s*$"
)


class GdscheckReader(Listing[Check]):
    """Reads ``gdscheck -p``: supported paths, settings, GPUs, the platform's verdict."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"GDS release version",
        b"DRIVER CONFIGURATION:",
        b"CUFILE CONFIGURATION:",
    )
    PATIENCE = 4

    _check: Check | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``gdscheck``."""
        if "GDS release version" in text or (
            not self.inside and text.strip().endswith("CONFIGURATION:")
        ):
            self._check = Check(number, self.host)
            self.kept.add(self._check)
            self.inside = True
            return True
        check = self._check
        if not self.inside or check is None:
            return False
        gpu = _GPU.match(text)
        if gpu:
            check.gpus += 1
            check.unsupported_gpus += gpu[3] != "supports GDS"
            check.iommu_on |= bool(gpu[4]) and gpu[4].strip().lower() != "disabled"
            return True
        if "Platform verification" in text:
            check.verified = "succeeded" in text
            return True
        pair = _PAIR.match(text)
        if pair:
            check.add(pair[1].strip(), pair[2].strip())
            return True
        bare = text.strip()
        known = set(bare) == {"="} or (bare.isupper() and bare.endswith((":", "INFO")))
        # A line at the margin that is not known is another tool's.
        self.inside = known or text.startswith((" ", "\t"))
        return known

    def judge(self, records: Sequence[Check]) -> Result:
        """Say whether GPUDirect Storage can be used here."""
        return result_of(["gdscheck"], judge_checks(records))


_COUNTS: Final = re.compile(
    r"^\s{0,4}(Reads|Writes|Mmap|Bar1-map|Batches)\s{1,12}: (n=[0-9]{1,20} .{0,200})$"
)
_ERROR: Final = re.compile(r"^\s{0,4}Error\s{1,12}: (\S.{0,200})$")
_GPU_LINE: Final = re.compile(
    r"^\s{0,4}GPU [0-9a-f:.]{7,16} .{0,120}cross_root_port\(%\)=([0-9]{1,3})"
)
_VALUE: Final = re.compile(r"\b([a-z][\w-]{0,24})=([0-9]{1,20})\b")
_PER_GPU: Final = re.compile(
    r"^\s{0,4}(?:GPU ([0-9]{1,3})\(UUID: [\w-]{8,48}\) )?(Read|Write): (bw=.{1,300})$"
)


class NvidiaFsReader(Listing[Stats]):
    """Reads ``/proc/driver/nvidia-fs/stats`` and the lines a GPU of ``gds_stats -l 3``."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"NVFS statistics",
        b"NVFS Driver",
        b"PER_GPU STATS",
        b"Bar1-map",
        b" r_sparse=",
    )
    PATIENCE = 4

    _stats: Stats | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of the statistics."""
        if "NVFS statistics" in text or "PER_GPU STATS" in text:
            self._stats = Stats(number, self.host)
            self.kept.add(self._stats)
            self.inside = True
            return True
        counts, error = _COUNTS.match(text), _ERROR.match(text)
        per_gpu, gpu = _PER_GPU.match(text), _GPU_LINE.match(text)
        if self._stats is None and (counts or per_gpu):
            self._stats = Stats(number, self.host)
            self.kept.add(self._stats)
            self.inside = True
        stats = self._stats
        if stats is None or not self.inside:
            return False
        if counts:
            values = dict(_VALUE.findall(counts[2]))
            stats.add(counts[1].lower(), {k: int(v) for k, v in values.items()})
        elif error:
            stats.errors += sum(int(v) for _, v in _VALUE.findall(error[1]))
        elif per_gpu:
            values = dict(_VALUE.findall(per_gpu[3]))
            stats.add(
                "reads" if per_gpu[2] == "Read" else "writes",
                {k: int(v) for k, v in values.items()},
            )
            stats.user_level = True
        elif gpu:
            stats.cross_root = max(stats.cross_root, int(gpu[1]))
        return bool(
            counts
            or error
            or per_gpu
            or gpu
            or re.match(
                r"^\s{0,4}(?:GDS Version|NVFS Driver|Mellanox PeerDirect|IO stats|Logging|"
                r"Active|Reads|Writes|Sparse|Ops|GPU|Total)\b",
                text,
            )
        )

    def end(self) -> None:
        """Start afresh with the next listing."""
        self._stats = None

    def judge(self, records: Sequence[Stats]) -> Result:
        """Say what went through GPUDirect Storage, and what did not."""
        return result_of(["nvidia_fs"], judge_stats(records))


_LOG: Final = re.compile(
    r"^\s{0,4}[0-9]{2}-[0-9]{2}-[0-9]{4} [0-9:]{8,16} \[pid=\s{0,8}[0-9]{1,9} tid="
    r"\s{0,8}[0-9]{1,9}\] (ERROR|WARN|NOTICE|INFO|DEBUG|TRACE)\s{1,6}(\S{1,40}) (.{0,300})$"
)


class CufileLogReader(Listing[Log]):
    """Reads cufile.log: errors, and whether compatibility mode was taken."""

    pattern: ClassVar[bytes] = rb"tid= *[0-9]+\] +(?:ERROR|WARN|NOTICE|INFO|DEBUG|TRACE) "

    def take(self, number: int, text: str) -> bool:
        """Take a line of cufile.log."""
        found = _LOG.match(text)
        if found is None or (
            "cufio" not in found[2] and "cuFile" not in text and "compat" not in found[3]
        ):
            return found is not None
        if found[1] in ("ERROR", "WARN") or "compatible mode" in found[3]:
            self.kept.add(Log(number, self.host, found[1], short(found[3], 120)))
        return True

    def judge(self, records: Sequence[Log]) -> Result:
        """Say what the library complained about."""
        return result_of(["cufile_log"], judge_log(records))


_GDSIO: Final = re.compile(
    r"IoType: (\w{4,10}) XferType: (\w{2,16}) Threads: ([0-9]{1,5}) "
    r".{0,80}?IOSize: ([0-9]{1,12})\(KiB\)\s{1,4}"
    r"Throughput: ([0-9.]{1,16}) (GiB|MiB)/sec,? Avg_Latency: ([0-9.]{1,16}) usecs"
)


class GdsioReader(Listing[Run]):
    """Reads the result line of ``gdsio``."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"XferType: ",)

    def take(self, number: int, text: str) -> bool:
        """Take a result of ``gdsio``."""
        found = _GDSIO.search(text[:600])
        if found is None:
            return False
        rate = (decimal(found[5]) or 0.0) * (1.073741824 if found[6] == "GiB" else 0.001048576)
        self.kept.add(
            Run(
                number,
                self.host,
                found[1].lower(),
                found[2],
                int(found[3]),
                int(found[4]),
                rate,
                (decimal(found[7]) or 0.0) / 1000,
            )
        )
        return True

    def judge(self, records: Sequence[Run]) -> Result:
        """Say what the runs reached, and whether the direct path gains."""
        return result_of(["gdsio"], judge_runs(records))
