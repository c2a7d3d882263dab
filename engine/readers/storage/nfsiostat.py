"""Reader of ``nfsiostat`` (nfs-utils tools/nfs-iostat), old and new columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from engine.readers.base import Result
from engine.readers.listing import Listing, result_of
from engine.readers.quantities import decimal, integer, short
from engine.readers.storage.nfs_ops import Op, judge_ops

_MOUNT: Final = re.compile(r"^\s{0,4}(\S{1,200}:\S{1,200}) mounted on (\S{1,200}):\s*$")
_HEAD: Final = re.compile(r"^\s{0,4}(read|write)(?::)?\s{1,20}ops/s\s")
_VALUES: Final = re.compile(
    r"^\s{1,40}([0-9.]{1,16})\s{1,24}([0-9.]{1,16})\s{1,24}([0-9.]{1,16})"
    r"\s{1,24}([0-9]{1,12}) \(\s?([0-9.]{1,8})%\)\s{1,24}([0-9.]{1,16})\s{1,24}([0-9.]{1,16})"
    r"(?:\s{1,24}([0-9.]{1,16}))?(?:\s{1,24}([0-9]{1,12}) \(\s?[0-9.]{1,8}%\))?\s*$"
)


class NfsiostatReader(Listing[Op]):
    """Reads the READ and WRITE lines of each mount; the first report is since the mount."""

    pattern: ClassVar[bytes] = rb":/?\S* mounted on /\S*:"
    PATIENCE = 3

    _mount = ""
    _op = ""

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``nfsiostat``."""
        mount = _MOUNT.match(text)
        if mount:
            self._mount, self._op, self.inside = short(mount[2], 120), "", True
            return True
        if not self.inside:
            return False
        head = _HEAD.match(text)
        if head:
            self._op = head[1].upper()
            return True
        values = _VALUES.match(text) if self._op else None
        if values is None:
            return bool(
                re.match(
                    r"^\s{1,16}ops?/s\s{1,16}rpc bklog|^\s{0,24}[0-9.]{1,16}"
                    r"\s{1,24}[0-9.]{1,16}\s*$",
                    text,
                )
            )
        self._keep(number, [decimal(v or "") for v in values.groups()], integer(values[4]) or 0)
        self._op = ""
        return True

    def judge(self, records: Sequence[Op]) -> Result:
        """Say what the last interval shows; with one report, the means since the mount."""
        last: dict[tuple[str | None, str, str], Op] = {}
        for op in records:
            key = (op.host, op.mount, op.name)
            op.recent = key in last
            last[key] = op
        return result_of(["nfsiostat"], judge_ops("nfsiostat", list(last.values())))

    def _keep(self, number: int, values: Sequence[float | None], retrans: int) -> None:
        errors = int(values[8] or 0) if len(values) > 8 else 0
        self.kept.add(
            Op(
                number,
                self._mount,
                self._op,
                self.host,
                per_s=values[0],
                kb_per_s=values[1],
                kb_per_op=values[2],
                retrans=retrans,
                rtt_ms=values[5],
                exe_ms=values[6],
                queue_ms=values[7],
                errors=errors,
            )
        )
