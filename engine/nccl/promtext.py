"""NCCL Inspector's Prometheus text files, as node_exporter's textfile collector takes them.

Two lines a label set, a bandwidth and a time, each an average over one dump interval. The label
``gpu`` stands for the rank, which is not told. Format: NVIDIA/nccl 2.30.7
plugins/profiler/inspector/inspector_prom.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from engine.nccl.inspector import NAMES
from engine.nccl.records import Record, printable
from engine.sources.sampleline import LineError, parse_head, parse_tail

MARKS: Final = (b"nccl_collective_exec_time_microseconds{", b"nccl_p2p_exec_time_microseconds{")
"""One of these starts every line with a time."""

_BANDWIDTHS = ("nccl_bus_bandwidth_gbs", "nccl_p2p_bus_bandwidth_gbs")
_TIMES = ("nccl_collective_exec_time_microseconds", "nccl_p2p_exec_time_microseconds")
_RANGE = re.compile(r"^(\d{1,6})(?:-\d{1,6})?(B|KB|MB|GB|TB)$", re.ASCII)
_SHIFT = {"B": 0, "KB": 10, "MB": 20, "GB": 30, "TB": 40}
_MOST_PENDING = 4_096

Labels = tuple[tuple[str, str], ...]


class PromText:
    """Puts the lines of one file together: a time makes a record, with the bandwidth seen last."""

    def __init__(self) -> None:
        self._bandwidth: dict[Labels, float] = {}

    def feed(self, raw: bytes) -> Iterator[Record]:
        """Take a line; yield the record that it completes."""
        try:
            name, labels, end = parse_head(raw)
            value, _ = parse_tail(raw[end:])
        except LineError:
            return
        if not 0 <= value < 1e15:
            return
        key = tuple(sorted(labels.items()))
        if name in _BANDWIDTHS:
            if len(self._bandwidth) < _MOST_PENDING:
                self._bandwidth[key] = value
        elif name in _TIMES:
            found = _record(labels, value, self._bandwidth.pop(key, None))
            if found is not None:
                yield found


def _record(labels: Mapping[str, str], duration: float, busbw: float | None) -> Record | None:
    name = labels.get("collective") or labels.get("p2p_operation")
    size = _lower_bound(labels.get("message_size", ""))
    if not name or size is None:
        return None
    node, gpu = _known(labels.get("node")), _known(labels.get("gpu"))
    index = gpu.removeprefix("GPU") if gpu else None
    comm_name = _known(labels.get("comm_name"))
    return Record(
        collective=NAMES.get(name, printable(name, 64)),
        comm=comm_name or "unknown",
        comm_name=comm_name,
        rank=None,
        ranks=_whole(labels.get("nranks")),
        nodes=_whole(labels.get("n_nodes")),
        where=":".join(w for w in (node, index) if w) or None,
        sequence=None,
        size=size,
        duration_us=duration,
        busbw=busbw or None,
        algorithm=_known(labels.get("algo_proto")),
        mean=True,
        job=_known(labels.get("slurm_job_id")),
    )


def _lower_bound(text: str) -> int | None:
    found = _RANGE.match(text)
    return int(found[1]) << _SHIFT[found[2]] if found else None


def _known(value: str | None) -> str | None:
    if not value or value == "unknown":
        return None
    return printable(value)


def _whole(value: str | None) -> int | None:
    ok = value is not None and value.isascii() and value.isdigit() and len(value) < 10
    return int(value) if ok and value is not None else None
