"""Readers of ``/proc/self/mountstats`` and of the tool ``mountstats`` (nfs-utils)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing, result_of
from engine.readers.quantities import decimal, integer, short
from engine.readers.storage.nfs_ops import Op, judge_ops
from engine.readers.storage.nfs_options import Mount, judge_mounts

_DEVICE: Final = re.compile(
    r"^\s{0,4}device (\S{1,200}) mounted on (\S{1,200}) with fstype (\w{1,24})"
)
_OP: Final = re.compile(r"^\s{1,20}([A-Z][A-Z_0-9]{2,24}): ((?:[0-9]{1,20} ){6,9}[0-9]{1,20})\s*$")
_LINE: Final = re.compile(
    r"^\s{1,12}(opts|age|impl_id|caps|nfsv4|sec|events|bytes|RPC iostats|xprt|per-op)\b[:\s]?"
    r"\s{0,8}(.{0,400})"
)


@dataclass(slots=True)
class Device:
    """One NFS mount with its counters: by operation, as the kernel prints them."""

    line: int
    host: str | None
    mount: str
    options: str = ""
    age_s: int | None = None
    ops: dict[str, tuple[int, ...]] = field(default_factory=dict)


class MountstatsReader(Listing[Device]):
    """Reads the raw counters; two listings of a mount are compared."""

    triggers: ClassVar[tuple[bytes, ...]] = (b" with fstype ",)
    PATIENCE = 2

    MAX_MOUNTS: ClassVar[int] = 256

    _device: Device | None = None

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[Device] | None = None
    ) -> None:
        super().__init__(context, host, Kept(self.MAX_MOUNTS) if kept is None else kept)

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``/proc/self/mountstats``."""
        start = _DEVICE.match(text)
        if start:
            nfs = start[3] in ("nfs", "nfs4")
            self._device = Device(number, self.host, short(start[2], 120)) if nfs else None
            if self._device:
                self.kept.add(self._device)
            self.inside = True
            return True
        if not self.inside:
            return False
        op = _OP.match(text)
        line = None if op else _LINE.match(text)
        device = self._device
        if device is not None and op and len(device.ops) < 128:
            device.ops[op[1]] = tuple(int(n) for n in op[2].split())
        elif device is not None and line and line[1] == "age":
            device.age_s = integer(line[2])
        elif device is not None and line and line[1] == "opts":
            device.options = line[2]
        return bool(op or line)

    def judge(self, records: Sequence[Device]) -> Result:
        """Say what operations and options show."""
        mounts: dict[tuple[str | None, str], list[Device]] = {}
        for device in records:
            mounts.setdefault((device.host, device.mount), []).append(device)
        ops = [op for takes in mounts.values() for op in _ops(takes)]
        options = [
            Mount(takes[-1].line, host, mount, "nfs", takes[-1].options)
            for (host, mount), takes in mounts.items()
            if takes[-1].options
        ]
        found = [*judge_ops("mountstats", ops), *judge_mounts("mountstats", options, quiet=True)]
        return result_of(["mountstats"], found)


def _ops(takes: Sequence[Device]) -> list[Op]:
    """Return the operations of a mount: of the time between two listings, else since the mount."""
    first, last = takes[0], takes[-1]
    seconds = (last.age_s or 0) - (first.age_s or 0)
    compared = len(takes) > 1 and seconds > 0
    found = []
    for name, counts in last.ops.items():
        before = first.ops.get(name, ()) if compared else ()
        if len(before) == len(counts):
            counts = tuple(b - a for a, b in zip(before, counts, strict=True))  # noqa: PLW2901
        ops, sent, timeouts, out, back, queue, rtt, exe = (
            counts[:8] if len(counts) > 7 else (*counts, 0)
        )
        if ops <= 0 or min(counts) < 0:
            continue
        span = seconds if compared else last.age_s
        found.append(
            Op(
                last.line,
                last.mount,
                name,
                last.host,
                ops=float(ops),
                per_s=round(ops / span, 3) if span and compared else None,
                kb_per_s=round((out + back) / 1024 / span, 3) if span and compared else None,
                kb_per_op=round((out + back) / 1024 / ops, 3),
                retrans=max(sent - ops, 0),
                timeouts=timeouts,
                rtt_ms=round(rtt / ops, 3),
                exe_ms=round(exe / ops, 3),
                queue_ms=round(queue / ops, 3),
                errors=counts[8] if len(counts) > 8 else 0,
                recent=compared,
            )
        )
    return found


_STATS: Final = re.compile(r"^\s{0,4}Stats for (\S{1,200}) mounted on (\S{1,200}):\s*$")
_NAME: Final = re.compile(r"^\s{0,4}([A-Z][A-Z_0-9]{2,24}):\s*$")
_COUNT: Final = re.compile(
    r"^\s{1,12}([0-9]{1,20}) ops \([0-9]{1,3}%\)(?:\s{1,8}([0-9]{1,20}) retrans \([0-9]{1,6}%\)"
    r"\s{1,8}([0-9]{1,20}) major timeouts)?"
    r"(?:\s{0,8}([0-9]{1,20}) errors \([0-9]{1,3}%\))?\s*$"
)
_BYTES: Final = re.compile(
    r"^\s{1,12}avg bytes sent per op: ([0-9]{1,20})\s{1,8}avg bytes received per op: ([0-9]{1,20})"
)
_TIMES: Final = re.compile(
    r"^\s{1,12}backlog wait: ([0-9.]{1,20})\s{1,8}RTT: ([0-9.]{1,20})"
    r"\s{1,8}total execute time: ([0-9.]{1,20}) \(milliseconds\)"
)
_OPTIONS: Final = re.compile(r"^\s{1,6}NFS mount options: (\S{1,400})")


class MountstatsToolReader(Listing[Op]):
    """Reads the report that ``mountstats MOUNT`` makes of these counters."""

    pattern: ClassVar[bytes] = rb"Stats for \S+ mounted on "
    PATIENCE = 40

    _mount = ""
    _op: Op | None = None
    _name = ""

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``mountstats``."""
        start = _STATS.match(text)
        if start:
            self._mount, self._op, self.inside = short(start[2], 120), None, True
            return True
        if not self.inside:
            return False
        name, count = _NAME.match(text), _COUNT.match(text)
        if name:
            self._name = name[1]
            return True
        if count and self._name:
            self._op = Op(
                number,
                self._mount,
                self._name,
                self.host,
                ops=float(count[1]),
                retrans=integer(count[2] or "") or 0,
                timeouts=integer(count[3] or "") or 0,
                errors=integer(count[4] or "") or 0,
            )
            self._name = ""
            self.kept.add(self._op)
            return True
        sizes, times = _BYTES.match(text), _TIMES.match(text)
        if self._op is not None and sizes:
            self._op.kb_per_op = (int(sizes[1]) + int(sizes[2])) / 1024
        elif self._op is not None and times:
            self._op.queue_ms, self._op.rtt_ms, self._op.exe_ms = (
                decimal(v) for v in times.groups()
            )
        return bool(sizes or times or _OPTIONS.match(text)) or text.lstrip().startswith(
            ("NFS", "RPC", "average backlog")
        )

    def judge(self, records: Sequence[Op]) -> Result:
        """Say what the operations show."""
        return result_of(["mountstats"], judge_ops("mountstats", records))
