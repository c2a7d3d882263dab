"""The Chrome trace that NCCL's example profiler plugin writes, an event a line.

A collective is a pair of events (``ph`` b and e) of category COLL; between them stand its kernel
events, whose GPU clocks (nanoseconds) give the time on the device. Without them the pair's own
times are those of the CPU: of the launch, if no proxy took part. Format: NVIDIA/nccl 2.30.7
plugins/profiler/example/print_event.cc, README.md; older releases write the type as a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from engine.nccl.records import Record, printable

MARKS: Final = (b'"cat": "COLL', b'"cat": "GROUP_API"', b'"cat": "P2P"', b'"CommHash"')
"""One of these stands near the start of every such trace."""

_WANTED = (b'"COLL"', b'"P2P"', b'"GPU"')
# ncclDataType_t by name and by number (NVIDIA/nccl src/nccl.h.in).
_NAMES = ("Int8", "Uint8", "Int32", "Uint32", "Int64", "Uint64", "Float16", "Float32", "Float64")
_BYTES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
_SIZES = dict(zip((*_NAMES, "Bfloat16", "Float8e4m3", "Float8e5m2"), _BYTES, strict=True))


@dataclass(slots=True)
class _Open:
    """A collective whose end was not seen yet."""

    name: str
    args: Mapping[str, Any]
    start_us: float
    first_ns: int = 0
    last_ns: int = 0


class PluginTrace:
    """Reads the lines of one file."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, object], _Open] = {}
        self._current: _Open | None = None

    def feed(self, raw: bytes) -> Iterator[Record]:
        """Take a line; yield the record whose last event it is."""
        if not any(want in raw for want in _WANTED):
            return
        try:
            event = orjson.loads(raw.strip().removesuffix(b","))
        except orjson.JSONDecodeError:
            return
        if not isinstance(event, Mapping):
            return
        category, args, at = event.get("cat"), event.get("args"), event.get("ts")
        if category == "GPU":
            if isinstance(args, Mapping) and self._current is not None:
                _clocks(self._current, args)
            return
        if category not in {"COLL", "P2P"} or isinstance(at, bool):
            return
        if not isinstance(at, int | float):
            return
        key = (str(category), event.get("id") if isinstance(event.get("id"), int) else None)
        if event.get("ph") == "b" and isinstance(args, Mapping):
            name = event.get("name")
            if isinstance(name, str) and len(self._open) < 1_024:
                self._current = self._open[key] = _Open(printable(name, 64), args, float(at))
        elif event.get("ph") == "e" and (begun := self._open.pop(key, None)) is not None:
            self._current = None
            found = _record(begun, float(at))
            if found is not None:
                yield found


def _clocks(one: _Open, args: Mapping[str, Any]) -> None:
    start, stop = args.get("StartGpuClk"), args.get("StopGpuClk")
    if not isinstance(start, int) or not isinstance(stop, int) or not 0 < start < stop:
        return
    one.first_ns = min(one.first_ns or start, start)
    one.last_ns = max(one.last_ns, stop)


def _record(begun: _Open, end_us: float) -> Record | None:
    args = begun.args
    count, width = _whole(args.get("Count")), _width(args.get("Datatype"))
    on_gpu = begun.last_ns > begun.first_ns > 0
    duration = (begun.last_ns - begun.first_ns) / 1e3 if on_gpu else end_us - begun.start_us
    if count is None or width is None or not 0 < duration < 1e12:
        return None
    comm, sequence = _whole(args.get("CommHash")), _whole(args.get("SeqNum"))
    words = [w.lower() for k in ("Algorithm", "Protocol") if isinstance(w := args.get(k), str)]
    return Record(
        collective=begun.name,
        comm="unknown" if comm is None else hex(comm),
        comm_name=None,
        rank=_whole(args.get("Rank")),
        ranks=None,
        nodes=None,
        where=None,
        sequence=sequence,
        size=count * width,
        duration_us=duration,
        busbw=None,
        timing="kernel_gpu" if on_gpu else "collective_cpu",
        algorithm=printable("_".join(words), 64) or None,
    )


def _width(value: object) -> int | None:
    if isinstance(value, str):
        return _SIZES.get(value.removeprefix("nccl"))
    return _BYTES[value] if isinstance(value, int) and 0 <= value < len(_BYTES) else None


def _whole(value: object) -> int | None:
    ok = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64
    return int(value) if ok and isinstance(value, int) else None
