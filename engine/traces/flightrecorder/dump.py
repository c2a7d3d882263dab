"""What one rank's Flight Recorder holds: the last collectives it called, and how far they got."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

MAX_ENTRIES: Final = 20_000
_MAX_RANKS: Final = 200_000
_STATES: Final = ("scheduled", "started", "completed")
_RANK = re.compile(r"rank[_-]?([0-9]{1,6})(?![0-9])|[_-]([0-9]{1,6})(?:\.\w{1,8}){0,2}$")
_NAME = re.compile(r"^[\w.:<>\- ]{1,80}$")
_NUMBERS = re.compile(r"[0-9]{1,7}")


@dataclass(frozen=True, slots=True)
class Op:
    """One recorded operation.

    ``state``: scheduled (enqueued by the CPU), started (its kernel runs) or completed. ``where`` is
    the program's own frame that called it.
    """

    group: str
    seq: int
    name: str
    sizes: str
    dtypes: str
    state: str
    p2p: bool
    created_ns: int
    timeout_ms: int | None
    duration_ms: float | None
    where: str | None

    @property
    def done(self) -> bool:
        """Whether it has completed."""
        return self.state == "completed"


@dataclass(slots=True)
class Dump:
    """The record of one rank.

    Attributes:
        rank: global rank, from the file's name; None if that does not say.
        name: the input's name.
        groups: ranks of each process group that this rank knows, by group.
        ops: operations by group, in the order of their calls.
        enqueued: number of the last collective that the rank called, by group.
    """

    rank: int | None
    name: str
    version: str
    groups: dict[str, tuple[int, ...]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    ops: dict[str, list[Op]] = field(default_factory=dict)
    enqueued: dict[str, int] = field(default_factory=dict)
    left_out: int = 0


def is_dump(value: object) -> bool:
    """Return whether a value is a Flight Recorder's dump (versions 2.x, JSON or pickle)."""
    if not isinstance(value, Mapping) or not isinstance(value.get("version"), str):
        return False
    entries = value.get("entries")
    known = "pg_config" in value or "pg_status" in value or "nccl_comm_state" in value
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        return known and "pg_config" in value
    return known or (bool(entries) and _is_entry(entries[0]))


def dump_of(value: Mapping[str, Any], name: str) -> Dump:
    """Return a dump as a record; what is malformed in it is left out."""
    dump = Dump(rank_of(name, value), name, str(value["version"])[:16])
    config = value.get("pg_config")
    for key, one in config.items() if isinstance(config, Mapping) else ():
        if isinstance(one, Mapping):
            group = _short(one.get("name", key))
            dump.groups[group] = _ranks(one.get("ranks"))
            dump.labels[group] = _short(one.get("desc", ""))
    entries = value.get("entries")
    entries = entries if isinstance(entries, Sequence) and not isinstance(entries, str) else ()
    dump.left_out = max(0, len(entries) - MAX_ENTRIES)
    ids: dict[str, str] = {}
    for entry in entries[-MAX_ENTRIES:]:
        if isinstance(entry, Mapping) and _is_entry(entry):
            op = _op(entry)
            dump.ops.setdefault(op.group, []).append(op)
            ids[str(entry.get("pg_id"))] = op.group
            if not op.p2p:
                dump.enqueued[op.group] = max(dump.enqueued.get(op.group, 0), op.seq)
    status = value.get("pg_status")
    for key, one in status.items() if isinstance(status, Mapping) else ():
        known = ids.get(str(key))
        last = _whole(one.get("last_enqueued_collective")) if isinstance(one, Mapping) else None
        if known is not None and last is not None:
            dump.enqueued[known] = max(dump.enqueued.get(known, 0), last)
    return dump


def rank_of(name: str, value: Mapping[str, Any]) -> int | None:
    """Return the rank that a dump's file name ends in (``nccl_trace_rank_3``)."""
    rank = _whole(value.get("rank"))
    if rank is not None:
        return rank
    hits = [hit[1] or hit[2] for hit in _RANK.finditer(name.rsplit("/", 1)[-1])]
    return int(hits[0]) if hits else None


def _is_entry(entry: object) -> bool:
    return (
        isinstance(entry, Mapping)
        and isinstance(entry.get("profiling_name"), str)
        and entry.get("state") in _STATES
    )


def _op(entry: Mapping[str, Any]) -> Op:
    group = entry.get("process_group")
    first = group[0] if isinstance(group, list | tuple) and group else entry.get("pg_id")
    p2p = entry.get("is_p2p") is True
    seq = _whole(entry.get("p2p_seq_id" if p2p else "collective_seq_id"))
    if seq is None:
        seq = _whole(entry.get("seq_id"))
    duration = entry.get("duration_ms")
    return Op(
        group=_short(first),
        seq=seq or 0,
        name=_short(entry["profiling_name"]),
        sizes=_sizes(entry.get("input_sizes")),
        dtypes=_dtypes(entry.get("input_dtypes")),
        state=str(entry["state"]),
        p2p=p2p,
        created_ns=_whole(entry.get("time_created_ns")) or 0,
        timeout_ms=_whole(entry.get("timeout_ms")),
        duration_ms=float(duration) if isinstance(duration, int | float) else None,
        where=_where(entry.get("frames")),
    )


def own_frame(frames: object) -> Mapping[str, Any] | None:
    """Return the first frame of a stack that is not PyTorch's own."""
    for frame in frames[:64] if isinstance(frames, list | tuple) else ():
        if isinstance(frame, Mapping):
            path = str(frame.get("filename", ""))
            if path.endswith(".py") and "/torch/" not in path and "c10d" not in path:
                return frame
    return None


def _where(frames: object) -> str | None:
    """Return where the program called an operation: ``train_step (train.py:88)``."""
    frame = own_frame(frames)
    if frame is None:
        return None
    file = _short(str(frame["filename"]).rsplit("/", 1)[-1])
    return f"{_short(frame.get('name', ''))} ({file}:{_whole(frame.get('line')) or 0})"


def _ranks(value: object) -> tuple[int, ...]:
    """Read ``"[0, 1, 2]"`` or a list of numbers."""
    if isinstance(value, str):
        numbers: Iterable[Any] = map(int, _NUMBERS.findall(value[:1_000_000]))
    elif isinstance(value, list | tuple):
        numbers = (n for n in value if isinstance(n, int) and 0 <= n < 10_000_000)
    else:
        return ()
    return tuple(sorted(set(islice(numbers, _MAX_RANKS))))


def _sizes(value: object) -> str:
    """Return sizes as text (``[4096, 4096] [128]``); several forms of dumps exist."""
    if isinstance(value, str):
        try:
            value = ast.literal_eval(value[:2_000])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return ""
    if not isinstance(value, list | tuple):
        return ""
    shown = []
    for one in value[:16]:
        numbers = one if isinstance(one, list | tuple) else [one]
        shown.append("[" + ", ".join(str(n) for n in numbers[:8] if isinstance(n, int)) + "]")
    return " ".join(shown)[:120] + (f" and {len(value) - 16} more" if len(value) > 16 else "")


def _dtypes(value: object) -> str:
    if isinstance(value, list | tuple):
        return " ".join(dict.fromkeys(_short(one) for one in value[:16]))[:80]
    return ""


def _short(value: object) -> str:
    text = str(value)[:80] if isinstance(value, str | int | float | None) else "?"
    return text if _NAME.match(text) else "".join(c if c.isalnum() else "_" for c in text)[:40]


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return None
