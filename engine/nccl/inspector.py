"""Records of NCCL Inspector: one JSON object a line, a file per process (``HOST-pidN.log``).

Fields: NVIDIA/nccl 2.30.7 plugins/profiler/inspector/inspector_json.cc (format v4.0, the same since
2.28.3 but for ``comm_name`` and point-to-point operations, which came later). ``coll_exec_time_us``
is the time of the kernels, waiting for other ranks included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from engine.nccl.records import Record, printable

MARKS: Final = (b'"coll_perf"', b'"p2p_perf"')
"""One of these stands in every record."""

NAMES: Final = {"All2All": "AlltoAll"}
"""Names of collectives that Inspector spells in its own way (inspector.cc, ncclFuncToString)."""


def is_whole_record(raw: bytes) -> bool:
    """Whether a line should hold a whole record, and not a line of one that is pretty-printed."""
    return raw.lstrip()[:1] == b"{" and b'_perf"' in raw


def parse_record(raw: bytes | str) -> Record | None:
    """Return the record in a line; None if it holds none, or only a part of one."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return record_of(value)


def record_of(value: object) -> Record | None:
    """Return the record that a parsed JSON object is; None if it is none."""
    if not isinstance(value, Mapping):
        return None
    header = value.get("header")
    for kind in ("coll", "p2p"):
        figures = value.get(f"{kind}_perf")
        if isinstance(figures, Mapping):
            known = header if isinstance(header, Mapping) else {}
            metadata = value.get("metadata")
            by = metadata if isinstance(metadata, Mapping) else {}
            return _record(kind, figures, known, by)
    return None


def _record(
    kind: str, figures: Mapping[str, Any], header: Mapping[str, Any], metadata: Mapping[str, Any]
) -> Record | None:
    name = _text(figures.get(kind))
    duration = _number(figures.get(f"{kind}_exec_time_us"))
    size = _whole(figures.get(f"{kind}_msg_size_bytes"))
    if name is None or duration is None or size is None:
        return None
    busbw = _number(figures.get(f"{kind}_busbw_gbs"))
    comm_name = _text(header.get("comm_name"))
    return Record(
        collective=NAMES.get(name, name),
        comm=_text(header.get("id")) or "unknown",
        comm_name=None if comm_name == "unknown" else comm_name,
        rank=_whole(header.get("rank")),
        ranks=_whole(header.get("n_ranks")),
        nodes=_whole(header.get("nnodes")),
        where=_text(metadata.get("hostname")),
        sequence=_whole(figures.get(f"{kind}_sn")),
        size=size,
        duration_us=duration,
        # 0 stands for collectives without a formula, such as AlltoAll, and for times of 0 us.
        busbw=busbw or None,
        timing=_text(figures.get(f"{kind}_timing_source")),
        pid=_whole(metadata.get("pid")),
    )


def _text(value: object) -> str | None:
    return printable(value) if isinstance(value, str) and value else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return None
    return float(value)


def _whole(value: object) -> int | None:
    found = _number(value)
    return None if found is None or found != int(found) else int(found)
